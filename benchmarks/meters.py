"""What reading resource use costs: our meter, sysstat and Prometheus' node exporter; and whether iperf3 notices it.

**Cost.** Each runs alone for ``--seconds`` at 1 and at 10 Hz (``sar`` cannot do more than 1): the CPU time of its own
processes, in the kernel too, as a share of one core. Ours reads the host's files and the control groups of two sites
with four processes each (as many as nginx has here); the exporter is scraped on loopback, and only its time counts.

**Disturbance.** One iperf3 stream on loopback; its server, its client and the meter are pinned to one CPU, so that
all that the meter takes is taken from the stream. Inside it the meter is on (10 Hz) or off in slots of a fifth of a
second; two neighbouring slots are a block, their order is drawn, and every fifty blocks the connection is made anew.
Neighbours share the machine's slow changes, which fresh runs of seconds on a shared machine do not: their throughput
wanders by tens of percent, and that of two CPUs by more than that of one. The bytes of a slot are those that the
client has written by then (/proc/PID/io). The blocks are compared as in every report: `statistics.compare`,
equivalence within 1 %.

Exits with 1 where ours takes more than 0.5 % of a core at 10 Hz, or the throughput is not shown to be equivalent.

    .venv/bin/python benchmarks/meters.py [--seconds 60] [--blocks 600] [--seed 1]
"""

import argparse
import contextlib
import http.client
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.hosts.local import LocalHost
from weighbridge.linux import cgroups
from weighbridge.linux.cgroup_files import network_of
from weighbridge.linux.network import free_port, listening
from weighbridge.linux.process import Process
from weighbridge.meters.kernel import KernelMeter
from weighbridge.meters.sysstat import FOLDERS
from weighbridge.model.command import Command
from weighbridge.model.names import GroupName, RunId
from weighbridge.statistics import compare

SHARE = 0.005
MARGIN = 0.01
SLOT_S = 0.2
SETTLE_S = 0.02
AFRESH = 50
PROCESSES = 4
EXPORTER = "prometheus-node-exporter"
Scopes = dict[str, dict[str, str]]


@contextlib.contextmanager
def sites() -> Iterator[dict[str, dict[str, str]]]:
    """What to read of two sites as in a trial: control groups with processes in them, and a network."""
    with contextlib.ExitStack() as stack:
        stack.callback(cgroups.remove_top)
        both, scopes = GroupName(RunId.new()), {}
        stack.callback(cgroups.Cgroup(both).remove)
        for role in ("server", "client"):
            group = cgroups.Cgroup(both.below(role)).create()
            for _ in range(PROCESSES):
                process = Process(Command(("sleep", "infinity")))
                stack.callback(process.stop)
                for path in group.procs:
                    path.write_text(str(process.pid))
            scopes[role] = group.scope() | network_of(os.getpid())
        yield scopes


def ours(host: LocalHost, scopes: Scopes, hz: float, seconds: float) -> float:
    """Share of a core that our meter takes."""
    meter = KernelMeter(host, hz)
    try:
        meter.begin(scopes)
        begun = time.monotonic()
        time.sleep(seconds)
        return (meter.end(begun).own_cpu_s or 0.0) / (time.monotonic() - begun)
    finally:
        meter.close()


def running_s(leader: int) -> float:
    """CPU seconds of every living thread in a session: /proc/PID/task/TID/schedstat, in nanoseconds."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                total += sum(int(each.read_text().split()[0]) for each in folder.glob("task/*/schedstat"))
    return total / 1e9


def others(command: Command, seconds: float, each: Callable[[], None], hz: float) -> float | None:
    """Share of a core of a program while ``each`` is called ``hz`` times a second; None where it is missing."""
    try:
        process = Process(command)
    except Unavailable:
        return None
    try:
        time.sleep(1)  # to start is no reading
        used, begun = running_s(process.pid), time.monotonic()
        for number in range(1, int(seconds * hz) + 1):
            time.sleep(max(0.0, begun + number / hz - time.monotonic()))
            each()
        if process.poll() is not None:
            return None
        return (running_s(process.pid) - used) / (time.monotonic() - begun)
    finally:
        process.stop()


def scraper(port: int) -> Callable[[], None]:
    """One scrape, as Prometheus does it: the connection stays."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)

    def scrape() -> None:
        connection.request("GET", "/metrics")
        assert connection.getresponse().read()

    return scrape


