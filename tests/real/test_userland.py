"""Building userlands: once, however many want it, and whatever happened to the one who built before."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from weighbridge.errors import UserlandError
from weighbridge.model.userland import UserlandSpec
from weighbridge.runner import clean
from weighbridge.userland.build import ensure

PACKAGE = "netcat-openbsd"
WRONG = "no-such-package-at-all"
BUILD = (
    "import sys; from pathlib import Path; from weighbridge.userland.build import ensure;"
    "from weighbridge.model.userland import UserlandSpec;"
    "spec = UserlandSpec.of([sys.argv[2]]);"
    "print(ensure(spec, Path(sys.argv[1]), lambda text: print(text, file=sys.stderr, flush=True)).digest)"
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path))
    yield tmp_path


@pytest.fixture(scope="module", autouse=True)
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """A build that takes a while to fail, at the same time as the others."""
    with builder(tmp_path_factory.mktemp("wrong"), WRONG) as process:
        yield process
        process.kill()


def builder(place: Path, package: str = PACKAGE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, str(place), package], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def at_work(place: Path) -> list[str]:
    """The processes that build in the place."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(place) in words and words.split()[0] != sys.executable:
            found.append(words)
    return found


def half_built() -> list[str]:
    return [left.name for left in clean.find().left if left.kind == "half-built root filesystem"]


def test_killed_then_built_once_by_two(place: Path):
    first = builder(place)
    deadline = time.monotonic() + 60
    work = place / "userlands"
    while not list(work.glob(".building-*/mmdebstrap.*/etc")):
        assert first.poll() is None and time.monotonic() < deadline, first.communicate()
        time.sleep(0.02)
    assert at_work(place)
    assert half_built() == [], "a living builder is no leftover"
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    while at_work(place):
        assert time.monotonic() < deadline, "mmdebstrap outlived the one who started it"
        time.sleep(0.02)
    assert len(half_built()) == 1

    two = [builder(place) for _ in range(2)]
    told = [one.communicate(timeout=300) for one in two]
    assert [one.returncode for one in two] == [0, 0], told
    assert told[0][0] == told[1][0]
    said = sorted("installing its packages" in err for _, err in told)
    assert said == [False, True], told
    assert any("waiting for another run" in err for _, err in told)
    assert not list(work.glob(".building-*"))
    assert half_built() == []
    assert ensure(UserlandSpec.of([PACKAGE]), place, print).digest == told[0][0].strip()
    assert list(work.glob("*/root/usr/bin/nc.openbsd"))
    assert not list(work.glob("*/root/proc/*")), "nothing is mounted in it"
    (root,) = work.glob("*/root")
    assert root.parent.stat().st_mode & 0o777 == 0o755
    programs = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    assert "su" in [path.name for path in programs]
    assert not [path for path in programs if path.stat().st_mode & 0o6000]


def test_wrong_package_is_one_sentence(wrong: subprocess.Popen[str]):
    _, told = wrong.communicate(timeout=120)
    last = told.splitlines()[-1]
    assert last.startswith("weighbridge.errors.UserlandError: mmdebstrap failed: ")
    assert WRONG in last
    assert not list((Path(wrong.args[3]) / "userlands").glob(".building-*"))  # type: ignore[index]


def test_damaged_cache_is_one_sentence(place: Path):
    from weighbridge.userland.build import key_of

    folder = place / "userlands" / key_of(UserlandSpec.of([PACKAGE]))
    folder.mkdir(parents=True)
    (folder / "about.json").write_text("{")
    with pytest.raises(UserlandError, match=re.escape(str(folder))):
        ensure(UserlandSpec.of([PACKAGE]), place, print)
