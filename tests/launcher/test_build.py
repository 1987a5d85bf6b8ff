"""Which launcher it is: the built program tells, not its sources."""

from pathlib import Path

import pytest

from study.test_frozen import small
from weighbridge import registry
from weighbridge.launcher import build
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
