"""The meters on this machine: what they read agrees with sysstat and with the work that was done."""

import os
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

import pytest

from weighbridge.errors import Unavailable
from weighbridge.hosts.local import LocalHost
from weighbridge.linux import cgroups
from weighbridge.linux.cgroup_files import network_of, processes_of
from weighbridge.linux.cgroups import Cgroup
from weighbridge.meters.kernel import KernelMeter
from weighbridge.meters.sysstat import FOLDERS, SysstatMeter
from weighbridge.model.command import Command
from weighbridge.model.names import GroupName, RunId
from weighbridge.model.trial import Series

pytestmark = pytest.mark.real
RUN = "3e7e45000001"
SPIN = "import time\nend = time.monotonic() + {}\nwhile time.monotonic() < end: pass"
HOLD = "import time\nkept = b'x' * {}\ntime.sleep({})"
SYSSTAT = any(Path(folder, "sadc").exists() for folder in FOLDERS) and shutil.which("sadf") is not None


def named(series: tuple[Series, ...], place: str) -> dict[str, Series]:
    return {each.name: each for each in series if each.place == place}


def over_time(series: Series, start: float) -> float:
    """The total of a rate since ``start``."""
    edges = (start, *series.at_s)
    return sum((b - a) * v for a, b, v in zip(edges, edges[1:], series.values, strict=False))


@contextmanager
def meter(hz: float) -> Iterator[KernelMeter]:
    made = KernelMeter(LocalHost(RUN), hz)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def group() -> Iterator[Cgroup]:
    try:
        made = Cgroup(GroupName(RunId(RUN), "site")).create()
    except Unavailable as error:
        pytest.skip(str(error))
    try:
        yield made
    finally:
        made.kill()
        made.remove()
        Cgroup(GroupName(RunId(RUN))).remove()
        cgroups.remove_top()


def inside(cgroup: Cgroup, code: str) -> Command:
    join = 'while [ "$1" != -- ]; do echo 0 > "$1"; shift; done; shift; exec "$@"'
    return Command(("sh", "-c", join, "join", *map(str, cgroup.procs), "--", sys.executable, "-I", "-S", "-c", code))


@pytest.mark.measures
@pytest.mark.parametrize("hz", [1.0, 10.0])
def test_a_site_is_read_as_it_works(hz: float):
    host = LocalHost(RUN)
    with group() as cgroup, meter(hz) as made:
        since = time.monotonic()
        made.begin({"server": cgroup.scope() | network_of(os.getpid())})
        spinning, holding = (
            host.start(inside(cgroup, SPIN.format(3))),
            host.start(inside(cgroup, HOLD.format(2**26, 9))),
        )
        assert spinning.wait(20)
        taken = made.end(since)
        used = cgroup.meters()
        holding.stop()
    found = named(taken.series, "server")
    assert over_time(found["cpu_share"], 0.0) == pytest.approx(used["cpu_s"], rel=0.05, abs=0.05)
    assert 2**26 < max(found["memory_anonymous_bytes"].values) < 2**27
    assert found["memory_anonymous_bytes"].values[0] < 2**20, "the first reading is before the program"
    assert max(found["pids_count"].values) >= 2
    assert "lo_receive_bytes_per_s" in found
    lasted = found["memory_anonymous_bytes"].at_s[-1]
    for name, rate in (("memory_anonymous_bytes", hz), ("memory_bytes", min(hz, 1.0))):
        assert lasted * rate * 0.7 <= len(found[name].values) <= lasted * rate + 3
    assert taken.own_cpu_s is not None
    assert taken.own_cpu_s < 0.03 * lasted


