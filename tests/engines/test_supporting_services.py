"""Supporting services: what a study may say, their order, their names, and who listens."""

import os
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from sentences import raises_sentence
from weighbridge import registry
from weighbridge.engines import supporting_services
from weighbridge.engines.supporting_services import _require, listens
from weighbridge.errors import EnvironmentLost, StudyError
from weighbridge.model.secret import SecretName
from weighbridge.model.site import Neighbourhood
from weighbridge.model.supporting_service import SupportingService
from weighbridge.secret_values import keep
from weighbridge.study.external import external_resources
from weighbridge.study.loader import check
from weighbridge.study.source import parse

STUDY = """
study: with-companions
question: What does a bridge cost a service that asks redis?
userland: {{kind: host}}
baseline: native
environments:
  native: {{kind: native}}
  other: {other}
companions:
  redis: {{image: "redis:7", command: [redis-server], {redis}}}
  db: {{image: "postgres:15", after: [{after}]}}
workloads:
  own: {{kind: command, run: "true"}}
"""


def study(other: str = "{kind: docker}", redis: str = "port: 6379", after: str = "redis"):
    return check(parse(STUDY.format(other=other, redis=redis, after=after), "s.yaml"))


@pytest.mark.parametrize(
    "changed",
    [
        {"after": "rediss"},
        {"redis": "after: [db]"},
        {"other": "{kind: docker, network: none}"},
        {"other": "{kind: podman}"},
        {"redis": "port: 6379, healthcheck: {test: [a]}"},
        {"redis": "restart: always"},
    ],
)
def test_what_cannot_be_is_told(changed: dict[str, str]):
    with raises_sentence(StudyError):
        study(**changed)


def test_two_things_at_one_place_are_refused():
    with raises_sentence(ValidationError):
        SupportingService(image="a", volumes={"/a": "v"}, tmpfs=("/a",))


def test_their_commands_are_shown_before_they_run():
    shown = {(each.place, each.value) for each in external_resources(study())}
    assert ("companions.redis.command", "redis-server") in shown


def test_the_ways_of_environments_that_reach_them():
    plugins = [registry.environments()[kind] for kind in ("native", "netns", "apptainer", "bubblewrap", "docker")]
    ways = {plugin.route_to_supporting_services(plugin.options()) for plugin in plugins}
    assert ways == {"host to bridge", "routed by the host to the bridge", "on the same bridge"}


def test_the_names_that_a_site_knows():
    text = Neighbourhood("n", "172.18.0.0/16", "wb-1-c", {"redis": "172.18.0.2"}, {}).hosts_file("own").decode()
    entries = dict(reversed(line.split("\t")) for line in text.splitlines())
    assert entries == {"localhost": "127.0.0.1", "own": "127.0.0.1", "redis": "172.18.0.2"}


def test_who_listens_is_read_from_the_kernel():
    with socket.create_server(("127.0.0.2", 0)) as server:  # not where a program listens for itself alone
        port = server.getsockname()[1]
        assert listens(os.getpid(), port)
    assert not listens(os.getpid(), port)
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not listens(os.getpid(), server.getsockname()[1])


class _Container:
    """A container of which the engine tells another state each time."""

    def __init__(self, *states: dict[str, object]) -> None:
        self._states = [*states]
        self.reload()

    def reload(self) -> None:
        self.attrs = {"State": self._states.pop(0)}

    def logs(self, tail: int) -> bytes:
        return b"out of memory\n"


@pytest.mark.parametrize(
    "then",
    [
        {"Running": False, "StartedAt": "1", "ExitCode": 137},
        {"Running": True, "StartedAt": "2", "ExitCode": 0},
    ],
)
def test_one_that_is_gone_ends_the_run(then: dict[str, object]):
    up = {"Running": True, "StartedAt": "1", "ExitCode": 0}
    container = _Container(up, up, then)
    _require({"redis": container})
    with raises_sentence(EnvironmentLost):
        _require({"redis": container})


def test_the_engine_alone_gets_their_secrets(monkeypatch: pytest.MonkeyPatch):
    asked: dict[str, Any] = {}
    client = SimpleNamespace(
        containers=SimpleNamespace(create=lambda image, command, **named: asked.update(named, command=command) or DB),
        api=SimpleNamespace(create_endpoint_config=lambda **_: {}),
    )
    host = SimpleNamespace(read=lambda _: b"")
    engine = SimpleNamespace(client=client, host=host, labels={}, cgroup_parent=None)
    monkeypatch.setattr(supporting_services, "_wait_until_ready", lambda *_: None)
    keep(SecretName("PW"), "canary")
    service = SupportingService(
        image="db", entrypoint=("run", "${secret:PW}"), command=("--pass=${secret:PW}",),
        environment={"A": "x${secret:PW}"}, healthcheck={"test": ["ask", "${secret:PW}"]},
    )  # fmt: skip
    supporting_services._start(RUN, engine, "net", "db", service, "image")
    assert asked["entrypoint"] == ["run", "canary"] and asked["command"] == ["--pass=canary"]
    assert asked["environment"] == {"A": "xcanary"} and asked["healthcheck"]["test"] == ["CMD", "ask", "canary"]
    assert "canary" not in repr(service)


DB = SimpleNamespace(start=lambda: None)
RUN = SimpleNamespace(id="0123456789ab")
