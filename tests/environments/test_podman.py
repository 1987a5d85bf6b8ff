"""Every combination of Podman options that cannot work gives its sentence; what is missing has its package."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sentences import assert_sentence
from weighbridge import registry
from weighbridge.engines.podman import Podman
from weighbridge.environments import podman
from weighbridge.environments.podman import programs
from weighbridge.hosts.local import LocalHost
from weighbridge.linux.links import OURS
from weighbridge.model.command import Command, Completed
from weighbridge.model.environment import Needs
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.names import RunId
from weighbridge.model.plugin import Readiness
from weighbridge.model.site import SiteRequest
from weighbridge.model.userland import Userland

from .kinds import traits

PODMAN = registry.environments()["podman"]
BOTH = frozenset({"server", "client"})
HERE = Needs(network=True)
INSIDE = Needs(network=True, inside=BOTH)
BETWEEN = Needs(network=True, separate_hosts=True, hosts=traits("testbed"))
SSH = Needs(network=True, separate_hosts=True, hosts=traits("ssh"))
CALLS = Needs(network=True, server_calls_client=True)


def options(**given: Any) -> Any:
    return PODMAN.options.model_validate(given)


WRONG: dict[str, tuple[Needs, dict[str, Any]]] = {
    "rootless bridge": (HERE, {"rootless": True, "network": "bridge"}),
    "slirp4netns of root": (HERE, {"network": "slirp4netns", "publish": True}),
    "publish on host": (HERE, {"network": "host", "publish": True}),
    "loopback unpublished": (HERE, {"publish_on": "loopback"}),
    "namespace of a user": (HERE, {"rootless": True, "user_namespace": True}),
    "processes of a user": (HERE, {"rootless": True, "pids_limit": 99}),
    "none": (HERE, {"network": "none"}),
    "rootless unpublished": (HERE, {"rootless": True}),
    "pasta of both": (INSIDE, {"rootless": True, "network": "pasta", "publish": True}),
    "bridge from afar": (BETWEEN, {}),
    "loopback from afar": (BETWEEN, {"publish": True, "publish_on": "loopback"}),
    "pasta from afar": (BETWEEN, {"rootless": True, "network": "pasta", "publish": True}),
    "gVisor": (HERE, {"runtime": "runsc"}),
    "by ssh": (SSH, {"publish": True}),
    "called back": (CALLS, {"publish": True}),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_work_is_told(case: str):
    needs, given = WRONG[case]
    assert_sentence("\n".join(PODMAN.check(options(**given), needs=needs)))


@pytest.mark.parametrize(
    ("needs", "given"),
    [
        (HERE, {}), (INSIDE, {}), (HERE, {"network": "host"}), (HERE, {"publish": True, "publish_on": "loopback"}),
        (HERE, {"rootless": True, "publish": True}), (INSIDE, {"rootless": True, "network": "host"}),
        (BETWEEN, {"rootless": True, "publish": True}), (Needs(), {"network": "none"}),
    ],
)  # fmt: skip
def test_what_works_is_not_complained_of(needs: Needs, given: dict[str, Any]):
    assert PODMAN.check(options(**given), needs=needs) == []


def test_what_is_missing_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(programs, "_HELPERS", (tmp_path,))
    bridge, pasta = (PODMAN.ready(options(**given)) for given in ({}, {"rootless": True, "network": "pasta"}))
    assert "netavark" in bridge.detail
    assert bridge.remedy.startswith("apt-get install ")
    assert "newuidmap" in pasta.detail
    assert "passt" in pasta.remedy
    assert "uidmap" in pasta.remedy


def test_only_root_has_rootful_containers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    ready = PODMAN.ready(options())
    assert not ready.ready
    assert "podman-rootless" in ready.remedy


@pytest.mark.parametrize(("uid", "caveat"), [(0, "images only"), (1000, "")])
def test_doctor_says_that_root_needs_an_image(monkeypatch: pytest.MonkeyPatch, uid: int, caveat: str):
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr("weighbridge.environments.podman.readiness", lambda _: Readiness(True, "podman 4.3.1"))
    for given in (None, options(rootless=True)):
        assert PODMAN.ready(given).caveat == caveat


@pytest.mark.parametrize(
    ("text", "number"), [("podman version 4.3.1", (4, 3, 1)), ("podman version 5.0.0-dev", (5, 0, 0)), ("", ())]
)
def test_the_version(text: str, number: tuple[int, ...], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(programs, "output", lambda _: text)
    assert programs.version() == number
    assert programs.knows_pasta(text) is (number >= (4, 4))


RUN = RunId("0123456789ab")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunContext]:
    with ExitStack() as stack:
        yield RunContext(RUN, tmp_path, tmp_path, stack)


def asked(
    run: RunContext, name: str, role: str = "server", environment: str = "one", joined_site: str = ""
) -> SiteRequest:
    userland = Userland("0" * 64, Path("/root"), None, {})
    return SiteRequest(
        run, LocalHost(RUN), name, role, userland, Limits(), environment=environment, joined_site=joined_site
    )  # fmt: skip


class Bridges:
    """In the place of podman: numbers the bridges that it is asked for, and notes those that were removed."""

    def __init__(self) -> None:
        self.made, self.removed = 0, 0

    @contextmanager
    def bridge(self) -> Iterator[dict[str, Any]]:
        self.made += 1
        yield {"name": f"bridge {self.made}"}
        self.removed += 1


def test_both_roles_are_on_one_bridge_which_fresh_sites_join(run: RunContext):
    made: Any = Bridges()
    requests = [asked(run, "server"), asked(run, "client", "client"), asked(run, "fresh", joined_site="server")]
    names = {podman._bridge(made, options(), request)["name"] for request in requests}
    assert names == {"bridge 1"}
    assert podman._bridge(made, options(), asked(run, "other", environment="two"))["name"] == "bridge 2"
    assert made.removed == 0, "a fresh site's end does not take it away"
    run.stack.close()
    assert made.removed == made.made == 2


def test_published_sites_have_bridges_of_their_own_and_fresh_ones_join_them(run: RunContext):
    made: Any = Bridges()
    requests = [asked(run, "server"), asked(run, "client", "client"), asked(run, "fresh", joined_site="client")]
    found = [podman._bridge(made, options(publish=True), request)["name"] for request in requests]
    assert found == ["bridge 1", "bridge 2", "bridge 2"]


def test_a_fresh_site_publishes_nothing(run: RunContext):
    published, at = options(publish=True), ("10.89.0.7", "10.89.0.1")
    assert podman._addresses(published, asked(run, "server"), *at) == ("10.89.0.1", "0.0.0.0")
    assert podman._addresses(published, asked(run, "fresh", joined_site="server"), *at) == ("10.89.0.7", "10.89.0.7")


class WithoutPodman(Podman):
    """Answers as podman does, and notes the files of its networks."""

    def __init__(self, run: RunContext) -> None:
        self._run, self.links = run, list[str]()
        self._home: Any = SimpleNamespace(prefix=())
        self.host: Any = SimpleNamespace(interface="", run=self._write)

    def must(self, what: str, *words: str) -> str:
        return json.dumps([{"name": words[-1], "network_interface": "podman1"}])

    def ask(self, *words: str, deadline_s: float = 1.0) -> Completed:
        return Completed(words, 0, b"", b"", 0.0)

    def _write(self, command: Command) -> Completed:
        self.links.append(json.loads(command.stdin)["network_interface"])
        return self.ask(*command.argv)


def test_no_two_bridges_have_links_of_one_name(run: RunContext):
    made = WithoutPodman(run)
    with ExitStack() as stack:
        for _ in range(600):
            stack.enter_context(made.bridge())
    assert len({*made.links}) == 600
    assert all(OURS.fullmatch(link) and len(link) <= 15 for link in made.links)
