"""How often `weigh --base` calls equal versions different, and how often and how soon it finds a slower version.

A simulated run is a study as `weigh --base` writes it: in the same random rounds, base and head in each environment,
and the control. The run times have the noise of a model. The runner's own rule decides at each planned look which
comparisons are precise enough; the run ends when all are, or when its time is over. The trials are saved in a run
directory, and the report's own analysis judges them, with the control. An alarm is a run in which the report calls
any head significantly different although all are equal. Found is a head that it calls slower.

    .venv/bin/python benchmarks/pull_requests.py --pairs 100
    .venv/bin/python benchmarks/pull_requests.py --pairs 100 --environments 3 --commands 2
    .venv/bin/python benchmarks/pull_requests.py --real 5 --within 60

``--real N`` measures N equal and N slower pairs of commits of a new git repository on this machine instead, with a C
program that counts. A slower head counts further by exactly as much as the percentage says. It needs git and cc.

With ``--pairs 110 --slower-pairs 30``, trials of 0.5 s and two minutes, the shares over all six models were:

    environments   equal runs with an alarm       heads 5% slower that were found   runs with one or more of them
    1              17 of 660, 2.6% [1.5, 4.1]     178 of 180                        178 of 180
    3              22 of 660, 3.3% [2.1, 5.0]     476 of 540                        171 of 180

Each model has three figures: the runs with an alarm (of 110), the heads that were found (of 30 or 90), and the median
minutes of trials of equal runs.

    environments   lognormal 2%   lognormal 8%   AR(1) 0.95     episodes       drift 10%      bimodal
    1              3, 30, 0.4     3, 29, 2.0     4, 30, 0.8     3, 30, 0.5     3, 29, 0.3     1, 30, 1.1
    3              2, 90, 1.1     5, 40, 2.0     4, 90, 2.0     1, 87, 1.6     4, 87, 0.5     6, 82, 2.0

With several commands, the runner also shares a short time among them, which is not simulated.

Exits with 1 if there are more alarms in a model than 5% allow by chance (the 99th percentile of a binomial).
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from scipy.stats import binom, binomtest

from weighbridge.analysis.analyse import Depth, analyse
from weighbridge.analysis.results import Comparison
from weighbridge.model.measurement import Measurement, Metric, Outcome
from weighbridge.model.stored_study import BASE, HEAD
from weighbridge.model.study import Study
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.runner.precision import Precision
from weighbridge.store.extensions import note_end
from weighbridge.store.run import RunStore
from weighbridge.study.loader import check
from weighbridge.study.source import parse
from weighbridge.study.weighed import Earlier, Weighed, study_text

sys.path.insert(0, str(Path(__file__).parent))
from honesty import KINDS, SEED, session

INSIDE = ("docker", "bridge", "podman", "podman-rootless", "bubblewrap")
"""The environments of simulated runs, in addition to the host itself."""
TIME = Metric("time", "s", "lower")
BESIDE_S = 0.1
"""Seconds that a trial takes in addition to the program's own time."""
MODELS = ("lognormal CV 2 %", "lognormal CV 8 %", "AR(1) 0.95, SD 8 %", "episodes", "drift 10 %", "bimodal")


@dataclass(frozen=True)
class Answer:
    """The report's answer about one run: a row for each environment and program. ``seconds``: of all trials."""

    rows: tuple[Comparison, ...]
    trusted: bool
    seconds: float

    @property
    def different(self) -> int:
        """The number of heads that the report calls significantly different."""
        return sum(row.shown_as == "different" for row in self.rows)

    @property
    def found(self) -> int:
        """The number of heads that the report calls slower."""
        costs = (row.cost for row in self.rows if row.shown_as == "different")
        return sum(cost is not None and cost.penalty.estimate > 0 for cost in costs)


def study(within_s: int, environments: int = 1, commands: int = 1, target: str = "2%") -> Study:
    """Return the study that ``weigh --base`` makes of programs in the host itself and further environments."""
    here = {"kind": "host", "folder": "/opt"}
    weighed = Weighed(
        ["true"], here, earlier=Earlier(dict(here)), labels=(BASE, HEAD), commits=("1", "2"), target=target,
        within=f"{within_s}s", inside=INSIDE[: environments - 1],
        commands={f"program{number}": ["true"] for number in range(commands)} if commands > 1 else {},
    )  # fmt: skip
    return check(parse(study_text(weighed), "pull-requests"))


def measure(values: Mapping[tuple[str, str], Sequence[float]], of: Study, within_s: float, folder: Path) -> None:
    """Save a run with these values by workload and environment, in seconds, up to the round after which it ends."""
    clock, began, block = 1.7e9, 1.7e9, 0
    with RunStore(folder, writable=True) as store:
        store.begin(of, {"run_id": "0123456789ab", "version": "0"})
        precision = Precision(of, store)
        looks = precision.looks
        while measured := [(cell, name) for cell in of.cells for name in precision.arms_of(cell)]:
            for cell, name in measured:
                taken_s = values[cell.workload, name][block]
                trial = Trial(block + 1, 0, cell.workload, cell.level, name)
                measurements = (Measurement(TIME, taken_s),)
                store.save(TrialRecord(trial, Outcome.OK, clock, taken_s, taken_s, measurements=measurements))
                clock += taken_s + BESIDE_S
            block += 1
            if block == looks[-1] or (clock - began > within_s and block >= looks[0]):
                break
            if block in looks:
                precision.look(block)
        note_end(store)


