"""What root can do with a whole machine: an engine beside a stopped service, and other kinds of containers."""

import pytest

from .guest import Guest
from .rows import USERS
from .weighing import PROGRAM, Weighbridge, unchanged

pytestmark = pytest.mark.promise("engines and system containers of a machine with systemd leave nothing behind")


@pytest.fixture(scope="session")
def weighbridge(machine: Guest) -> Weighbridge:
    """Root's program, installed."""
    program = Weighbridge(machine, USERS["root"])
    program.link_userland()
    return program


@pytest.mark.parametrize("kind", ["stopped", "never started"])
def test_private_engine(machine: Guest, weighbridge: Weighbridge, kind: str):
    """A service that was stopped leaves its rules and its bridge, which have to stay as they are."""
    machine.shell("root", "systemctl stop docker.socket docker containerd; rm -rf private")
    if kind == "never started":
        machine.shell("root", "nft flush ruleset; ip link del docker0; sysctl -q net.ipv4.ip_forward=0")
    try:
        with unchanged(machine):
            answer = weighbridge(f"weigh --in bridge --rehearsal --blocks 2 --out private -- sh -c '{PROGRAM}'")
            assert answer.code == 0, answer.text
            assert weighbridge("clean --check").code == 0
        assert "bridge" in weighbridge.json("report private --json")["environments"]
        assert machine.run("root", "systemctl", "is-active", "-q", "docker").code != 0
    finally:
        machine.must("root", "systemctl", "start", "containerd", "docker.socket", "docker")


@pytest.mark.parametrize("kind", ["lxc", "nspawn", "podman"])
def test_system_containers(machine: Guest, weighbridge: Weighbridge, kind: str):
    study = machine.must("root", "cat", "/opt/tests/systems.yaml").splitlines()
    others = {"lxc", "nspawn", "podman"} - {kind}
    lines = [line for line in study if line.split(":")[0].strip() not in others]
    machine.must("root", "sh", "-c", 'printf "%s\\n" "$@" > system.yaml', "sh", *lines)
    machine.must("root", "rm", "-rf", "system")
    with unchanged(machine):
        answer = weighbridge("run system.yaml --yes --out system", timeout=3000)
        assert answer.code == 0, answer.text
    report = weighbridge.json("report system --json")
    assert {*report["environments"]} == {"native", "native-again", kind}, report["environments"]
