"""How often the whole procedure calls a difference that is none, on this machine for real.

Each session is a run of its own with a pilot block, chosen lengths, looks and families: an environment against the
same one under another name, of which nothing may be called different. Every "different" is a false alarm; a family of
headlines may have one in at most 5 % of the sessions. Exits with 1 where there are more than 5 % allow by chance
(the 95th percentile of a binomial). What else the machine does meanwhile belongs to it. Needs root.

At the end, for each workload's headline and its CPU time per unit of work, the mean of (estimate / its standard
error)^2 with its own standard error: 1 where blocks average out all that there is, and more where two sites of the
same differ for a whole session. An estimate of n blocks has Student's t, whose square is (n - 1) / (n - 3) in the
mean: that is divided out.

    .venv/bin/python benchmarks/aa_sessions.py --sessions 60 --seconds 20
"""

import argparse
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from scipy.stats import binom

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.results import Comparison
from weighbridge.cli.progress import show
from weighbridge.runner.run import run_study
from weighbridge.store.run import RunStore
from weighbridge.study.loader import check
from weighbridge.study.source import parse

LEAST_BLOCKS = 10
"""Of fewer blocks the square of Student's t varies too much to say anything."""

HEADLINE, CPU_TIME = "headline", "CPU time"
"""What two sites of the same may differ by."""

STUDY = """
study: aa-sessions
question: Is the same called different?
resources: {{cpus: 1, memory: 512MiB, pin: spread}}
baseline: native
aa: false
environments:
  native: {{kind: native}}
  same:   {{kind: native}}
workloads:
  tcp:     {{kind: iperf3, duration: 1s}}
  latency: {{kind: netperf, test: TCP_RR, duration: 1s, warm_up: 0s}}
  redis:   {{kind: redis-benchmark, tests: set, requests: 300000, clients: 20, pipeline: 16}}
  cpu:     {{kind: sysbench-cpu, duration: 1s}}
repetitions: {{target: 0.1%, within: {seconds}s, min: 5}}
cpu_idle: auto
seed: {seed}
"""


@dataclass(frozen=True)
class Session:
    """One session: blocks, the headlines called different, those of other metrics, and the inflation of each."""

    blocks: int
    headlines: list[str]
    others: list[str]
    inflation: dict[tuple[str, str], float]
    """By kind (`HEADLINE`, `CPU_TIME`) and workload, of CPU time with its metric."""


def inflation(row: Comparison) -> float | None:
    """Return (estimate / its standard error)^2 by its mean where nothing but the blocks' noise is; None without."""
    if row.cost is None or row.cost.scale != "ratio" or row.blocks < LEAST_BLOCKS:
        return None
    error = stdev(row.effects) / math.sqrt(row.blocks)
    if not error:
        return None
    squared = (math.log(row.cost.typical) / error) ** 2
    return squared * (row.blocks - 3) / (row.blocks - 1)


def one_session(seconds: int, seed: int, folder: Path) -> Session:
    """Run one session."""
    study = check(parse(STUDY.format(seconds=seconds, seed=seed), "aa-sessions"))
    with show() as shown:
        run_study(study, folder, shown, lambda store: None)
    with RunStore(folder) as store:
        analysis = analyse(store)
        found = [
            (report.headline, f"{report.label} {report.metric}")
            for report in analysis.metrics
            for row in report.comparisons
            if row.verdict == "different"
        ]
        blocks = max(row.cost.blocks for row in analysis.compared if row.cost is not None)
        names = {
            **{(HEADLINE, report.workload): report for report in analysis.headlines},
            **{
                (CPU_TIME, f"{report.workload} {report.metric}"): report
                for report in analysis.metrics
                if report.metric.startswith(("cpu_client_per_", "cpu_server_per_"))
            },
        }
        squares = {
            name: value
            for name, report in names.items()
            for row in report.comparisons
            if (value := inflation(row)) is not None
        }
    headlines, others = ([name for first, name in found if first is wanted] for wanted in (True, False))
    return Session(blocks, headlines, others, squares)


def inflation_lines(sessions: Sequence[Session]) -> list[str]:
    """Give the mean inflation of each workload, and of all of a kind, with its standard error."""
    by_name: dict[str, list[float]] = {}
    for session in sessions:
        for (kind, workload), value in session.inflation.items():
            for name in (f"{kind}, {workload}", f"{kind}, all"):
                by_name.setdefault(name, []).append(value)
    return [
        f"(estimate / standard error)^2, {name}: {fmean(values):.2f} ± "
        f"{stdev(values) / math.sqrt(len(values)):.2f} ({len(values)} comparisons)"
        for name, values in sorted(by_name.items(), key=lambda each: each[0].endswith(", all"))
        if len(values) > 1
    ]


def main() -> int:
    """Run the sessions one after the other and count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sessions", type=int, default=60)
    parser.add_argument("--seconds", type=int, default=20, help="of each session")
    given = parser.parse_args()
    false, further, sessions = 0, 0, []
    for number in range(1, given.sessions + 1):
        with tempfile.TemporaryDirectory() as folder:
            session = one_session(given.seconds, number, Path(folder) / "run")
        sessions.append(session)
        false, further = false + bool(session.headlines), further + bool(session.others)
        different = ", ".join(session.headlines + session.others) or "none"
        print(f"session {number}: {session.blocks} blocks; different: {different}", flush=True)
    allowed = int(binom.ppf(0.95, given.sessions, 0.05))
    print(f"{false} of {given.sessions} sessions with a headline called different, {allowed} allowed")
    print(f"{further} of {given.sessions} with another metric called different, in families of their own")
    print(*inflation_lines(sessions), sep="\n")
    return int(false > allowed)


if __name__ == "__main__":
    sys.exit(main())
