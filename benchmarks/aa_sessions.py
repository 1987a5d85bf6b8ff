"""How often the whole procedure calls a difference that is none, on this machine for real.

Each session is a run of its own with a pilot block, chosen lengths, looks and families: an environment against the
same one under another name, of which nothing may be called different. Every "different" is a false alarm; a family of
headlines may have one in at most 5 % of the sessions. Exits with 1 where there are more than 5 % allow by chance
(the 95th percentile of a binomial). What else the machine does meanwhile belongs to it. Needs root.

    .venv/bin/python benchmarks/aa_sessions.py --sessions 60 --seconds 20
"""

import argparse
import sys
import tempfile
from pathlib import Path

from scipy.stats import binom

from weighbridge.analysis.analyse import analyse
from weighbridge.cli.progress import show
from weighbridge.runner.run import run_study
from weighbridge.store.run import RunStore
from weighbridge.study.loader import check
from weighbridge.study.source import parse

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


def alarms(seconds: int, seed: int, folder: Path) -> tuple[int, list[str], list[str]]:
    """Run one session: blocks, the headlines called different, and those of other metrics."""
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
    return blocks, [name for headline, name in found if headline], [name for headline, name in found if not headline]


def main() -> int:
    """Run the sessions one after the other and count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sessions", type=int, default=60)
    parser.add_argument("--seconds", type=int, default=20, help="of each session")
    given = parser.parse_args()
    false, further = 0, 0
    for number in range(1, given.sessions + 1):
        with tempfile.TemporaryDirectory() as folder:
            blocks, headlines, others = alarms(given.seconds, number, Path(folder) / "run")
        false, further = false + bool(headlines), further + bool(others)
        print(f"session {number}: {blocks} blocks; different: {', '.join(headlines + others) or 'none'}", flush=True)
    allowed = int(binom.ppf(0.95, given.sessions, 0.05))
    print(f"{false} of {given.sessions} sessions with a headline called different, {allowed} allowed")
    print(f"{further} of {given.sessions} with another metric called different, in families of their own")
    return int(false > allowed)


if __name__ == "__main__":
    sys.exit(main())
