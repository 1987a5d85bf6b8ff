"""Every combination of Docker options that cannot work gives its sentence, whatever the machine."""

from typing import Any

import pytest

from sentences import assert_sentence
from weighbridge import registry
from weighbridge.environments import docker
from weighbridge.model.environment import Needs
from weighbridge.model.plugin import Readiness
from weighbridge.model.study import Resources

from .kinds import traits

DOCKER = registry.environments()["docker"]
BOTH = frozenset({"server", "client"})
CLIENT = frozenset({"client"})
HERE = Needs(network=True, inside=BOTH)
BETWEEN = Needs(network=True, separate_hosts=True, hosts=traits("testbed"), inside=BOTH)
SSH = Needs(network=True, separate_hosts=True, hosts=traits("ssh"), inside=BOTH)
SERVER = Needs(network=True)
IN_SUBNET = {"subnet": "10.0.0.0/24", "addresses": {"server": "10.0.0.2", "client": "10.0.0.3"}}
MACVLAN = {"network": "macvlan", "parent": "eth0"}


def told(needs: Needs, **options: Any) -> list[str]:
    return DOCKER.check(DOCKER.options.model_validate(options), needs=needs)


WRONG: dict[str, tuple[Needs, dict[str, Any]]] = {
    "publish on host": (HERE, {"network": "host", "publish": True}),
    "publish and attach": (BETWEEN, {"publish": True, "attach": "interface"}),
    "attach on host": (HERE, {"network": "host", "attach": "interface"}),
    "attach here": (HERE, {"attach": "interface"}),
    "attach by ssh": (SSH, {"attach": "interface"}),
    "a sandbox that ends at once": (
        Needs(network=True, resources=Resources.model_validate({"memory": "16MiB"})), {"runtime": "runsc"},
    ),
    "gVisor by its path, which would take over the host's addresses": (
        HERE, {"network": "host", "runtime": "/opt/gvisor/runsc"},
    ),
    "a user's host filtered": (HERE, {"bridge_netfilter": True}),
    "a user's host with rules": (HERE, {"filter_rules": 10}),
    "offloads of the host": (BETWEEN, {"network": "host", "no_offloads": ["gro"]}),
    "VXLAN of a bridge": (BETWEEN, {"attach": "interface", "vxlan_offload": False}),
    "netfilter of an overlay": (BETWEEN, {"network": "overlay", "bridge_netfilter": False}),
    "untracked ports": (BETWEEN, {"publish": True, "conntrack": False}),
    "MTU of the host": (HERE, {"network": "host", "mtu": 1400}),
    "no such parent there": (BETWEEN, {"network": "macvlan", "parent": "enp3s0"}),
    "encrypted bridge": (HERE, {"encrypted": True}),
    "l3 of macvlan": (HERE, {**MACVLAN, "ipvlan_mode": "l3"}),
    "loopback unpublished": (HERE, {"publish_on": "loopback"}),
    "proxy unpublished": (HERE, {"publish_by": "proxy"}),
    "proxy without proxy": (HERE, {"publish": True, "publish_by": "proxy", "userland_proxy": False}),
    "parent of a bridge": (HERE, {"parent": "eth0"}),
    "subnet of a bridge": (HERE, {"subnet": "10.0.0.0/24"}),
    "addresses on a bridge": (HERE, {"addresses": {"server": "10.0.0.2"}}),
    "gateway alone": (HERE, {**MACVLAN, "gateway": "10.0.0.1"}),
    "no such subnet": (HERE, {**MACVLAN, "subnet": "10.0.300.0/24"}),
    "subnet with host bits": (HERE, {**MACVLAN, "subnet": "10.0.0.1/24"}),
    "address elsewhere": (HERE, {**MACVLAN, **IN_SUBNET, "addresses": {"server": "10.0.1.2"}}),
    "broadcast address": (HERE, {**MACVLAN, **IN_SUBNET, "gateway": "10.0.0.255"}),
    "the same address": (
        HERE, {**MACVLAN, "subnet": "10.0.0.0/24", "addresses": {"server": "10.0.0.2", "client": "10.0.0.2"}},
    ),
    "subnet without addresses": (BETWEEN, {**MACVLAN, "subnet": "10.0.0.0/24"}),
    "no network": (HERE, {"network": "none"}),
    "overlay, client outside": (SERVER, {"network": "overlay"}),
    "macvlan, client outside": (SERVER, MACVLAN),
    "an engine on a host of its own, client outside": (
        Needs(network=True, hosts=traits("testbed")), {"publish": True},
    ),
    "a server outside, on the client's host": (Needs(network=True, inside=CLIENT), {}),
    "a server elsewhere that connects back": (
        Needs(network=True, inside=CLIENT, separate_hosts=True, server_calls_client=True), {},
    ),
    "bridge between hosts": (BETWEEN, {}),
    "loopback between hosts": (BETWEEN, {"publish": True, "publish_on": "loopback"}),
    "l3 between hosts": (BETWEEN, {"network": "ipvlan", "ipvlan_mode": "l3"}),
    "a server that connects back, over a published port": (
        Needs(network=True, server_calls_client=True), {"publish": True},
    ),
    "macvlan here without parent": (HERE, {"network": "macvlan"}),
    "an engine of this machine elsewhere": (SSH, {"network": "host", "dockerd": "/opt/29/dockerd"}),
    "an engine of this machine in a guest": (
        Needs(hosts=traits("guest")), {"network": "host", "dockerd": "/opt/29/dockerd"},
    ),
    "ipvlan by ssh": (SSH, {"network": "ipvlan"}),
}  # fmt: skip
RIGHT: dict[str, tuple[Needs, dict[str, Any]]] = {
    "host": (BETWEEN, {"network": "host"}),
    "attached": (BETWEEN, {"attach": "interface", "parent": "eth0"}),
    "published": (BETWEEN, {"publish": True, "publish_by": "proxy"}),
    "published on loopback": (SERVER, {"publish": True, "publish_on": "loopback", "userland_proxy": False}),
    "macvlan between": (BETWEEN, {"network": "macvlan"}),
    "macvlan with addresses": (BETWEEN, {"network": "macvlan", "gateway": "10.0.0.1", **IN_SUBNET}),
    "ipvlan l3 on one host": (HERE, {"network": "ipvlan", "ipvlan_mode": "l3", "parent": "eth0"}),
    "macvlan by ssh": (SSH, {"network": "macvlan", **IN_SUBNET}),
    "overlay": (BETWEEN, {"network": "overlay", "subnet": "10.9.0.0/16", "encrypted": True}),
    "an engine of another folder": (BETWEEN, {"network": "host", "dockerd": "/opt/29/dockerd"}),
    "an engine of another folder, here": (HERE, {"network": "host", "dockerd": "/opt/29/dockerd"}),
    "none without a network": (Needs(), {"network": "none"}),
}


