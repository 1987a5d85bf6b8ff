"""Building userlands: once, if several runs want one, also after a kill; and the contents of one that was built."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weighbridge.errors import UserlandError
from weighbridge.model.userland import Userland, UserlandSpec
from weighbridge.runner import clean
from weighbridge.userland.build import ensure, key_of

SPEC = UserlandSpec.of(["netcat-openbsd"])
BUILD = (
    "import sys; from pathlib import Path; from weighbridge.userland.build import ensure;"
    "from weighbridge.model.userland import UserlandSpec;"
    "spec = UserlandSpec.of(['netcat-openbsd']);"
    "print(ensure(spec, Path(sys.argv[1]), lambda text: print(text, file=sys.stderr, flush=True)).digest)"
)
MMDEBSTRAP = """#!/bin/sh
for tar; do :; done
mkdir -p "$TMPDIR/mmdebstrap.1/etc"
until [ -e "$TMPDIR/../../go" ]; do sleep 0.1; done
tar --create --file "$tar" --directory "$TMPDIR/mmdebstrap.1" etc
rm -r "$TMPDIR/mmdebstrap.1"
"""
"""Stands for mmdebstrap, which takes half a minute: it waits for a file, and then writes an archive."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mmdebstrap").write_text(MMDEBSTRAP)
    (tmp_path / "bin/mmdebstrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path))
    yield tmp_path
    (tmp_path / "go").touch()  # a failed test leaves builders behind


def builder(place: Path, number: int) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-c", BUILD, str(place)]
    with (place / f"out-{number}").open("wb") as out, (place / f"said-{number}").open("wb") as said:
        return subprocess.Popen(argv, stdout=out, stderr=said)


def await_that(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


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
    work = place / "userlands"
    with builder(place, 0) as first:
        await_that(lambda: list(work.glob(".building-*/mmdebstrap.*/etc")))
        assert at_work(place)
        assert half_built() == [], "a living builder is no leftover"
        first.send_signal(signal.SIGKILL)
    await_that(lambda: not at_work(place))  # mmdebstrap ends with the one who started it
    assert len(half_built()) == 1

    two = [builder(place, number) for number in (1, 2)]
    said = [place / f"said-{number}" for number in (1, 2)]
    await_that(lambda: "waiting until" in "".join(each.read_text() for each in said))
    (place / "go").touch()
    assert [one.wait(60) for one in two] == [0, 0], [each.read_text() for each in said]
    (digest,) = {(place / f"out-{number}").read_text().strip() for number in (1, 2)}
    assert sorted("needed only once" in each.read_text() for each in said) == [False, True]
    assert not list(work.glob(".building-*")) and half_built() == []
    assert ensure(SPEC, place, print).digest == digest


def test_it_has_its_programs_and_no_rights_beyond_the_callers(small_userland: Userland):
    root = small_userland.root
    assert (root / "usr/bin/iperf3").exists()
    assert not [*(root / "proc").iterdir()], "nothing is mounted in it"
    assert root.parent.stat().st_mode & 0o777 == 0o755
    programs = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    assert "su" in [path.name for path in programs]
    assert not [path for path in programs if path.stat().st_mode & 0o6000]


def test_damaged_cache_is_one_sentence(place: Path):
    folder = place / "userlands" / key_of(SPEC)
    folder.mkdir(parents=True)
    (folder / "about.json").write_text("{")
    with pytest.raises(UserlandError, match=re.escape(str(folder))):
        ensure(SPEC, place, print)
