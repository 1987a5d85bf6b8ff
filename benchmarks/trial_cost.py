"""What one trial costs beyond its load generator: Weighbridge against the bare commands, in one run.

The same programs are run bare (chroot into the userland, no limits, no meters, nothing saved) before every block. A
trial's fixed cost is the wall time from the start of one trial to the start of the next - freezing, starting the
server, waiting for it, measuring, stopping, parsing, saving - minus the time of the bare load generator in the same
block. The limits are `LIMITS_S`. "Beside" is the same time minus how long the measured program ran in that very
trial, by its launcher. It is more precise on a busy machine, and has the same limit. The last lines show by how much
each is more in Docker than natively, in a block.

The floor is what a small C program (`floor.c`) needs for the same programs in the same block: it starts the server,
asks the kernel whether it listens, runs the load generator, and ends the server. It measures and saves nothing.
The script computes the two figures of the floor as for a trial.

Each figure is a median with its 95 % interval (order statistics), and its limit is met or missed where all of that
lies on one side. Needs root. Exits with 1 where a limit is missed, with 2 where an interval cannot tell: take more
blocks.

    .venv/bin/python benchmarks/trial_cost.py --blocks 20

The parts of a native trial, in milliseconds of CPU time of Weighbridge's main thread, medians of 8 trials. Other
programs kept both CPUs busy, which roughly doubles such times. "Before" is commit 854e73be. A first pair of runs gave
14.2 and 11.4 ms in all for a program alone, and 28.0 and 23.9 ms with a server.

                                            alone: before, after    with a server: before, after
    sites frozen and thawed                         0.7     0.4               0.7     0.4
    first counters of sites and machines            0.9     0.7               1.1     0.8
    first reading of the meters                     0.5     0.5               0.5     0.6
    counters right before the program               0.8     0.6               1.7     1.7
    counters right after the program                0.8     0.5               1.4     1.5
    last reading, readings become series            1.1     1.1               3.4     2.9
    last counters                                   1.0     0.8               1.0     0.8
    the store (one fsync, no empty files)           1.7     0.9               2.7     3.2
    forecast of the run's end                       0.6     0.3               0.7     0.3
    everything                                     10.5     8.5              20.7    21.7

It does not contain the CPU time of the launchers and of the meters' process, and not the time until a server listens:
2 to 3 ms on an idle machine, nearly all of it the server's own.

What is done at times is in the worst trial: a look at the idle machine (0.5 s in every 50 s).
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import weighbridge.launcher
from weighbridge import registry
from weighbridge.linux.network import free_port, listening
from weighbridge.linux.process import Process, run
from weighbridge.model.command import SITE_ENV, Command
from weighbridge.model.isolation import SiteLayers
from weighbridge.model.setup import SetupStep
from weighbridge.model.study import Study
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.model.workload import Endpoint
from weighbridge.runner.estimate import Forecast
from weighbridge.runner.precision import CostEstimate, OutOfReach, PrecisionStatus
from weighbridge.runner.run import run_study
from weighbridge.runner.userlands import userland_of
from weighbridge.statistics import Interval, has_median_interval, median_interval
from weighbridge.store.run import RunStore
from weighbridge.study.loader import check
from weighbridge.study.source import parse
from weighbridge.userland.build import cache_folder, ensure

LIMITS_S = {
    ("native", "cpu"): 0.005, ("native", "tcp"): 0.010, ("docker", "cpu"): 0.008, ("docker", "tcp"): 0.012,
}  # fmt: skip
"""The goals by environment and workload. The workload tcp has a server."""
WORKLOADS = ("cpu", "tcp")
LAUNCHER = Path(weighbridge.launcher.__file__).with_name("source")
FLOOR_DEADLINE_S = 30.0
STUDY = """
study: trial-cost
question: What does one trial cost beyond its load generator?
resources: {{cpus: 1, memory: 512MiB, pin: spread}}
baseline: native
aa: false
environments:
  native: {{kind: native}}
  docker: {{kind: docker, network: bridge}}
