"""Tracers that watch this whole machine after a study's blocks, in uncounted trials, because they slow it down."""

import os
import re
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from weighbridge.errors import EnvironmentLost, TrialsFailed, Unavailable
from weighbridge.linux.process import Process, environment_of
from weighbridge.linux.process import run as finished
from weighbridge.model.command import Command, Completed
from weighbridge.model.explained import NOTHING, all_off
from weighbridge.model.host import RunContext
from weighbridge.model.measurement import Outcome
from weighbridge.model.study import Cell, Study
from weighbridge.model.traced import Trace, TracedItem, TracerName
from weighbridge.model.trial import Trial
from weighbridge.runner.lengths import PILOT, Lengths
from weighbridge.runner.recorder import RESULTS, Recorder
from weighbridge.runner.trial_runner import TrialRunner
from weighbridge.store.traces import has_traces, write_traces

MOST = 20
_SETTLE_S = 1.0
"""The seconds from the start of a tracer to the start of the watched program."""
_BEGINS_S = 30.0
"""How long a tracer can take until it reports that it is running."""
_LONGEST_S = 3600.0
_WRITES_S = 30.0
"""How long a tracer has to write its records after the interrupt."""
_LARGEST, _ENDS_S = "256M", f"{_LONGEST_S:.0f}"
"""The size and the seconds at which perf ends by itself, in case no process is left to end it."""
_NAME = 300
_ADDRESS = re.compile("0x[0-9a-f]+")
_TRACEFS = ("sys/kernel/tracing", "sys/kernel/debug/tracing")


class Tracer(Protocol):
    """A program that counts something on this machine until it is interrupted."""

    begins: bytes
    """The line that it prints when it is running; b"" if it prints none."""

    def obstacle(self, root: Path = Path("/")) -> str:
        """Return why this user cannot trace with this kernel; "" if no obstacle is known."""

    def record(self, data: Path) -> Command:
        """Return the program's command; it can write to the file ``data``."""

    def read(self, data: Path, completed: Completed, left_out: Collection[int]) -> Mapping[str, int]:
        """Return the count of each item, without the processes ``left_out``. Raises Unavailable."""


class Perf:
    """Counts the functions of kernel and programs that ran: perf's samples of the CPU clock (perf-record(1))."""

    begins = b""
    _LINE = re.compile(r"^ *[\d.]+% *\t *(\d+) *\t *(\d+):(.*?) *\t\[(.)\] (.*\S) *$")

    def obstacle(self, root: Path = Path("/")) -> str:
        """Return an obstacle if the kernel's setting excludes this user (perf_event_open(2))."""
        try:
            paranoid = int((root / "proc/sys/kernel/perf_event_paranoid").read_text())
        except (OSError, ValueError):
            return "this kernel has no performance events (kernel.perf_event_paranoid is missing)"
        if os.geteuid() != 0 and paranoid > 0:
            return (
                f"kernel.perf_event_paranoid is {paranoid}: run as root, or set it to 0, so that perf can watch the "
                "whole machine"
            )
        return ""

    def record(self, data: Path) -> Command:
        """Return perf with the CPU clock, which needs no hardware counters.

        Without ``--no-buildid`` perf reads all samples again at its end, for minutes on a large machine.
        """
        sampled = ("--all-cpus", "--event", "cpu-clock", "--freq", "199", "--no-buildid")
        argv = ("perf", "record", *sampled, "--max-size", _LARGEST, "--output", str(data), "--", "sleep", _ENDS_S)
        return Command(argv, _LONGEST_S, stop_signal=signal.SIGINT)

    def read(self, data: Path, completed: Completed, left_out: Collection[int]) -> Mapping[str, int]:
        """Return the samples of each function, without idle CPUs."""
        shown = ("--no-children", "--call-graph", "none", "--show-nr-samples", "--sort", "pid,sym")
        argv = ("perf", "report", "--stdio", "--input", str(data), *shown, "--field-separator", "\t")
        report = finished(Command(argv, 120.0, {"LC_ALL": "C"}))
        if report.returncode != 0:
            raise Unavailable(f"perf cannot read its recording: {report.last_words}")
        return self.parse(report.text, left_out)

    def parse(self, text: str, left_out: Collection[int] = ()) -> Mapping[str, int]:
        """Return the samples of each function from ``perf report``; without symbols, one item per program."""
        samples: Counter[str] = Counter()
        for line in text.split("\n")[:-1]:
            if (match := self._LINE.match(line)) and int(match[2]) not in {0, *left_out}:
                function = "no symbol" if _ADDRESS.fullmatch(match[5]) else match[5]
                samples[f"{function} ({'kernel' if match[4] == 'k' else match[3]})"] += int(match[1])
        return samples


