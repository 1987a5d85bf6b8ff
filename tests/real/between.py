"""Small studies between two testbed hosts, and a userland that engines import faster: without Java."""

from pathlib import Path
from typing import Any

from weighbridge.linux.cgroups import Cgroup
from weighbridge.model.names import GroupName, RunId
from weighbridge.runner.sites import Sites

from .machine import processes

HOSTS = ('a: {kind: testbed, cpus: "0"}', 'b: {kind: testbed, cpus: "1"}')
NATIVE = "native: {kind: native}"
CONTAINER = "box: {kind: docker, network: host}"
TCP = "tcp: {kind: iperf3, amount: 16MiB}"
UDP = "udp: {kind: netperf, test: UDP_RR, request_size: mtu, duration: 1s, warm_up: 0s}"
_PACKAGES = (["iperf3"], ["netperf"], ["iperf3", "netperf"])
_JAVA = ("./usr/lib/jvm", "./opt", "./usr/share/java", "./dev", "./proc", "./sys")


def write(
    folder: Path,
    *,
    environments: tuple[str, ...] = (NATIVE,),
    workloads: tuple[str, ...] = (TCP,),
    blocks: int = 1,
    hosts: tuple[str, ...] = HOSTS,
    further: tuple[str, ...] = (),
) -> Path:
    """A study whose client is on host a and whose server is on host b, both inside of the environments."""
    path = folder / "study.yaml"
    lines = [
        "study: between", "question: Does it run?", "hosts:", *(f"  {line}" for line in hosts),
        "placement: {client: a, server: b}", "inside: [server, client]", "baseline: native", "aa: false",
        "meters: {source: 'off'}", *further, "environments:", *(f"  {line}" for line in environments),
        "workloads:", *(f"  {line}" for line in workloads), f"repetitions: {{blocks: {blocks}}}", "seed: 3",
    ]  # fmt: skip
    path.write_text("\n".join(lines) + "\n")
    return path


def on_host(run: str, host: str) -> set[str]:
    """The names of the programs that run on a host of a run."""
    pids = Cgroup(GroupName(RunId(run), f"host-{host}")).pids()
    return {name for pid, owner, name in processes() if owner == run and pid in pids}


def site_of(sites: Sites, place: str, role: str) -> Any:
    """The open site of a role in an environment, for the clients of the first host."""
    return next(opened.site for key, opened in sites._open.items() if key[:2] == (place, role))
