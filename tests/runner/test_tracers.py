"""What tracers print, captured on a machine; nothing is started."""

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from weighbridge.linux.process import GRACE_S
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import RunContext
from weighbridge.model.study import Study
from weighbridge.runner import tracers
from weighbridge.runner.tracers import TRACERS, BpfTrace, Perf, traced_trials
from weighbridge.study.loader import check
from weighbridge.study.source import parse

DATA = Path(__file__).parent / "data"
REPORT, COUNTS = (DATA / "perf-report.txt").read_text(), (DATA / "bpftrace-counts.txt").read_text()


def test_samples_of_perf_by_function_without_idle_cpus_and_those_who_are_left_out():
    samples = Perf().parse(REPORT)
    assert samples["_raw_spin_unlock_irqrestore (kernel)"] == 14
    assert samples["runtime.tryDeferToSpanScan (compile)"] == 30, "of six processes together"
    assert not any("pv_native_safe_halt" in name for name in samples), "the CPU was idle"
    without = Perf().parse(REPORT, [18197])
    assert samples.keys() - without.keys() >= {"_raw_spin_unlock_irqrestore (kernel)"}


def test_counts_of_bpftrace():
    counts = BpfTrace().parse(COUNTS)
    assert counts["raw_syscalls:sys_enter"] == 75430 and counts["skb:kfree_skb"] == 1
    assert counts.keys() <= {*BpfTrace.EVENTS}


def test_the_last_line_that_is_cut_short_is_left_out():
    cut = REPORT[: REPORT.index("_raw_spin_unlock_irqrestore") + 8]
    assert not Perf().parse(cut)
    cut = COUNTS[: COUNTS.rindex("75430") + 3]
    assert "raw_syscalls:sys_enter" not in BpfTrace().parse(cut) and "sched:sched_switch" in BpfTrace().parse(cut)


def test_tracers_are_argument_lists_that_are_interrupted():
    for name, tracer in TRACERS.items():
        command = tracer.record(Path("/tmp/x/recorded"))
        assert command.argv[0] == name and command.stop_signal == 2


class Slow:
    """A process that takes as long as perf for a large machine to write what it recorded."""

    def __init__(self, command: Command, **_: object) -> None:
        self.recorded = Path(command.argv[1])

    def wait(self, timeout_s: float) -> bool:
        return False

    def output_so_far(self) -> bytes:
        return b""

    def stop(self, *, grace_s: float = GRACE_S) -> Completed:
        if grace_s >= 30:
            self.recorded.write_text("3 function")
        return Completed(("perf",), 0, b"", b"", 1.0)


class Recorder(Perf):
    def obstacle(self, root: Path = Path("/")) -> str:
        return ""

    def record(self, data: Path) -> Command:
        return Command(("perf", str(data)))

    def read(self, data: Path, completed: Completed, left_out: Collection[int]) -> Mapping[str, int]:
        return {data.read_text(): 3}


def test_a_tracer_has_time_to_write_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two seconds are too few for the samples of 256 CPUs, and the folder of a run's state is in memory."""
    monkeypatch.setitem(TRACERS, "perf", Recorder())
    monkeypatch.setattr(tracers, "Process", Slow)
    run, inside = RunContext("0123456789ab", tmp_path / "state", tmp_path / "cache", ExitStack()), list[Path]()
    run.state.mkdir()
    items, count = tracers.trace("perf", run, lambda: inside.extend(tmp_path.rglob("trace-*")))
    assert [(item.name, item.count) for item in items] == [("3 function", 3)] and count == 3
    assert [path.relative_to(tmp_path).parts[0] for path in inside] == ["cache"]
    assert "--no-buildid" in Perf().record(Path("recorded")).argv


def test_the_kernels_settings_say_who_may_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert "no performance events" in Perf().obstacle(tmp_path)
    setting = tmp_path / "proc/sys/kernel/perf_event_paranoid"
    setting.parent.mkdir(parents=True)
    setting.write_text("2\n")
    monkeypatch.setattr(tracers.os, "geteuid", lambda: 1000)
    assert "kernel.perf_event_paranoid is 2" in Perf().obstacle(tmp_path)
    assert BpfTrace().obstacle(tmp_path) == "bpftrace needs root"
    monkeypatch.setattr(tracers.os, "geteuid", lambda: 0)
    assert Perf().obstacle(tmp_path) == ""
    assert "mount -t tracefs" in BpfTrace().obstacle(tmp_path)
    (tmp_path / "sys/kernel/tracing/events").mkdir(parents=True)
    assert BpfTrace().obstacle(tmp_path) == ""


STUDY = """study: why
question: Why does it cost that?
baseline: native
explain: true
trace: perf
environments:
  native: {kind: native}
  published: {kind: docker, network: bridge, publish: true, publish_on: loopback}
  hosted: {kind: docker, network: host, apparmor: unconfined}
workloads:
  rr: {kind: netperf, test: TCP_RR, duration: 1s}
  tcp: {kind: iperf3, duration: 1s}
"""


def study() -> Study:
    return check(parse(STUDY, "why.yaml"))


def test_each_explained_environment_is_traced_and_the_one_without_its_mechanisms():
    assert [(environment, arm, cell.label) for environment, arm, cell in traced_trials(study())] == [
        (name, arm, workload)
        for name, bare in (("published", "published-bare"), ("hosted", "hosted-without-seccomp"))
        for workload in ("rr", "tcp")
        for arm in (name, bare)
    ]
