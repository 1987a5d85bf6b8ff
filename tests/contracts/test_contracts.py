"""Every plug-in of every kind keeps its contract."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.features.fleets.machine_provider import MachineProvider
from weighbridge.features.fleets.providers import providers
from weighbridge.hosts.remote import start
from weighbridge.linux import process
from weighbridge.model.adapter import Adapter
from weighbridge.model.environment import Environment, Needs
from weighbridge.model.host_kind import HostKind
from weighbridge.model.mechanism import Subject
from weighbridge.model.plugin import Plugin
from weighbridge.model.storage import Storage, weaker
from weighbridge.model.study import Arm, Resources
from weighbridge.model.userland_source import UserlandSource
from weighbridge.model.workload import Workload
from weighbridge.study.validated import option_models
from weighbridge.userland.sources.image import ImageOptions

from . import held, held_adapter, held_workload

NEEDED: Mapping[str, Mapping[str, Any]] = {
    "environment wrapper": {"preset": "landrun"},
    "host guest": {"kind": "guest"},
    "host kubernetes": {"kind": "kubernetes"},
    "host slurm": {"kind": "slurm"},
    "host ssh": {"kind": "ssh", "destination": "far"},
    "host testbed": {"kind": "testbed"},
    "machines hosts": {"file": "/nonexistent", "listed": [{"destination": "root@far"}, {"destination": "near"}]},
    "machines slurm": {"nodes": 2},
    "storage host-path": {"path": "/nonexistent"},
    "userland directory": {"path": "/nonexistent"},
    "userland image": {"image": "nginx:1.27"},
    "userland saved-image": {"path": "/nonexistent"},
    "workload command": {
        "run": "count {n} words",
        "parameters": {"n": 7},
        "metrics": {"words": {"json": "$.words", "unit": "count", "better": "higher"}},
    },
}
"""Options that have no default."""
HELD_TOO: list[Mapping[str, Any]] = [
    {"run": ["count", 1], "warm_up": True, "expects": "2s"},
    {
        "server": "serve {listen} {port}",
        "client": "ask {address} {port}",
        "check": "true",
        "setup": "true",
        "cleanup": "true",
    },
    {"server": "serve {data_port}", "client": ["ask"], "protocol": "udp", "warm_up": True, "deadline": "2s"},
]
"""Options of the workload ``command`` under which it has other roles."""
EVERY = held.every_plugin()


@pytest.fixture(autouse=True)
def _nothing_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise Unavailable("no program can be started here")

    monkeypatch.setattr(process, "Process", refuse)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")


@pytest.mark.parametrize("name", EVERY)
def test_a_plug_in(name: str) -> None:
    plugin: Plugin = EVERY[name]
    held.describes_itself(plugin)
    held.names_its_programs(plugin)
    held.has_strict_options(plugin, NEEDED.get(name, {}))


LEAVING = [name for name in EVERY if name.split()[0] in ("environment", "host", "storage")]


@pytest.mark.parametrize("name", LEAVING)
def test_what_it_leaves_is_found_without_changing_anything(name: str, tmp_path: Path) -> None:
    held.says_what_it_leaves(EVERY[name], tmp_path)


def test_clean_and_the_agent_walk_what_every_plug_in_leaves() -> None:
    kinds = [type(kind) for name in LEAVING for kind in EVERY[name].cleanup]
    assert {type(kind) for kind in registry.cleanups()} == {*kinds}
    assert len(registry.cleanups()) == len({*kinds}), "each once"
    there = {type(each) for kind in registry.cleanups() if (each := kind.elsewhere) is not None}
    assert {*start.cleanups()} == there and all(kind.__module__ in start.sources() for kind in there)


@pytest.mark.parametrize("environment", registry.environments().values(), ids=registry.environments())
def test_an_environment(environment: Environment) -> None:
    held.holds_as_environment(environment, NEEDED.get(f"environment {environment.kind}", {}))


@pytest.mark.parametrize("environment", registry.environments().values(), ids=registry.environments())
def test_our_environments_have_a_network_unless_told_otherwise(environment: Environment) -> None:
    options = environment.options.model_validate(NEEDED.get(f"environment {environment.kind}", {}))
    assert not environment.check(options, Needs(network=True))


@pytest.mark.parametrize("workload", registry.workloads().values(), ids=registry.workloads())
def test_a_workload(workload: Workload) -> None:
    held_workload.holds_as_workload(workload, NEEDED.get(f"workload {workload.kind}", {}))


@pytest.mark.parametrize("given", HELD_TOO, ids=str)
def test_a_command_keeps_the_contract_of_a_workload_whatever_it_is(given: Mapping[str, Any]) -> None:
    metrics = NEEDED["workload command"]["metrics"]
    held_workload.holds_as_workload(registry.workloads()["command"], {"metrics": metrics, **given})


@pytest.mark.parametrize("adapter", registry.adapters().values(), ids=registry.adapters())
def test_an_adapter(adapter: Adapter) -> None:
    held_adapter.holds_as_adapter(adapter, NEEDED.get(f"adapter {adapter.kind}", {}))


@pytest.mark.parametrize("storage", registry.storage().values(), ids=registry.storage())
def test_a_storage(storage: Storage, tmp_path: Path) -> None:
    held.holds_as_storage(storage, NEEDED.get(f"storage {storage.kind}", {}), tmp_path)


@pytest.mark.parametrize("host", registry.hosts().values(), ids=registry.hosts())
def test_a_kind_of_host(host: HostKind, tmp_path: Path) -> None:
    held.holds_as_host(host, NEEDED.get(f"host {host.kind}", {}), tmp_path)


@pytest.mark.parametrize("source", registry.userlands().values(), ids=registry.userlands())
def test_a_source_of_userlands(source: UserlandSource, tmp_path: Path) -> None:
    held.holds_as_source(source, NEEDED.get(f"userland {source.kind}", {}), tmp_path)


@pytest.mark.parametrize("provider", providers().values(), ids=providers())
def test_a_provider_of_machines(provider: MachineProvider) -> None:
    held.holds_as_provider(provider, NEEDED.get(f"machines {provider.kind}", {}))


def _subject(kind: str, options: Mapping[str, Any], **arm: Any) -> Subject:
    plugin = registry.environments()[kind]
    checked = plugin.options.model_validate(options, context=option_models())
    native = Arm(name="native", kind="native", options=registry.environments()["native"].options())
    subject = Arm(name="subject", kind=kind, options=checked, **arm)
    return Subject(
        subject, native, Resources.model_validate({"cpus": 1, "memory": "1GiB"}), networked=True, stores=True
    )


SUBJECTS = [
    _subject("docker", {"publish": True}),
    _subject("docker", {"publish": True, "publish_on": "loopback"}),
    _subject("docker", {"network": "overlay", "encrypted": True, "storage": {"kind": "layer"}}),
    _subject(
        "docker",
        {"runtime": "runsc"},
        userland=ImageOptions(kind="image", image="nginx:1.27"),
        sysctls={"net.core.somaxconn": "9"},
    ),
    _subject(
        "docker",
        {"storage": {"kind": "nfs"}},
        resources=Resources.model_validate({"cpus": 0.5, "cpu_period": "200ms", "memory": "256MiB"}),
    ),
    _subject("podman", {"rootless": True, "publish": True, "open_files": 4096, "variables": {"A": "1"}}),
    _subject(
        "docker",
        {"mtu": 1450, "no_offloads": ["tso"], "bridge_netfilter": True, "conntrack": True, "filter_rules": 100},
    ),
    _subject("docker", {"network": "overlay", "vxlan_offload": False}),
    _subject("pod", {"reach": "service", "policy": "allow", "runtime_class": "gvisor"}),
    _subject("qemu", {"nic": "e1000", "disk": "ide", "cache": "unsafe", "pin": "vcpus"}),
    _subject("qemu", {"nic": "vhost", "queues": 2, "huge_pages": True}),
    _subject("qemu", {"network": "user"}),
    _subject("docker", {"storage": {"kind": "nfs", "mount": "sync", "version": "3", "write_size": "64KiB"}}),
    _subject("docker", {"storage": "tmpfs", "runtime": "crun"}),
    _subject("docker", {"runtime": "runsc", "runsc_platform": "ptrace", "runsc_files": "gofer", "storage": "layer"}),
    _subject("docker", {"storage": {"kind": "layer", "disk": "btrfs"}}),
    _subject(
        "podman",
        {
            "capabilities": "none",
            "no_new_privileges": True,
            "pids_limit": 100,
            "init": True,
            "cgroup_namespace": "private",
            "user_namespace": True,
        },
        shm_size=2**23,
    ),
    _subject("wrapper", {"preset": "landrun"}),
    _subject("wrapper", {"preset": "landrun", "rules": 100}),
    _subject("wrapper", {"preset": "nsjail"}),
    _subject("wrapper", {"preset": "sandlock"}),
]
"""Environments that have every mechanism, as studies write them."""


@pytest.mark.parametrize("kind", registry.mechanisms())
def test_a_mechanism(kind: str) -> None:
    held.keeps_the_contract_of_mechanisms(registry.mechanisms()[kind], SUBJECTS)


def test_data_is_as_durable_as_the_weaker_of_program_and_storage() -> None:
    assert weaker("synchronous", "none") == weaker("none", "asynchronous") == "none"
    assert weaker("asynchronous", "synchronous") == "asynchronous"


if TYPE_CHECKING:
    from weighbridge.features.guests.hosts.guest.host import GuestHost
    from weighbridge.features.slurm.host import SlurmHost
    from weighbridge.hosts.local import LocalHost
    from weighbridge.hosts.ssh import SshHost
    from weighbridge.hosts.testbed import TestbedHost
    from weighbridge.model.host import DisposableHost, Host

    def _are_hosts(
        local: LocalHost, far: SshHost, node: SlurmHost, made: TestbedHost, guest: GuestHost
    ) -> tuple[Host, Host, Host, DisposableHost, DisposableHost]:
        return local, far, node, made, guest
