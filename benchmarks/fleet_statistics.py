"""How honest the statistics of fleets are: simulated fleets with known costs, through the public function only.

    python benchmarks/fleet_statistics.py [--repetitions N | --quick] [--only coverage|means|odd|pairs]

Prints every figure, those with a bound beside it, and exits with 1 if one is missed. The bounds are for 1,000
repetitions; with fewer, a bound gives way by the simulation error that is added. The seed is fixed.

**Coverage**: of the typical cost and of the next machine's, for machines that differ by 1 % (standard deviation) in
ways that are normal or not, with 10 to 30 blocks each whose mean is uncertain by a third of that or as much. The
typical cost is the pseudomedian over machines, as it is over blocks; beside it is how often the mean's interval
covers the mean. 92.5 is 94 less two standard errors of 1,000 repetitions.

**Means of pairs**: coverage of their typical cost, which is the mean, and by which the change of all pairs between
two fleets is judged. Beside it is that of pairs held to be single machines: those that share one are not independent.

**Outliers**: a false alarm is a fleet that names a machine which is not an outlier; power is the share of outliers
that is named. The table also has the rules that node checks use: two or three standard deviations from the mean
of all, 5 % worse than the mean, and 1.5 times the distance of the quartiles beyond them.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from honesty import FULL, Check, Floats, Outcome, Simulate, outcomes
from weighbridge.features.fleets.statistics import FleetCost, RunCost, fleet_cost

MARGIN, COST, BETWEEN = 0.03, 0.10, 0.01
FLEETS = (3, 5, 10, 30, 200)
NOISE = {"quiet": 0.3, "noisy": 1.0}
"""Standard error of a run's mean by the deviation between machines, of 20 blocks."""

Shape = Callable[[np.random.Generator, int], Floats]
"""Distances of some machines, with a standard deviation of about 1."""


def normal(rng: np.random.Generator, number: int) -> Floats:
    """Machines as statistics likes them."""
    return rng.normal(0.0, 1.0, number)


def exponential(rng: np.random.Generator, number: int) -> Floats:
    """Most machines are good, some are worse."""
    return rng.exponential(1.0, number)


def lognormal(rng: np.random.Generator, number: int) -> Floats:
    """The same with a longer tail: skewness 3.7, as a sigma of 0.8 has it."""
    return rng.lognormal(0.0, 0.8, number) / 1.3075


def contaminated(rng: np.random.Generator, number: int) -> Floats:
    """One machine in ten is from a spread three times as wide."""
    return rng.normal(0.0, 1.0, number) * np.where(rng.random(number) < 0.1, 3.0, 1.0)


def some_bad(rng: np.random.Generator, number: int) -> Floats:
    """One machine in twenty is worse by six."""
    return rng.normal(0.0, 1.0, number) + np.where(rng.random(number) < 0.05, 6.0, 0.0)


def alike(rng: np.random.Generator, number: int) -> Floats:
    """Machines do not differ."""
    return np.zeros(number)


SHAPES: dict[str, Shape] = {
    "normal": normal,
    "exponential": exponential,
    "lognormal": lognormal,
    "contaminated": contaminated,
    "some bad": some_bad,
    "alike": alike,
}


def measured(
    rng: np.random.Generator, costs: Floats, noise: float, keys: Sequence[tuple[str, ...]] | None = None
) -> list[RunCost]:
    """Measure each cost with 10 to 30 blocks; ``noise`` is the standard error that 20 of them have."""
    runs = []
    for i, cost in enumerate(costs):
        blocks = int(rng.integers(10, 31))
        deviation = noise * math.sqrt(20)
        effect = cost + rng.normal(0.0, deviation / math.sqrt(blocks))
        error = deviation * math.sqrt(rng.chisquare(blocks - 1) / (blocks - 1) / blocks)
        runs.append(RunCost(keys[i] if keys else (f"n{i:03}",), float(effect), error, blocks))
    return runs


def judged(runs: Sequence[RunCost]) -> FleetCost:
    """Return what the product says of a fleet."""
    fleet = fleet_cost(runs, margin=MARGIN)
    assert fleet is not None
    return fleet


