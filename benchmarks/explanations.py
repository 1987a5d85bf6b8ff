"""What `explain` errs and sees: mechanisms of an environment, of known costs, simulated in fourteen models of noise.

    python benchmarks/explanations.py [--repetitions N]

A session has a baseline and an environment of four mechanisms, of which the last can be off only with the third:
eight arms in a block with the control. Every part (each mechanism, the interaction, the unexplained rest) is the
contrast that the report makes of it, and all are one family for Holm, by the report's own functions. *Named
falsely*: sessions without any cost in which a part is called different. Then, with mechanisms of 2, 5, 10 and 0 %,
an interaction of 0 and a rest of 3 %: how often each is seen, how often the largest is first, how often a part of no
cost is named, and the coverage of all parts together.
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from rule import NOISES
from weighbridge.analysis.comparisons import contrast_cost
from weighbridge.analysis.plan import Plan
from weighbridge.model.level import NO_LEVEL
from weighbridge.statistics import Contrast, Looks, Verdict, verdicts
from weighbridge.statistics.cost import Floats
from weighbridge.store.run import Value

ARMS = ("native", "native-again", "all", "-a", "-b", "-c", "-cd", "bare")
PARTS: Mapping[str, Contrast] = {
    "a": Contrast.between("all", "-a"),
    "b": Contrast.between("all", "-b"),
    "c": Contrast.between("all", "-c"),
    "d": Contrast.between("-c", "-cd"),
    # (all - bare) - (all - -a) - (all - -b) - (all - -c) - (-c - -cd)
    "interaction": Contrast(("all", "bare", "-a", "-b", "-cd"), (-2.0, -1.0, 1.0, 1.0, 1.0)),
    "rest": Contrast.between("bare", "native"),
}
CAUSES = {"a": 0.02, "b": 0.05, "c": 0.10, "d": 0.0, "interaction": 0.0, "rest": 0.03}
BLOCKS = (10, 20, 40)


def logarithms(costs: Mapping[str, float]) -> dict[str, float]:
    """Return the true logarithm of each arm's time."""
    part = {name: math.log1p(cost) for name, cost in costs.items()}
    whole = sum(part.values())
    without_c = whole - part["c"]
    return {
        "native": 0.0, "native-again": 0.0, "all": whole, "-a": whole - part["a"], "-b": whole - part["b"],
        "-c": without_c, "-cd": without_c - part["d"], "bare": part["rest"],
    }  # fmt: skip


def values_of(noise: Floats, costs: Mapping[str, float]) -> list[Value]:
    """Return a session's values as a run keeps them."""
    true = logarithms(costs)
    return [
        Value(
            0, block + 1, 0, arm, "made-up", NO_LEVEL, "time", "s", "lower", math.exp(true[arm] - each[at]), 0.0, ()
        )
        for block, each in enumerate(noise)
        for at, arm in enumerate(ARMS)
    ]


Judged = tuple[dict[str, Verdict], dict[str, bool], dict[str, float]]


def session(noise: Floats, costs: Mapping[str, float]) -> Judged:
    """Return the verdict of each part, whether its interval has the truth, and its estimate."""
    plan = Plan("native", "native-again", ARMS, 0.03, None, Looks(1), None)
    values = values_of(noise, costs)
    found = {name: contrast_cost(values, contrast, plan) for name, contrast in PARTS.items()}
    judged: dict[str, Verdict] = {}
    covered, typical = {}, {}
    adjusted = verdicts.adjusted([each.p_values if each else None for each in found.values()])
    for (name, each), p_value in zip(found.items(), adjusted, strict=True):
        assert each is not None
        judged[name] = verdicts.verdict(each.cost, p_value)
        covered[name] = each.cost.low <= 1 + costs[name] <= each.cost.high
        typical[name] = abs(math.log(each.cost.typical))
    return judged, covered, typical


def drawn(kind: str, blocks: int, seed: Sequence[int]) -> Floats:
    """Return the noise of a session as logarithms of its rates, by block and arm; orders are random."""
    rng = np.random.default_rng(seed)
    noise = NOISES[kind](rng, blocks, len(ARMS))
    order = rng.permuted(np.tile(np.arange(len(ARMS)), (blocks, 1)), axis=1)
    return np.take_along_axis(noise, order, axis=1)


def row(kind: str, blocks: int, repetitions: int) -> str:
    """Return a line of the table."""
    at = partial(drawn, kind, blocks)
    nothing = dict.fromkeys(PARTS, 0.0)
    named = sum("different" in session(at([1, blocks, n]), nothing)[0].values() for n in range(repetitions))
    sessions = [session(at([2, blocks, n]), CAUSES) for n in range(repetitions)]
    seen = [sum(judged[part] == "different" for judged, *_ in sessions) for part in ("a", "b", "c", "rest")]
    first = sum(max("abcd", key=lambda part: typical[part]) == "c" for *_, typical in sessions)
    false = sum("different" in (judged["d"], judged["interaction"]) for judged, *_ in sessions)
    covered = sum(sum(each.values()) for _, each, _ in sessions) / len(PARTS)
    share = [f"{100 * each / repetitions:5.1f}" for each in (named, *seen, first, false, covered)]
    return f"{kind:22} {blocks:3} | {share[0]} | {' '.join(share[1:5])} | {' | '.join(share[5:])}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200, help="sessions of each cell")
    repetitions = parser.parse_args().repetitions
    print("noise, blocks: named falsely | 2 %, 5 %, 10 %, rest 3 % seen | 10 % first | none named | covered")
    for kind in NOISES:
        for blocks in BLOCKS:
            print(row(kind, blocks, repetitions), flush=True)


if __name__ == "__main__":
    main()
