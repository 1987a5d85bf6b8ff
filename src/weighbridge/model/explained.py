"""What a run keeps of the mechanisms that explain a cost, and of which arms each part of the cost is made.

Its report needs no plug-in of theirs. With y(S) the logarithm of an environment without the mechanisms S, of the arms
that were measured:

- a mechanism m costs y(S) - y(S + m). Switched one at a time: with S what has to be off with it (``off_with``).
  Crossed, in every combination with others: the mean over all S that have both arms, its main effect.
- a costs more beside b than without it by y(S) - y(S + a) - y(S + b) + y(S + a + b), which is the same of b beside a:
  the mean over all S that have the four arms. This is twice what is called the interaction of a two-level design
  (Box, Hunter and Hunter, *Statistics for Experimenters*, 2nd ed. 2005, chapter 5). Of two mechanisms of which one
  cannot be off without the other there are no such four.
- together, beyond the single ones: y() - y(all) - the sum of the mechanisms' costs. Of two that are crossed that is
  0, as each main effect has half of what they cost together; of three a quarter of what all three do together.

Crossed, every part is so made of all arms that tell of it: of k mechanisms and 2^k arms of equal noise a main effect
has 2^(1-k) of the variance of the difference of two arms. Bounds, of a mechanism that is switched off first and last,
would each be made of two arms alone.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

PATH: Literal["path"] = "path"
"""`Proof.of` where the fact is a field of the network path (`weighbridge.model.facts.NetworkPath`)."""


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
    """Which environment an arm is, and which of its mechanisms are ``off`` there."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    environment: str
    off: tuple[str, ...] = Field(min_length=1)


class DescribedMechanism(BaseModel):
    """A mechanism of one environment.

    ``off_with``: those that are off on both sides of its comparison, as it cannot be off without them. ``takes``: the
    titles of those that go with it, as they cannot be off before it. ``counters``: how the names of metrics begin
    that tell of its work. ``refused``: why it cannot be switched off in this study; ""
    where an arm has it off.
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
    """Whether it was switched in every combination with the environment's others, not one at a time."""


Off = frozenset[str]
"""The kinds of the mechanisms that are off in an arm."""
NOTHING: Off = frozenset()
Weights = Mapping[Off, float]
"""A part of a cost: what each arm counts for; they add up to 0. Empty where there is no such part."""


def sides(mechanism: DescribedMechanism, arms: Collection[Off]) -> list[tuple[Off, Off]]:
    """Return the pairs of ``arms`` that tell what a mechanism costs: with it, and without it."""
    if mechanism.crossed:
        pairs = [(off, off | {mechanism.kind}) for off in arms if mechanism.kind not in off]
    else:
        others = frozenset(mechanism.off_with)
        pairs = [(others, others | {mechanism.kind})]
    return [pair for pair in pairs if all(side in arms for side in pair)]


def single_cost(mechanism: DescribedMechanism, arms: Collection[Off]) -> Weights:
    """Return what a mechanism costs."""
    return _mean([{with_it: 1, without: -1} for with_it, without in sides(mechanism, arms)])


def pair_cost(one: DescribedMechanism, other: DescribedMechanism, arms: Collection[Off]) -> Weights:
    """Return what a mechanism costs more beside another one than without it, of two that are crossed."""
    squares = [
        {off: 1, off | {one.kind}: -1, off | {other.kind}: -1, off | {one.kind, other.kind}: 1}
        for off in arms
        if one.crossed and other.crossed and not {one.kind, other.kind} & off
    ]
    return _mean([square for square in squares if all(off in arms for off in square)])


def pair_costs(
    mechanisms: Sequence[DescribedMechanism], arms: Collection[Off]
) -> Iterator[tuple[DescribedMechanism, DescribedMechanism, Weights]]:
    """Give the pairs of mechanisms that can be told apart, and what each of the two costs more beside the other."""
    for one, other in combinations(mechanisms, 2):
        if weights := pair_cost(one, other, arms):
            yield one, other, weights


def all_off(mechanisms: Sequence[DescribedMechanism], arms: Collection[Off]) -> Off | None:
    """Return what is off in the arm that has all mechanisms off that were switched; None where no arm has."""
    every = frozenset(each.kind for each in mechanisms if sides(each, arms))
    return every if every and every in arms else None


def cost_together(mechanisms: Sequence[DescribedMechanism], arms: Collection[Off]) -> Weights:
    """Return what all mechanisms cost together beyond the single ones; empty where that is 0 by itself."""
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