workloads:
  tcp: {{kind: iperf3, duration: 1s}}
  cpu: {{kind: sysbench-cpu, duration: 1s}}
repetitions: {{blocks: {blocks}}}
"""


class Clock:
    """A session's progress that keeps the time of every trial, and runs the bare commands before each block."""

    def __init__(self, study: Study, root: Path, floor: Path) -> None:
        self.study, self.root, self.program = study, root, floor
        self.bare: dict[str, dict[int, float]] = defaultdict(dict)
        """Seconds of the bare load generator by workload and block."""
        self.floor: dict[str, dict[int, float]] = defaultdict(dict)
        """Seconds of everything that the C program ran, by workload and block."""
        self.floor_beside: dict[str, dict[int, float]] = defaultdict(dict)
        """The rest of these seconds without the time of the load generator."""
        self.trials: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
        """Seconds of the trials by environment and workload, and block."""
        self.beside: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
        """What is left of each trial without the time in which its measured program ran."""
        self._current: Trial | None = None
        self._since = 0.0
        self._measured_s: float | None = None

    def say(self, text: str) -> None:
        """The end of the last trial is the closing of the sites."""
        self._close()
        print(text, file=sys.stderr)

    def waits(self, steps: Sequence[SetupStep]) -> None:
        """Sites are opened before the first trial."""

    def trial_started(self, trial: Trial, done: int, total: int, left: Forecast) -> None:
        """A trial ends where the next one begins."""
        block = self._current.block if self._current else 0
        self._close()
        if trial.block != block:
            print(f"{done} of {total} trials done", file=sys.stderr)
            self._run_bare(trial.block)
        self._current, self._measured_s, self._since = trial, None, time.perf_counter()

    def layers_known(self, layers: Mapping[str, tuple[SiteLayers, ...]]) -> None:
        """Figures of a benchmark name their environments themselves."""

    def trial_finished(self, record: TrialRecord) -> None:
        """A failed trial would make the figures meaningless."""
        if record.message:
            raise SystemExit(f"a trial failed: {record.message}")
        self._measured_s = record.measured_s

    def precision_checked(self, blocks: int, statuses: Sequence[PrecisionStatus]) -> None:
        """The blocks are fixed: there is nothing to look at."""

    def interference_noticed(self, out_of_reach: OutOfReach) -> None:
        """Others take part of the machine: the minima are what to read then."""

    def time_known(self, trial_s: float, left: Forecast) -> None:
        """How long it takes is what is measured here."""

    def costs_estimated(self, blocks: int, estimates: Sequence[CostEstimate]) -> None:
        """A cost of isolation is not what is measured here."""

    def _close(self) -> None:
        if self._current is not None and self._measured_s is not None:  # not the first one, which opens the sites
            key, block = (self._current.environment, self._current.workload), self._current.block
            self.trials[key][block] = time.perf_counter() - self._since
            self.beside[key][block] = self.trials[key][block] - self._measured_s
        self._current = None

    def _run_bare(self, block: int) -> None:
        for cell in self.study.cells:
            workload, at = registry.workloads()[cell.kind], Endpoint("127.0.0.1", "127.0.0.1", free_port())
            client = workload.command(workload.roles(cell.options)[-1], cell.options, at)
            served = "server" in workload.roles(cell.options)
            command = workload.command("server", cell.options, at) if served else None
            server = None if command is None else self._start_bare(command)
            done = run(self._bare(client), env=SITE_ENV, inherit=False)
            if done.returncode != 0:
                raise SystemExit(f"the bare {cell.workload} failed: {done.last_words}")
            self.bare[cell.workload][block] = done.duration_s
            if server is not None:
                server.stop()
            self._run_floor(cell.workload, block, command, client, at.port)

    def _start_bare(self, command: Command) -> Process:
        server = Process(self._bare(command), env=SITE_ENV, inherit=False)
        while not listening(command.listens):
            time.sleep(0.001)
        return server

    def _run_floor(self, workload: str, block: int, server: Command | None, client: Command, port: int) -> None:
        words = () if server is None else server.argv
        signal = 0 if server is None else server.stop_signal
        numbers = (str(port), str(int(signal)), str(len(words)))
        argv = (str(self.program), str(self.root), *numbers, *words, *client.argv)
        done = run(Command(argv, FLOOR_DEADLINE_S), env=SITE_ENV, inherit=False)
        if done.returncode != 0:
            raise SystemExit(f"{workload} failed when the C program ran it: {done.last_words}")
        total_s, client_s = (int(number) / 1e9 for number in done.text.split())
        self.floor[workload][block], self.floor_beside[workload][block] = total_s, total_s - client_s

    def _bare(self, command: Command) -> Command:
        return command.wrapped("chroot", str(self.root))


