"""The words with which the host of an open site starts a program in it."""

from types import SimpleNamespace
from typing import Any

import pytest

from weighbridge.engines.container import DockerSite
from weighbridge.engines.docker import Engine
from weighbridge.environments.bubblewrap import BubblewrapSite
from weighbridge.environments.podman.site import PodmanSite
from weighbridge.features.kubernetes.kubectl import Kubectl
from weighbridge.features.kubernetes.site import PodSite
from weighbridge.hosts.chroot import ChrootSite
from weighbridge.launcher.site import LaunchedSite
from weighbridge.model.site import SiteEntry

GROUP: Any = object()
ROOT, USER = SimpleNamespace(root=True), SimpleNamespace(root=False)


def site(**parts: Any) -> Any:
    return SimpleNamespace(_group=GROUP, pid=42, **parts)


def test_a_chroot_needs_no_entry_because_its_launcher_starts_programs():
    assert ChrootSite.entering(site(host=ROOT, _own_network=False)) == SiteEntry()


@pytest.mark.parametrize(
    ("host", "user", "keep"), [(ROOT, (), ()), (USER, ("--user",), ("--preserve-credentials",))], ids=["root", "user"]
)
def test_a_network_namespace_is_joined_with_its_root_folder(host: Any, user: tuple[str, ...], keep: tuple[str, ...]):
    words = ("nsenter", "--target", "42", *user, "--mount", "--ipc", "--net", "--root", "--wd", *keep, "--")
    assert ChrootSite.entering(site(host=host, _own_network=True)) == SiteEntry(words, GROUP)


def test_every_namespace_of_a_sandbox_is_joined():
    words = ("nsenter", "--target", "42", "--all")
    assert BubblewrapSite.entering(site(host=ROOT)) == SiteEntry((*words, "--"), GROUP)
    assert BubblewrapSite.entering(site(host=USER)) == SiteEntry((*words, "--preserve-credentials", "--"), GROUP)


def test_dockers_engine_is_asked_to_start_the_program():
    made = site(_engine=SimpleNamespace(cli_options=("--host", "unix:///x")), _container=SimpleNamespace(id="c0ffee"))
    assert DockerSite.entering(made) == SiteEntry(("docker", "--host", "unix:///x", "exec", "c0ffee"))


@pytest.mark.parametrize(
    ("this_machine", "socket", "options"),
    [
        (True, "/run/a.sock", ("--host", "unix:///run/a.sock")),
        (False, "/run/a.sock", ()),
        (True, None, ()),
    ],
    ids=["here", "on another host", "by TCP"],
)
def test_the_command_asks_the_engine_of_the_run(this_machine: bool, socket: str | None, options: tuple[str, ...]):
    adapter = SimpleNamespace() if socket is None else SimpleNamespace(socket_path=socket)
    client = SimpleNamespace(api=SimpleNamespace(_custom_adapter=adapter))
    engine: Any = SimpleNamespace(client=client, host=SimpleNamespace(this_machine=this_machine))
    assert Engine.cli_options.fget is not None
    assert Engine.cli_options.fget(engine) == options


def test_podman_is_asked_as_the_run_asks_it():
    podman = SimpleNamespace(argv=lambda *words: ("env", "podman", *words))
    made = site(_podman=podman, _container="weighbridge-1")
    assert PodmanSite.entering(made) == SiteEntry(("env", "podman", "exec", "weighbridge-1"))


@pytest.mark.parametrize(
    ("kubeconfig", "before"),
    [("/a", ("kubectl", "--kubeconfig=/a")), ("/a:/b", ("env", "KUBECONFIG=/a:/b", "kubectl"))],
    ids=["one file", "several files"],
)
def test_kubectl_starts_the_program_on_this_machine(kubeconfig: str, before: tuple[str, ...]):
    words = Kubectl("prod", "bench", kubeconfig).entry("pod-1")
    options = ("--context=prod", "--namespace=bench", "exec", "--quiet", "pod/pod-1", "--container=site", "--")
    assert words == (*before, *options)
    pod = site(_running=SimpleNamespace(entry=words), _asked=SimpleNamespace(privileged=False))
    assert PodSite.entering(pod) == SiteEntry(words, here=True)


def test_the_launcher_of_a_privileged_pod_starts_programs_as_natively():
    assert PodSite.entering(site(_asked=SimpleNamespace(privileged=True))) == SiteEntry()


def test_other_sites_cannot_be_entered():
    assert LaunchedSite.entering(site()) is None
