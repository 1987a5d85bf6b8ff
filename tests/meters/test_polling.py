"""What CPUs polled is idle time, in /proc/stat and in a meter's series."""

import os
from pathlib import Path

import pytest

from weighbridge.meters import poller
from weighbridge.meters.host import stat
from weighbridge.meters.polling import as_idle, series_as_idle
from weighbridge.model.trial import Series

STAT = b"cpu  100 700 50 40 3 2 5 9 0 0\ncpu0 50 350 25 20 1 1 2 4 0 0\nctxt 77\n"


def test_what_polled_is_idle_and_not_busy():
    before, after = stat(STAT.decode(), 100), stat(as_idle(STAT, 650).decode(), 100)
    assert after["unused_s"] - before["unused_s"] == pytest.approx(6.5)
    assert before["busy_s"] - after["busy_s"] == pytest.approx(7.0), "the ticks of all that is niced"
    others = {"irq_s", "softirq_s", "steal_s", "cpus", "context_switches"}
    assert {name: before[name] for name in others} == {name: after[name] for name in others}


@pytest.mark.parametrize("text", [b"", b"cpu", b"cpu  1 2 3\n", b"cpu  1 2 x 4\nctxt 1\n", b"intr 1 2 3 4 5\n"])
def test_another_text_stays_as_it_is(text: bytes):
    assert as_idle(text, 10) == text


def test_niced_readings_are_idle_ones():
    at = (0.1, 0.2)
    mine = [
        Series("host a", "cpu_nice_share", at, (1.5, 1.0)),
        Series("host a", "cpu_idle_share", at, (0.0, 0.25)),
        Series("host a", "cpu_user_share", at, (0.5, 0.75)),
        Series("server", "cpu_idle_share", at, (0.125, 0.125)),
        Series("host a", "load1", at, (2.5, 2.5)),
        Series("host a", "pressure_cpu_some_share", at, (0.9, 0.9)),
        Series("host a", "pressure_io_full_share", at, (0.5, 0.5)),
        Series("host a", "cpu_iowait_share", at, (0.0, 0.0)),
    ]
    found = {(each.place, each.name): each.values for each in series_as_idle(mine)}
    assert found["host a", "cpu_idle_share"] == (1.5, 1.25) and found["host a", "cpu_nice_share"] == (0.0, 0.0)
    assert len(found) == 4, "load and pressure count the pollers"
    assert found["host a", "cpu_user_share"] == (0.5, 0.75) and found["server", "cpu_idle_share"] == (0.125, 0.125)


def test_a_poller_stays_on_its_cpu_when_a_cpuset_allows_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Before Linux 6.2, a process that joins a cpuset can use all of its CPUs."""
    procs, page, steps = tmp_path / "procs", tmp_path / "page", list[tuple[set[int], str]]()
    procs.write_text("")
    page.write_bytes(bytes(8))
    monkeypatch.setattr(poller.sys, "argv", ["", "3", str(page), str(os.getppid() + 1), str(procs)])
    monkeypatch.setattr(poller, "polling_obstacle", lambda: "")
    for name in ("sched_setscheduler", "nice"):
        monkeypatch.setattr(poller.os, name, lambda *_: None)
    monkeypatch.setattr(poller.os, "sched_setaffinity", lambda _, cpus: steps.append((cpus, procs.read_text())))
    assert poller.main() == 0
    assert steps == [({3}, ""), ({3}, "0")], "before the test of the clock, and after the joins"
