"""Xen, on a guest host that is its first domain: domains come up, are measured, end, and say why they ended.

Such a host takes half a minute to come up on an idle machine, and a domain fifteen seconds.
"""

import html
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.guests import xen_domains
from weighbridge.features.guests.environments.xen import PLUGIN, XenOptions
from weighbridge.features.guests.hosts.guest.host import GuestHost, guest_host
from weighbridge.features.guests.hosts.guest.options import GuestOptions
from weighbridge.model.command import Command
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import DATA, Site, SiteRequest, SiteStorage
from weighbridge.model.userland import Userland

from .conftest import open_run
from .machine import processes
from .weighing import run_id, trials, weighbridge

RUN = "6e57d057a0e1"
OPTIONS = GuestOptions.model_validate(
    {"kind": "guest", "accelerator": "tcg", "memory": "1280MiB", "hypervisor": "xen"}
)
MIB = 2**20
STUDY = """study: on-xen
question: Does it run in Xen domains?
hosts: {lab: {kind: guest, memory: 1280MiB, accelerator: tcg, hypervisor: xen}}
placement: {client: lab, server: lab}
resources: {cpus: 1, memory: 192MiB}
baseline: native
aa: false
environments:
  native: {kind: native}
  pv: {kind: xen, type: pv}
workloads:
  tcp: {kind: iperf3, duration: 1s}
repetitions: {blocks: 1}
"""


@pytest.fixture(scope="module")
def run() -> Iterator[RunContext]:
    with open_run(RUN) as run:
        yield run


@pytest.fixture(scope="module")
def host(run: RunContext) -> Iterator[GuestHost]:
    with guest_host("lab", OPTIONS, run) as host:
        yield host
        assert not xen_domains.domains_in(_run(host, "xl", "list"))
        assert not host.read("/proc/net/dev").count(b"wb-57a0e1-p")


def _run(host: GuestHost, *argv: str) -> str:
    done = host.run(Command(argv, 120))
    assert done.returncode == 0, done
    return done.text


def _storage() -> SiteStorage:
    directory = registry.storage()["directory"]
    return SiteStorage("directory", lambda request: directory.open(directory.options(), request))


def _open(stack: ExitStack, run: RunContext, host: GuestHost, userland: Userland, **asked: object) -> Site:
    options = XenOptions.model_validate({"type": asked.pop("type", "pvh")})
    memory, cpus = int(str(asked.pop("memory", 192 * MIB))), float(str(asked.pop("cpus", 1)))
    request = SiteRequest(
        run, host, "0-xen-server", "server", userland, Limits(cpus=cpus, memory=memory), storage=_storage()
    )
    return stack.enter_context(PLUGIN.open(options, request))


def _written_to_its_data_disk(host: GuestHost, site: Site) -> None:
    """What a site writes is on a disk of its own, that is a file of its host."""
    assert site.run(Command(("sh", "-c", f"ls -A {DATA}"), 60)).text == ""
    write = f"dd if=/dev/zero of={DATA}/x bs=1M count=8 conv=fsync && grep ' {DATA} ' /proc/mounts"
    done = site.run(Command(("sh", "-c", write), 120))
    assert done.returncode == 0 and done.text.startswith("/dev/xvdf"), done
    [backing] = _run(host, "sh", "-c", "cat /sys/block/loop*/loop/backing_file").splitlines()
    assert backing.endswith("/data.ext4")
    assert int(_run(host, "stat", "--format=%b", backing)) * 512 > 8 * MIB


def _images_left(host: GuestHost) -> str:
    return _run(host, "sh", "-c", "cat /sys/block/loop*/loop/backing_file; find / -xdev -name data.ext4 || true")


@pytest.mark.long  # an emulated machine brings up domains in a minute each
@pytest.mark.promise("Xen's domains of every type keep data on a disk of their own and say why they ended")
def test_a_domain_that_panics_is_told_with_its_last_words(run: RunContext, host: GuestHost, small_userland: Userland):
    with ExitStack() as stack:
        site = _open(stack, run, host, small_userland)
        assert [layer.name for layer in site.layers] == ["QEMU, TCG", "Xen PVH"]
        assert site.facts()["domain"] == "PVH" and site.meters()["memory_bytes"] >= 190 * MIB
        data = bytes(range(256)) * 16  # also what a console would take for a command to the kernel
        site.put("/tmp/all", data)
        assert site.read("/tmp/all") == data
        _written_to_its_data_disk(host, site)
        before = site.meters()["cpu_s"]
        site.freeze()
        time.sleep(1)
        assert "--p--" in _run(host, "xl", "list")
        site.thaw()
        assert site.run(Command(("true",), 60)).returncode == 0
        assert site.meters()["cpu_s"] >= before
        with pytest.raises(EnvironmentLost, match="Kernel panic"):
            site.run(Command(("sh", "-c", "echo c > /proc/sysrq-trigger"), 60))
    assert not _images_left(host)


@pytest.mark.long  # an emulated machine's firmware takes four minutes to read a kernel
@pytest.mark.promise("Xen's domains of every type keep data on a disk of their own and say why they ended")
def test_an_hvm_domain_has_a_data_disk_too(run: RunContext, host: GuestHost, small_userland: Userland):
    with ExitStack() as stack:
        site = _open(stack, run, host, small_userland, type="hvm")
        assert [layer.name for layer in site.layers] == ["QEMU, TCG", "Xen HVM"]
        assert "Hypervisor detected: Xen HVM" in site.run(Command(("dmesg",), 60)).text
        _written_to_its_data_disk(host, site)
    assert not _images_left(host)


@pytest.mark.long  # an emulated machine brings up domains in a minute each
@pytest.mark.promise("Xen's domains of every type keep data on a disk of their own and say why they ended")
def test_a_domain_that_is_killed_and_one_that_has_no_room(run: RunContext, host: GuestHost, small_userland: Userland):
    with ExitStack() as stack:
        with pytest.raises(Unavailable, match=r"\b4096 MiB .*host lab\b"):
            _open(stack, run, host, small_userland, memory=4096 * MIB)
        site = _open(stack, run, host, small_userland, type="pv", cpus=0.5)
        asleep = site.start(Command(("sleep", "600"), 600))
        [(_, name)] = xen_domains.domains_in(_run(host, "xl", "list"))
        share = _run(host, "xl", "sched-credit2", "-d", name).split()
        assert share[share.index(name) - 1 :][-1] == "50", "half a CPU is its cap"
        _run(host, "xl", "destroy", name)
        with pytest.raises(EnvironmentLost):
            asleep.stop()


@pytest.mark.long  # four minutes in an emulated machine
@pytest.mark.promise("a study is measured in Xen's domains beside Xen's first domain, and leaves nothing")
def test_a_study_in_domains(tmp_path: Path, small_userland: Userland, cache: Path):
    study, out = tmp_path / "study.yaml", tmp_path / "run"
    study.write_text(STUDY)
    ended = weighbridge("run", study, "--yes", "--out", out)
    assert ended.code == 0, ended
    found = trials(out)
    assert len(found) == 2 and {row["outcome"] for row in found} == {"ok"}, found
    report = (out / "report.html").read_text()
    assert "native (inside Xen's first domain inside QEMU, TCG: emulated)" in html.unescape(report)
    assert "Xen PV inside QEMU, TCG: emulated" in report
    assert run_id(out) not in weighbridge("clean", "--check").stdout
    assert run_id(out) not in {owner for _, owner, _ in processes()}
