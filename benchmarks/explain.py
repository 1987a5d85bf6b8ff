"""Does `explain` find a cause that was put there on purpose, and does it name one where there is none?

    python benchmarks/explain.py [--studies why-seccomp ...] [--runs N] [--nothing N] [--out FOLDER]
    python benchmarks/explain.py --runs 0 --nothing 25 --busy --out FOLDER

Each known answer (`CAUSES`) is a bundled study whose environment has one cause of most of its cost; it is run
``--runs`` times. *Found*: the cause is the largest of the mechanisms that were switched, and its interval excludes
no cost. *Proven*: its p-value after Holm does as well. What is read is ``report --json`` alone.

Where **nothing** was put there, four mechanisms are installed that switch nothing (as a plug-in package of their own:
`PLACEBO`): the arm without them is the environment itself. ``--nothing`` is the number of runs of each of the four
`PROGRAMS`, with ``--busy`` the same number again next to a busy loop, in turn. The second command makes 100 runs of
each kind. A line says how many single intervals exclude zero, with an interval that allows for the arm that the four
share; in how many runs a placebo is significant; and whether the five equal arms differ for a whole run (`lasting`),
which rounds cannot average out.

Needs root and what each study needs; a study that cannot run here is a line with the reason. Exits with 1 where a
cause is not found in nine of ten runs, or a placebo is named in more than one run of twenty.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaincinv, stdtrit

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.comparisons import values_by_metric
from weighbridge.statistics.cost import Floats
from weighbridge.statistics.ranks import critical_rank, signed_rank_cumulative
from weighbridge.statistics.verdicts import excludes_no_cost
from weighbridge.store.blocks import arm_values
from weighbridge.store.run import RunStore

CAUSES: Mapping[str, Sequence[str]] = {
    "why-seccomp": ("seccomp",),
    "why-cpu-period": ("cpu-period", "cpu-limit"),
    "why-open-files": ("open-files",),
    "why-allocator": ("variables",),
    "why-libc": ("userland",),
    "why-published-port": ("docker-proxy",),
    "why-bridge-netfilter": ("bridge-netfilter", "filter-rules"),
    "why-rootless-network": ("user-mode-network",),
    "why-overlay-mtu": ("mtu",),
    "why-database-layer": ("writable-layer",),
    "why-fsync-ignored": ("disk-cache",),
    "why-nfs-sync": ("nfs-sync",),
    "why-emulated-nic": ("emulated-nic",),
    "why-gvisor-calls": ("user-space-kernel",),
}
"""The bundled studies of known answers, and the mechanisms that are the cause: of several any may be the largest."""
PROGRAMS: Mapping[str, Sequence[str]] = {
    "start": ("true",),
    "computing": ("perl", "-e", "$n++ for 1..4_000_000"),
    "system calls": ("dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=300000"),
    "processes": ("sh", "-c", "n=0; while [ $n -lt 150 ]; do /bin/true; n=$((n + 1)); done"),
}
ENVIRONMENTS: Mapping[str, Mapping[str, str]] = {
    "docker": {"kind": "docker", "network": "none"},
    "netns": {"kind": "netns"},
    "bubblewrap": {"kind": "bubblewrap"},
}
"""The environments that placebos can use."""
PLACEBOS = 4
PLACEBO = '''
from weighbridge.model.mechanism import Mechanism


class Placebo(Mechanism):
    """It switches nothing."""

    summary = "nothing at all"
    switched = "as it is → as it is"
    remedy = "nothing"
    source = "nobody"

    def __init__(self, number):
        self.kind = self.title = f"placebo-{number}"

    def off(self, subject):
        return None if subject.arm.name == subject.baseline.name else subject.arm


PLUGINS = tuple(Placebo(number) for number in range(1, NUMBER + 1))
'''
WEIGHBRIDGE = (sys.executable, "-m", "weighbridge")
PATIENCE_S = 1800.0


def placebos(folder: Path) -> Mapping[str, str]:
    """Install the package of placebos in a folder; return the variables with which it is found."""
    (folder / "placebos.py").write_text(PLACEBO.replace("NUMBER", str(PLACEBOS)))
    info = folder / "placebos-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: placebos\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[weighbridge.mechanisms]\nplacebos = placebos:PLUGINS\n")
    return {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])}


def study_of(name: str, environment: str, blocks: int, seed: int) -> str:
    """Return a study of one program in an environment, whose cost is explained."""
    return json.dumps({
        "study": "nothing-put-there", "question": "Is a mechanism named that is none?", "baseline": "native",
        "environments": {"native": {"kind": "native"}, environment: ENVIRONMENTS[environment]}, "explain": True,
        "workloads": {"program": {"kind": "command", "run": list(PROGRAMS[name])}},
        "repetitions": {"blocks": blocks}, "equivalence": "3%", "meters": {"source": "off"}, "seed": seed,
    })  # fmt: skip


def explained(study: str, directory: Path, variables: Mapping[str, str]) -> tuple[Mapping[str, Any] | None, str]:
    """Run a study, unless its run is there; return the explanation that its report gives, else why there is none."""
    environ = {**os.environ, "WEIGHBRIDGE_BESIDE_OTHERS": "yes", **variables}
    if not directory.exists():
        argv = [*WEIGHBRIDGE, "run", study, "--out", str(directory), "--yes"]
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode:
            return None, (done.stderr.strip() or done.stdout.strip()).splitlines()[-1][:300]
    argv = [*WEIGHBRIDGE, "report", str(directory), "--json"]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    explanations = json.loads(done.stdout)["explanations"]
    return (explanations[0], "") if explanations else (None, "its cost is not explained")


def size(cost: Mapping[str, Any]) -> float:
    """Return how large a cost is, on the scale on which costs of one metric add up."""
    if cost["cost_unit"] == "%":
        return abs(math.log1p(max(-0.999, cost["cost"] / 100)))
    return abs(float(cost["cost"]))


def excludes_nothing(cost: Mapping[str, Any]) -> bool:
    """Whether the interval of a cost excludes 0."""
    return bool(cost["cost_low"] is not None and (cost["cost_low"] > 0 or cost["cost_high"] < 0))


def known_answer(name: str, runs: int, folder: Path) -> bool:
    """Run a known answer so often, print its line, and return whether its cause was found in nine of ten runs."""
    found = proven = done = 0
    sizes, second, seconds, why = [], [], [], ""
    for number in range(1, runs + 1):
        begun = time.monotonic()
        explanation, why = explained(name, folder / f"{name}-{number}", {})
        if explanation is None:
            print(f"  {name} {number}: {why}", flush=True)
            continue
        done += 1
        seconds.append(time.monotonic() - begun)
        costs = {each["kind"]: each["cost"] for each in explanation["mechanisms"] if each["cost"]}
        ordered = sorted((kind for kind in costs if costs[kind]["cost"] is not None), key=lambda k: -size(costs[k]))
        causes = [kind for kind in ordered if kind in CAUSES[name]]
        cause = costs[causes[0]] if causes else None
        if cause is not None and ordered[0] == causes[0] and excludes_nothing(cause):
            found += 1
            proven += cause["verdict"] == "significant"
        if cause is not None:
            sizes.append(cause["cost"])
        second += [costs[kind]["cost"] for kind in ordered if kind not in CAUSES[name]][:1]
        print(f"  {name} {number}: {explanation['text']}", flush=True)
    figures = (
        f"{statistics.median(sizes):6.1f} ({min(sizes):.1f} to {max(sizes):.1f}), next "
        f"{statistics.median(second) if second else 0:5.1f}, {statistics.median(seconds):.0f} s each"
        if sizes else why
    )  # fmt: skip
    print(f"{name:<24} {done:>3} runs  found {found:>3}  proven {proven:>3}  {figures}", flush=True)
    return done > 0 and found >= 0.9 * done


@dataclass(frozen=True)
class PlaceboRun:
    """The parts of a run that switch nothing."""

    excluded: int
    """The number of their 95% intervals that exclude zero."""
    named: bool
    """Whether one of them is significant."""
    f: float
    """The variance between their arms over its expected value: see `lasting`."""


def lasting(logs: Floats) -> float:
    """Return by how much arms (rows) differ for a whole run, beyond the noise of its rounds (columns).

    It is the F of a two-way layout, divided by its expected value: on average 1 for arms that differ by chance only.
    """
    arms, rounds = logs.shape
    degrees = (arms - 1) * (rounds - 1)
    residuals = logs - logs.mean(axis=0) - logs.mean(axis=1, keepdims=True) + logs.mean()
    between = rounds * float(logs.mean(axis=1).var(ddof=1))
    within = float((residuals**2).sum()) / degrees
    return float(between / within * (degrees - 2) / degrees)


def placebo_run(directory: Path) -> PlaceboRun:
    """Read a finished run."""
    with RunStore(directory) as store:
        analysis, values = analyse(store), values_by_metric(store.values())
    (explanation,) = analysis.explanations
    mine = [each for each in explanation.mechanisms if each.mechanism.kind.startswith("placebo")]
    rows = [each.row for each in mine if each.row is not None and each.row.cost is not None]
    assert len(rows) == PLACEBOS, explanation
    arms = arm_values(
        values[explanation.report.metric_id], (explanation.environment, *(each.without for each in mine))
    )
    return PlaceboRun(
        excluded=sum(excludes_no_cost(row.cost) for row in rows if row.cost is not None),
        named=any(row.verdict == "different" for row in rows),
        f=lasting(np.log(np.array(arms))),
    )


def of_parts(counts: Sequence[int], parts: int) -> tuple[float, float, float]:
    """Return the share of all parts that is counted, and its 95% interval.

    ``counts`` has one number for each run, which has ``parts`` parts.

    The parts of a run err together. The interval is the exact one of Clopper and Pearson for as many independent
    parts as have the same variance (Korn and Graubard, Survey Methodology 24, 1998). If no part or every part is
    counted, each run counts as one part.
    """
    runs, number = len(counts), len(counts) * parts
    share = sum(counts) / number
    variance = float(np.var(counts, ddof=1)) / runs / parts**2 if runs > 1 else 0.0
    independent = float(runs)
    if variance > 0:
        independent = (
            share * (1 - share) / variance * float((stdtrit(number - 1, 0.975) / stdtrit(runs - 1, 0.975)) ** 2)
        )
        independent = min(independent, number)
    hits = share * independent
    low = float(betaincinv(hits, independent - hits + 1, 0.025)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, independent - hits, 0.975)) if hits < independent else 1.0
    return share, low, high


def by_chance(blocks: int) -> float:
    """Return the share of intervals of identical arms that exclude zero: exact, from 10 rounds on."""
    return 2 * float(signed_rank_cumulative(blocks)[critical_rank(blocks, 0.95) - 1])


@contextmanager
def busy_loop(*, on: bool) -> Iterator[None]:
    """Let a program keep one CPU busy while the body runs, or none."""
    if not on:
        yield
        return
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as loop:
        try:
            yield
        finally:
            loop.kill()


def nothing_put_there(
    name: str, number: int, given: argparse.Namespace, folder: Path, variables: Mapping[str, str], *, busy: bool
) -> PlaceboRun | None:
    """Run a program with placebos; return what the run shows, or None with a printed reason."""
    beside = "-busy" if busy else ""
    directory = folder / f"nothing-{given.environment}-{name.replace(' ', '-')}{beside}-{number}"
    study = directory.with_suffix(".yaml")
    study.write_text(study_of(name, given.environment, given.blocks, number))
    with busy_loop(on=busy):
        explanation, why = explained(str(study), directory, variables)
    if explanation is None:
        print(f"  {directory.name}: {why}", flush=True)
        return None
    return placebo_run(directory)


def every_nothing(given: argparse.Namespace, folder: Path) -> bool:
    """Run all programs with placebos in turn, print a line for each, and return whether too many runs name one."""
    found: dict[str, list[PlaceboRun]] = {}
    conditions = (False, True) if given.busy else (False,)
    with tempfile.TemporaryDirectory() as package:
        variables = placebos(Path(package))
        for number, busy, name in product(range(1, given.nothing + 1), conditions, PROGRAMS):
            run = nothing_put_there(name, number, given, folder, variables, busy=busy)
            if run is not None:
                for what in (name, "all"):
                    found.setdefault(f"{what}, {'next to a busy loop' if busy else 'alone'}", []).append(run)
    for what in sorted(found, key=lambda each: each.startswith("all")):
        show_placebos(what, found[what], given.blocks)
    runs = [run for what, each in found.items() if what.startswith("all") for run in each]
    named = sum(each.named for each in runs)
    print(f"a placebo was named in {named} of {len(runs)} runs")
    return named > max(1, len(runs) // 20)


def show_placebos(what: str, runs: Sequence[PlaceboRun], blocks: int) -> None:
    """Print what runs with placebos show."""
    if len(runs) < 2:
        print(f"nothing: {what:<34} {len(runs)} runs: too few")
        return
    counts = [each.excluded for each in runs]
    share, low, high = (100 * each for each in of_parts(counts, PLACEBOS))
    mean = statistics.fmean(each.f for each in runs)
    error = statistics.stdev(each.f for each in runs) / math.sqrt(len(runs))
    figures = (
        f"{sum(counts)} of {PLACEBOS * len(runs)} intervals exclude zero, in {sum(map(bool, counts))} runs",
        f"{share:.1f}% [{low:.1f}, {high:.1f}], {100 * by_chance(blocks):.1f}% expected",
        f"named in {sum(each.named for each in runs)}",
        f"arms that differ for a whole run: {mean:.2f} ± {error:.2f} (1 if none do)",
    )
    print(f"nothing: {what:<32} {len(runs):>3} runs  {'; '.join(figures)}", flush=True)


def main() -> int:
    """Print a line for each study and each program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", nargs="*", choices=CAUSES, default=[*CAUSES])
    parser.add_argument("--runs", type=int, default=10, help="of each study")
    parser.add_argument("--nothing", type=int, default=7, help="runs of each program where nothing was put there")
    parser.add_argument("--blocks", type=int, default=12, help="of these, at least 10")
    parser.add_argument("--environment", choices=ENVIRONMENTS, default="docker", help="of these")
    parser.add_argument("--busy", action="store_true", help="the same number of these next to a busy loop, in turn")
    parser.add_argument("--out", type=Path, help="where runs are kept; those that are there are not repeated")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as elsewhere:
        folder = given.out or Path(elsewhere)
        folder.mkdir(parents=True, exist_ok=True)
        wrong = [name for name in given.studies if given.runs and not known_answer(name, given.runs, folder)]
        many = given.nothing > 0 and every_nothing(given, folder)
    print(f"not found: {', '.join(wrong) or 'none'}")
    return int(bool(wrong) or many)


if __name__ == "__main__":
    sys.exit(main())
