"""Whether a report tells the truth that was put into it: known costs and known noise, measured for real.

A study runs natively and in a Docker container a program that prints many figures. Each has noise of its own, known
before the run, and in the container a cost that the study gives it there. Everything in between is Weighbridge's own:
sites, order of trials, store, analysis, and ``report --json``, from which alone all that is judged here is read.

    python benchmarks/injected_truth.py [--sessions N] [--blocks N | --adaptive] [--noise NAME ...]
    python benchmarks/injected_truth.py --replay --figures 24 --sessions 40

``--replay`` computes the coverage without an engine, from the same noise and the same order of trials. The seeds are
fixed, so that it repeats the coverage of a real session exactly.

The noise is that of `rule.py` (and so of `honesty.py`), with the same seeds on every machine. It goes by a trial's
number in its run, as noise of a machine does: the program asks for this number at a port of this process, as the
baseline and its A/A arm are given the same by the study and could not tell which of the two they are. So the order of
trials, which the run chooses, decides what meets what.

Of four figures two have no cost, one has the cost that the report before, of the same noise, stated as visible for
this figure (`visible_cost`), and one has a fixed cost (`FIXED`). Half of them are better when higher; a third is
compared by difference. Workloads' first figures are the headlines, of which only the last has a cost, a visible one.

- **coverage**: intervals of 95 % that hold the injected cost, of all figures.
- **false**: families (headlines; further metrics) with a *different* of a figure that has no cost.
- **seen**: visible costs that are called different, and **stated**: their median, of those in percent.
- **fixed**: fixed costs that are called different.
- **sign**: verdicts *different* with the interval on the wrong side.

A session that the report calls untrusted claims nothing: it counts in the coverage alone. Bounds are those of
`rule.py`, wider by the chance of what was counted (`CONFIDENCE`); seen is held where noise is about normal.
Exits with 1 where one is missed. Needs root, and an engine on this machine or dockerd.

What it gave with 48 figures in ten blocks, eight sessions of the first noise and four of each other (a machine on
which others worked; 2,304 comparisons, 96 families, no session untrusted):

    noise                covered    seen   stated
    lognormal CV 2 %       94.3%   92.3%    6.62%
    lognormal CV 8 %       94.8%   87.2%   25.35%
    lognormal CV 20 %      94.8%   89.7%   52.34%
    AR(1) 0.95, SD 8 %     95.3%   92.3%    9.10%
    AR(1) 0.5, SD 8 %      90.6%   92.3%   20.52%
    bimodal                95.8%   74.4%   34.37%
    episodes               94.3%   61.5%    8.61%
    drift 10 %             96.9%   94.9%    7.07%
    position 2 %           93.8%   84.6%    8.42%
    heavy tails, t3        96.4%   87.2%    9.69%
    changing 1-4 %         94.3%   82.1%    8.15%

In all: coverage 94.6 %, a false *different* in 3 of 48 families of headlines and in 2 of 48 of further metrics, 414
of 481 visible costs seen, and no wrong sign.

Later, with the rule for disturbed runs and 24 figures, 8 or 4 sessions of each noise but the lognormal ones, beside
up to six other programs (2,688 comparisons, 106 families, three sessions untrusted): 94.6 % covered (91.4 % in
AR(1) 0.5, 93.8 to 96.9 % elsewhere), a false *different* in 2 of 53 families of headlines, in none of 53 of others.
Forty sessions of lognormal CV 20 % (1,920 comparisons): 94.8 % covered, 86.2 % of the stated costs seen, a false
*different* in none of 80 families.
"""

import argparse
import json
import os
import socketserver
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.stats import binom

from weighbridge.statistics import compare
from weighbridge.study.loader import check as checked
from weighbridge.study.schedule import block as block_of
from weighbridge.study.source import parse

sys.path.insert(0, str(Path(__file__).parent))
from honesty import SEED, Check
from rule import COVERAGE, FALSE, NOISES, SEEN

