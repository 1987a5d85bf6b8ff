"""What one trial costs beyond its load generator: Weighbridge against the bare commands, in one run.

The same programs are run bare (chroot into the userland, no limits, no meters, nothing saved) before every block.
A trial's fixed cost is the wall time from the start of one trial to the start of the next - freezing, starting the
server, waiting for it, measuring, stopping, parsing, saving - minus the median time of the bare load generator.
The limit is 10 ms for a program alone and 20 ms for one with a server, natively and in Docker alike. "Beside" is the
same time minus how long the measured program ran in that very trial, by its launcher: on a machine that is busy it
tells more, and so do the minima. It has the same limit. At the end stands by how much each is more in Docker than
natively. Needs root. Exits with 1 where a limit is missed.

    .venv/bin/python benchmarks/trial_cost.py --blocks 10

What it consists of, natively on two idle CPUs of a virtual machine, in milliseconds (in Docker each of the four or
five ways to the launcher and back is 0.3 instead of 0.1, and more network interfaces are read):

    program alone, 7 in all: 0.8 sites frozen and thawed, counters; 0.6 first reading of the meters; 0.3 to start the
    program and to hear of its end; 0.4 counters; 0.2 its output; 1.2 last reading; 1.5 readings become series; 0.4
    counters; 1.3 the store (two files for each program, one fsync; several times that where the disk is busy)

    with a server, 5 more: 2 to 3 until it listens, nearly all of it its own; 0.6 its end; 1 for the readings of two
    sites; 0.5 for its output and for TCP's counters

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

from weighbridge import registry
from weighbridge.linux.network import free_port, listening
from weighbridge.linux.process import Process, run
from weighbridge.model.command import Command
from weighbridge.model.isolation import SiteLayers
from weighbridge.model.study import Study
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.model.workload import Endpoint
from weighbridge.runner.precision import OutOfReach, Standing
from weighbridge.runner.run import run_study
from weighbridge.runner.userlands import userland_of
from weighbridge.store.run import RunStore
from weighbridge.study.loader import check
from weighbridge.study.source import parse
from weighbridge.userland.build import cache_folder, ensure

LIMITS_S = {"cpu": 0.010, "tcp": 0.020}
"""By workload: the second one has a server."""
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

    def __init__(self, study: Study, root: Path) -> None:
        self.study, self.root = study, root
        self.bare: dict[str, list[float]] = defaultdict(list)
        self.trials: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.beside: dict[tuple[str, str], list[float]] = defaultdict(list)
        """What is left of each trial without the time in which its measured program ran."""
        self._current: Trial | None = None
        self._since = 0.0
        self._measured_s: float | None = None

    def say(self, text: str) -> None:
        """The end of the last trial is the closing of the sites."""
        self._close()
        print(text, file=sys.stderr)

    def trial_started(self, trial: Trial, done: int, total: int, left_s: float) -> None:
        """A trial ends where the next one begins."""
        block = self._current.block if self._current else 0
        self._close()
        if trial.block != block:
            print(f"{done} of {total} trials done", file=sys.stderr)
            self._run_bare()
        self._current, self._measured_s, self._since = trial, None, time.perf_counter()

    def layers_known(self, layers: Mapping[str, tuple[SiteLayers, ...]]) -> None:
        """Figures of a benchmark name their environments themselves."""

    def trial_finished(self, record: TrialRecord) -> None:
        """A failed trial would make the figures meaningless."""
        if record.message:
            raise SystemExit(f"a trial failed: {record.message}")
        self._measured_s = record.measured_s

    def precision_checked(self, blocks: int, standings: Sequence[Standing]) -> None:
        """The blocks are fixed: there is nothing to look at."""

    def others_noticed(self, out_of_reach: OutOfReach) -> None:
        """Others take part of the machine: the minima are what to read then."""

    def _close(self) -> None:
        if self._current is not None and self._measured_s is not None:  # not the first one, which opens the sites
            key = (self._current.environment, self._current.workload)
            self.trials[key].append(time.perf_counter() - self._since)
            self.beside[key].append(self.trials[key][-1] - self._measured_s)
        self._current = None

    def _run_bare(self) -> None:
        for cell in self.study.cells:
            workload, at = registry.workloads()[cell.kind], Endpoint("127.0.0.1", "127.0.0.1", free_port())
            server = None
            if "server" in workload.roles(cell.options):
                command = self._bare(workload.command("server", cell.options, at))
                server = Process(command)
                while not listening(command.listens):
                    time.sleep(0.001)
            done = run(self._bare(workload.command(workload.roles(cell.options)[-1], cell.options, at)))
            self.bare[cell.workload].append(done.duration_s)
            if server is not None:
                server.stop()

    def _bare(self, command: Command) -> Command:
        return command.wrapped("chroot", str(self.root))


def main() -> int:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--blocks", type=int, default=10)
    study = check(parse(STUDY.format(blocks=parser.parse_args().blocks), "trial-cost"))
    root = ensure(userland_of(study), cache_folder(), print).root
    clock = Clock(study, root)
    with tempfile.TemporaryDirectory() as folder:
        run_study(study, Path(folder) / "run", clock, lambda store: None)
        with RunStore(Path(folder) / "run") as store:
            trials = len(store.trials())
    print(f"{trials} trials; medians in ms [least, most], fixed cost = trial - bare")
    missed, medians = False, dict[tuple[str, str], tuple[float, float]]()
    for (environment, workload), durations in sorted(clock.trials.items()):
        bare, beside = statistics.median(clock.bare[workload]), clock.beside[environment, workload]
        cost, least, most = (find(durations) - bare for find in (statistics.median, min, max))
        medians[environment, workload] = cost, statistics.median(beside)
        missed |= max(medians[environment, workload]) > LIMITS_S[workload]
        print(
            f"{environment:8} {workload:4} trial {statistics.median(durations) * 1e3:7.1f}  bare {bare * 1e3:7.1f}  "
            f"fixed cost {cost * 1e3:5.1f} [{least * 1e3:5.1f}, {most * 1e3:6.1f}]  "
            f"limit {LIMITS_S[workload] * 1e3:.0f}  "
            f"beside {statistics.median(beside) * 1e3:5.1f} [{min(beside) * 1e3:5.1f}, {max(beside) * 1e3:6.1f}]"
        )
    for workload in LIMITS_S:
        fixed, beside_s = (docker - native for docker, native in
                           zip(medians["docker", workload], medians["native", workload], strict=True))  # fmt: skip
        print(f"docker - native {workload:4} fixed cost {fixed * 1e3:+5.1f}  beside {beside_s * 1e3:+5.1f}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
