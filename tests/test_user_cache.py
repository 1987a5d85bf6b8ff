"""A user without a home folder is told what to set, whatever is asked for."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from weighbridge.cli.app import app
from weighbridge.errors import Unavailable
from weighbridge.hosts.agent import userlands
from weighbridge.user_cache import user_cache_folder


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("WEIGHBRIDGE_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", unknown)


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache_folder() == tmp_path / "weighbridge"


@pytest.mark.parametrize(
    ("command", "starts_processes"),
    [
        (["doctor"], "weighbridge.registry.environments"),
        (["plan", "first-look"], "weighbridge.runner.planned.readiness_of"),
    ],
)
def test_commands_name_the_remedy(monkeypatch: pytest.MonkeyPatch, command: list[str], starts_processes: str):
    monkeypatch.setattr(starts_processes, lambda *_: {})
    ended = CliRunner().invoke(app, command).exception
    assert isinstance(ended, Unavailable)
    assert "WEIGHBRIDGE_CACHE" in str(ended) and "XDG_CACHE_HOME" in str(ended)
    assert len(str(ended).splitlines()) == 1


def test_an_agent_of_such_a_user_says_so_and_still_ends_in_order(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    with pytest.raises(Unavailable, match="XDG_CACHE_HOME"):
        userlands.folder()
    userlands.remove_parts("run-host")
