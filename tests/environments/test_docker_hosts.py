"""Which environments share a host, and so an engine and its packet filter."""

from typing import Any

import pytest

from weighbridge.environments._docker_host import host_for
from weighbridge.environments.docker import DockerOptions, _security


class Secluded:
    """A host that can have others like it."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def secluded(self) -> "Secluded":
        return self

    def read(self, path: str) -> bytes:
        """It enforces SELinux."""
        assert path == "/sys/fs/selinux/enforce"
        return b"1"

    def variant(self, purpose: str) -> "Secluded":
        return Secluded(f"{self.name}-{purpose}")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"network": "host"}, "a-docker"),
        ({"network": "bridge", "publish": True}, "a-nat"),
        ({"network": "macvlan"}, "a-macvlan"),
        ({"network": "overlay"}, "a-swarm"),
        ({"network": "overlay", "encrypted": True}, "a-swarm-encrypted"),
    ],
)
def test_no_network_is_measured_beside_the_rules_of_another(options: dict[str, Any], name: str):
    request: Any = type("Request", (), {"host": Secluded("a"), "role": "server"})
    host, _ = host_for(DockerOptions(**options), request)
    assert host.name == name


def test_each_program_of_an_engine_has_hosts_of_its_own():
    request: Any = type("Request", (), {"host": Secluded("a"), "role": "server"})
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
    host: Any = Secluded("a")
    assert _security(DockerOptions(), host, mounted) == security
    unconfined = DockerOptions.model_validate({"seccomp": "unconfined"})
    assert _security(unconfined, host, mounted) == ["seccomp=unconfined", *security]
