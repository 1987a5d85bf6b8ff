"""Which options of environments fit together, and what they say on a machine that has nothing."""

import pytest

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.linux import process

ENVIRONMENTS = registry.environments()


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """A machine on which no program can be started and no engine answers; what was tried is noted."""
    tried: list[tuple[str, ...]] = []

    def refuse(command, **_):
        tried.append(command.argv)
        raise Unavailable(f"the program '{command.argv[0]}' is not installed")

    monkeypatch.setattr(process, "Process", refuse)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    return tried


def test_native_is_not_ready_where_no_namespace_can_be_made(programs: list):
    ready = ENVIRONMENTS["native"].ready()
    assert not ready.ready
    assert programs


def test_docker_says_which_engine_does_not_answer(programs: list):
    ready = ENVIRONMENTS["docker"].ready()
    assert not ready.ready
    assert "/nonexistent/docker.sock" in ready.detail
    assert programs == []
