"""What whole machines did between two moments, from captured texts of the kernel."""

from pathlib import Path

import pytest

from weighbridge.meters.host import stat
from weighbridge.meters.machines import Idle, Snapshot, Tcp, Use, idle, snapshot, tcp, tcp_total, use

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
    assert snapshot(lambda path: text.encode()) is None


def test_what_cannot_be_read_is_absent():
    def gone(path: str) -> bytes:
        raise FileNotFoundError(path)

    assert snapshot(gone) is None
    assert tcp_total([(lambda path: SNMP, "/proc/1/net/snmp"), (gone, "/proc/2/net/snmp")]) is None


def counters(**changed: float) -> dict[str, float]:
    return {"cpus": 2.0, "unused_s": 10.0, "steal_s": 1.0, "softirq_s": 0.5, "context_switches": 100.0} | changed


def test_cpu_time_is_what_the_idle_clock_leaves_over():
    before = Snapshot(5.0, counters())
    after = Snapshot(7.0, counters(unused_s=12.5, steal_s=1.1, softirq_s=0.7, context_switches=1100.0))
    found = use(before, after)
    assert found is not None and found.seconds == 2.0 and found.context_switches == 1000.0
    assert found.busy_s == pytest.approx(2 * 2.0 - 2.5 - 0.1) and found.softirq_s == pytest.approx(0.2)


def test_no_use_without_both_or_with_another_number_of_cpus():
    one = Snapshot(5.0, counters())
    assert use(None, one) is use(one, None) is use(one, Snapshot(7.0, counters(cpus=3.0))) is None


def test_an_idle_level_may_lie_below_zero():
    assert idle(Use(0.5, -0.01, 0.0, 100.0)) == Idle(-0.02, 200.0), "cutting it off would make a mean too large"


def test_segments_that_tcp_sent_again():
    line = [line for line in SNMP.decode().splitlines() if line.startswith("Tcp:")][1].split()
    assert tcp(SNMP.decode()) == Tcp(float(line[11]), float(line[12]))
    both = tcp_total([(lambda path: SNMP, "a"), (lambda path: SNMP, "b")])
    assert both == Tcp(2 * float(line[11]), 2 * float(line[12]))


@pytest.mark.parametrize("text", ["", "Tcp: a b\n", "Tcp: OutSegs\nTcp: 1 2\n", "Tcp: OutSegs\nTcp: 1\n", "Udp: x\n"])
def test_a_text_without_tcp(text: str):
    with pytest.raises(ValueError):
        tcp(text)
