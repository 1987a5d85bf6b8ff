"""Ports that an engine publishes: the host's number, which clients use, and that on which a server listens."""

from types import SimpleNamespace
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.environments import docker, podman
from weighbridge.model.command import PublishedPort

SAME, OTHER = PublishedPort("tcp", 24000, 24000), PublishedPort("udp", 25000, 8000)
REQUEST: Any = SimpleNamespace(ports=(SAME, OTHER), separate_hosts=False, joined_site="")
FRESH: Any = SimpleNamespace(ports=(SAME, OTHER), separate_hosts=True, joined_site="bridge-server")
"""A site that a trial opens: a workload names its ports."""
NOTHING: Any = None


def options(kind: str, **given: Any) -> Any:
    return registry.environments()[kind].options(publish_on="loopback", **given)


@pytest.mark.parametrize("publish", [True, False])
def test_dockers(publish: bool):
    wanted = {"24000/tcp": ("127.0.0.1", 24000), "8000/udp": ("127.0.0.1", 25000)}
    assert docker._ports(options("docker", publish=publish), REQUEST, NOTHING, NOTHING) == (wanted if publish else {})


def test_podmans():
    made = options("podman", publish=True)
    assert podman._ports(made, REQUEST, "") == [
        "--publish", "127.0.0.1:24000:24000/tcp", "--publish", "127.0.0.1:25000:8000/udp",
    ]  # fmt: skip
    assert podman._forwarded(made, REQUEST) == {"tcp": ["127.0.0.1/24000"], "udp": ["127.0.0.1/25000:8000"]}


@pytest.mark.parametrize("publish", [True, False])
def test_fresh_sites_publish_on_loopback_whatever_the_environment_publishes(publish: bool):
    wanted = {"24000/tcp": ("127.0.0.1", 24000), "8000/udp": ("127.0.0.1", 25000)}
    assert docker._ports(options("docker", publish=publish), FRESH, NOTHING, NOTHING) == wanted
    made = options("podman", publish=publish)
    assert podman._ports(made, FRESH, "10.89.0.1")[1] == "127.0.0.1:24000:24000/tcp"
    assert podman._forwarded(made, FRESH)["tcp"] == ["127.0.0.1/24000"]
