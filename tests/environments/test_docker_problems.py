"""Every combination of Docker options that cannot work gives its sentence, whatever the machine."""

from typing import Any

import pytest

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


WRONG: dict[str, tuple[Needs, dict[str, Any], str]] = {
    "publish on host": (HERE, {"network": "host", "publish": True}, "'publish' needs network: bridge, not host"),
    "publish and attach": (BETWEEN, {"publish": True, "attach": "interface"}, "'publish' has no effect with attach"),
    "attach on host": (HERE, {"network": "host", "attach": "interface"}, "'attach' needs network: bridge, not host"),
    "attach here": (HERE, {"attach": "interface"}, "which other programs use on a local host: put both roles on te"),
    "attach by ssh": (SSH, {"attach": "interface"}, "which other programs use on a ssh host: put both roles on tes"),
    "a sandbox that ends at once": (
        Needs(network=True, resources=Resources.model_validate({"memory": "16MiB"})), {"runtime": "runsc"},
        "gVisor needs at least 24 MiB of memory, but the limit is 16 MiB. Raise it (resources: memory)",
    ),
    "a user's host filtered": (HERE, {"bridge_netfilter": True}, "'bridge_netfilter' changes a host's network: use"),
    "a user's host with rules": (HERE, {"filter_rules": 10}, "use hosts of kind testbed, not local"),
    "offloads of the host": (BETWEEN, {"network": "host", "no_offloads": ["gro"]}, "'no_offloads' needs a network"),
    "VXLAN of a bridge": (BETWEEN, {"attach": "interface", "vxlan_offload": False}, "needs network: overlay"),
    "netfilter of an overlay": (BETWEEN, {"network": "overlay", "bridge_netfilter": False}, "needs network: bridge"),
    "untracked ports": (BETWEEN, {"publish": True, "conntrack": False}, "published ports do not work with"),
    "MTU of the host": (HERE, {"network": "host", "mtu": 1400}, "'mtu' needs network: bridge or overlay"),
    "no such parent there": (
        BETWEEN, {"network": "macvlan", "parent": "enp3s0"}, "a testbed host has no network interface 'enp3s0', onl",
    ),
    "encrypted bridge": (HERE, {"encrypted": True}, "'encrypted' needs network: overlay, not bridge"),
    "l3 of macvlan": (HERE, {**MACVLAN, "ipvlan_mode": "l3"}, "'ipvlan_mode' needs network: ipvlan, not macvlan"),
    "loopback unpublished": (HERE, {"publish_on": "loopback"}, "'publish_on' needs publish: true"),
    "proxy unpublished": (HERE, {"publish_by": "proxy"}, "needs publish: true and userland_proxy: true"),
    "proxy without proxy": (
        HERE, {"publish": True, "publish_by": "proxy", "userland_proxy": False}, "needs publish: true and userland_p",
    ),
    "parent of a bridge": (HERE, {"parent": "eth0"}, "'parent' needs network: macvlan or ipvlan, or attach: interfa"),
    "subnet of a bridge": (HERE, {"subnet": "10.0.0.0/24"}, "'subnet' needs network: macvlan, ipvlan or overlay, no"),
    "addresses on a bridge": (HERE, {"addresses": {"server": "10.0.0.2"}}, "'addresses' needs network: macvlan or i"),
    "gateway alone": (HERE, {**MACVLAN, "gateway": "10.0.0.1"}, "'gateway' needs network: macvlan or ipvlan, and th"),
    "no such subnet": (HERE, {**MACVLAN, "subnet": "10.0.300.0/24"}, "subnet: Octet 300"),
    "subnet with host bits": (HERE, {**MACVLAN, "subnet": "10.0.0.1/24"}, "subnet: 10.0.0.1/24 has host bits set"),
    "address elsewhere": (
        HERE, {**MACVLAN, **IN_SUBNET, "addresses": {"server": "10.0.1.2"}},
        "server: 10.0.1.2 is not an address in the",
    ),
    "broadcast address": (
        HERE, {**MACVLAN, **IN_SUBNET, "gateway": "10.0.0.255"},
        "gateway: 10.0.0.255 is not an address in the subnet",
    ),
    "the same address": (
        HERE, {**MACVLAN, "subnet": "10.0.0.0/24", "addresses": {"server": "10.0.0.2", "client": "10.0.0.2"}},
        "gateway and addresses must all differ",
    ),
    "subnet without addresses": (BETWEEN, {**MACVLAN, "subnet": "10.0.0.0/24"}, "'subnet' needs the addresses of bo"),
    "no network": (HERE, {"network": "none"}, "network: none cannot carry this workload: choose another network"),
    "overlay, client outside": (SERVER, {"network": "overlay"}, "network: overlay connects only "
        "containers. Put both"),
    "macvlan, client outside": (SERVER, MACVLAN, "macvlan cannot be reached from its own host. Put both roles insid"),
    "an engine on a host of its own, client outside": (
        Needs(network=True, hosts=traits("testbed")), {"publish": True}, "put both roles inside, or the client on an",
    ),
    "a server outside, on the client's host": (
        Needs(network=True, inside=CLIENT), {}, "a server outside listens on the loopback interface",
    ),
    "a server elsewhere that connects back": (
        Needs(network=True, inside=CLIENT, separate_hosts=True, server_calls_client=True),
        {}, "a bridge does not allow that",
    ),
    "bridge between hosts": (BETWEEN, {}, "a bridge cannot be reached from another host. Add publish: true, "
        "or attach"),
    "loopback between hosts": (
        BETWEEN, {"publish": True, "publish_on": "loopback"}, "'publish_on: loopback' cannot be reached from another",
    ),
    "l3 between hosts": (
        BETWEEN, {"network": "ipvlan", "ipvlan_mode": "l3"}, "ipvlan_mode: l3 needs routes between the two hosts",
    ),
    "a server that connects back, over a published port": (
        Needs(network=True, server_calls_client=True),
        {"publish": True},
        "a published port only carries connections to the server",
    ),
    "macvlan here without parent": (HERE, {"network": "macvlan"}, "needs a parent interface of this machine (for"),
    "an engine of this machine elsewhere": (
        SSH, {"network": "host", "dockerd": "/opt/29/dockerd"}, "dockerd: hosts of kind ssh cannot",
    ),
    "an engine of this machine in a guest": (
        Needs(hosts=traits("guest")), {"network": "host", "dockerd": "/opt/29/dockerd"}, "hosts of kind guest",
    ),
    "ipvlan by ssh": (SSH, {"network": "ipvlan"}, "network: ipvlan on ssh hosts needs a subnet and the addresses of"),
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
    needs, options, sentence = WRONG[case]
    (problem,) = told(needs, **options)
    assert sentence in problem and "\n" not in problem


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


def test_a_client_on_a_bridge_reaches_a_server_on_another_host():
    assert told(Needs(network=True, inside=CLIENT, separate_hosts=True)) == []
