"""What root can do with a whole machine: a second engine, other kinds of containers, our own image."""

import json

import pytest

from . import carried
from .guest import Answer, Guest
from .rows import USERS
from .weighing import PROGRAM, Weighbridge, unchanged

_KLIBC = "/usr/lib/klibc/bin"
_SHOP = "cd / && tar -c lib usr/lib/klibc usr/lib/klibc-*.so | docker import - shop:1.5 > /dev/null"
"""An image of less than a megabyte: a shell and a few programs, those of the initial RAM disk."""

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


def test_own_image(machine: Guest, weighbridge: Weighbridge):
    """As docs/start/install.md has it: weighs an image of the engine beside it; one like it cleans up after it."""
    archive = carried.own_image(machine.folder, machine.kind)
    if machine.run("root", "cat", "own-image").out != archive.name:
        machine.send("root", archive, "/root/own-image.tar")
        machine.must("root", "docker", "load", "-qi", "own-image.tar")
        machine.must("root", "sh", "-c", f"rm own-image.tar; printf {archive.name} > own-image; {_SHOP}")
    machine.must("root", "sh", "-c", "rm -rf own; mkdir -p own /run/weighbridge")  # Docker would make the last, too
    page = (carried.REPOSITORY / "docs/start/install.md").read_text()
    (line,) = [line for line in page.splitlines() if line.startswith("docker run --rm -it ")]
    options = line.removeprefix("docker run --rm -it ").partition(" weighbridge weigh ")[0]

    def from_image(words: str, how: str = "--rm") -> Answer:
        return machine.shell("root", f"cd own && docker run {how} {options} weighbridge {words}")

    with unchanged(machine):
        words = f"weigh --image shop:1.5 --blocks 6 --out run --export-json run.json -- {_KLIBC}/sh -c '{PROGRAM}'"
        answer = from_image(words)
        assert answer.code == 0 and "Weighbridge runs in a Docker container" in answer.text, answer.text
        assert "start the container with" not in answer.text and "Traceback" not in answer.text, answer.text
    report = json.loads(machine.must("root", "cat", "own/run.json"))
    costs = [cost for cost in report["costs"] if cost["environment"] == "docker" and not cost["resource_use"]]
    assert costs and all(cost["rounds"] == 6 for cost in costs), report["costs"]
    with unchanged(machine):
        words = f"weigh --image shop:1.5 --blocks 500 --out killed -- {_KLIBC}/sleep 77"
        assert (answer := from_image(words, "--detach --name own")).code == 0, answer.text
        started = machine.shell("root", f"for i in $(seq 600); do pgrep -f '^{_KLIBC}/sleep' && exit; sleep 1; done")
        assert started.out.strip(), machine.shell("root", "docker logs own").text
        answer = weighbridge("clean --check")
        assert answer.code == 0 and "is still running" in answer.text, answer.text
        machine.must("root", "docker", "rm", "--force", "own")
        assert (answer := from_image("clean --check")).code == 1, answer.text
        assert (answer := from_image("clean")).code == 0, answer.text
        assert (answer := weighbridge("clean --check")).code == 0, answer.text
    machine.must("root", "rmdir", "/run/weighbridge")
