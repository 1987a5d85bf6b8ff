"""Which launcher it is: the built program tells, not its sources."""

from dataclasses import replace
from pathlib import Path

import pytest

from sentences import raises_sentence
from study.test_frozen import small
from weighbridge import registry
from weighbridge.errors import UserlandError
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
    assert late.last_words == "it did not end within 120 s"
    assert replace(late, stderr=b"one\ntwo\n").last_words == "it did not end within 120 s: two"
    assert replace(late, timed_out=False).last_words == "it printed nothing"