@pytest.mark.parametrize("case", WRONG)
def test_it_is_told(case: str):
    needs, options = WRONG[case]
    (problem,) = told(needs, **options)
    assert "\n" not in problem
    assert_sentence(problem)


@pytest.mark.parametrize("case", RIGHT)
def test_what_can_work_has_no_problems(case: str):
    needs, options = RIGHT[case]
    assert told(needs, **options) == []


def test_an_interface_of_this_machine_must_be_there():
    def unmet(needs: Needs, parent: str) -> Readiness | None:
        return docker.unmet(DOCKER.options.model_validate({"network": "macvlan", "parent": parent}), needs)

    lacking = unmet(HERE, "nosuch0")
    assert lacking is not None and not lacking.ready
    assert lacking.detail == "parent: this machine has no network interface 'nosuch0'"
    assert lacking.remedy.startswith("choose from ") and "lo" in lacking.remedy
    assert unmet(HERE, "lo") is None
    assert unmet(SSH, "nosuch0") is None, "it may have that one"


def test_what_the_users_engine_lacks_for_gvisor_refuses_it(monkeypatch: pytest.MonkeyPatch):
    lacks = Readiness(False, "it has no runsc", "stop it")
    monkeypatch.setattr(docker.gvisor, "refusal", lambda wanted: lacks if wanted.stack == "host" else None)
    own, host = (DOCKER.options(runtime="runsc", network=network) for network in ("bridge", "host"))
    assert docker.unmet(own, HERE) is None and docker.unmet(host, HERE) == lacks
    assert docker.unmet(host, BETWEEN) is None, "there it is in an engine of ours"
    assert docker.unmet(DOCKER.options(network="host"), HERE) is None
    engine = Readiness(True, "the engine that answers")
    monkeypatch.setattr(docker, "readiness", lambda: engine)
    monkeypatch.setattr(docker.gvisor, "readiness", lambda: Readiness(True))
    assert DOCKER.ready(host) == Readiness(True, "it has no runsc", caveat="testbed hosts only")
    assert DOCKER.ready(own) == DOCKER.ready(own, HERE) == engine
    assert DOCKER.ready(host, HERE) == lacks
    monkeypatch.setattr(docker.gvisor, "readiness", lambda: lacks)
    assert DOCKER.ready(own) == lacks


def test_no_engine_is_started_beside_one_of_the_user(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(docker, "answers", lambda: True)
    own = DOCKER.options.model_validate({"dockerd": "/opt/29/dockerd"})
    lacking = docker.unmet(own, HERE)
    assert lacking is not None and not lacking.ready and "testbed" in lacking.remedy
    assert docker.unmet(own, BETWEEN) is None, "there it is on a host of its own"
    assert docker.unmet(DOCKER.options(), HERE) is None
    monkeypatch.setattr(docker, "answers", lambda: False)
    assert docker.unmet(own, HERE) is None