def costs(host: LocalHost, scopes: Scopes, seconds: float) -> bool:
    """The table of shares; True where ours is within the goal."""
    rows: list[tuple[str, float, float | None]] = []
    for hz in (1.0, 10.0):
        rows.append(("weighbridge", hz, ours(host, scopes, hz, seconds)))
    sar = next((folder for folder in FOLDERS if Path(folder, "sadc").exists()), None)
    argv = ("sar", "-u", "ALL", "-r", "-n", "DEV", "-d", "1")
    rows.append(("sar and sadc", 1.0, others(Command(argv), seconds, lambda: None, 1) if sar else None))
    for hz in (1.0, 10.0):
        port = free_port()
        exporter = Command((EXPORTER, f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"))
        share = others(exporter, seconds, scraper(port), hz) if shutil.which(EXPORTER) else None
        rows.append(("node exporter", hz, share))
    for name, hz, share in rows:
        print(f"{name:14} {hz:4.0f} Hz  {'not installed' if share is None else f'{share:7.3%} of a core'}")
    ten = next(share for name, hz, share in rows if (name, hz) == ("weighbridge", 10.0))
    print(f"goal: at most {SHARE:.1%} of a core at 10 Hz: {'met' if ten is not None and ten <= SHARE else 'missed'}")
    return ten is not None and ten <= SHARE


@contextlib.contextmanager
def stream() -> Iterator[int]:
    """The pid of an iperf3 client at work."""
    port = free_port()
    with contextlib.ExitStack() as stack:
        server = Process(Command(("iperf3", "--port", str(port), "--server")))
        stack.callback(server.stop)
        while not listening([("tcp", port)]):
            if server.wait(0.01):
                raise SystemExit(f"iperf3 cannot serve: {server.stop().last_words}")
        argv = ("iperf3", "--port", str(port), "--client", "127.0.0.1", "--time", "86400", "--interval", "0")
        client = Process(Command(argv))
        stack.callback(client.stop)
        if client.wait(1.5):
            raise SystemExit(f"iperf3 cannot connect: {client.stop().last_words}")
        yield client.pid


def written(pid: int) -> int:
    """Bytes that a process has written (proc(5), /proc/PID/io)."""
    return int(Path(f"/proc/{pid}/io").read_text().split("wchar: ")[1].split("\n")[0])


def slot(pid: int, scopes: Scopes, meter: KernelMeter | None) -> float:
    """Mbit/s in one slot, with the meter on or off; what comes before and after the slot does not count."""
    if meter is not None:
        meter.begin(scopes)
    time.sleep(SETTLE_S)
    before, begun = written(pid), time.monotonic()
    time.sleep(SLOT_S)
    rate = (written(pid) - before) * 8e-6 / (time.monotonic() - begun)
    if meter is not None:
        meter.end(begun)
    time.sleep(SETTLE_S)
    return rate


def disturbance(host: LocalHost, scopes: Scopes, blocks: int, seed: int) -> bool:
    """The comparison of throughput with the meter on against off; True where it is equivalent."""
    draw, rates = random.Random(seed), dict[bool, list[float]]({False: [], True: []})
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # of this process, and all that it starts
    meter = KernelMeter(host, 10.0)
    try:
        while len(rates[True]) < blocks:
            with stream() as pid:
                for _ in range(min(AFRESH, blocks - len(rates[True]))):
                    for on in draw.sample((False, True), 2):
                        rates[on].append(slot(pid, scopes, meter if on else None))
    finally:
        meter.close()
    cost = compare(rates[False], rates[True], better="higher", equivalence=MARGIN)
    change = [f"{100 * (value - 1):+.2f} %" for value in (cost.typical, cost.low, cost.high)]
    print(
        f"iperf3 with the meter at 10 Hz against without: {change[0]} [{change[1]}, {change[2]}] of throughput, "
        f"{cost.blocks} blocks, {sum(rates[False]) / blocks:.0f} Mbit/s: "
        f"{'equivalent' if cost.equivalent else 'not shown to be equivalent'} within ±{MARGIN:.0%}"
    )
    return bool(cost.equivalent)


def main() -> int:
    """Run both and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60, help="of each meter; 0 leaves the costs out")
    parser.add_argument("--blocks", type=int, default=600, help="of the comparison; 0 leaves it out")
    parser.add_argument("--seed", type=int, default=1)
    given, host = parser.parse_args(), LocalHost(RunId.new())
    with sites() as scopes:
        well = [costs(host, scopes, given.seconds)] if given.seconds else []
        if given.blocks:
            well.append(disturbance(host, scopes, given.blocks, given.seed))
    print(f"load of the machine at the end: {os.getloadavg()[0]:.2f} on {os.cpu_count()} CPUs")
    return int(not all(well))


if __name__ == "__main__":
    sys.exit(main())
