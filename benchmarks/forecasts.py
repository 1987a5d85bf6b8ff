"""How often a run says of its precision what it refutes later: simulated runs, through the public functions only.

    python benchmarks/forecasts.py [--runs N] [--kept RUN ...]

A run is looked at as `weigh` looks, with time for 28 to 405 blocks; its noise is a third to four times what reaches
the target in that time. Told are, of each model of noise: in how many of the runs in which "out of reach" was said
the target was reached later, also by the square root alone; of how many of those that missed it that was said; and at
how many of the looks the target was reached sooner, or later, than was forecast. ``--kept``: models of the costs of
kept runs, drawn anew one by one, and in stretches of 40 in their order.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weighbridge.analysis.analyse import analyse
from weighbridge.statistics import Contrast, half_width_after, planned_looks
from weighbridge.statistics.precision import LATEST, OUT_OF_REACH, SOONEST
from weighbridge.statistics.ranks import signed_rank_interval
from weighbridge.store.run import RunStore

Floats = NDArray[np.float64]
TARGET, CONFIDENCE = 0.02, 0.965
LOOKS = [look for look in planned_looks(10, 1000) if look <= 405]
ENDS = (28, 60, 123, 251, 405)
"""Blocks for which there is time."""
STRETCH = 40
RNG = np.random.default_rng(20170611)


def correlated(blocks: int) -> Floats:
    """Each block's noise has a correlation of 0.4 with the one before."""
    shocks, noise = RNG.normal(0, 1, blocks + 50), np.zeros(blocks + 50)
    for at in range(1, len(noise)):
        noise[at] = 0.4 * noise[at - 1] + shocks[at]
    return noise[50:]


def episodes(blocks: int) -> Floats:
    """Three times the noise in three tenths of the time, for 30 blocks on end."""
    spread = np.concatenate([np.full(RNG.geometric(1 / 30), RNG.choice([1, 3], p=[0.7, 0.3])) for _ in range(blocks)])
    noise: Floats = RNG.normal(0, 1, blocks) * spread[:blocks]
    return noise


MODELS: dict[str, Callable[[int], Floats]] = {
    "normal": lambda blocks: RNG.normal(0, 1, blocks),
    "Laplace": lambda blocks: RNG.laplace(0, 1, blocks),
    "t of 3 degrees": lambda blocks: RNG.standard_t(3, blocks),
    "a tenth up to 8 sd": lambda blocks: (
        RNG.normal(0, 1, blocks) + RNG.uniform(-8, 8, blocks) * (RNG.random(blocks) < 0.1)
    ),
    "two values by turns": lambda blocks: RNG.normal(0, 0.3, blocks) + RNG.choice([-2, 0, 0, 2], blocks),
    "noisy episodes": episodes,
    "correlated": correlated,
}


def kept(runs: Sequence[Path]) -> dict[str, Callable[[int], Floats]]:
    """Return two models of the headline costs of kept runs."""
    series = []
    for run in runs:
        with RunStore(run) as store:
            analysis = analyse(store)
        for row in (row for report in analysis.headlines for row in report.comparisons):
            pairs = [(each.baseline, each.value) for each in row.pairs if min(each.baseline, each.value) > 0]
            effects = np.array(Contrast.between("b", "a").effects([*zip(*pairs, strict=True)], "ratio"))
            series.append((effects - np.median(effects)) / effects.std())

    def drawn(blocks: int, length: int) -> Floats:
        own = series[RNG.integers(len(series))]
        parts = [np.roll(own, -RNG.integers(len(own)))[:length] for _ in range(-(-blocks // min(length, len(own))))]
        return np.concatenate(parts)[:blocks]

    return {
        "kept, drawn anew": lambda blocks: drawn(blocks, 1),
        "kept, in their order": lambda blocks: drawn(blocks, STRETCH),
    }


def widths(model: Callable[[int], Floats], runs: int) -> Floats:
    """Return the half-widths of runs at each look, on the logarithmic scale: they are in proportion to the noise."""
    table = np.empty((runs, len(LOOKS)))
    for run in range(runs):
        effects = model(LOOKS[-1])
        for at, look in enumerate(LOOKS):
            interval = signed_rank_interval(effects[:look], CONFIDENCE)
            table[run, at] = (interval.high - interval.low) / 2
    return table


def factor(blocks: int, later: int, spread: float) -> float:
    """Return by what a half-width on the logarithmic scale falls in the forecast."""
    return math.log1p(half_width_after(TARGET, blocks, later, spread)) / math.log1p(TARGET)


def out_of_reach(table: Floats, end: int, spread: float | None) -> tuple[float, float]:
    """Return which share of what was said was refuted, and to which share of what missed the target it was said."""
    looks = [look for look in LOOKS if look <= end]
    wanted, said, refuted, missed, told = math.log1p(TARGET), 0, 0, 0, 0
    forecast = [factor(look, end, spread) if spread is not None else math.sqrt(look / end) for look in looks]
    for noise in np.exp(np.linspace(math.log(1 / 3), math.log(4), 41)) * wanted / np.median(table[:, len(looks) - 1]):
        mine = table[:, : len(looks)] * noise
        gone = spoke = wrong = np.zeros(len(mine), dtype=bool)
        for at in range(len(looks)):
            newly = (mine[:, at] <= wanted) & ~gone
            wrong, gone = wrong | (newly & spoke), gone | newly
            if looks[at] < end:
                spoke = spoke | (~gone & (mine[:, at] * forecast[at] > wanted))
        said, refuted = said + int(spoke.sum()), refuted + int(wrong.sum())
        missed, told = missed + int((~gone).sum()), told + int((spoke & ~gone).sum())
    return refuted / max(1, said), told / max(1, missed)


def when(table: Floats) -> tuple[float, float]:
    """Return at which share of the looks the target was reached sooner than was forecast, and later."""
    wanted, sooner, later, told, last = math.log1p(TARGET), 0, 0, 0, len(LOOKS)
    soonest, latest = (
        np.array([[factor(look, max(look, then), spread) for then in LOOKS] for look in LOOKS])
        for spread in (SOONEST, LATEST)
    )
    for noise in np.exp(np.linspace(math.log(1 / 6), 0, 15)) * wanted / np.median(table[:, -1]):
        for mine in table * noise:
            reached = next((at for at, width in enumerate(mine) if width <= wanted), 0)
            for at in range(reached):
                first, end = (
                    next((to for to in range(at + 1, last) if mine[at] * each[at, to] <= wanted), last)
                    for each in (soonest, latest)
                )
                told, sooner, later = told + 1, sooner + (reached < first), later + (reached > end)
    return sooner / max(1, told), later / max(1, told)


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=600)
    parser.add_argument("--kept", type=Path, nargs="*", default=[], help="directories of runs")
    asked = parser.parse_args()
    models = {**MODELS, **(kept(asked.kept) if asked.kept else {})}
    for name, model in models.items():
        table = widths(model, asked.runs)
        by_spread = [out_of_reach(table, end, OUT_OF_REACH) for end in ENDS]
        by_root = [out_of_reach(table, end, None)[0] for end in ENDS]
        wrong, told = zip(*by_spread, strict=True)
        sooner, later = when(table[: asked.runs // 4])
        print(
            f"{name:22} out of reach: refuted {min(wrong):5.1%} to {max(wrong):5.1%} "
            f"(square root {min(by_root):5.1%} to {max(by_root):5.1%}), "
            f"told to {min(told):3.0%} to {max(told):3.0%} of what missed; "
            f"reached sooner {sooner:5.1%}, later {later:5.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
