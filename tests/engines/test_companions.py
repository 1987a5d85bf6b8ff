"""Companions: what a study may say, their order, their names, and who listens."""

import os
import socket

import pytest
from pydantic import ValidationError

from weighbridge import registry
from weighbridge.engines.companions import listens
from weighbridge.errors import StudyError
from weighbridge.model.companion import Companion, in_order
from weighbridge.model.neighbourhood import Neighbourhood
from weighbridge.study.brings import brought_by
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


def test_each_starts_after_those_that_it_waits_for():
    assert in_order(study().file.companions) == ("redis", "db")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"after": "rediss"}, "there is no companion 'rediss'"),
        ({"redis": "after: [db]"}, "wait for one another"),
        ({"other": "{kind: docker, network: none}"}, "other: its sites cannot reach the study's companions"),
        ({"other": "{kind: podman}"}, "other: its sites cannot reach"),
        ({"redis": "port: 6379, healthcheck: {test: [a]}"}, "leave 'port' out"),
        ({"redis": "restart: always"}, "unknown key 'restart'"),
    ],
)
def test_what_cannot_be_is_told(changed: dict[str, str], says: str):
    with pytest.raises(StudyError, match=says):
        study(**changed)


def test_two_things_at_one_place_are_refused():
    with pytest.raises(ValidationError, match="two things are mounted at '/a'"):
        Companion(image="a", volumes={"/a": "v"}, tmpfs=("/a",))


def test_their_commands_are_shown_before_they_run():
    shown = {(each.place, each.value) for each in brought_by(study())}
    assert ("companions.redis.command", "redis-server") in shown


def test_the_ways_of_every_environment():
    options = {kind: plugin.options() for kind, plugin in registry.environments().items()}
    ways = {kind: plugin.way_to_companions(options[kind]) for kind, plugin in registry.environments().items()}
    assert {kind for kind, way in ways.items() if way} == {"native", "netns", "docker"}
    assert len({way for way in ways.values() if way}) == 3


def test_the_names_that_a_site_knows():
    text = Neighbourhood("n", "172.18.0.0/16", "wb-1-c", {"redis": "172.18.0.2"}, {}).hosts_file("own").decode()
    entries = dict(reversed(line.split("\t")) for line in text.splitlines())
    assert entries == {"localhost": "127.0.0.1", "own": "127.0.0.1", "redis": "172.18.0.2"}


def test_who_listens_is_read_from_the_kernel():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert listens(os.getpid(), port)
    assert not listens(os.getpid(), port)
