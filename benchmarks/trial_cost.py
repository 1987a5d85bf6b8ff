"""What one trial costs beyond its load generator: Weighbridge against the bare commands, in one run.

The same programs are run bare (chroot into the userland, no limits, no meters, nothing saved) before every block.
A trial's fixed cost is the wall time from the start of one trial to the start of the next - freezing, starting the
server, waiting for it, measuring, stopping, parsing, saving - minus the median time of the bare load generator.
The limit is 100 ms, natively and in Docker alike. Needs root. Exits with 1 where one is missed.

    .venv/bin/python benchmarks/trial_cost.py --blocks 10
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from weighbridge import registry
from weighbridge.linux.network import free_port, listening
from weighbridge.linux.process import Process, run
from weighbridge.model.command import Command
from weighbridge.model.plugin import Endpoint
from weighbridge.model.study import Study
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.runner.precision import Standing
from weighbridge.runner.run import run_study, userland_of
from weighbridge.store.run import RunStore
from weighbridge.study.loader import check
from weighbridge.study.source import parse
from weighbridge.userland.build import cache_folder, ensure

LIMITS_S = {"native": 0.100, "docker": 0.100}
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
        self._current: Trial | None = None
        self._since = 0.0

    def say(self, text: str) -> None:
        """The end of the last trial is the closing of the sites."""
        self._close()
        print(text, file=sys.stderr)

    def begins(self, trial: Trial, done: int, total: int, left_s: float) -> None:
        """A trial ends where the next one begins."""
        block = self._current.block if self._current else 0
        self._close()
        if trial.block != block:
            print(f"{done} of {total} trials done", file=sys.stderr)
            self._run_bare()
        self._current, self._since = trial, time.perf_counter()

    def ended(self, record: TrialRecord) -> None:
        """A failed trial would make the figures meaningless."""
        if record.message:
            raise SystemExit(f"a trial failed: {record.message}")

    def looked(self, blocks: int, standings: Sequence[Standing]) -> None:
        """The blocks are fixed: there is nothing to look at."""

    def _close(self) -> None:
        if self._current is not None:
            key = (self._current.environment, self._current.workload)
            self.trials[key].append(time.perf_counter() - self._since)
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
    print(f"{trials} trials; medians in ms, fixed cost = trial - bare [worst]")
    missed = False
    for (environment, workload), durations in sorted(clock.trials.items()):
        bare = statistics.median(clock.bare[workload])
        cost = statistics.median(durations) - bare
        missed |= cost > LIMITS_S[environment]
        print(
            f"{environment:8} {workload:4} trial {statistics.median(durations) * 1e3:7.1f}  bare {bare * 1e3:7.1f}  "
            f"fixed cost {cost * 1e3:6.1f} [{(max(durations) - bare) * 1e3:6.1f}]  "
            f"limit {LIMITS_S[environment] * 1e3:.0f}"
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