TREATED = "docker"
FIXED = (3.0, 10.0, -3.0)
"""Costs in percent (of `BASE` where figures are compared by difference); negative is better."""
BASE = 1000.0
"""Every figure without noise and cost."""
UNLIKE_NORMAL = ("bimodal", "episodes", "heavy tails, t3", "changing 1-4 %")
"""Noise whose standard error a few blocks do not tell, as in most sessions its slow runs are too few or too many."""
CONFIDENCE = 0.995
"""That what is within a bound is not called beyond it by the chance of as few as were counted."""
ALL = "all"
"""The row of all noises together: of a few sessions each, only there are families enough to say something."""
MOST_BLOCKS = 60
SPARE = 30
"""Trials for which there is noise beyond those of the blocks: those that had to be run again."""

PROGRAM = """
import json, socket, sys
counter, workload, side = sys.argv[1:]
with socket.create_connection(("127.0.0.1", int(counter)), 10) as line:
    line.sendall(workload.encode() + b"\\n")
    number = int(line.makefile().readline())
with open("/tmp/figures.json") as file:
    figures = json.load(file)[workload]
printed = {}
for name, figure in figures.items():
    factor, added = figure["cost"] if side == "treated" else (1, 0)
    printed[name] = figure["values"][number] * factor + added
print(json.dumps(printed))
"""
"""What is measured: the values of this trial, with the cost of this side."""

Injection = Literal["none", "visible", "fixed"]
Scale = Literal["ratio", "difference"]


@dataclass(frozen=True)
class Figure:
    """One figure of the program: how it is compared, and what is injected into it."""

    workload: str
    name: str
    higher_is_better: bool
    scale: Scale
    injection: Injection
    headline: bool
    fixed: float = 0.0

    @property
    def unit(self) -> str:
        """Counts are compared by difference."""
        if self.scale == "difference":
            return "count"
        return "1/s" if self.higher_is_better else "s"

    def effect(self, cost: float) -> tuple[float, float]:
        """Return the factor and the summand that make a cost, in percent or in the unit; positive is worse."""
        sign = -1.0 if self.higher_is_better else 1.0
        return (1.0, sign * cost) if self.scale == "difference" else (1 + sign * cost / 100, 0.0)


