"""What an engine is started with, and how the kernel is asked what it can do."""

import json
import os
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.engines import networks
from weighbridge.engines.settings import USUAL, Settings, daemon_file
from weighbridge.linux import user_namespaces
from weighbridge.model.command import Command, Completed
from weighbridge.model.plugin import Readiness


@pytest.mark.parametrize(
    ("settings", "arguments", "purpose"),
    [
        (USUAL, (), ""),
        (Settings(userland_proxy=False), ("--userland-proxy=false",), "noproxy"),
        (Settings(nat=False), ("--iptables=false",), "nonat"),
        (Settings(False, nat=False), ("--userland-proxy=false", "--iptables=false"), "noproxy-nonat"),
    ],
)
def test_settings(settings: Settings, arguments: tuple[str, ...], purpose: str):
    assert (settings.arguments, settings.purpose) == (arguments, purpose)


def test_engines_of_ours_keep_images_as_those_before_docker_29():
    """A layer that is a folder of the host (testbed) needs overlay2, which a new engine of 29 does not choose."""
    assert json.loads(daemon_file(lambda _: False)) == {"features": {"containerd-snapshotter": False}}


def test_an_engine_of_another_folder_has_its_programs_and_hosts_of_its_own(tmp_path: Path):
    (tmp_path / "docker-proxy").touch()
    own = Settings(dockerd=str(tmp_path / "dockerd"))
    env, path, program = own.program
    assert (env, program) == ("env", f"{tmp_path}/dockerd") and path.startswith(f"PATH={tmp_path}:")
    assert USUAL.program == ("dockerd",)
    assert own.arguments == (f"--userland-proxy-path={tmp_path}/docker-proxy",)
    assert Settings(False, dockerd=own.dockerd).arguments == ("--userland-proxy=false",)
    others = {each.purpose for each in (own, Settings(dockerd="/opt/dockerd"), Settings(False, dockerd=own.dockerd))}
    assert len(others) == 3 and all(each.startswith("dockerd-") and "/" not in each for each in others)
    assert f"{tmp_path}/dockerd" in own.words


@pytest.mark.parametrize("feature", ["macvlan", "ipvlan", "overlay", "encrypted"])
@pytest.mark.parametrize("able", [True, False])
@pytest.mark.parametrize("user", [0, 1000])
def test_the_kernel_is_asked_in_a_namespace_that_is_thrown_away(
    monkeypatch: pytest.MonkeyPatch, feature: str, able: bool, user: int
):
    asked: list[tuple[str, ...]] = []

    def answer(command: Command) -> Completed:
        asked.append(command.argv)
        return Completed(command.argv, 0 if able else 2, b"", b"" if able else b"Error: Unknown device type.\n", 0.01)

    monkeypatch.setattr(networks, "run", answer)
    monkeypatch.setattr(user_namespaces, "refusal", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    networks.lacking.cache_clear()
    try:
        why = networks.lacking(feature)
        assert networks.lacking(feature) == why and len(asked) == 1, "once"
    finally:
        networks.lacking.cache_clear()
    as_root = ("--map-root-user",) if user else ()
    assert asked[0][:-1] == ("unshare", *as_root, "--net", "sh", "-c")
    wanted = {"macvlan": "macvlan", "ipvlan": "ipvlan", "overlay": "vxlan", "encrypted": "xfrm"}[feature]
    assert wanted in asked[0][-1]
    assert (
        why == "" if able else why.startswith("this kernel has no ") and why.endswith("(Error: Unknown device type.)")
    )


def test_who_may_not_look_does_not_blame_the_kernel(monkeypatch: pytest.MonkeyPatch):
    refusal = ("this user cannot create user namespaces: user.max_user_namespaces is 0", "as root: sysctl -w ...")
    monkeypatch.setattr(networks, "run", lambda command: Completed(command.argv, 1, b"", b"unshare: no", 0.01))
    monkeypatch.setattr(user_namespaces, "refusal", lambda: refusal)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr("weighbridge.environments.docker.readiness", lambda: Readiness(True, "Docker 28"))
    networks.lacking.cache_clear()
    try:
        for options in registry.environments()["docker"].variants().values():
            if options.network not in ("macvlan", "ipvlan", "overlay"):
                continue
            ready = registry.environments()["docker"].ready(options)
            assert ready == Readiness(True, *refusal, caveat="whether the kernel supports it is unknown")
    finally:
        networks.lacking.cache_clear()
