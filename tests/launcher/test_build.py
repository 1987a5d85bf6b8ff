"""Which launcher it is: the built program tells, not its sources."""

import os
import platform
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sentences import raises_sentence
from study.test_frozen import small
from weighbridge import registry
from weighbridge.cli import version
from weighbridge.errors import Unavailable, UserlandError
from weighbridge.launcher import build
from weighbridge.linux import static_c
from weighbridge.model.command import Command, Completed
from weighbridge.runner import run as running


class Quiet:
    def say(self, text: str) -> None: ...


def test_another_compiler_makes_another_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / build.NAME
    monkeypatch.setattr(build, "ensure", lambda *_: program)
    found = []
    for content in (b"one", b"other"):
        program.write_bytes(content)
        found.append(running._launcher(small(), tmp_path, Quiet()))
    assert found == ["7692c3ad3540bb80", "d9298a10d1b07358"]


def test_none_is_built_where_no_environment_starts_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(type(registry.environments()["native"]), "launches", False)
    monkeypatch.setattr(build, "ensure", lambda *_: pytest.fail("it is built"))
    assert running._launcher(small(), tmp_path, Quiet()) == ""


def test_a_compilation_that_does_not_end_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def run(command: Command) -> Completed:
        return Completed(command.argv, -15, b"", b"", command.deadline_s, timed_out=True)

    monkeypatch.setattr(static_c, "run", run)
    with raises_sentence(UserlandError):
        build.ensure(tmp_path, print)


def test_the_compiler_is_quoted_by_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    said = b"/usr/bin/ld: cannot find -lc: No such file or directory\ncollect2: error: ld returned 1 exit status\n"
    monkeypatch.setattr(static_c, "run", lambda command: Completed(command.argv, 1, b"", said, 1.0))
    with raises_sentence(UserlandError):
        build.ensure(tmp_path, print)


def test_the_last_words_of_what_was_ended_at_its_deadline_say_so():
    late = Completed(("x",), -15, b"", b"", 120.04, timed_out=True)
    assert late.last_words == "it did not finish within 120 s"
    assert replace(late, stderr=b"one\ntwo\n").last_words == "it did not finish within 120 s: two"
    assert replace(late, timed_out=False).last_words == "it printed nothing"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda program: program.chmod(0o775), f"{build.NAME} is writable by others"),
        (lambda program: program.parent.chmod(0o777), "is writable by others"),
        (lambda program: os.chown(program, 4711, -1), f"{build.NAME} belongs to another user"),
    ],
)
def test_a_cached_launcher_that_others_could_change_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], says: str
):
    """It is the first process of every site, and root's where we are root."""

    def run(command: Command) -> Completed:
        Path(command.argv[command.argv.index("-o") + 1]).write_bytes(b"built")
        return Completed(command.argv, 0, b"", b"", 1.0)

    monkeypatch.setattr(static_c, "run", run)
    mask = os.umask(0o002)  # as many distributions set it for users
    try:
        program = build.ensure(tmp_path / "cache", lambda _: None)
    finally:
        os.umask(mask)
    assert build.ensure(tmp_path / "cache", lambda _: None) == program
    if os.geteuid() != 0 and "belongs" in says:
        pytest.skip("only root may give a file away")
    change(program)
    with pytest.raises(Unavailable) as told:
        build.ensure(tmp_path / "cache", lambda _: None)
    assert says in str(told.value) and "WEIGHBRIDGE_CACHE" in str(told.value)


def test_what_a_wheel_brought_is_used_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """And not what is compiled already, whose digest may be another."""
    monkeypatch.setattr(build, "PREBUILT", tmp_path / "built")
    monkeypatch.setattr(static_c, "missing", lambda: ("cc",))
    assert build.prebuilt() is None and build.cannot_build(tmp_path / "cache") is not None
    compiled = tmp_path / "cache/programs" / build.key() / build.NAME
    compiled.parent.mkdir(parents=True)
    compiled.write_bytes(b"compiled")
    program = tmp_path / "built" / build.source_key(platform.machine()) / build.NAME
    program.parent.mkdir(parents=True)
    program.write_bytes(b"brought")
    program.chmod(0o664)
    assert build.cannot_build(tmp_path / "other") is None
    cached = build.ensure(tmp_path / "cache", lambda _: pytest.fail("nothing is built"))
    assert cached.read_bytes() == b"brought" and cached.stat().st_mode & 0o777 == 0o755
    program.rename(program.parent.with_name("of other sources"))
    assert build.ensure(tmp_path / "cache", lambda _: None) == compiled


def test_the_version_says_which_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(build, "PREBUILT", tmp_path / "built")
    monkeypatch.setattr(static_c, "missing", lambda: ())
    assert version.version_text().splitlines()[1] == "launcher not built: the first run compiles it"
    monkeypatch.setattr(static_c, "missing", lambda: ("cc",))
    assert version.version_text().splitlines()[1].startswith("launcher not built: cc, which builds")
    program = tmp_path / "built" / build.source_key(platform.machine()) / build.NAME
    program.parent.mkdir(parents=True)
    program.write_bytes(b"one")
    assert version.version_text().splitlines()[1].startswith("launcher 7692c3ad3540bb80 (")