def figures_of(workloads: int, each: int) -> list[Figure]:
    """Return the figures of a session: the same in every session of a noise."""
    figures = []
    for number in range(workloads):
        for index in range(each):
            injection: Injection = ("none", "visible", "none", "fixed")[index % 4]
            if index == 0 and number == workloads - 1:
                injection = "visible"
            scale: Scale = "difference" if index % 3 == 2 else "ratio"
            fixed = FIXED[index // 4 % len(FIXED)] * (BASE / 100 if scale == "difference" else 1.0)
            higher = index // 4 % 2 == 0
            name, workload = f"f{index:03d}", f"injected{number + 1}"
            figures.append(Figure(workload, name, higher, scale, injection, index == 0, fixed))
    return figures


def key_of(figure: Figure) -> str:
    """Return what a figure is called in all sessions."""
    return f"{figure.workload} {figure.name}"


# -- a session, for real -----------------------------------------------------------------------------


class _Counting(socketserver.StreamRequestHandler):
    """Tells how many trials of a workload there were before."""

    server: "_Counter"

    def handle(self) -> None:
        workload = self.rfile.readline().decode().strip()
        with self.server.lock:
            number = self.server.trials[workload]
            self.server.trials[workload] += 1
        self.wfile.write(f"{number}\n".encode())


class _Counter(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Counting)
        self.lock, self.trials = threading.Lock(), Counter[str]()


@contextmanager
def counter() -> Iterator[_Counter]:
    """Count the trials of a run, each workload's by itself, from 0."""
    with _Counter() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def metric_of(figure: Figure) -> dict[str, str]:
    """Return where a figure stands in the program's output, and what it is, as a study says it."""
    better = "higher" if figure.higher_is_better else "lower"
    return {"json": f"$.{figure.name}", "unit": figure.unit, "better": better}


def study_of(figures: Sequence[Figure], files: Path, port: int, seed: int, repetitions: Mapping[str, Any]) -> str:
    """Return the study as JSON, which YAML includes."""
    python, names = os.path.realpath(sys.executable), list(dict.fromkeys(each.workload for each in figures))
    workloads = {
        name: {
            "kind": "command",
            "run": [python, "-I", "-S", "/tmp/program.py", "{counter}", name, "{side}"],
            "parameters": {"counter": str(port), "side": "untreated"},
            "files": {f"/tmp/{file}": str(files / file) for file in ("program.py", "figures.json")},
            "metrics": {each.name: metric_of(each) for each in figures if each.workload == name},
        }
        for name in names
    }
    treated = {name: {"parameters": {"side": "treated"}} for name in workloads}
    study = {
        "study": "injected-truth",
        "question": "Does the report tell the cost that was injected?",
        "userland": {"kind": "host"},
        "baseline": "native",
        "environments": {
            "native": {"kind": "native"},
            TREATED: {"kind": "docker", "network": "host", "workloads": treated},
        },
        "workloads": workloads,
        "repetitions": dict(repetitions),
        "seed": seed,
    }
    return json.dumps(study, indent=1)


def noisy_values(noise: str, figures: Sequence[Figure], seed: Sequence[int]) -> dict[str, list[float]]:
    """Return every figure's values by the number of the trial, without a cost; the same for the same seed."""
    values = {}
    for number, figure in enumerate(figures):
        rng = np.random.default_rng([*seed, number])
        logs = NOISES[noise](rng, MOST_BLOCKS + SPARE // 3, 3)
        values[key_of(figure)] = (BASE * np.exp(logs.ravel())).tolist()
    return values


def weighbridge(*arguments: str) -> str:
    """Run a command of Weighbridge and return what it printed. SystemExit with its own words where it failed."""
    argv = [sys.executable, "-m", "weighbridge", *arguments]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"weighbridge {arguments[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def leave_out_machine(run: Path, figures: Sequence[Figure]) -> None:
    """Remove from a run what its machine adds to the injected figures: flags of trials, and metrics of its own.

    If other programs take the CPUs in most trials, a report states no visible cost. Metrics such as time share
    the families and the control with the injected figures.
    """
    names = [(each.name,) for each in figures]
    with closing(sqlite3.connect(run / "run.sqlite")) as store, store:
        store.execute("CREATE TEMPORARY TABLE injected (metric TEXT)")
        store.executemany("INSERT INTO injected VALUES (?)", names)
        store.execute("DELETE FROM measurement WHERE metric NOT IN injected")
        store.execute("UPDATE trial SET flags = '[]'")


def measured(
    noise: str,
    figures: Sequence[Figure],
    costs: Mapping[str, float],
    session: int,
    repetitions: Mapping[str, Any],
    *,
    machine: bool = True,
) -> dict[str, Any]:
    """Run one session with these costs for real, and return the document of ``report --json``.

    Without ``machine`` the report is of the injected figures alone, however busy the machine was.
    """
    values = noisy_values(noise, figures, (SEED, list(NOISES).index(noise), session))
    table: dict[str, dict[str, Any]] = {}
    for figure in figures:
        table.setdefault(figure.workload, {})[figure.name] = {
            "values": values[key_of(figure)],
            "cost": figure.effect(costs[key_of(figure)]),
        }
    with tempfile.TemporaryDirectory(prefix="injected-truth-") as folder, counter() as server:
        files = Path(folder)
        (files / "program.py").write_text(PROGRAM)
        (files / "figures.json").write_text(json.dumps(table))
        study = study_of(figures, files, server.server_address[1], session + 1, repetitions)
        (files / "study.yaml").write_text(study)
        weighbridge("run", str(files / "study.yaml"), "--out", str(files / "run"), "--yes", "--beside-others")
        if not machine:
            leave_out_machine(files / "run", figures)
        document: dict[str, Any] = json.loads(weighbridge("report", str(files / "run"), "--json"))
    return document


# -- what is judged ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """What a report says of one figure, held against what was injected."""

    figure: Figure
    cost: float
    """Injected, in percent or in the unit."""
    covered: bool
    different: bool
    wrong_side: bool
    visible: float | None
    """The smallest cost that the report says would have shown."""


@dataclass(frozen=True)
class Session:
    """One session: whether its report trusts it, and its figures."""

    trusted: bool
    figures: list[Judged]

    def false(self, *, headlines: bool) -> bool:
        """Whether any figure without a cost is called different in a family."""
        return any(each.different for each in self.figures if each.figure.headline is headlines and each.cost == 0.0)


def judged(document: Mapping[str, Any], figures: Sequence[Figure], costs: Mapping[str, float]) -> Session:
    """Hold a report against the costs that were injected. KeyError where a figure is not in it."""
    rows = {f"{row['workload']} {row['metric']}": row for row in document["costs"] if row["environment"] == TREATED}
    listed = []
    for figure in figures:
        row, cost = rows[key_of(figure)], costs[key_of(figure)]
        low, high = row["cost_low"], row["cost_high"]
        if (row["cost_unit"] == "%") != (figure.scale == "ratio"):
            raise ValueError(f"{key_of(figure)} is compared in {row['cost_unit']}, not by {figure.scale}")
        different = row["verdict"] == "significant"
        wrong_side = different and cost != 0 and (low if cost < 0 else -high) > 0
        listed.append(Judged(figure, cost, low <= cost <= high, different, wrong_side, row["visible_cost"]))
    return Session(document["control_passed"] is not False, listed)


def sessions_of(
    noise: str, figures: Sequence[Figure], number: int, repetitions: Mapping[str, Any], *, machine: bool = True
) -> Iterator[Session]:
    """Measure sessions of one noise, each with the visible costs that the one before stated: none in the first.

    ``machine`` is as in `measured`.
    """
    stated: dict[str, float] = {}
    for session in range(number):
        costs = {
            key_of(figure): {"none": 0.0, "fixed": figure.fixed, "visible": stated.get(key_of(figure), 0.0)}[
                figure.injection
            ]
            for figure in figures
        }
        document = measured(noise, figures, costs, session, repetitions, machine=machine)
        outcome = judged(document, figures, costs)
        stated |= {key_of(each.figure): each.visible for each in outcome.figures if each.visible is not None}
        yield outcome


def replayed(noise: str, figures: Sequence[Figure], session: int, blocks: int) -> list[bool]:
    """Return which intervals of a session hold the cost, computed from its noise and its order of trials alone.

    Costs move an interval and what it should hold alike, so that none is needed.
    """
    with tempfile.TemporaryDirectory(prefix="injected-truth-") as folder:
        for name in ("program.py", "figures.json"):
            (Path(folder) / name).write_text("{}")
        text = study_of(figures, Path(folder), 1, session + 1, {"blocks": blocks})
        study = checked(parse(text, "injected-truth"))
    values = noisy_values(noise, figures, (SEED, list(NOISES).index(noise), session))
    before, numbers = Counter[str](), dict[tuple[str, str], list[int]]()
    for trial in (each for number in range(1, blocks + 1) for each in block_of(study, number)):
        numbers.setdefault((trial.workload, trial.environment), []).append(before[trial.workload])
        before[trial.workload] += 1
    covered = []
    for figure in figures:
        sides = (numbers[figure.workload, name] for name in ("native", TREATED))
        native, treated = ([values[key_of(figure)][each] for each in side] for side in sides)
        cost = compare(native, treated, better="lower", scale=figure.scale)
        covered.append(cost.low <= (1.0 if figure.scale == "ratio" else 0.0) <= cost.high)
    return covered


@dataclass
class Tally:
    """What sessions of one noise, or of all, come to."""

    sessions: int = 0
    untrusted: int = 0
    covered: list[bool] = field(default_factory=list)
    false_headlines: list[bool] = field(default_factory=list)
    false_further: list[bool] = field(default_factory=list)
    seen: list[bool] = field(default_factory=list)
    stated: list[float] = field(default_factory=list)
    fixed: list[bool] = field(default_factory=list)
    wrong_side: int = 0

    def add(self, session: Session) -> None:
        """Count one session."""
        self.sessions += 1
        self.covered += [each.covered for each in session.figures]
        self.wrong_side += sum(each.wrong_side for each in session.figures)
        if not session.trusted:
            self.untrusted += 1
            return
        self.false_headlines.append(session.false(headlines=True))
        self.false_further.append(session.false(headlines=False))
        for each in session.figures:
            if each.figure.injection == "visible" and each.cost:
                self.seen.append(each.different)
                self.stated += [each.cost] if each.figure.scale == "ratio" else []
            if each.figure.injection == "fixed":
                self.fixed.append(each.different)

    def row(self, noise: str) -> str:
        """Return the tally as a row of the table."""
        stated = f"{statistics.median(self.stated):8.2f}%" if self.stated else f"{'-':>9}"
        return (
            f"{noise:<20}{self.sessions:>9}{self.untrusted:>10}{len(self.covered):>12}{percent(self.covered):>9}"
            f"{percent(self.false_headlines):>11}{percent(self.false_further):>9}{percent(self.seen):>8}{stated}"
            f"{percent(self.fixed):>8}{self.wrong_side:>6}"
        )


HEADS = (
    f"{'noise':<20}{'sessions':>9}{'untrusted':>10}{'comparisons':>12}{'covered':>9}{'false head':>11}"
    f"{'further':>9}{'seen':>8}{'stated':>9}{'fixed':>8}{'sign':>6}"
)


def percent(outcomes: Sequence[bool]) -> str:
    """Return the share of outcomes that are true."""
    return f"{100 * share(outcomes):.1f}%" if outcomes else "-"


def share(outcomes: Sequence[bool]) -> float:
    """Return the share of outcomes that are true; 0 of none."""
    return sum(outcomes) / len(outcomes) if outcomes else 0.0


def checks(noise: str, tally: Tally) -> list[Check]:
    """Hold the figures of a noise against their bounds, as far as there are any."""

    def check(name: str, outcomes: Sequence[bool], bound: float, *, at_least: bool = False) -> list[Check]:
        if not outcomes:
            return []
        number = len(outcomes)
        chance = float(binom.ppf(1 - CONFIDENCE if at_least else CONFIDENCE, number, bound / 100))
        return [Check(f"{name} %, {noise}", 100 * share(outcomes), 100 * chance / number, at_least)]

    seen = [] if noise in (*UNLIKE_NORMAL, ALL) else check("visible cost seen", tally.seen, SEEN, at_least=True)
    return [
        *check("coverage", tally.covered, COVERAGE, at_least=True),
        *check("false 'different' among headlines", tally.false_headlines, FALSE),
        *check("false 'different' among further metrics", tally.false_further, FALSE),
        *seen,
        Check(f"'different' of the wrong sign, {noise}", tally.wrong_side, 0.0),
    ]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=20, metavar="N", help="per noise (default: 20)")
    parser.add_argument("--workloads", type=int, default=2, metavar="N", help="headlines per session (default: 2)")
    parser.add_argument("--figures", type=int, default=30, metavar="N", help="per workload (default: 30)")
    parser.add_argument("--blocks", type=int, default=10, metavar="N", help="per session (default: 10)")
    parser.add_argument("--adaptive", action="store_true", help="10 to 60 blocks, stopped at ±2 %%")
    parser.add_argument("--replay", action="store_true", help="only the coverage, without an engine")
    parser.add_argument("--noise", choices=NOISES, action="append", help="of these alone (default: all)")
    arguments = parser.parse_args()
    repetitions: dict[str, Any] = {"blocks": arguments.blocks}
    if arguments.adaptive:
        repetitions = {"target": "2%", "min": 10, "max": MOST_BLOCKS}
    elif not 2 <= arguments.blocks <= MOST_BLOCKS:
        parser.error(f"--blocks must be 2 to {MOST_BLOCKS}")
    figures, started = figures_of(arguments.workloads, arguments.figures), time.monotonic()
    if arguments.replay:
        every: list[bool] = []
        for noise in arguments.noise or NOISES:
            sessions = range(arguments.sessions)
            mine = [each for session in sessions for each in replayed(noise, figures, session, arguments.blocks)]
            print(f"{noise:<20}{sum(mine):>7} of {len(mine)}{percent(mine):>8}", flush=True)
            every += mine
        print(f"{ALL:<20}{sum(every):>7} of {len(every)}{percent(every):>8}")
        return 0
    tallies = {noise: Tally() for noise in arguments.noise or NOISES}
    total = Tally()
    print(HEADS, flush=True)
    for noise, tally in tallies.items():
        for session in sessions_of(noise, figures, arguments.sessions, repetitions):
            tally.add(session)
            total.add(session)
        print(tally.row(noise), flush=True)
    print(total.row(ALL))
    listed = [check for noise, tally in (tallies | {ALL: total}).items() for check in checks(noise, tally)]
    print("", *listed, sep="\n")
    missed = sum(not check.met for check in listed)
    print(f"\n{time.monotonic() - started:.0f} s: {len(listed) - missed} bounds kept, {missed} missed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