@pytest.mark.measures
def test_a_site_without_a_control_group_is_read_by_its_processes():
    host = LocalHost(RUN)
    own = ("unshare", "--map-root-user", "--mount", sys.executable, "-I", "-S", "-c")
    spinning = host.start(Command((*own, "kept = b'x' * (1 << 26)\n" + SPIN.format(4))))
    try:
        time.sleep(0.5)
        if spinning.poll() is not None:
            pytest.skip(f"no namespace can be made: {spinning.stop().last_words}")
        with meter(5.0) as made:
            made.begin({"server": processes_of(spinning.pid)})
            before = Path(f"/proc/{spinning.pid}/stat").read_text().split()
            time.sleep(2)
            after = Path(f"/proc/{spinning.pid}/stat").read_text().split()
            found = named(made.end(time.monotonic()).series, "server")
    finally:
        spinning.stop()
    ticks = sum(int(after[at]) - int(before[at]) for at in (13, 14)) / os.sysconf("SC_CLK_TCK")
    start = found["memory_anonymous_bytes"].at_s[0]
    assert over_time(found["cpu_share"], start) == pytest.approx(ticks, abs=0.15)
    assert max(found["memory_anonymous_bytes"].values) > 2**26


def test_it_ends_with_us_and_may_be_killed():
    host = LocalHost(RUN)
    made = KernelMeter(host, 10.0)
    made.begin({})
    assert made._talk is not None
    process, _ = made._talk
    host.signal(process.pid, 9)
    assert process.wait(5)
    from weighbridge.meters.meter import MeterFailed

    with pytest.raises(MeterFailed):
        made.end(0.0)
    made.begin({})
    assert made.end(0.0).series
    second, stream = made._talk
    stream.end()
    assert second.wait(5), "it ends when its standard input closes"
    made.close()


def _traffic(stop: threading.Event) -> None:
    """Datagrams to ourselves on loopback, and a CPU that is half busy."""
    with socket.socket(type=socket.SOCK_DGRAM) as receiver, socket.socket(type=socket.SOCK_DGRAM) as sender:
        receiver.bind(("127.0.0.1", 0))
        while not stop.is_set():
            for _ in range(100):
                sender.sendto(b"x" * 1400, receiver.getsockname())
                receiver.recv(2000)
            time.sleep(0.01)


@pytest.mark.measures
@pytest.mark.skipif(not SYSSTAT, reason="sysstat is not installed: it is what the meter is compared with")
def test_sysstat_reads_the_same():
    host = LocalHost(RUN)
    stop = threading.Event()
    load = threading.Thread(target=_traffic, args=(stop,))
    spinning = host.start(Command((sys.executable, "-c", "kept = b'x' * (1 << 28)\n" + SPIN.format(11))))
    load.start()
    try:
        theirs = SysstatMeter(host)
        with meter(1.0) as ours:
            time.sleep(1)
            since = time.monotonic()
            theirs.begin({})
            ours.begin({})
            time.sleep(8.2)
            mine = named(ours.end(since).series, "host local")
            other = named(theirs.end(since).series, "host local")
    finally:
        stop.set()
        load.join()
        spinning.stop()
    assert len(other["cpu_user_share"].values) >= 7

    def mean(found: dict[str, Series], *names: str) -> float:
        return sum(fmean(found[name].values[:7]) for name in names)

    busy = [f"cpu_{kind}_share" for kind in ("user", "nice", "system", "irq", "softirq")]
    near = 0.1 + mean(mine, "cpu_steal_share")  # they read at other moments
    assert mean(mine, *busy) == pytest.approx(mean(other, *busy), abs=near)
    assert mean(mine, "cpu_idle_share") == pytest.approx(mean(other, "cpu_idle_share"), abs=near)
    for name in ("memory_committed_bytes", "memory_used_bytes", "memory_free_bytes", "memory_available_bytes"):
        assert mean(mine, name) == pytest.approx(mean(other, name), rel=0.05, abs=2**26), name
    for name in ("lo_receive_bytes_per_s", "lo_transmit_packets_per_s"):
        assert mean(mine, name) > 100
        assert mean(mine, name) == pytest.approx(mean(other, name), rel=0.1), name


@pytest.mark.skipif(SYSSTAT, reason="sysstat is installed")
def test_a_host_without_sysstat():
    with pytest.raises(Unavailable, match="sysstat"):
        SysstatMeter(LocalHost(RUN))
