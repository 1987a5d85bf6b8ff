"""Which options of environments fit together, and what they say on a machine that has nothing."""

import pytest

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.linux import process
from weighbridge.model.environment import Needs

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


def _docker(**options) -> list[str]:
    docker = ENVIRONMENTS["docker"]
    needs = options.pop("needs", Needs(network=options.pop("needs_network", True)))
    return docker.check(docker.options.model_validate(options), needs=needs)


@pytest.mark.parametrize("network", ["none", "host"])
def test_docker_publishes_on_a_bridge_only(network: str):
    (problem,) = _docker(network=network, publish=True, needs_network=False)
    assert problem == f"'publish' needs network: bridge, not {network}"
    assert _docker(network="bridge", publish=True) == []


def test_docker_without_a_network_carries_no_network_workload():
    assert _docker(network="none", needs_network=False) == []
    assert _docker(network="none") == ["network: none cannot carry this workload: choose another network"]


def test_native_is_not_ready_where_no_namespace_can_be_made(programs: list):
    ready = ENVIRONMENTS["native"].ready()
    assert not ready.ready
    assert programs


def test_docker_says_which_engine_does_not_answer(programs: list):
    ready = ENVIRONMENTS["docker"].ready()
    assert not ready.ready
    assert "/nonexistent/docker.sock" in ready.detail
    assert programs == []
