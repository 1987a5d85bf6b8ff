"""Firecracker and Cloud Hypervisor, if their programs are installed.

Without KVM that works, no guest boots in them. They then accept every option, disk, interface and socket, start the
guest's processors, and leave nothing.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.features.guests import accelerator, boot
from weighbridge.features.guests.kvm_guest import KvmEnvironment, KvmOptions
from weighbridge.hosts.local import LocalHost
from weighbridge.model.command import Command
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import DATA, SiteRequest, SiteStorage
from weighbridge.model.userland import Userland

from .conftest import open_run

MIB = 2**20


def _environments() -> Iterator[object]:
    for kind in ("firecracker", "cloud-hypervisor"):
        found = registry.environments()[kind]
        assert isinstance(found, KvmEnvironment)
        lacking = found.machine.hypervisor.lacking()
        lacking = lacking or (accelerator.no_kvm() if not os.access("/dev/kvm", os.R_OK | os.W_OK) else None)
        reason = "" if lacking is None else lacking.detail
        yield pytest.param(found, id=kind, marks=pytest.mark.skipif(bool(reason), reason=reason))


@pytest.fixture(scope="module")
def run() -> Iterator[RunContext]:
    with open_run("9e5700000a2d") as made:
        yield made


@pytest.mark.parametrize("network", ["bridge", "none"])
@pytest.mark.parametrize("environment", [*_environments()])
def test_a_guest_is_accepted_and_boots_where_kvm_works(
    environment: KvmEnvironment, network: str, run: RunContext, small_userland: Userland, monkeypatch
):
    directory = registry.storage()["directory"]
    storage = SiteStorage("directory", lambda request: directory.open(directory.options(), request))
    limits = Limits(cpus=1, memory=256 * MIB)
    request = SiteRequest(run, LocalHost(run.id), "guest", "server", small_userland, limits, storage=storage)
    opening = environment.open(KvmOptions.model_validate({"network": network}), request)
    data = bytes(range(256)) * 1024
    if accelerator.no_kvm() is not None:
        monkeypatch.setattr(boot, "BOOTS_S", (5.0,))
        with pytest.raises(Unavailable, match="its guest does not answer"):
            opening.__enter__()
    else:
        with opening as site:
            assert site.run(Command(("cat",), 60, stdin=data)).stdout == data
            assert site.run(Command(("nproc",), 20)).text == "1\n"
            done = site.run(Command(("dd", "if=/dev/zero", f"of={DATA}/x", "bs=1M", "count=16", "conv=fsync"), 60))
            assert done.returncode == 0, done
            drivers = {name: value for name, value in site.facts().items() if name.endswith(" driver")}
            assert drivers.pop("disk driver") == "virtio_blk"
            assert drivers == ({"network driver": "virtio_net"} if network == "bridge" else {})
    assert not (run.cache / "engines" / run.id).exists()
    assert not [each.name for each in Path("/sys/class/net").iterdir() if each.name.startswith(f"wb-{run.id[-6:]}-p")]
