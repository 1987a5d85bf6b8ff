"""Which environments share a host, and so an engine and its packet filter."""

import os
from pathlib import Path
from typing import Any

import pytest

from weighbridge.environments.docker import DockerOptions, _security, host_for
from weighbridge.model.host import Capabilities
from weighbridge.model.userland import Userland

SHIPPED, OWN = Userland("d", Path("/x"), Path("/x.tar"), {}), Userland("d", Path("/"), None, {})
"""One that is an image's, and this machine's own files."""


class Disposable:
    """A host that can have others like it."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(disposable=self)  # type: ignore[arg-type]

    def read(self, path: str) -> bytes:
        """It enforces SELinux."""
        assert path == "/sys/fs/selinux/enforce"
        return b"1"

    def dedicated_host(self, purpose: str) -> "Disposable":
        return Disposable(f"{self.name}-{purpose}")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"network": "host"}, "a-docker"),
        ({"network": "bridge", "publish": True}, "a-nat"),
        ({"network": "macvlan"}, "a-macvlan"),
        ({"network": "overlay"}, "a-swarm"),
        ({"network": "overlay", "encrypted": True}, "a-swarm-encrypted"),
        ({"network": "bridge", "bridge_netfilter": False, "filter_rules": 9}, "a-nat-nobrnf-rules9"),
        ({"network": "bridge", "conntrack": False, "bridge_netfilter": True}, "a-nat-brnf-notrack"),
        ({"network": "bridge", "mtu": 1400, "no_offloads": ["gro"]}, "a-nat"),
        ({"network": "overlay", "vxlan_offload": False}, "a-swarm-novxlan"),
    ],
)
def test_no_network_is_measured_beside_the_rules_of_another(options: dict[str, Any], name: str):
    request: Any = type("Request", (), {"host": Disposable("a"), "role": "server"})
    host, _ = host_for(DockerOptions(**options), request)
    assert host.name == name


def test_each_program_of_an_engine_has_hosts_of_its_own():
    request: Any = type("Request", (), {"host": Disposable("a"), "role": "server"})
    programs = (None, "/opt/28/dockerd", "/opt/29/dockerd")
    found = [host_for(DockerOptions(dockerd=program), request) for program in programs]
    assert len({host.name for host, _ in found}) == 3
    assert [settings.dockerd for _, settings in found] == [*programs]


@pytest.mark.parametrize(
    ("mounted", "security"),
    [
        ([], []),
        (["weighbridge-data"], []),
        (["/data/of/the/host"], ["label=disable"]),
        ([{"Type": "bind", "Source": "/usr"}], ["label=disable"]),
    ],
)
def test_a_container_with_folders_of_its_host_is_not_confined_by_labels(mounted: list[Any], security: list[str]):
    host: Any = Disposable("a")
    assert _security(DockerOptions(), host, SHIPPED, mounted) == security
    unconfined = DockerOptions.model_validate({"seccomp": "unconfined"})
    assert _security(unconfined, host, SHIPPED, mounted) == ["seccomp=unconfined", *security]


def test_set_user_id_has_no_effect_where_it_has_none_natively(monkeypatch: pytest.MonkeyPatch):
    """A user's native programs are in a user namespace; root's are not, and an image has its own files."""
    host: Any = Disposable("a")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert _security(DockerOptions(), host, OWN, []) == ["no-new-privileges:true"]
    assert _security(DockerOptions(), host, SHIPPED, []) == []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert _security(DockerOptions(), host, OWN, []) == []
