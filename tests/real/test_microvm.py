"""QEMU's machine without PCI, emulated: its devices, its network, and its clock, which it cannot measure itself."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from weighbridge import registry
from weighbridge.features.guests.architecture import HOST
from weighbridge.features.guests.environments.qemu import QemuOptions
from weighbridge.hosts.local import LocalHost
from weighbridge.linux.network import free_port
from weighbridge.model.command import Command
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import DATA, Site, SiteRequest, SiteStorage
from weighbridge.model.userland import Userland
from weighbridge.runner.preflight import ready

from .conftest import open_run

QEMU = registry.environments()["qemu"]
MIB = 2**20

pytestmark = [
    pytest.mark.skipif(not ready(QEMU).ready, reason=ready(QEMU).detail),
    pytest.mark.skipif(not HOST.has_microvm, reason=f"QEMU has no machine microvm for {HOST.name}"),
]


@pytest.fixture(scope="module")
def run() -> Iterator[RunContext]:
    with open_run("9e5700000a1d") as made:
        yield made


@pytest.fixture(scope="module")
def site(run: RunContext, small_userland: Userland) -> Iterator[Site]:
    options = QemuOptions.model_validate({"accelerator": "tcg", "machine": "microvm"})
    directory = registry.storage()["directory"]
    storage = SiteStorage("directory", lambda request: directory.open(directory.options(), request))
    limits = Limits(cpus=2, memory=384 * MIB)
    request = SiteRequest(run, LocalHost(run.id), "microvm", "server", small_userland, limits, storage=storage)
    with QEMU.open(options, request) as opened:
        yield opened


def test_it_has_no_pci_and_its_drivers_are_virtios(site: Site):
    facts = site.facts()
    assert facts["machine"] == "microvm"
    assert (facts["network driver"], facts["disk driver"]) == ("virtio_net", "virtio_blk")
    assert site.run(Command(("sh", "-c", "ls /sys/bus/pci/devices"), 20)).text == ""
    assert site.run(Command(("nproc",), 20)).text == "2\n"


def test_it_starts_while_other_hypervisors_have_its_disk_open(small_userland: Userland):
    """User-mode Linux locks the whole file of a disk, which all guests read."""
    uml = registry.environments()["uml"]
    if not ready(uml).ready:
        pytest.skip(ready(uml).detail)
    with open_run("9e5700000a1e") as run:
        limits = Limits(cpus=1, memory=384 * MIB)
        request = SiteRequest(run, LocalHost(run.id), "uml", "server", small_userland, limits)
        other = replace(request, name="microvm")
        with (
            uml.open(uml.options.model_validate({"root": "disk"}), request),
            QEMU.open(QemuOptions.model_validate({"accelerator": "tcg", "machine": "microvm"}), other) as opened,
        ):
            assert opened.run(Command(("true",), 20)).returncode == 0


def test_its_clock_is_the_processors_and_runs_as_fast_as_ours(site: Site):
    assert site.facts()["guest clock"] == "tsc"
    times = []
    for pause_s in (2, 0):
        times.append((time.monotonic(), _uptime(site), time.monotonic()))
        time.sleep(pause_s)
    (asked, before, told), (asked_again, after, told_again) = times
    assert asked_again - told - 0.05 < after - before < told_again - asked + 0.05


def _uptime(site: Site) -> float:
    return float(site.read("/proc/uptime").split()[0])


def test_its_data_is_on_its_disk(site: Site):
    done = site.run(Command(("dd", "if=/dev/zero", f"of={DATA}/x", "bs=1M", "count=16", "conv=fsync"), 60))
    assert done.returncode == 0, done


def test_it_is_reached_over_its_bridge(site: Site, run: RunContext, small_userland: Userland):
    native, port = registry.environments()["native"], free_port()
    request = SiteRequest(run, LocalHost(run.id), "client", "client", small_userland, Limits())
    with native.open(native.options(), request) as client:
        server = site.start(Command(("iperf3", "-s", "-1", "-p", str(port)), 60))
        assert site.listening((("tcp", port),), 20)
        done = client.run(Command(("iperf3", "-c", site.address, "-p", str(port), "-n", "8M"), 60))
        assert done.returncode == 0, done
        server.stop()
