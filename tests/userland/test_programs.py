"""What the words of a command hold: programs by PATH, scripts with their interpreters, links."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from weighbridge.model.command import Command, Completed, ProcessDefaults
from weighbridge.model.userland import Userland
from weighbridge.userland import programs


@pytest.fixture
def userland(tmp_path: Path) -> Userland:
    root = tmp_path / "root"
    for folder in ("usr/bin", "work", "tmp"):
        (root / folder).mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    (root / "usr/bin/load").write_bytes(b"load")
    (root / "usr/bin/env").write_bytes(b"env")
    (root / "usr/bin/python3").symlink_to("/usr/bin/python3.11")
    (root / "usr/bin/python3.11").write_bytes(b"python")
    (root / "work/own").write_text("#!/usr/bin/env python3\nprint(1)\n")
    (root / "work/data").write_bytes(b"data")
    (root / "tmp/own").write_bytes(b"a site has its own /tmp")
    return Userland("0" * 64, root, None, {}, ProcessDefaults({"PATH": "/none:/bin"}, "/work"))


def sums(userland: Userland, *argv: str, cwd: str = "/work") -> dict[str, str]:
    return programs.digests(userland, Command(argv, cwd=cwd))


def of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("word", ["load", "/bin/load", "../usr/bin/load", "/../../bin//load"])
def test_a_program_is_found_as_it_is_started(userland: Userland, word: str):
    assert sums(userland, word, "-n", "5") == {word: of(b"load")}


def test_a_script_has_its_interpreter_and_files_that_are_named(userland: Userland):
    own = (userland.root / "work/own").read_bytes()
    assert sums(userland, "./own", "data", "no-file", "/work") == {
        "./own": of(own), "data": of(b"data"), "/usr/bin/env": of(b"env"), "python3": of(b"python"),
    }  # fmt: skip
    assert sums(userland, "python3", "own") == {"python3": of(b"python"), "own": of(own)}


def test_a_rebuilt_program_is_another(userland: Userland):
    before = sums(userland, "load")
    (userland.root / "usr/bin/load").write_bytes(b"LOAD")
    assert sums(userland, "load") == {"load": of(b"LOAD")} != before


def test_what_a_site_has_of_its_own_is_no_file_of_the_userland(userland: Userland):
    assert sums(userland, "/tmp/own") == {}
    layered = Userland("0" * 64, userland.root, None, {}, ProcessDefaults(), "/tmp")
    assert set(programs.digests(layered, Command(("/tmp/own",)))) == {"/tmp/own"}


def test_links_lead_nowhere_else_and_end(userland: Userland, tmp_path: Path):
    (tmp_path / "secret").write_bytes(b"outside")
    (userland.root / "work/out").symlink_to("../../secret")
    (userland.root / "work/round").symlink_to("round")
    assert sums(userland, "./out", "round", "", "a\0b") == {}


def test_a_large_file_is_summed_up_in_parts_and_says_so(userland: Userland, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(programs, "WHOLE", 100)
    monkeypatch.setattr(programs, "_PART", 10)
    path = userland.root / "usr/bin/load"
    path.write_bytes(b"x" * 200)
    before = sums(userland, "load")["load"]
    assert before.endswith("(of its size and of three parts: it has 200 bytes)")
    path.write_bytes(b"x" * 199 + b"y")
    assert sums(userland, "load")["load"] != before


LOADED = """\
\tlinux-vdso.so.1 (0x00007ffd3b9f4000)
\tlibown.so.1 => {0}/usr/lib/libown.so.1 (0x00007f0c4f000000)
\tlibgone.so.2 => not found
\t{0}/lib64/ld-linux-x86-64.so.2 (0x00007f0c4f400000)
"""


def test_a_program_of_this_machine_has_the_libraries_that_it_loads(
    userland: Userland, monkeypatch: pytest.MonkeyPatch
):
    """A rebuilt library of the user's is of no package, and elsewhere than on Debian no package is known."""
    root = userland.root
    for library in ("usr/lib/libown.so.1", "lib64/ld-linux-x86-64.so.2"):
        (root / library).parent.mkdir(exist_ok=True)
        (root / library).write_bytes(library.encode())
    (root / "usr/bin/load").write_bytes(b"\x7fELF load")
    asked = []

    def run(command: Command, *, inherit: bool) -> Completed:
        asked.append((command, inherit))
        return Completed(command.argv, 0, LOADED.format(root).encode(), b"", 0.1)

    monkeypatch.setattr(programs, "run", run)
    own = f"{root}/usr/lib/libown.so.1"
    before = sums(userland, "load", "data")
    assert before[own] == of(b"usr/lib/libown.so.1") and f"{root}/lib64/ld-linux-x86-64.so.2" in before
    [(command, inherit)] = asked
    assert not inherit and command.env["PATH"] == "/none:/bin", "the user's LD_LIBRARY_PATH is no site's"
    assert command.argv == ("ldd", str(root / "usr/bin/load")), "its variables are not on a command line"
    Path(own).write_bytes(b"rebuilt")
    assert sums(userland, "load", "data") == before | {own: of(b"rebuilt")}
    packed = replace(userland, tar=root / "root.tar")
    assert [*sums(packed, "load", "data")] == ["load", "data"]


def test_without_a_loader_that_tells_its_program_is_known(userland: Userland, monkeypatch: pytest.MonkeyPatch):
    (userland.root / "usr/bin/load").write_bytes(b"\x7fELF load")
    failed = Completed(("ldd",), 1, b"", b"not a dynamic executable", 0.1)
    monkeypatch.setattr(programs, "run", lambda *_, **__: failed)
    assert sums(userland, "load") == {"load": of(b"\x7fELF load")}
