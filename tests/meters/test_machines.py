"""What whole machines did between two moments, from captured texts of the kernel."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from weighbridge.meters import machines
from weighbridge.meters.host import stat
from weighbridge.meters.machines import IdleLevels, counters_of, networks_of, tcp, tcp_total, use

DATA = Path(__file__).parent / "data"
STAT = (DATA / "stat.txt").read_text()
SNMP = (DATA / "net-snmp.txt").read_bytes()


def _fields() -> list[int]:
    return [int(field) for field in STAT.split("\n", 1)[0].split()[1:]]


def test_counters_of_a_machine():
    user, nice, system, unused, iowait, irq, softirq, steal, *_ = _fields()
    found = stat(STAT, ticks=100)
    assert found["cpus"] == 2 and found["context_switches"] == float(STAT.split("ctxt ")[1].split()[0])
    assert found["unused_s"] == (unused + iowait) / 100 and found["softirq_s"] == softirq / 100
    assert found["busy_s"] == (user + nice + system + irq + softirq) / 100 and found["steal_s"] == steal / 100


@pytest.mark.parametrize("text", ["", "cpu\n", "cpu 1 2 3\n", "garbage", "cpu a b c d e f g h\n"])
def test_what_is_no_such_text(text: str):
    with pytest.raises(ValueError):
        stat(text)
    assert counters_of(lambda path: text.encode()) == {}


def counters(at_s: float, **changed: float) -> dict[str, float]:
    return {
        "at_s": at_s,
        "cpus": 2.0,
        "unused_s": 10.0,
        "steal_s": 1.0,
        "softirq_s": 0.5,
        "context_switches": 100.0,
    } | changed


def test_cpu_time_is_what_the_idle_clock_leaves_over():
    before = counters(5.0)
    after = counters(7.0, unused_s=12.5, steal_s=1.1, softirq_s=0.7, context_switches=1100.0)
    found = use(before, after)
    assert found is not None and found.seconds == 2.0 and found.context_switches == 1000.0
    assert found.busy_s == pytest.approx(2 * 2.0 - 2.5 - 0.1) and found.softirq_s == pytest.approx(0.2)


def test_no_use_without_both_or_with_another_number_of_cpus():
    one = counters(5.0)
    assert use({}, one) is use(one, {}) is use(one, counters(7.0, cpus=3.0)) is use(one, one) is None


def test_segments_that_tcp_sent_again():
    line = [line for line in SNMP.decode().splitlines() if line.startswith("Tcp:")][1].split()
    assert tcp(SNMP.decode()) == {"sent_segments": float(line[11]), "resent_segments": float(line[12])}
    both = tcp_total({("a", name): (lambda path: SNMP, name) for name in "ab"})
    assert both == {"sent_segments": 2 * float(line[11]), "resent_segments": 2 * float(line[12])}


@pytest.mark.parametrize("text", ["", "Tcp: a b\n", "Tcp: OutSegs\nTcp: 1 2\n", "Tcp: OutSegs\nTcp: 1\n", "Udp: x\n"])
def test_a_text_without_tcp(text: str):
    with pytest.raises(ValueError):
        tcp(text)


# -- the idle level --------------------------------------------------------------------------------


def test_the_idle_level_is_the_median_of_the_last_looks(monkeypatch: pytest.MonkeyPatch):
    clock = SimpleNamespace(now=0.0, unused=0.0, share=0.0)

    def sleep(seconds: float) -> None:
        clock.now += seconds
        clock.unused += seconds * 100 * (1 - clock.share)

    kept: list[Mapping[str, str]] = []
    monkeypatch.setattr(machines.time, "sleep", sleep)
    monkeypatch.setattr(machines.time, "monotonic", lambda: clock.now)
    looks = IdleLevels({"host": lambda path: b"cpu 0 0 0 %d 0 0 0 0\ncpu0 0\nctxt 7\n" % clock.unused}, kept.append)
    assert looks.due and looks.levels == {}
    for share in (0.5, 0.02, 0.04, 0.04, 0.06, 0.06):
        clock.share = share
        looks.look()
    assert looks.levels["host"].busy_cpus == pytest.approx(0.04)
    assert kept[0] == {"host: CPUs busy": "0.5000", "host: context switches per second": "0"} and len(kept) == 6
    assert clock.now == machines.FIRST_S + 5 * machines.AGAIN_S and not looks.due
    clock.now += machines.BETWEEN_S
    assert looks.due


# -- network namespaces ----------------------------------------------------------------------------


def _site(scope: Mapping[str, str], name: str = "host", pid: str = "self") -> SimpleNamespace:
    network = name, f"/proc/{pid}/net/dev"
    return SimpleNamespace(host=SimpleNamespace(network=network, read=bytes), scope=lambda: scope, sampler=None)


def test_each_network_namespace_counts_once():
    shared = {"server": _site({}), "client": _site({"cpu.stat": "/x"})}
    assert set(networks_of(shared.values())) == {("host", "/proc/self/net/dev")}
    own = {"server": _site({"net": "/proc/77/net/dev"}), "client": _site({})}
    assert {path for _, path in networks_of(own.values()).values()} == {"/proc/self/net/snmp", "/proc/77/net/snmp"}
    apart = {"server": _site({}, "a", "1"), "client": _site({"net": "/proc/7/net/dev"}, "b", "1")}
    assert set(networks_of(apart.values())) == {
        ("a", "/proc/1/net/dev"), ("b", "/proc/1/net/dev"), ("b", "/proc/7/net/dev")}  # fmt: skip


def test_a_site_that_alone_sees_its_network_reads_it_itself():
    site = _site({"net": "/proc/self/net/dev"})
    site.name, site.sampler, site.read = "1-pod-server", object(), repr
    networks = networks_of([site])
    assert networks["site 1-pod-server", "/proc/self/net/dev"] == (repr, "/proc/self/net/snmp")
    assert networks["host", "/proc/self/net/dev"] == (bytes, "/proc/self/net/snmp")