def centre(shape: Shape) -> tuple[float, float, float]:
    """Return mean, median and pseudomedian of a shape."""
    rng = np.random.default_rng(1)
    values = shape(rng, 4_000_000)
    return float(values.mean()), float(np.median(values)), float(np.median((values + rng.permutation(values)) / 2))


def one_coverage(
    kind: str, machines: int, noise: str, centres: tuple[float, float, float], rng: np.random.Generator
) -> Outcome:
    """Return by which intervals what is covered, and half-widths of typical and next machine, by the spread.

    The typical cost's: mean, median and pseudomedian; the next machine's: its cost; the mean's: the mean.
    """
    shape = SHAPES[kind]
    fleet = judged(measured(rng, COST + BETWEEN * shape(rng, machines), BETWEEN * NOISE[noise]))
    truths = [COST + BETWEEN * each for each in centres]
    following = COST + BETWEEN * float(shape(rng, 1)[0])
    typical, prediction = fleet.typical, fleet.prediction
    assert prediction is not None and fleet.mean is not None
    return (
        *(typical.low <= each <= typical.high for each in truths),
        prediction.low <= following <= prediction.high,
        fleet.mean.low <= truths[0] <= fleet.mean.high,
        (typical.high - typical.low) / 2 / BETWEEN,
        (prediction.high - prediction.low) / 2 / BETWEEN,
    )


def usual_rules(values: Floats) -> dict[str, NDArray[np.bool_]]:
    """Return which values each of the usual rules names."""
    mean, deviation = float(values.mean()), float(values.std(ddof=1))
    low, high = np.quantile(values, (0.25, 0.75))
    return {
        "2 sd": np.abs(values - mean) > 2 * deviation,
        "3 sd": np.abs(values - mean) > 3 * deviation,
        "5 %": values - mean > 0.05,
        "1.5 IQR": (values < low - 1.5 * (high - low)) | (values > high + 1.5 * (high - low)),
    }


def found_and_false(named: NDArray[np.bool_], outliers: NDArray[np.bool_]) -> tuple[float, bool]:
    """Return the share of outliers that is named, and whether any other is."""
    return float(named[outliers].mean()) if outliers.any() else 0.0, bool((named & ~outliers).any())


def one_outlier(
    machines: int, number: int, margins: float, between: float, kind: str, rng: np.random.Generator
) -> Outcome:
    """Single machines of which some are worse: found, any false alarm, by the product and by each usual rule."""
    costs = between * SHAPES[kind](rng, machines)
    outliers = np.arange(machines) < number
    costs[outliers] += margins * MARGIN
    runs = measured(rng, costs, 0.006)
    named = np.array([each.outlier for each in judged(runs).machines])
    rules = [named, *usual_rules(np.array([each.effect for each in runs])).values()]
    return tuple(figure for each in rules for figure in found_and_false(each, outliers))


