"""Every combination of Podman options that cannot work gives its sentence; what is missing has its package."""

import os
from pathlib import Path
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.environments import _podman_readiness
from weighbridge.model.plugin import Needs

from .kinds import traits

PODMAN = registry.environments()["podman"]
BOTH = frozenset({"server", "client"})
HERE = Needs(network=True)
INSIDE = Needs(network=True, inside=BOTH)
BETWEEN = Needs(network=True, apart=True, hosts=traits("testbed"))
SSH = Needs(network=True, apart=True, hosts=traits("ssh"))
CALLS = Needs(network=True, server_calls_client=True)


def options(**given: Any) -> Any:
    return PODMAN.options.model_validate(given)


WRONG: dict[str, tuple[Needs, dict[str, Any], str]] = {
    "rootless bridge": (HERE, {"rootless": True, "network": "bridge"}, "network: bridge needs root"),
    "slirp4netns of root": (HERE, {"network": "slirp4netns", "publish": True}, "add rootless: true, or use bridge"),
    "publish on host": (HERE, {"network": "host", "publish": True}, "'publish' needs network: bridge, slirp4net"),
    "loopback unpublished": (HERE, {"publish_on": "loopback"}, "'publish_on' needs network: bridge and publish"),
    "none": (HERE, {"network": "none"}, "network: none cannot carry a workload"),
    "rootless unpublished": (HERE, {"rootless": True}, "network: slirp4netns is reached by published ports only"),
    "pasta of both": (
        INSIDE, {"rootless": True, "network": "pasta", "publish": True}, "does not lead from one container to",
    ),
    "bridge from afar": (BETWEEN, {}, "a bridge cannot be reached from another host: publish: true"),
    "loopback from afar": (BETWEEN, {"publish": True, "publish_on": "loopback"}, "cannot be reached from"),
    "pasta from afar": (
        BETWEEN, {"rootless": True, "network": "pasta", "publish": True}, "pasta is measured with its client on",
    ),
    "by ssh": (SSH, {"publish": True}, "not on hosts of kind ssh"),
    "called back": (CALLS, {"publish": True}, "a published port carries connections to the server only"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_work_is_told(case: str):
    needs, given, text = WRONG[case]
    told = PODMAN.problems(options(**given), needs=needs)
    assert any(text in sentence for sentence in told), told


@pytest.mark.parametrize(
    ("needs", "given"),
    [
        (HERE, {}), (INSIDE, {}), (HERE, {"network": "host"}), (HERE, {"publish": True, "publish_on": "loopback"}),
        (HERE, {"rootless": True, "publish": True}), (INSIDE, {"rootless": True, "network": "host"}),
        (BETWEEN, {"rootless": True, "publish": True}), (Needs(), {"network": "none"}),
    ],
)  # fmt: skip
def test_what_works_is_not_complained_of(needs: Needs, given: dict[str, Any]):
    assert PODMAN.problems(options(**given), needs=needs) == []


def test_the_network_where_none_is_named():
    assert options().joined == "bridge"
    assert options(rootless=True).joined == "slirp4netns"
    assert options(rootless=True, network="host").joined == "host"


def test_what_is_missing_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(_podman_readiness, "_HELPERS", (tmp_path,))
    bridge, pasta = (PODMAN.readiness(options(**given)) for given in ({}, {"rootless": True, "network": "pasta"}))
    assert "netavark" in bridge.detail
    assert bridge.remedy.startswith("apt-get install ")
    assert "newuidmap" in pasta.detail
    assert "passt" in pasta.remedy
    assert "uidmap" in pasta.remedy


def test_only_root_has_rootful_containers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    ready = PODMAN.readiness(options())
    assert not ready.ready
    assert "rootless: true" in ready.remedy


@pytest.mark.parametrize(
    ("text", "number"), [("podman version 4.3.1", (4, 3, 1)), ("podman version 5.0.0-dev", (5, 0, 0)), ("", ())]
)
def test_the_version(text: str, number: tuple[int, ...], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_podman_readiness, "output", lambda _: text)
    assert _podman_readiness.version() == number
    assert _podman_readiness.knows_pasta() is (number >= (4, 4))
