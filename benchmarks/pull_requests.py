"""How often `weigh --base` calls equal versions different, and how often and how soon it finds a slower version.

A simulated pair is a study as `weigh --base` writes it: base, control and head in the same random rounds. The run
times have the noise of a model. The run ends as a real one does: at a planned look once its interval is
narrow enough, or when its time is over. The trials are saved in a run directory,
and the report's own analysis judges them, with the control. An alarm is a head that the report calls significantly
different although it is equal. Found is a head that it calls slower.

    .venv/bin/python benchmarks/pull_requests.py --pairs 100
    .venv/bin/python benchmarks/pull_requests.py --real 5 --within 60

``--real N`` measures N equal and N slower pairs of commits of a new git repository on this machine instead, with a C
program that counts. A slower head counts further by exactly as much as the percentage says. It needs git and cc.

With 100 pairs of each kind, trials of 0.5 s and two minutes, 20 of 600 equal pairs gave an alarm (3.3%). 580 of 600
heads slower by 5% were found. Alarms, found, and the median minutes of trials, by model: lognormal 2%: 1, 99, 0.4;
lognormal 8%: 10, 88, 2.0; AR(1) 0.95: 3, 99, 0.7; episodes: 1, 99, 0.5; drift 10%: 3, 96, 0.3; bimodal: 2, 99,
0.9. Only one program without isolation is simulated, and not several with `--in` or `--command`.

Exits with 1 if there are more alarms in a model than 5% allow by chance (the 99th percentile of a binomial).
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from scipy.stats import binom

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.results import Comparison
from weighbridge.model.level import NO_LEVEL
from weighbridge.model.measurement import Measurement, Metric, Outcome
from weighbridge.model.stored_study import BASE, HEAD
from weighbridge.model.study import Study
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.statistics import compare, decided, deciding_half_width, next_look, planned_looks
from weighbridge.store.extensions import note_end
from weighbridge.store.run import RunStore
from weighbridge.study.loader import check
from weighbridge.study.source import parse
from weighbridge.study.weighed import Earlier, Weighed, study_text

sys.path.insert(0, str(Path(__file__).parent))
from honesty import KINDS, SEED, Floats, session

ARMS = (BASE, HEAD, f"{BASE}-again")
TIME = Metric("time", "s", "lower")
BESIDE_S = 0.1
"""Seconds that a trial takes in addition to the program's own time."""
MODELS = ("lognormal CV 2%", "lognormal CV 8%", "AR(1) 0.95, SD 8%", "episodes", "drift 10%", "bimodal")


@dataclass(frozen=True)
class Answer:
    """The report's answer about one pair. ``seconds`` is the time of all trials."""

    row: Comparison
    trusted: bool
    seconds: float

    @property
    def different(self) -> bool:
        """Whether the report calls the head significantly different."""
        return self.row.shown_as == "different"

    @property
    def found(self) -> bool:
        """Whether the report calls the head slower."""
        return self.different and self.row.cost is not None and self.row.cost.penalty.estimate > 0


def study(within_s: int, target: str = "2%") -> Study:
    """Return the study that ``weigh --base`` makes of one program."""
    here = {"kind": "host", "folder": "/opt"}
    weighed = Weighed(
        ["true"], here, earlier=Earlier(dict(here)), labels=(BASE, HEAD), commits=("1", "2"), target=target,
        within=f"{within_s}s",
    )  # fmt: skip
    return check(parse(study_text(weighed), "pull-requests"))


def rounds(values: Floats, of: Study, trial_s: float, within_s: float) -> int:
    """Return the number of rounds after which the run ends: precise enough at a look, or late."""
    repetitions, margin = of.file.repetitions, of.file.equivalence
    looks = planned_looks(repetitions.min, repetitions.max)
    target = narrow = repetitions.target or 0.02
    ends = max(looks[0], int(within_s / (len(ARMS) * (trial_s + BESIDE_S))))
    for look in (each for each in looks if each < ends):
        base, head = values[:2, :look].tolist()
        cost = compare(base, head, better="lower", equivalence=margin, looks=len(looks))
        if cost.half_width <= target and not decided(cost, 1, len(looks)):
            narrow = min(narrow, deciding_half_width(margin, 1, len(looks)))
        if next_look(look, [cost], narrow, minimum=repetitions.min, maximum=repetitions.max).action == "reached":
            return look
    return ends


def saved(values: Floats, blocks: int, of: Study, trial_s: float, folder: Path) -> None:
    """Save a run with these values, in seconds."""
    clock = 1.7e9
    with RunStore(folder, writable=True) as store:
        store.begin(of, {"run_id": "0123456789ab", "version": "0"})
        for block in range(blocks):
            for arm, name in enumerate(ARMS):
                taken_s = float(values[arm, block])
                trial = Trial(block + 1, 0, "command", NO_LEVEL, name)
                measured = (Measurement(TIME, taken_s),)
                store.save(TrialRecord(trial, Outcome.OK, clock, taken_s, taken_s, measurements=measured))
                clock += taken_s + BESIDE_S
        note_end(store)


def answer(folder: Path) -> Answer:
    """Return the report's answer of a run."""
    with RunStore(folder) as store:
        analysis = analyse(store)
        seconds = store.spent_s() + BESIDE_S * len(store.trials())
    (report,) = [each for each in analysis.headlines if each.metric == TIME.name]
    row = next(each for each in report.comparisons if each.environment == HEAD)
    return Answer(row, analysis.trust.trusted is not False, seconds)


def simulated(kind: str, slower: float, pairs: int, given: argparse.Namespace) -> Iterator[Answer]:
    """Yield the answers about simulated pairs whose head takes this much longer (0.05 is 5%)."""
    of = study(given.within)
    most = int(given.within / (len(ARMS) * (given.trial + BESIDE_S))) + 1
    rng = np.random.default_rng([SEED, list(KINDS).index(kind), round(1000 * slower)])
    for _ in range(pairs):
        drawn = session(rng, KINDS[kind], 1.0, arms=len(ARMS), blocks=max(most, of.file.repetitions.min))
        values = given.trial * drawn.mean() / drawn  # a session has rates
        values[1] *= 1 + slower
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            saved(values, rounds(values, of, given.trial, given.within), of, given.trial, Path(folder) / "run")
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
            yield Answer(found.row, found.trusted, time.monotonic() - began)


def line(name: str, equal: list[Answer], slower: list[Answer]) -> str:
    """Return the row of a model or a machine."""
    alarms, found = sum(each.different for each in equal), sum(each.found for each in slower)
    same = sum(each.row.shown_as == "equivalent" for each in equal)
    distrusted = sum(not each.trusted for each in (*equal, *slower))
    minutes = [median(each.seconds for each in answers) / 60 for answers in (equal, slower)]
    return (
        f"{name:20} equal: {alarms} alarms, {same} within the margin of {len(equal)}, {minutes[0]:.1f} min; "
        f"slower: {found} of {len(slower)} found, {minutes[1]:.1f} min; controls failed: {distrusted}"
    )


def main() -> int:
    """Print a line for each model of noise, or for this machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100, help="simulated pairs of each kind")
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
    allowed, worst = int(binom.ppf(0.99, given.pairs, 0.05)), 0
    for kind in MODELS:
        equal, slower = ([*simulated(kind, each, given.pairs, given)] for each in (0.0, given.slower / 100))
        print(line(kind, equal, slower), flush=True)
        worst = max(worst, sum(each.different for each in equal))
    print(f"at most {worst} alarms in a model; {allowed} allowed")
    return int(worst > allowed)


if __name__ == "__main__":
    sys.exit(main())
