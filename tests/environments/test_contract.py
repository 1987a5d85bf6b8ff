"""What every environment has to be, as far as can be seen without opening one."""

import json
import re
from contextlib import AbstractContextManager

import pytest

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.linux import process
from weighbridge.model.plugin import Environment, Needs, Readiness
from weighbridge.model.study import Options

ENVIRONMENTS = registry.environments()
EVERY = pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)


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


@EVERY
def test_it_says_what_it_is(environment: Environment):
    assert re.fullmatch(r"[a-z][a-z0-9-]*", environment.kind)
    assert 10 <= len(environment.summary) <= 120
    assert "\n" not in environment.summary
    assert not environment.summary.endswith(".")
    assert type(environment).__doc__


@EVERY
def test_its_options_are_strict_and_cannot_be_changed(environment: Environment):
    assert issubclass(environment.options, Options)
    options = environment.options.model_validate({})
    assert options == environment.options()
    assert environment.options.model_validate_json(options.model_dump_json()) == options
    with pytest.raises(ValueError, match=r"[Ee]xtra"):
        environment.options.model_validate({"no such key": 1})
    schema = environment.options.model_json_schema()
    json.dumps(schema)
    assert schema["additionalProperties"] is False
    assert environment.options.__doc__


@EVERY
@pytest.mark.parametrize("network", [True, False])
def test_its_defaults_have_no_problems_and_asking_changes_nothing(environment: Environment, network: bool):
    options = environment.options()
    before = options.model_copy(deep=True)
    assert environment.problems(options, needs=Needs(network=network)) == []
    assert environment.problems(options, needs=Needs(network=network)) == []
    assert options == before


@EVERY
def test_readiness_is_an_answer_with_a_remedy_and_never_an_exception(environment: Environment, programs: list):
    ready = environment.readiness()
    assert isinstance(ready, Readiness)
    assert ready == environment.readiness()
    if not ready.ready:
        assert ready.detail
        assert ready.remedy
    assert "\n" not in ready.detail + ready.remedy


@EVERY
def test_open_gives_a_context_that_has_done_nothing_yet(environment: Environment, programs: list):
    assert isinstance(environment.open(environment.options(), None), AbstractContextManager)
    assert programs == []


def _docker(**options) -> list[str]:
    docker = ENVIRONMENTS["docker"]
    needs = options.pop("needs", Needs(network=options.pop("needs_network", True)))
    return docker.problems(docker.options.model_validate(options), needs=needs)


@pytest.mark.parametrize("network", ["none", "host"])
def test_docker_publishes_on_a_bridge_only(network: str):
    (problem,) = _docker(network=network, publish=True, needs_network=False)
    assert problem == f"'publish' needs network: bridge, not {network}"
    assert _docker(network="bridge", publish=True) == []


def test_docker_without_a_network_carries_no_network_workload():
    assert _docker(network="none", needs_network=False) == []
    assert _docker(network="none") == ["network: none cannot carry a workload that needs a network"]


def test_native_is_not_ready_where_no_namespace_can_be_made(programs: list):
    ready = ENVIRONMENTS["native"].readiness()
    assert not ready.ready
    assert programs


def test_docker_says_which_engine_does_not_answer(programs: list):
    ready = ENVIRONMENTS["docker"].readiness()
    assert not ready.ready
    assert "/nonexistent/docker.sock" in ready.detail
    assert programs == []
