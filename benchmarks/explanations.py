"""What `explain` errs and sees: mechanisms of an environment, of known costs, simulated in fourteen models of noise.

    python benchmarks/explanations.py [--repetitions N] [--noise KIND ...]

A session has a baseline and an environment of four mechanisms, of which the last can be off only with the third.
Its arms and parts are those of a run (`weighbridge.model.explained`), and all parts are one family for Holm, by the
report's own functions. *First*: each mechanism by itself, eight arms in a block with the control. *Second*: those
that showed a cost in a first session, crossed in blocks of their own, 14 arms at most.

*Named falsely*: sessions without any cost in which a part is called different; of the second pass all four are
crossed. Then, with mechanisms of 2, 5, 10 and 0 %, before a second pass 4 % more of the first two beside one another,
and a rest of 3 %: how often each is seen, how often the largest is first, how often a part of no cost is named, and
the coverage of all parts together. Where a part of the second pass is not there, as its mechanism showed nothing in
the first, it counts as not seen.

``--placebos`` simulates runs with four placebos: arms that are equal to the environment and switch nothing. They
share the environment's arm. *Equal* arms: each round has a random order, so labels of equal arms can be exchanged.
The exact interval then errs in at most 5%, whatever the noise. *Carry-over*: the trial after a baseline takes 5%
longer, whatever its arm. *Lasting*: arms differ for a whole run, by 0.3 of the deviation within rounds.

With 600 to 1,000 runs of eight noises, single intervals of equal arms excluded zero in 4.5, 4.1, 4.7 and 4.9% (10,
12, 20 and 40 rounds; means of the noises), and in 3.1% if stopped on precision. With carry-over, these are 5.4, 4.5,
5.0, 4.8 and 3.5%. Lasting differences give 18, 21, 30, 43 and 38%. With 12 rounds, 14 or more of 120 have a
probability below 0.6% for equal arms, below 1.4% with carry-over, and of 65% or more with lasting differences.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations

import numpy as np

from rule import NOISES, adaptive, compared
from weighbridge.analysis.comparisons import contrast_cost
from weighbridge.analysis.plan import Comparisons
from weighbridge.model.explained import (
    DescribedMechanism,
    Off,
    cost_together,
    pair_costs,
    single_cost,
)
from weighbridge.model.level import NO_LEVEL
from weighbridge.statistics import LOOKS, Contrast, Looks, Verdict, verdicts
from weighbridge.statistics.cost import Floats
from weighbridge.store.run import Value

NATIVE = "native"
SINGLE = {"a": 0.02, "b": 0.05, "c": 0.10, "d": 0.0}
PAIRS = {("a", "b"): 0.04}
REST = 0.03
OFF_WITH = {"d": ("c",)}
BLOCKS = (10, 20, 40)


def mechanisms(kinds: Sequence[str], *, crossed: bool) -> list[DescribedMechanism]:
    """Return the mechanisms of these kinds as a run keeps them."""
    return [
        DescribedMechanism(
            kind=kind, environment="all", title=kind, switched="", remedy="", source="", crossed=crossed,
            off_with=OFF_WITH.get(kind, ()),
        )
        for kind in kinds
    ]  # fmt: skip


def arms_of(switched: Sequence[DescribedMechanism]) -> list[Off]:
    """Return what is off in the arms of a run that switches these."""
    kinds = [each.kind for each in switched]
    if any(each.crossed for each in switched):
        every = (frozenset(off) for size in range(len(kinds) + 1) for off in combinations(kinds, size))
        return [off for off in every if all({*OFF_WITH.get(kind, ())} <= off for kind in off)]
    alone = [frozenset({each.kind, *each.off_with}) for each in switched]
    return [*dict.fromkeys([frozenset[str](), *alone, frozenset(kinds)])]


def logarithm(off: Off, *, costs: bool, pairs: bool) -> float:
    """Return the true logarithm of the time of an arm with these off; without costs that of the baseline."""
    on = {*SINGLE} - off
    terms = (
        [SINGLE[kind] for kind in on]
        + [cost for pair, cost in PAIRS.items() if pairs and on.issuperset(pair)]
        + [REST]
    )
    return sum(math.log1p(cost) for cost in terms) if costs else 0.0


def parts_of(switched: Sequence[DescribedMechanism]) -> dict[str, Contrast]:
    """Return the parts of the cost as contrasts of arms, which have the names of what is off in them."""
    arms = arms_of(switched)
    parts = {each.kind: single_cost(each, arms) for each in switched}
    parts |= {one.kind + other.kind: weights for one, other, weights in pair_costs(switched, arms)}
    parts["together"] = cost_together(switched, arms)
    contrasts = {
        part: Contrast(tuple(map(name, weights)), tuple(weights.values()))
        for part, weights in parts.items()
        if weights
    }
    bare = name(frozenset(each.kind for each in switched))
    return {**contrasts, "rest": Contrast.between(bare, NATIVE)}


def name(off: Off) -> str:
    """Return the name of an arm."""
    return "all" if not off else "-" + "".join(sorted(off))


Judged = tuple[dict[str, Verdict], dict[str, bool], dict[str, float], dict[str, float]]


def session(
    noise: Callable[[int], Floats], switched: Sequence[DescribedMechanism], *, costs: bool, pairs: bool = True
) -> Judged:
    """Return the verdict of each part, whether its interval has the truth, its estimate and the truth."""
    true = {name(off): logarithm(off, costs=costs, pairs=pairs) for off in arms_of(switched)}
    true |= {NATIVE: 0.0, "native-again": 0.0}
    plan = Comparisons(NATIVE, "native-again", tuple(true), 0.03, None, Looks(1), None)
    values = [
        Value(
            0, block + 1, 0, arm, "made-up", NO_LEVEL, "time", "s", "lower", math.exp(true[arm] - each[at]), 0.0, ()
        )
        for block, each in enumerate(noise(len(true)))
        for at, arm in enumerate(true)
    ]
    contrasts = parts_of(switched)
    found = {part: contrast_cost(values, contrast, plan) for part, contrast in contrasts.items()}
    judged: dict[str, Verdict] = {}
    covered, typical, truth = {}, {}, {}
    adjusted = verdicts.adjusted([each.p_values if each else None for each in found.values()])
    for (part, each), p_value in zip(found.items(), adjusted, strict=True):
        assert each is not None
        contrast = contrasts[part]
        truth[part] = math.fsum(w * true[arm] for arm, w in zip(contrast.arms, contrast.weights, strict=True))
        judged[part] = verdicts.verdict(each.cost, p_value)
        covered[part] = math.log(each.cost.low) <= truth[part] <= math.log(each.cost.high)
        typical[part] = abs(math.log(each.cost.typical))
    return judged, covered, typical, truth


def drawn(kind: str, blocks: int, seed: Sequence[int], arms: int) -> Floats:
    """Return the noise of a session as logarithms of its rates, by block and arm; orders are random."""
    rng = np.random.default_rng(seed)
    noise = NOISES[kind](rng, blocks, arms)
    order = rng.permuted(np.tile(np.arange(arms), (blocks, 1)), axis=1)
    return np.take_along_axis(noise, order, axis=1)


def second(first: Judged, noise: Callable[[int], Floats]) -> Judged | None:
    """Return the second pass of the mechanisms that showed a cost in a first one, and what these take with them."""
    shown = {kind for kind in SINGLE if first[0][kind] == "different"}
    if len(shown) < 2:
        return None
    kinds = [kind for kind in SINGLE if kind in shown.union(*(OFF_WITH.get(each, ()) for each in shown))]
    return session(noise, mechanisms(kinds, crossed=True), costs=True)


def row(kind: str, blocks: int, repetitions: int) -> str:
    """Return a line of the table."""
    each_alone, all_crossed = (mechanisms([*SINGLE], crossed=crossed) for crossed in (False, True))

    def at(*seed: int) -> Callable[[int], Floats]:
        return partial(drawn, kind, blocks, (*seed[:1], blocks, *seed[1:]))

    named = [
        sum("different" in session(at(seed, n), switched, costs=False)[0].values() for n in range(repetitions))
        for seed, switched in ((1, each_alone), (3, all_crossed))
    ]
    firsts = [session(at(2, n), each_alone, costs=True) for n in range(repetitions)]
    seconds = [second(each, at(4, n)) for n, each in enumerate(firsts)]
    firsts = [session(at(2, n), each_alone, costs=True, pairs=False) for n in range(repetitions)]
    columns = [
        summary([each for each in sessions if each is not None], repetitions, seen)
        for sessions, seen in ((firsts, ("a", "b", "c", "rest")), (seconds, ("a", "b", "c", "ab", "rest")))
    ]
    words = [f"{100 * false / repetitions:5.1f} | {column}" for false, column in zip(named, columns, strict=True)]
    return f"{kind:22} {blocks:3} | {' || '.join(words)}"


def summary(sessions: Sequence[Judged], repetitions: int, parts: Sequence[str]) -> str:
    """Return how often parts are seen, the largest is first, a part of no cost is named, and the coverage."""
    seen = [sum(judged.get(part) == "different" for judged, *_ in sessions) for part in parts]
    first = sum(
        max(set(SINGLE) & set(typical), key=lambda part: typical[part]) == "c" for _, _, typical, _ in sessions
    )
    false = sum(
        any(judged[part] == "different" and abs(truth[part]) < 1e-9 for part in judged)
        for judged, _, _, truth in sessions
    )
    share = [f"{100 * each / repetitions:5.1f}" for each in (*seen, first, false)]
    covered = [each for _, mine, *_ in sessions for each in mine.values()]
    shown = f"{100 * sum(covered) / len(covered):5.1f}" if covered else "    –"
    return f"{' '.join(share[: len(parts)])} | {' | '.join(share[len(parts) :])} | {shown}"


# -- placebos --------------------------------------------------------------------------------------

PLACEBOS, PLACES = 4, 8
"""Placebos of a run, and its arms: baseline, control, environment, four placebos, all of these off."""
PLACEBO_BLOCKS = (10, 12, 20, 40, None)
"""Rounds of a run; None stops on precision, each part at a look of its own."""
RUNS, SEEN = 30, 14
"""In thirty real runs, 14 of 120 single intervals excluded zero."""
CASES = {"equal": (0.0, 0.0), "carry-over": (0.05, 0.0), "lasting": (0.0, 0.3)}
"""The extra time of a trial after the baseline or its control, and the lasting difference of two arms.