def answer(folder: Path) -> Answer:
    """Return the report's answer of a run."""
    with RunStore(folder) as store:
        analysis = analyse(store, Depth.PRIMARY)  # with the same verdicts
        seconds = store.spent_s() + BESIDE_S * len(store.trials())
    rows = tuple(row for report in analysis.headlines for row in report.comparisons if not row.aa)
    return Answer(rows, analysis.trust.trusted is not False, seconds)


def simulated(kind: str, slower: float, runs: int, given: argparse.Namespace) -> Iterator[Answer]:
    """Yield the answers about simulated runs whose heads take this much longer (0.05 is 5%)."""
    of = study(given.within, given.environments, given.commands)
    arms = [(cell.workload, arm.name) for cell in of.cells for arm in of.arms]
    # a run has more rounds if comparisons leave it
    most = max(of.file.repetitions.min, int(given.within / (2 * (given.trial / 2 + BESIDE_S))))
    rng = np.random.default_rng([SEED, list(KINDS).index(kind), round(1000 * slower), len(arms)])
    for _ in range(runs):
        rates = session(rng, KINDS[kind], 1.0, arms=len(arms), blocks=most)
        seconds = given.trial * rates.mean() / rates
        values = {
            (program, name): (seconds[place] * (1 + slower * name.startswith(HEAD))).tolist()
            for place, (program, name) in enumerate(arms)
        }
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            measure(values, of, given.within, Path(folder) / "run")
            yield answer(Path(folder) / "run")


PROGRAM = "int main(void) {{ for (volatile long i = 0; i < {count}; i++); return 0; }}\n"


def real(slower: float, pairs: int, given: argparse.Namespace) -> Iterator[Answer]:
    """Yield the answers about pairs of commits on this machine. The time is that from the start to the verdict."""
    for number in range(pairs):
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            repository = Path(folder) / "repository"
            git = ("git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b")
            subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
            for count in (given.count, round(given.count * (1 + slower))):
                (repository / "count.c").write_text(PROGRAM.format(count=count))
                (repository / "notes").write_text(f"{number} {count} {time.time()}\n")
                subprocess.run([*git, "add", "."], check=True)
                subprocess.run([*git, "commit", "--quiet", "-m", "a version"], check=True)
            began = time.monotonic()
            subprocess.run(
                [sys.executable, "-m", "weighbridge", "weigh", "--base", "HEAD^", "--build",
                 "cc -O1 -o count count.c",
                 "--within", f"{given.within}s", "--out", f"{folder}/run", "--", "./count"],
                cwd=repository, check=True, stdout=sys.stderr,
                env={**os.environ, "WEIGHBRIDGE_ALLOW_CONCURRENT": "1"},
            )  # fmt: skip
            found = answer(Path(folder) / "run")
            yield Answer(found.rows, found.trusted, time.monotonic() - began)


def line(name: str, equal: list[Answer], slower: list[Answer]) -> str:
    """Return the row of a model or a machine."""
    alarms = sum(each.different > 0 for each in equal)
    rows = sum(len(each.rows) for each in slower)
    found, some = sum(each.found for each in slower), sum(each.found > 0 for each in slower)
    same = sum(row.shown_as == "equivalent" for each in equal for row in each.rows)
    distrusted = sum(not each.trusted for each in (*equal, *slower))
    minutes = [median(each.seconds for each in answers) / 60 if answers else 0.0 for answers in (equal, slower)]
    return (
        f"{name:20} equal: {alarms} of {len(equal)} runs with an alarm, {same} heads within the margin, "
        f"{minutes[0]:.1f} min; slower: {found} of {rows} heads found, one or more in {some} of {len(slower)} runs, "
        f"{minutes[1]:.1f} min; controls failed: {distrusted}"
    )


def main() -> int:
    """Print a line for each model of noise, or for this machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100, help="simulated runs of each model with equal versions")
    parser.add_argument("--slower-pairs", type=int, help="the same with a slower head; by default as many")
    parser.add_argument("--environments", type=int, default=1, choices=range(1, len(INSIDE) + 2))
    parser.add_argument("--commands", type=int, default=1, help="programs of each simulated run")
    parser.add_argument("--real", type=int, default=0, metavar="N", help="measure N pairs of each kind instead")
    parser.add_argument("--slower", type=float, default=5.0, help="percent")
    parser.add_argument("--trial", type=float, default=0.5, help="seconds of a simulated trial")
    parser.add_argument("--within", type=int, default=120, help="seconds for the rounds of a pair")
    parser.add_argument("--count", type=int, default=100_000_000, help="steps of the real program")
    parser.add_argument("--folder", type=Path, help="for runs; in memory is fastest: /dev/shm")
    given = parser.parse_args()
    if given.real:
        answers = [[*real(each, given.real, given)] for each in (0.0, given.slower / 100)]
        print(line("this machine", *answers))
        return 0
    allowed, alarms = int(binom.ppf(0.99, given.pairs, 0.05)), []
    every: tuple[list[Answer], list[Answer]] = [], []
    for kind in MODELS:
        slow = given.pairs if given.slower_pairs is None else given.slower_pairs
        equal = [*simulated(kind, 0.0, given.pairs, given)]
        slower = [*simulated(kind, given.slower / 100, slow, given)]
        print(line(kind, equal, slower), flush=True)
        alarms.append(sum(each.different > 0 for each in equal))
        every[0].extend(equal)
        every[1].extend(slower)
    print(line("all", *every))
    low, high = binomtest(sum(alarms), len(every[0])).proportion_ci(method="exact")
    print(f"runs with an alarm: {100 * sum(alarms) / len(every[0]):.1f}% [{100 * low:.1f}, {100 * high:.1f}]")
    print(f"at most {max(alarms)} in a model; {allowed} allowed")
    return int(max(alarms) > allowed)


if __name__ == "__main__":
    sys.exit(main())
