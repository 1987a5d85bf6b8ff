"""The mechanisms that explain a cost as a run stores them, and the arms that give each part of the cost.

A report needs no plug-in for them. Let y(S) be the logarithm of an environment without the mechanisms S, for the arms
that were measured:

- A mechanism m costs y(S) - y(S + m). If it is switched alone, S are the mechanisms that must be off with it
(``off_with``). If it is crossed with others, its cost is the mean over all S with both arms, its main effect.

- A mechanism a costs y(S) - y(S + a) - y(S + b) + y(S + a + b) more with b than without b, and the same is true of b
with a. It is the mean over all S with all four arms. This is twice the interaction of a two-level design (Box, Hunter
and Hunter, *Statistics for Experimenters*, 2nd ed. 2005, chapter 5). If one mechanism cannot be off without the
other, these four arms do not exist.

- All mechanisms together cost y() - y(all) minus the sum of their costs. This is 0 for two crossed mechanisms,
because each main effect has half of their common cost. For three, it is a quarter of the three-way effect.

With crossing, every part uses all arms that contain information about it. For k mechanisms and 2^k arms with equal
noise, a main effect has 2^(1-k) of the variance of the difference between two arms. Bounds from switching a mechanism
off first and last would use two arms each.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

PATH: Literal["path"] = "path"
"""The value of `Proof.of` for a field of the network path (`weighbridge.model.facts.NetworkPath`)."""


MOST_CROSSED = 4
"""The most mechanisms that are switched in every combination: 16 arms."""


class Proof(BaseModel):
    """A fact that proves that a mechanism is off, because its value differs.

    A fact that either side does not have proves nothing. The report page lists the facts under "The machine and the
    run".
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    fact: str
    """The name of the fact."""
    off: str | None = None
    """A regular expression that the whole value must match when the mechanism is off."""
    of: Literal["site", "path"] = "site"
    """Whether the fact belongs to the environment's sites, or to its network path
    (`weighbridge.model.facts.NetworkPath`)."""


class Explains(BaseModel):
    """The environment that an arm is part of, and the mechanisms that are ``off`` in the arm."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    environment: str
    off: tuple[str, ...] = Field(min_length=1)


class DescribedMechanism(BaseModel):
    """A mechanism of one environment.

    ``off_with`` are the mechanisms that are off on both sides of its comparison, because it cannot be off without
    them. ``takes`` are the titles of mechanisms that depend on it, so that they are off with it. ``counters`` are
    prefixes of metrics that show its work. ``refused`` is the reason why it cannot be switched off in this study, or
    "" if an arm has it off.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: str
    environment: str
    title: str
    switched: str
    remedy: str
    source: str
    off_with: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    proof: Proof | None = None
    refused: str = ""
    crossed: bool = False
    """Whether it was switched in every combination with the environment's others, instead of one at a time."""


Off = frozenset[str]
"""The kinds of the mechanisms that are off in an arm."""
NOTHING: Off = frozenset()
PLACEBO = "placebo"
"""In `Explains.off`, the environment itself under another name. It is not a mechanism, so no other part counts it."""
PLACEBO_TITLE = "placebo (switches nothing)"
"""The name of the placebo wherever people read it."""
_PLACEBO: Off = frozenset({PLACEBO})
Weights = Mapping[Off, float]
"""A part of a cost: the weight of each arm; the weights add up to 0. Empty if the part does not exist."""


def sides(mechanism: DescribedMechanism, arms: Collection[Off]) -> list[tuple[Off, Off]]:
    """Return the pairs of ``arms`` that show the cost of a mechanism: with it, and without it."""
    if mechanism.crossed:
        pairs = [(off, off | {mechanism.kind}) for off in arms if mechanism.kind not in off]
    else:
        others = frozenset(mechanism.off_with)
        pairs = [(others, others | {mechanism.kind})]
    return [pair for pair in pairs if all(side in arms for side in pair)]


def single_cost(mechanism: DescribedMechanism, arms: Collection[Off]) -> Weights:
    """Return the cost of a mechanism."""
    return _mean([{with_it: 1, without: -1} for with_it, without in sides(mechanism, arms)])


def placebo_cost(arms: Collection[Off]) -> Weights:
    """Return the cost of the placebo: the environment against itself."""
    return {NOTHING: 1.0, _PLACEBO: -1.0} if NOTHING in arms and _PLACEBO in arms else {}


def switches_something(off: Off) -> bool:
    """Return whether an arm has a mechanism off."""
    return bool(off - _PLACEBO)


def pair_cost(one: DescribedMechanism, other: DescribedMechanism, arms: Collection[Off]) -> Weights:
    """Return how much more one of two crossed mechanisms costs with the other than without it."""
    squares = [
        {off: 1, off | {one.kind}: -1, off | {other.kind}: -1, off | {one.kind, other.kind}: 1}
        for off in arms
        if one.crossed and other.crossed and not {one.kind, other.kind} & off
    ]
    return _mean([square for square in squares if all(off in arms for off in square)])


def pair_costs(
    mechanisms: Sequence[DescribedMechanism], arms: Collection[Off]
) -> Iterator[tuple[DescribedMechanism, DescribedMechanism, Weights]]:
    """Yield the pairs of mechanisms whose interaction can be measured, with its weights."""
    for one, other in combinations(mechanisms, 2):
        if weights := pair_cost(one, other, arms):
            yield one, other, weights


def all_off(mechanisms: Sequence[DescribedMechanism], arms: Collection[Off]) -> Off | None:
    """Return the mechanisms that are off in the arm with all switched mechanisms off; None if no arm is like that."""
    every = frozenset(each.kind for each in mechanisms if sides(each, arms))
    return every if every and every in arms else None


def cost_together(mechanisms: Sequence[DescribedMechanism], arms: Collection[Off]) -> Weights:
    """Return the cost of all mechanisms together beyond their single costs; empty if it is 0 by definition."""
    every = all_off(mechanisms, arms)
    if every is None:
        return {}
    total = {NOTHING: Fraction(1), every: Fraction(-1)}
    for mechanism in mechanisms:
        pairs = sides(mechanism, arms)
        share = Fraction(-1, len(pairs)) if pairs else Fraction(0)
        for off, weight in _sum([{with_it: 1, without: -1} for with_it, without in pairs], share).items():
            total[off] = total.get(off, Fraction(0)) + weight
    return _nonzero(total)


def _mean(terms: Sequence[Mapping[Off, int]]) -> Weights:
    return _nonzero(_sum(terms, Fraction(1, len(terms)))) if terms else {}


def _sum(terms: Sequence[Mapping[Off, int]], share: Fraction) -> dict[Off, Fraction]:
    total: dict[Off, Fraction] = {}
    for term in terms:
        for off, weight in term.items():
            total[off] = total.get(off, Fraction(0)) + weight * share
    return total


def _nonzero(weights: Mapping[Off, Fraction]) -> Weights:
    return {off: float(weight) for off, weight in weights.items() if weight}