def build_floor(folder: Path) -> Path:
    """Compile the C program of the floor, with the launcher's own code that asks for listeners."""
    program = folder / "floor"
    sources = (str(Path(__file__).with_name("floor.c")), str(LAUNCHER / "wire.c"))
    built = run(Command(("cc", "-O2", "-I", str(LAUNCHER), "-o", str(program), *sources), 60.0))
    if built.returncode != 0:
        raise SystemExit(f"floor.c cannot be compiled: {built.last_words}")
    return program


def difference(more: Mapping[int, float], less: Mapping[int, float]) -> Interval:
    """Return the median difference of two times of the same blocks, in seconds."""
    return median_interval([more[block] - less[block] for block in more if block in less])


def judged(interval: Interval, limit: float) -> str:
    """``met``, ``missed`` or ``cannot tell``: whether what has this interval is at most the limit."""
    return "met" if interval.high <= limit else "missed" if interval.low > limit else "cannot tell"


def told(seconds: Interval) -> str:
    """A time in milliseconds with its interval."""
    return f"{seconds.estimate * 1e3:6.1f} [{seconds.low * 1e3:6.1f}, {seconds.high * 1e3:6.1f}]"


def main() -> int:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--blocks", type=int, default=20)
    blocks = parser.parse_args().blocks
    if not has_median_interval(blocks - 1):  # the first trial opens the sites
        parser.error(f"--blocks {blocks}: of so few a median has no interval")
    study = check(parse(STUDY.format(blocks=blocks), "trial-cost"))
    root = ensure(userland_of(study), cache_folder(), print).root
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock(study, root, build_floor(Path(folder)))
        run_study(study, Path(folder) / "run", clock, lambda store: None)
        with RunStore(Path(folder) / "run") as store:
            trials = len(store.trials())
    print(f"{trials} trials; medians in ms with their 95 % intervals, fixed cost = trial - bare")
    verdicts = []
    for (environment, workload), durations in sorted(clock.trials.items()):
        bare, limit = clock.bare[workload], LIMITS_S[environment, workload]
        fixed, beside = (
            difference(durations, bare),
            median_interval(list(clock.beside[environment, workload].values())),
        )
        verdicts += [judged(fixed, limit), judged(beside, limit)]
        print(
            f"{environment:8} {workload:4} trial {statistics.median(durations.values()) * 1e3:7.1f}  "
            f"bare {statistics.median(bare.values()) * 1e3:7.1f}  fixed cost {told(fixed)}: limit {limit * 1e3:.0f} "
            f"{verdicts[-2]}  beside {told(beside)}: {verdicts[-1]}"
        )
    for workload in WORKLOADS:
        floor, beside = clock.floor[workload], median_interval(list(clock.floor_beside[workload].values()))
        print(
            f"floor    {workload:4} total {statistics.median(floor.values()) * 1e3:7.1f}  "
            f"fixed cost {told(difference(floor, clock.bare[workload]))}  beside {told(beside)}"
        )
        fixed, beside = (difference(each["docker", workload], each["native", workload])
                         for each in (clock.trials, clock.beside))  # fmt: skip
        print(f"docker - native {workload:4} fixed cost {told(fixed)}  beside {told(beside)}")
    return 1 if "missed" in verdicts else 2 if "cannot tell" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
