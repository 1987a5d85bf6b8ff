"""What bwrap is told, which networks it refuses, and as whom it cannot run programs."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge import registry
from weighbridge.environments import bubblewrap
from weighbridge.environments.bubblewrap import BubblewrapOptions, command, layer
from weighbridge.errors import Unavailable
from weighbridge.hosts.cable import NO_CABLE
from weighbridge.hosts.chroot import SitePaths
from weighbridge.model.command import Command, Completed, ProcessDefaults
from weighbridge.model.environment import Needs
from weighbridge.model.site import SiteRequest
from weighbridge.model.userland import Userland

from .kinds import traits
from .requested import RUN, requested

ENVIRONMENT = registry.environments()["bubblewrap"]
PACKED = Userland("0" * 64, Path("/userland"), Path("/userland.tar"), {})
OWN = BubblewrapOptions(network="own")
NETWORK, APART = Needs(network=True), Needs(network=True, separate_hosts=True, hosts=traits("testbed"))


@pytest.fixture(params=[0, 1000], ids=["root", "user"])
def user(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(os, "geteuid", lambda: request.param)
    monkeypatch.setattr(os, "getegid", lambda: request.param)
    return int(request.param)


def request_of(userland: Userland) -> SiteRequest:
    return requested(userland)


def words_of(userland: Userland, *, own_network: bool = False, **parts: str) -> list[str]:
    made = SitePaths(
        **{"launcher": "/cache/launcher", "root": str(userland.root), "data": "", "hosts": "", **parts}, group=None
    )
    return [*command(request_of(userland), made, own_network=own_network)]


def values(words: list[str], option: str, count: int = 1) -> list[list[str]]:
    return [words[at + 1 : at + 1 + count] for at, word in enumerate(words) if word == option]


def test_it_is_isolated_as_flatpak_and_agents_have_it(user: int):
    words = words_of(PACKED)
    for word in (
        "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
        "--new-session", "--die-with-parent",
    ):  # fmt: skip
        assert word in words
    assert values(words, "--cap-drop") == [["ALL"]]
    assert not [word for word in words if "seccomp" in word or word == "--share-net"]
    assert "--unshare-net" not in words and "--unshare-net" in words_of(PACKED, own_network=True)


def test_a_built_userland_is_read_only_and_its_programs_are_roots(user: int):
    words = words_of(PACKED, data="/data", hosts="/state/hosts")
    assert words[0] == "bwrap" and values(words, "--uid") == values(words, "--gid") == [["0"]]
    assert values(words, "--ro-bind", 2) == [
        ["/userland", "/"], ["/sys", "/sys"], ["/state/hosts", "/etc/hosts"],
        ["/cache/launcher", "/run/weighbridge-launcher"],
    ]  # fmt: skip
    assert values(words, "--bind", 2) == [["/data", "/srv"]]
    assert values(words, "--tmpfs") == [["/tmp"], ["/run"]]
    assert words[-2:] == ["--", "/run/weighbridge-launcher"]


def test_this_machines_own_programs_are_the_users_behind_a_layer_over_the_folder(user: int, tmp_path: Path):
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    userland = Userland("d", Path("/"), None, {}, layered=str(tmp_path / "link"))
    words, options = words_of(userland), [*layer(request_of(userland))]
    assert values(options, "--user") == ([["root"]] if user else [])
    assert values(options, "--layer") == [[str(folder)]] and values(options, "--name") == [[f"weighbridge-{RUN}"]]
    assert values(words, "--uid") == values(words, "--gid") == [[str(user)]]
    assert [str(folder)] * 2 in values(words, "--bind", 2)
    assert values(words, "--ro-bind", 2)[0] == ["/", "/"]
    assert words[0] == "bwrap" and layer(request_of(Userland("d", Path("/"), None, {}))) == ()


@pytest.mark.parametrize(
    ("target", "bound"),
    [("/run/systemd/resolve/stub.conf", True), ("/etc/resolv.conf", False)],
)
def test_a_resolver_in_run_is_there(monkeypatch: pytest.MonkeyPatch, target: str, bound: bool):
    monkeypatch.setattr(bubblewrap.Path, "resolve", lambda _: Path(target))
    assert (values(words_of(Userland("d", Path("/"), None, {})), "--ro-bind-try", 2) == [[target] * 2]) is bound
    assert not values(words_of(PACKED), "--ro-bind-try", 2), "an image has its own"


def test_its_own_network_ends_at_its_host(user: int, monkeypatch: pytest.MonkeyPatch):
    host = BubblewrapOptions()
    assert [ENVIRONMENT.check(host, needs=needs) for needs in (NETWORK, APART)] == [[], []]
    assert ENVIRONMENT.check(OWN, needs=NETWORK) == []
    (problem,) = ENVIRONMENT.check(OWN, needs=APART)
    assert_sentence(problem)
    monkeypatch.setattr(bubblewrap, "run", answering(Completed((), 0, b"", b"", 0.1)))
    assert ENVIRONMENT.ready(host, NETWORK).ready and ENVIRONMENT.ready(OWN, Needs()).ready
    state = ENVIRONMENT.ready(OWN, NETWORK)
    assert state.ready is (user == 0)
    assert state.ready or (state.detail, state.remedy) == NO_CABLE


def answering(done: Completed) -> Callable[[Command], Completed]:
    return lambda command: replace(done, argv=command.argv)


def test_it_is_ready_where_a_sandbox_was_made(user: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bubblewrap, "run", answering(Completed((), 0, b"", b"", 0.1)))
    assert [ENVIRONMENT.ready(options).caveat for options in (None, BubblewrapOptions())] == ["", ""]
    behind_cable = ENVIRONMENT.ready(OWN)
    assert behind_cable.ready and behind_cable.caveat == ("programs without a server" if user else "")


@pytest.mark.parametrize("refusal", [None, ("user namespaces are closed", "open them")])
def test_why_none_was_made_is_told(monkeypatch: pytest.MonkeyPatch, refusal: tuple[str, str] | None):
    denied = Completed((), 1, b"", b"bwrap: Can't mount proc: Operation not permitted\n", 0.1)
    monkeypatch.setattr(bubblewrap, "run", answering(denied))
    monkeypatch.setattr(bubblewrap.user_namespaces, "refusal", lambda program: refusal)
    state = ENVIRONMENT.ready()
    assert not state.ready and state.remedy
    assert state.detail == (refusal[0] if refusal else "bwrap: Can't mount proc: Operation not permitted")


def test_programs_of_another_user_are_refused():
    nginx = replace(PACKED, process=ProcessDefaults(uid=101, gid=101))
    environment: Any = ENVIRONMENT
    opened = environment.open(BubblewrapOptions(), request_of(nginx))
    with raises_sentence(Unavailable):
        opened.__enter__()