def circle(machines: int, rounds: int) -> list[tuple[int, int]]:
    """Return the pairs of the first rounds of the circle method, for an even number of machines."""
    pairs = []
    for turn in range(rounds):
        order = [0, *(1 + (turn + i) % (machines - 1) for i in range(machines - 1))]
        pairs += [(order[i], order[-1 - i]) for i in range(machines // 2)]
    return pairs


def one_pairs(
    machines: int, rounds: int, number: int, margins: float, bad_pairs: int, spreads: tuple[float, float],
    rng: np.random.Generator,
) -> Outcome:  # fmt: skip
    """Machines in pairs, some of them worse, or some pairs: found, any false alarm, found pairs, any false pair.

    Then found and false alarms of the usual rules, of the means of each machine's pairs.
    """
    pairs = circle(machines, rounds)
    costs = spreads[0] * rng.normal(0.0, 1.0, machines)
    outliers = np.arange(machines) < number
    costs[outliers] += margins * MARGIN
    values = np.array([costs[a] + costs[b] for a, b in pairs]) + spreads[1] * rng.normal(0.0, 1.0, len(pairs))
    bad = np.zeros(len(pairs), dtype=bool)
    bad[rng.choice([i for i, pair in enumerate(pairs) if min(pair) >= number], bad_pairs, replace=False)] = True
    values[bad] += margins * MARGIN
    keys = [(f"n{a:03}", f"n{b:03}") for a, b in pairs]
    runs = measured(rng, values, 0.006, keys)
    fleet = judged(runs)
    named = np.array([each.outlier for each in fleet.machines])
    named_pairs = {each.machines for each in fleet.pairs if each.outlier}
    effects = np.array([each.effect for each in runs])
    means = np.array([effects[[i in pair for pair in pairs]].mean() for i in range(machines)])
    rules = [
        named, np.array([key in named_pairs for key in keys]), *usual_rules(means).values()
    ]  # fmt: skip
    truths = [outliers, bad, *[outliers] * 4]
    return tuple(figure for each, truth in zip(rules, truths, strict=True) for figure in found_and_false(each, truth))


def one_mean(machines: int, rounds: int, between: float, rest: float, rng: np.random.Generator) -> Outcome:
    """Return whether the typical cost of pairs is covered, and whether it were if pairs were single machines."""
    pairs = circle(machines, rounds)
    costs = between * rng.normal(0.0, 1.0, machines)
    values = np.array([costs[a] + costs[b] for a, b in pairs]) + rest * rng.normal(0.0, 1.0, len(pairs))
    runs = measured(rng, values, 0.006, [(f"n{a:03}", f"n{b:03}") for a, b in pairs])
    alone = [RunCost((" ".join(each.machines),), each.effect, each.standard_error, each.blocks) for each in runs]
    typical, single = judged(runs).typical, judged(alone).typical
    return typical.low <= 0 <= typical.high, single.low <= 0 <= single.high, (typical.high - typical.low) / 2


LABELS = ("product", "2 sd", "3 sd", "5 %", "1.5 IQR")
COVERAGE = [(noise, kind) for noise in NOISE for kind in SHAPES]
SINGLES = [
    *((machines, 0, 0.0, between, "normal") for machines in (3, 5, 10, 20, 50) for between in (0.01, 0.02, 0.03)),
    *((machines, 1, margins, BETWEEN, "normal") for machines in (3, 10, 20, 50) for margins in (1.0, 2.0, 3.0)),
    *((machines, odd, margins, BETWEEN, "normal") for machines, odd in ((10, 3), (20, 2), (50, 2), (50, 3))
      for margins in (2.0, 3.0)),
    *((50, 0, 0.0, BETWEEN, kind) for kind in ("exponential", "lognormal", "contaminated")),
]  # fmt: skip
"""Machines, outliers, their distance in margins, the spread of the others, and its shape."""
SPREADS = (0.007, 0.005)
PAIRS = [
    *((50, 4, odd, margins, 0) for odd, margins in ((0, 0.0), (1, 1.0), (1, 2.0), (2, 2.0), (3, 2.0), (3, 3.0))),
    (50, 4, 0, 2.0, 1), (50, 3, 0, 2.0, 1), (50, 3, 1, 2.0, 0), (50, 2, 0, 0.0, 0), (50, 2, 1, 2.0, 0),
    (50, 2, 0, 3.0, 1), (10, 3, 0, 0.0, 0), (10, 3, 1, 2.0, 0), (10, 3, 1, 3.0, 0), (10, 3, 0, 3.0, 1),
]  # fmt: skip
"""Machines, rounds, outliers, distance in margins, outlying pairs."""
MEANS = [
    (machines, rounds, *spreads)
    for machines, rounds in ((4, 3), (6, 3), (6, 5), (10, 2), (10, 4), (20, 4), (50, 4))
    for spreads in ((0.01, 0.0), SPREADS, (0.0, 0.0))
]
"""Machines, rounds, spread between machines, that of pairs."""


def plan(only: str | None) -> dict[tuple[object, ...], Simulate]:
    """Return every cell."""
    centres = {kind: centre(shape) for kind, shape in SHAPES.items()}
    cells: dict[tuple[object, ...], Simulate] = {}
    for noise, kind in COVERAGE:
        for machines in FLEETS:
            key = ("coverage", noise, kind, machines)
            cells[key] = partial(one_coverage, kind, machines, noise, centres[kind])
    for pairs in MEANS:
        cells["means", *pairs] = partial(one_mean, *pairs)
    for single in SINGLES:
        cells["odd", *single] = partial(one_outlier, *single)
    for pair in PAIRS:
        cells["pairs", *pair] = partial(one_pairs, *pair, SPREADS)
    return {key: cell for key, cell in cells.items() if only in {None, key[0]}}


def simulate_all(repetitions: int, only: str | None) -> dict[tuple[object, ...], list[float]]:
    """Run the cells on all cores and return the means of their outcomes; of 200 machines a third as often."""
    means = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        jobs = {}
        for number, (key, simulate) in enumerate(plan(only).items()):
            count = max(1, repetitions // 3) if key[-1] == 200 else repetitions
            jobs[key] = [
                pool.submit(outcomes, simulate, number, range(start, min(start + 50, count)))
                for start in range(0, count, 50)
            ]
        for key, parts in jobs.items():
            means[key] = np.array([row for job in parts for row in job.result()], float).mean(axis=0).tolist()
            print(row_of(key, means[key]), flush=True)
    return means


def row_of(key: tuple[object, ...], figures: list[float]) -> str:
    """Return the figures of a cell as a line."""
    name = f"{key[0]:9}" + " ".join(f"{each!s:>6}" for each in key[1:])
    if key[0] == "coverage":
        _, _, pseudomedian, following, of_mean, width, wide = figures
        return (
            f"{name:<42} typical {100 * pseudomedian:5.1f}  mean {100 * of_mean:5.1f}  next {100 * following:5.1f}"
            f"  half-widths {width:5.2f} {wide:5.2f} deviations"
        )
    if key[0] == "means":
        paired, single, width = figures
        return f"{name:<42} mean {100 * paired:5.1f}  as single machines {100 * single:5.1f}  half-width {width:6.4f}"
    labels = LABELS if key[0] == "odd" else (LABELS[0], "pairs", *LABELS[1:])
    return f"{name:<42} found/false " + "  ".join(
        f"{label} {100 * found:.0f}/{100 * false:.1f}"
        for label, found, false in zip(labels, figures[::2], figures[1::2], strict=True)
    )


def checks(means: dict[tuple[object, ...], list[float]], repetitions: int) -> list[Check]:
    """Hold the figures against their bounds."""
    lacking = max(0.0, repetitions**-0.5 - FULL**-0.5)
    listed = []
    for key, figures in means.items():
        name = " ".join(map(str, key))
        rare = max(0.0, (repetitions / 3) ** -0.5 - FULL**-0.5) if key[-1] == 200 else lacking
        if key[0] == "coverage":
            listed.append(Check(f"typical %, {name}", 100 * figures[2], 92.5, at_least=True, lacking=rare))
            least = 88.0 if key[3] in {3, 5, 10} and key[2] not in {"normal", "alike"} else 92.5
            listed.append(Check(f"next machine %, {name}", 100 * figures[3], least, at_least=True, lacking=rare))
        elif key[0] == "means":
            listed.append(Check(f"mean of pairs %, {name}", 100 * figures[0], 92.5, at_least=True, lacking=lacking))
        elif key[0] == "odd" and key[-1] == "normal":
            listed.append(Check(f"false alarms %, {name}", 100 * figures[1], 6.5, lacking=lacking))
        elif key[0] == "pairs":
            either = 100 * (figures[1] + figures[3])
            listed.append(Check(f"false alarms %, {name}", either, 6.5, lacking=lacking))
    return listed


def main() -> int:
    """Simulate, print, judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=FULL, metavar="N", help="per cell (default: 1000)")
    parser.add_argument("--quick", action="store_true", help="100 repetitions per cell")
    parser.add_argument("--only", choices=["coverage", "means", "odd", "pairs"], help="one kind of cells alone")
    arguments = parser.parse_args()
    repetitions = 100 if arguments.quick else arguments.repetitions
    if repetitions < 1:
        parser.error("--repetitions must be at least 1")
    started = time.monotonic()
    listed = checks(simulate_all(repetitions, arguments.only), repetitions)
    print("", *listed, sep="\n")
    missed = sum(not check.met for check in listed)
    print(f"\n{repetitions} repetitions, {time.monotonic() - started:.0f} s: {missed} of {len(listed)} bounds missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
