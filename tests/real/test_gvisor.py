"""gVisor as Docker's runtime: the launcher works in it, and the host keeps its addresses, on its own network too."""

import re
import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.facts.connection import connection
from weighbridge.hosts import testbed
from weighbridge.hosts.local import LocalHost
from weighbridge.linux.process import output
from weighbridge.model.command import Command, PublishedPort
from weighbridge.model.facts import GVISOR_FILES, GVISOR_LAYERS, GVISOR_NETWORK, GVISOR_PLATFORM
from weighbridge.model.host import Limits
from weighbridge.model.site import Site, SiteRequest
from weighbridge.model.userland import Userland
from weighbridge.model.workload import Endpoint
from weighbridge.userland.sources.host import PLUGIN as HOST_FILES
from weighbridge.userland.sources.host import HostRootOptions

from .conftest import open_run
from .programs import started

pytestmark = [
    pytest.mark.skipif(shutil.which("runsc") is None, reason="needs runsc: make gvisor"),
    pytest.mark.promise(
        "what is measured under gVisor is reached, metered and frozen, and hosts keep their addresses"
    ),
]
DOCKER = registry.environments()["docker"]
KINDS: dict[str, dict[str, Any]] = {
    "none": {"network": "none", "runtime": "runsc"},
    "host": {"network": "host", "runtime": "runsc"},
    "published": {"network": "bridge", "publish": True, "runtime": "runsc"},
    "others": {"network": "none", "runtime": "runsc", "runsc_platform": "ptrace", "runsc_files": "gofer"},
}
IN_FORCE = (GVISOR_PLATFORM, GVISOR_NETWORK, GVISOR_FILES, GVISOR_LAYERS)
PORT = 25_301
LIMITS = Limits(cpus=0.5, memory=256 * 2**20, cpuset="0")


def addresses() -> str:
    """Of this machine, without the links of runs and of containers, which come and go."""
    return "\n".join(
        line.rstrip()
        for line in (output(("ip", "-brief", "address")) or "").splitlines()
        if not line.startswith(("wb-", "veth"))
    )


@pytest.fixture(scope="module")
def sites(small_userland: Userland) -> Iterator[dict[str, Site]]:
    """On hosts of a testbed: were runsc to take addresses, it would be theirs."""
    before = addresses()
    options = registry.hosts()["testbed"].options(kind="testbed")
    with open_run("9715079715e0") as run:
        near, far = (run.stack.enter_context(testbed.testbed_host(name, options, run)) for name in ("near", "far"))  # type: ignore[arg-type]
        opened = {}
        for name, given in KINDS.items():
            request = SiteRequest(
                run,
                far,
                name,
                "server",
                small_userland,
                LIMITS,
                (PublishedPort("tcp", PORT, PORT),),
                environment=name,
                separate_hosts=True,
            )
            opened[name] = run.stack.enter_context(DOCKER.open(DOCKER.options(**given), request))
        native = registry.environments()["native"]
        client = SiteRequest(run, near, "client", "client", small_userland, Limits(), separate_hosts=True)
        opened["client"] = run.stack.enter_context(native.open(native.options(), client))
        yield opened
    assert addresses() == before


@pytest.fixture(params=KINDS)
def site(request: pytest.FixtureRequest, sites: dict[str, Site]) -> Site:
    return sites[request.param]


def test_the_kernel_is_gvisor_s_and_the_facts_say_which(site: Site):
    assert "gVisor" in site.run(Command(("dmesg",))).text
    assert re.fullmatch(r"runsc \S+, platform \w+", site.facts()["runtime"])
    assert not [fact for fact in site.facts() if fact.startswith("not honoured")]


def test_programs_files_and_deadlines(site: Site):
    site.put("/tmp/a", b"x" * 300_000)
    assert site.read("/tmp/a") == b"x" * 300_000
    assert site.run(Command(("sh", "-c", "exit 7"))).returncode == 7
    assert site.run(Command(("touch", "/x"))).returncode == 1
    late = site.run(Command(("sleep", "60"), deadline_s=0.3))
    assert late.timed_out
    gone = site.run(Command(("no-such-program",)))
    assert (gone.returncode, gone.error) == (127, 2)


@pytest.mark.measures
def test_what_it_uses_is_metered_and_frozen_it_uses_nothing(site: Site):
    with started(site, "sh", "-c", "while :; do :; done"):
        before, deadline = site.meters()["cpu_s"], time.monotonic() + 20
        while site.meters()["cpu_s"] < before + 0.02:  # beside others it gets little of the CPU
            assert time.monotonic() < deadline
            time.sleep(0.1)
        site.freeze()
        used = site.meters()["cpu_s"]
        time.sleep(0.3)
        assert site.meters()["cpu_s"] == pytest.approx(used, abs=0.01)


def test_how_a_sandbox_serves_is_read_back_from_its_process(sites: dict[str, Site]):
    told = {name: {fact: sites[name].facts()[fact] for fact in IN_FORCE} for name in KINDS}
    assert [*told["published"].values()] == ["systrap", "sandbox", "true", "root:self"]
    assert [*told["host"].values()] == ["systrap", "host", "true", "root:self"]
    assert [*told["others"].values()] == ["ptrace", "sandbox", "false", "root:self"]


@pytest.mark.parametrize("name", ["host", "published"])
def test_a_server_is_reached_and_the_host_keeps_its_addresses(name: str, sites: dict[str, Site]):
    site, client = sites[name], sites["client"]
    told = site.host.run(Command(("ip", "-brief", "address", "show", site.host.interface), 10)).text
    assert site.host.address in told
    at = Endpoint(site.listen, site.address, PORT)
    for _ in range(10):
        if (path := connection(site, client, {"server": at, "client": at}, "tcp")) is not None:
            break
        time.sleep(0.5)
    assert path is not None
    server = site.start(Command(("iperf3", "-s", "-1", "-p", str(PORT))))
    assert not site.listening((("udp", PORT),))
    assert site.listening((("tcp", PORT),), 10.0)
    done = client.run(Command(("iperf3", "-c", site.address, "-p", str(PORT), "-n", "10M"), 30))
    assert done.returncode == 0, done
    server.stop()


def test_it_has_this_machines_own_files_and_may_not_write_to_them():
    """With what is mounted below each folder, which nobody may leave out of a bind in a user namespace."""
    userland = HOST_FILES.existing(HostRootOptions())
    with open_run("9715079715e1") as run:
        for kind in ("none", "host"):
            request = SiteRequest(run, LocalHost(run.id), kind, "solo", userland, LIMITS)
            site = run.stack.enter_context(DOCKER.open(DOCKER.options(**KINDS[kind]), request))
            done = site.run(
                Command(("sh", "-c", "ls /usr/bin/env /etc/passwd && ! touch /usr/was-here /etc/was-here"))
            )
            assert (done.returncode, done.text.split()) == (0, ["/etc/passwd", "/usr/bin/env"]), done