class BpfTrace:
    """Counts the tracepoints of the kernel that show the work of most mechanisms (bpftrace(8))."""

    begins = b"begun"
    EVENTS = (
        "raw_syscalls:sys_enter", "sched:sched_switch", "sched:sched_wakeup", "irq:softirq_entry",
        "net:net_dev_xmit", "net:netif_receive_skb", "skb:kfree_skb", "tcp:tcp_retransmit_skb",
        "block:block_rq_issue",
    )  # fmt: skip
    _LINE = re.compile(r"^@\[tracepoint:(\w{1,60}:\w{1,60})\]: (\d{1,18})$", re.ASCII)

    def obstacle(self, root: Path = Path("/")) -> str:
        """Return the reason why this user cannot use the kernel's tracepoints; only root can."""
        if os.geteuid() != 0:
            return "bpftrace needs root"
        if any((root / each / "events").is_dir() for each in _TRACEFS):
            return ""
        return "the kernel shows no tracepoints: run mount -t tracefs tracefs /sys/kernel/tracing"

    def record(self, data: Path) -> Command:
        """Return bpftrace with a program of one line."""
        probes = ", ".join(f"tracepoint:{event}" for event in self.EVENTS)
        program = f'BEGIN {{ printf("{self.begins.decode()}\\n"); }} {probes} {{ @[probe] = count(); }}'
        return Command(("bpftrace", "-B", "line", "-e", program), _LONGEST_S, stop_signal=signal.SIGINT)

    def read(self, data: Path, completed: Completed, left_out: Collection[int]) -> Mapping[str, int]:
        """Return the count of each event."""
        return self.parse(completed.text)

    def parse(self, text: str) -> Mapping[str, int]:
        """Return the counts that it printed at its end; lines that are cut short are not read."""
        matches = (self._LINE.match(line) for line in text.split("\n")[:-1])
        return {match[1]: int(match[2]) for match in matches if match}


TRACERS: Mapping[TracerName, Tracer] = {"perf": Perf(), "bpftrace": BpfTrace()}


def trace(
    name: TracerName, run: RunContext, work: Callable[[], None], left_out: Collection[int] = ()
) -> tuple[tuple[TracedItem, ...], int]:
    """Work under a tracer; return the most frequent items, and the count of all. Raises Unavailable."""
    tracer = TRACERS[name]
    if obstacle := tracer.obstacle():
        raise Unavailable(obstacle)
    on_disk = run.cache / "engines" / run.id  # the run's state is in memory, and would change the measured machine
    on_disk.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="trace-", dir=on_disk) as folder:
        data = Path(folder) / "recorded"
        process = Process(tracer.record(data), env=environment_of(run.id))
        try:
            _await(name, tracer, process)
            work()
        finally:
            completed = process.stop(grace_s=_WRITES_S)
        counts = tracer.read(data, completed, left_out)
    if not counts:
        raise Unavailable(f"{name} recorded no events: {completed.last_words}")
    frequent = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:MOST]
    items = tuple(TracedItem(name=what[:_NAME], count=count) for what, count in frequent)
    return items, sum(counts.values())


def _await(name: str, tracer: Tracer, process: Process) -> None:
    late = time.monotonic() + _BEGINS_S
    while tracer.begins not in process.output_so_far() and not process.wait(0.1):
        if time.monotonic() > late:
            raise Unavailable(f"{name} did not start within {_BEGINS_S:.0f} s: {process.stop().last_words}")
    if process.wait(_SETTLE_S):
        raise Unavailable(f"{name} cannot trace here: {process.stop().last_words}")


def trace_explained(
    study: Study, runner: TrialRunner, recorder: Recorder, lengths: Lengths, say: Callable[[str], None]
) -> None:
    """Run each explained environment, and the one without its mechanisms, once more under the study's tracer.

    These trials are not saved, because a tracer slows them down. A session that opened no sites traces nothing, and
    says so if no trace exists.
    """
    tracer, directory = study.file.trace, recorder.store.directory
    if tracer is None or (not runner.is_open and has_traces(directory)):
        return
    why_not = "" if runner.is_here else "its programs run on other machines"
    if not runner.is_open:
        why_not = "all rounds had been measured before the run was continued: start a new run of the study"
    pids = runner.pollers.pids if runner.pollers else ()
    traces = []
    for environment, arm, cell in traced_trials(study):
        if arm in recorder.abandoned(cell.id):
            continue
        say(f"tracing {cell.label} in {arm} with {tracer} (not counted)")
        seen: tuple[tuple[TracedItem, ...], int] = (), 0
        failure = why_not
        if not failure:
            trial = Trial(PILOT, 0, cell.workload, cell.level, arm)
            try:
                seen = trace(tracer, runner.run, partial(_run_traced, runner, lengths, trial), pids)
            except (Unavailable, TrialsFailed, EnvironmentLost) as error:  # the measurement is complete
                failure = str(error)
        traces.append(
            Trace(
                environment=environment, arm=arm, workload=cell.label, tracer=tracer, items=seen[0], total=seen[1],
                failure=failure,
            )
        )  # fmt: skip
    for why in dict.fromkeys(each.failure for each in traces if each.failure):
        say(f"not traced: {why}")
    if traces:
        say(f"traced: {write_traces(directory, traces)}")


def _run_traced(runner: TrialRunner, lengths: Lengths, trial: Trial) -> None:
    """Run a trial that is not saved. Raises TrialsFailed, EnvironmentLost."""
    record = runner.run_one(trial, lengths)
    if record.outcome is Outcome.ENVIRONMENT_LOST:
        raise EnvironmentLost(f"{trial.environment} was lost during the trace: {record.message}")
    if record.outcome not in RESULTS:
        raise TrialsFailed(f"{trial.environment} failed during the trace: {record.message}")


def traced_trials(study: Study) -> Iterator[tuple[str, str, Cell]]:
    """Yield each environment to trace with its arms (itself, and with all mechanisms off) and each cell."""
    there = {arm.name for arm in study.arms}
    for environment in dict.fromkeys(each.environment for each in study.mechanisms if each.environment in there):
        arms = study.arms_by_off(environment)
        every = all_off([each for each in study.mechanisms if each.environment == environment], arms)
        for cell in study.cells:
            for off in dict.fromkeys((NOTHING, NOTHING if every is None else every)):
                yield environment, arms[off], cell