The first is a logarithm. The second is a standard deviation, relative to the deviation of differences within rounds.
"""


def placebo_runs(kind: str, repetitions: int, carry: float, lasting: float, seed: Sequence[int]) -> Floats:
    """Return the logarithms of runs: environment, placebos and the arm with all of them off, by round."""
    rng = np.random.default_rng(seed)
    runs = np.empty((repetitions, PLACES, LOOKS[-1]))
    for run in runs:
        noise = NOISES[kind](rng, LOOKS[-1], PLACES)
        order = rng.permuted(np.tile(np.arange(PLACES), (LOOKS[-1], 1)), axis=1)
        after_baseline = np.concatenate([[False], order.ravel()[:-1] < 2]).reshape(order.shape)
        np.put_along_axis(run.T, order, noise + carry * after_baseline, axis=1)
    mine = runs[:, 2:]
    spread = float(np.median((mine[:, 1:] - mine[:, :1]).std(axis=-1, ddof=1)))
    return np.asarray(mine + rng.normal(0.0, lasting * spread / math.sqrt(2), (repetitions, mine.shape[1], 1)))


def placebo_row(kind: str, case: str, repetitions: int) -> str:
    """Return how often single intervals of placebos exclude zero, and how often any in a run, by rounds."""
    runs = placebo_runs(kind, repetitions, *CASES[case], seed=(5, [*NOISES].index(kind), [*CASES].index(case)))
    rng, words = np.random.default_rng(6), []
    for blocks in PLACEBO_BLOCKS:
        if blocks is None:
            excluded = adaptive(runs).costs.excludes()
        else:
            excluded = compared((runs[:, 1:-1] - runs[:, :1])[..., :blocks]).excludes()
        counts = excluded.sum(axis=1)
        so_many = (rng.choice(counts, (20_000, RUNS)).sum(axis=1) >= SEEN).mean()
        words.append(f"{100 * excluded.mean():5.1f} {100 * (counts > 0).mean():5.1f} {100 * so_many:6.2f}")
    return f"{kind:22} {case:10} | {' | '.join(words)}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200, help="sessions of each cell")
    parser.add_argument("--noise", nargs="*", choices=[*NOISES], default=[*NOISES], help="default: all")
    parser.add_argument("--placebos", action="store_true", help="placebos only: what nothing looks like")
    arguments = parser.parse_args()
    if arguments.placebos:
        heads = " | ".join(f"{blocks or 'looks'}" for blocks in PLACEBO_BLOCKS)
        print(f"single intervals that exclude zero, runs with any, {SEEN} of {PLACEBOS * RUNS} or more: {heads}")
        for kind in arguments.noise:
            for case in CASES:
                print(placebo_row(kind, case, arguments.repetitions), flush=True)
        return
    print("noise, blocks, then of the first pass and of the second:")
    print(
        "named falsely | 2 %, 5 %, 10 %, (4 % beside one another,) rest 3 % seen | 10 % first | none named | covered"
    )
    for kind in arguments.noise:
        for blocks in BLOCKS:
            print(row(kind, blocks, arguments.repetitions), flush=True)


if __name__ == "__main__":
    main()
