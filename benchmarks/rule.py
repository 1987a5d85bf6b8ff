"""What a report's whole rule errs and sees, and what other rules would: families of costs, simulated many at a time.

    python benchmarks/rule.py [--repetitions N] [--check] [--run RUN]

*Different* needs two things of a report: that the exact interval excludes no cost, and that Holm agrees in its
family. A session is a baseline, its A/A arm and four environments; one that is untrusted claims nothing. Each rule is
held to: a false *different* in a family in at most 5.5 %, coverage of at least 94 %, and a cost of the size that the
report states as visible (`weighbridge.statistics.visible_effect`, from one session) called different in at least 78 %
(of another session).

- ``report``: the report's rule. Holm is fed exact p-values where they can decide among four, else Student's t of
  blocks with one sign; below ten blocks a cost has to lie beyond the noise floor, too (`verdicts.PValues`).
- ``disturbed``: that of a run beside others, in which a cost has to lie beyond the noise floor whatever the blocks.
  Of it no visible cost is stated, so what is seen of that is no promise.
- ``widened``: the report's with standard errors and intervals widened by `WIDENED`.
- ``by t``: Holm is always fed Student's t.
- ``floor``: that, and the typical cost lies beyond the further limit of the A/A arm's 95 % interval, its noise floor.

The noise models are those of `honesty.py` and six more: heavy tails (Student's t with three degrees of freedom),
noise whose size itself changes from block to block, one of two values as chance has it, 2% from each place in a
block to the next, other programs that take half of the time in spells of thirty runs, and one trial in fifty that
is a third slower on average. With ``sites`` each environment also has a lasting difference from the others, which
is not a cost of its isolation: blocks do not average it out, and a noise floor is there to guard against it.

``--check`` holds this fast copy of the rule against the functions of the report, session by session. ``--run`` takes
the noise of a run's own blocks instead of a model, drawn from them with replacement: after how many blocks a cost of
3, 5 and 10 % of a headline is called different in four sessions of five, by this rule and by the one with the floor.

The figures are in docs/methods/verdicts.md.

A cost that is precise enough and undecided goes on to a second precision (`adaptive`). With it, and 800 sessions
each, single comparisons / families of four, where "within the margin" does not yet win over "different", false
*different* is (before -> now)

    lognormal CV 2 %    3.1 -> 3.4 / 2.0 -> 3.0    drift 10 %       2.6 -> 3.6 / 2.5 -> 4.2
    AR(1) 0.95, SD 8 %  2.6 -> 4.4 / 4.8 -> 5.6    position 2 %     4.5 -> 4.4 / 2.5 -> 2.8
    heavy tails, t3     5.4 -> 5.9 / 3.1 -> 3.9    changing 1-4 %   2.9 -> 3.0 / 2.8 -> 3.4
    2 % a place         4.9 -> 5.2 / 6.2 -> 7.0    others in spells 3.1 -> 3.1 / 2.8 -> 3.8

and as before in noise of which 60 blocks do not come to ±2 %; coverage 93.9 % and more, up to 1.09 times the blocks.
As a report has it, where a cost within the margin is not different (1,000 sessions, noises on the left), that is
1.5 to 5.8 -> 1.4 to 6.6 %. A cost of exactly the margin is called equivalent in 2.2 -> 3.3 % (CV 2 %), 4.3 -> 6.5 %
(AR(1) 0.95), 0 to 3.8 % elsewhere (600 sessions).

What it shows (with 1,000 sessions each, and the fifth noise, the report's rule gave 2.1 to 5.8% from ten blocks on,
``disturbed`` 0.1 to 3.4%, and a limited time that two workloads share 2.2 to 4.7%). From ten blocks on, the stated
cost is seen in 79% or more of the sessions, but in 77% with episodes (10 blocks), 69% with bimodal noise (20 blocks),
and 52 to 76% with two values (20 blocks and more), which ranks see late. With fewer blocks a false *different* is
rare, and the stated cost is seen in 66 to 76% if slow runs or noisy blocks have perhaps not been met yet. With the
noise floor as a further condition there are fewer false alarms, and the stated cost is missed in every tenth session
more. If two sites of the same kind differ by 1% for a whole session, no rule holds: of 10 to 60 blocks the floor errs
in 7 to 35% of families, the report in 20 to 48%. So the rule assumes that there is no such difference, which
`aa_sessions.py` measures (docs/methods/design.md has the figures).

Whoever goes on until something is different finds that falsely in 3.0 to 5.7 % of families of four (`extended`;
coverage 97.8 % and more), and in 2.6 to 7.7 % of single comparisons (92 %). Whoever asks for the report in each block
until it says *different*, else at the end, finds that in 3.0 to 7.0 % of families of four (`watched`, 400 sessions;
coverage 94.6 %) and 2.8 to 7.5 % of single comparisons (92.0 %). Who has a run end with the block in which an
interval excludes no cost has a report of the same share; taken for a planned end it would be false in 12 to 23 %.

With the noise of the ten blocks of `tests/report/finished_runs/first-look`, a family of 22 headlines (``--run``),
blocks until a cost of 3, 5 and 10 % is different in four sessions of five, with the floor -> without:

    tcp (client=here)             60 -> 60       28 -> 17    13 -> 13
    tcp (client=elsewhere)       300 -> 60       60 -> 28    13 -> 13
    latency (client=here)        400 -> 200     110 -> 80    22 -> 28
    latency (client=elsewhere)   150 -> 80      150 -> 35    80 -> 13
    redis (client=here)           60 -> 80       44 -> 60    22 -> 17
    redis (client=elsewhere)   > 400 -> 35    > 400 -> 35 > 400 -> 17
    cpu                           28 -> 17       13 -> 10    10 -> 10
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.comparisons import values_by_metric
from weighbridge.analysis.judgement import DISTRUST
from weighbridge.analysis.noise import ARMS, SPAN_S, WorkloadNoise
from weighbridge.analysis.plan import plan_of
from weighbridge.statistics import (
    LOOKS,
    LOOKS_SHARE,
    Cost,
    Looks,
    compare,
    deciding_half_width,
    error_at,
    looks_share,
    planned_looks,
    verdicts,
    visible_effect,
)
from weighbridge.statistics.contrast import OF_TWO
from weighbridge.statistics.precision import POWER
from weighbridge.statistics.ranks import critical_rank, signed_rank_cumulative
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK, MIN_BLOCKS_VERDICT
from weighbridge.store.blocks import arm_values
from weighbridge.store.run import RunStore

sys.path.insert(0, str(Path(__file__).parent))
from honesty import KINDS, MARGIN, SEED, TARGET, TIME_S, Noise, blocks_in_a_time, episodes, session
from honesty import MANY as MANY_LOOKS
from honesty import adaptive as stop_on_precision

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.intp]

BLOCKS = (6, 10, 20, 40, 60)
ENVIRONMENTS = 4
WIDENED = 1.07
"""Of standard errors: the root of 1.14, which is 1.02 and one standard error of the first 200 A/A comparisons."""
SITE = 0.01
"""Standard deviation of the lasting difference between two sites of the same, as a logarithm."""
RULES = ("report", "disturbed", "widened", "by t", "floor")
FALSE, COVERAGE, SEEN = 5.5, 94.0, 78.0
"""The bounds, in percent."""
GONE_ON = 8.5
"""The bound on false alarms of whoever goes on until a cost is different, in percent: what the levels of all looks
add up to, 5 % of a first one and 3.5 % of all further ones."""


def heavy_tails(rng: np.random.Generator, blocks: int, arms: int) -> Floats:
    """Student's t with three degrees of freedom, of the scale of 2 %."""
    return 0.02 * rng.standard_t(3, (blocks, arms))


def changing(rng: np.random.Generator, blocks: int, arms: int) -> Floats:
    """Noise of 2 % in the median block, and of twice or half as much in others."""
    return 0.02 * np.exp(rng.normal(0.0, math.log(2), (blocks, 1))) * rng.normal(0.0, 1.0, (blocks, arms))


def two_values(rng: np.random.Generator, blocks: int, arms: int) -> Floats:
    """One of two values, 4 % above and below the middle, as chance has it, and little beside."""
    return 0.04 * rng.choice([-1.0, 1.0], (blocks, arms)) + 0.002 * rng.normal(0.0, 1.0, (blocks, arms))


def rare_slow(rng: np.random.Generator, blocks: int, arms: int) -> Floats:
    """Noise of 2%; one trial in fifty is a third slower on average."""
    slow = np.where(rng.random((blocks, arms)) < 0.02, rng.exponential(0.3, (blocks, arms)), 0.0)
    return 0.02 * rng.normal(0.0, 1.0, (blocks, arms)) - slow


def by_place(rng: np.random.Generator, blocks: int, arms: int) -> Floats:
    """2 % from each place in the block to the next, in random order, and little beside."""
    places = rng.permuted(np.tile(np.arange(arms), (blocks, 1)), axis=1)
    return 0.02 * places + 0.005 * rng.normal(0.0, 1.0, (blocks, arms))


NOISES: dict[str, Noise] = {
    **KINDS, "heavy tails, t3": heavy_tails, "changing 1-4 %": changing, "two values": two_values,
    "2 % a place": by_place, "others in spells": partial(episodes, share=0.5, length=30),
    "rare slow trials": rare_slow,
}  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """The comparisons of many sessions: estimate and limits as logarithms, mean, standard error and p-value."""

    typical: Floats
    low: Floats
    high: Floats
    mean: Floats
    error: Floats
    blocks: Floats
    effects: Floats
    """Of each block, in the order of time; NaN beyond the last one."""

    def at(self, chosen: Places) -> "Compared":
        """Return of each comparison the number that is chosen along the first axis."""
        arrays = (self.typical, self.low, self.high, self.mean, self.error, self.blocks)
        effects = np.take_along_axis(self.effects, chosen[None, ..., None], axis=0)[0]
        picked = [np.take_along_axis(each, chosen[None], axis=0)[0] for each in arrays]
        return Compared(*[*picked, effects])

    def excludes(self, by: Floats | float = 0.0, wider: float = 1.0) -> Flags:
        """Whether the interval, moved by so much and so much wider, lies on one side of no cost."""
        low = self.typical - wider * (self.typical - self.low)
        high = self.typical + wider * (self.high - self.typical)
        return (low + by > 0) | (high + by < 0)


def p_values(mean: Floats, error: Floats, blocks: Floats) -> Floats:
    """Return the two-sided p-values of Student's t."""
    return 2 * np.asarray(stdtr(blocks - 1, -np.abs(mean) / error))


def exact_p_values(effects: Floats, blocks: Floats) -> Floats:
    """Return the two-sided p-values among all flips of signs: of signed ranks, below ten blocks of the mean."""
    result = np.ones(blocks.shape)
    for n in np.unique(blocks).astype(int):
        chosen = blocks == n
        values = effects[chosen][:, :n]
        if n < MIN_BLOCKS_SIGNED_RANK:
            flipped = np.abs(values @ np.array([*product((-1, 1), repeat=n)]).T)
            result[chosen] = (flipped >= np.abs(values.sum(axis=-1))[:, None] * (1 - 1e-12)).mean(axis=-1)
            continue
        sums = ((np.argsort(np.argsort(np.abs(values), axis=-1), axis=-1) + 1) * (values > 0)).sum(axis=-1)
        smaller = np.minimum(sums, n * (n + 1) // 2 - sums)
        result[chosen] = np.minimum(1.0, 2 * signed_rank_cumulative(int(n))[smaller])
    return result


def counted(
    by_t: Floats, exact: Floats, blocks: Floats, share: float, number: int, alpha: float, guarded: bool = True
) -> Floats:
    """Return the p-values that count among so many comparisons, as `verdicts.PValues.among`."""
    smallest = 2 ** (1 - blocks)
    large = (smallest / share * number > alpha) & (guarded | (blocks >= MIN_BLOCKS_SIGNED_RANK))
    return np.where(large & (exact <= smallest * (1 + verdicts.SAME)), by_t, exact)


def stacked(every: list[Compared]) -> Compared:
    """Return several, one after the other along a new first axis."""
    names = ("typical", "low", "high", "mean", "error", "blocks", "effects")
    return Compared(*(np.stack([getattr(each, name) for each in every]) for name in names))


def compared(effects: Floats, share: float = 1.0, alpha: float = 0.05) -> Compared:
    """Compare the effects of blocks (the last axis) as `weighbridge.statistics.compare` does from ten blocks on.

    ``share``: of the error ``alpha`` that one of several looks may spend.
    """
    n, confidence = effects.shape[-1], 1 - alpha * share
    first, second = np.triu_indices(n)
    walsh = (effects[..., first] + effects[..., second]) / 2
    error = effects.std(axis=-1, ddof=1) / math.sqrt(n)
    blocks, mean = np.full(effects.shape[:-1], float(n)), effects.mean(axis=-1)
    padded = np.full((*effects.shape[:-1], max(n, BLOCKS[-1])), np.nan)
    padded[..., :n] = effects
    if n < MIN_BLOCKS_SIGNED_RANK:
        typical, half = np.median(walsh, axis=-1), stdtrit(n - 1, (1 + confidence) / 2) * error
        low, high = np.minimum(typical, mean - half), np.maximum(typical, mean + half)
        return Compared(typical, low, high, mean, error, blocks, padded)
    k, size = critical_rank(n, confidence), len(first)
    places = sorted({k - 1, (size - 1) // 2, size // 2, size - k})
    walsh = np.partition(walsh, places, axis=-1)
    typical = (walsh[..., (size - 1) // 2] + walsh[..., size // 2]) / 2
    return Compared(typical, walsh[..., k - 1], walsh[..., size - k], mean, error, blocks, padded)


def holm(p: Floats) -> Floats:
    """Return Holm's adjusted p-values along the last axis."""
    order = np.argsort(p, axis=-1)
    number = p.shape[-1]
    ordered = np.take_along_axis(p, order, axis=-1) * (number - np.arange(number))
    result = np.empty_like(p)
    np.put_along_axis(result, order, np.minimum(1.0, np.maximum.accumulate(ordered, axis=-1)), axis=-1)
    return result


@dataclass(frozen=True)
class Sessions:
    """Many sessions of so many blocks: costs against the baseline, and the control."""

    costs: Compared
    floor: Floats
    trusted: Flags
    share: float = 1.0
    """Of the error that a look may spend."""

    def different(self, rule: str, moved: Floats | float = 0.0) -> Flags:
        """Whether each environment is called different, the first one's cost being moved by so much."""
        by = np.zeros_like(self.costs.typical)
        by[:, 0] = moved
        wider = WIDENED if rule == "widened" else 1.0
        p = p_values(self.costs.mean + by, self.costs.error * wider, self.costs.blocks)
        if rule in ("report", "disturbed", "widened"):
            exact = exact_p_values(self.costs.effects + by[..., None], self.costs.blocks)
            p = counted(p, exact, self.costs.blocks, self.share, by.shape[1], verdicts.ALPHA)
        adjusted = holm(np.minimum(1.0, p / self.share))
        called = self.costs.excludes(by, wider) & (adjusted <= verdicts.ALPHA)
        if rule in ("floor", "disturbed") or self.costs.blocks.max() < MIN_BLOCKS_SIGNED_RANK:
            called &= np.abs(self.costs.typical + by) > self.floor[:, None]
        return called & self.trusted[:, None]

    def stated(self, rule: str) -> Floats:
        """The visible cost of the first environment of each session, as a logarithm."""
        wider = WIDENED if rule == "widened" else 1.0
        level = verdicts.ALPHA / self.costs.typical.shape[1] * self.share
        first = zip(self.costs.effects[:, 0], self.costs.blocks[:, 0].astype(int), strict=True)
        return np.array(
            [visible_effect(error_at(effects[:blocks], level) * wider, blocks, level) for effects, blocks in first]
        )


def judged(
    costs: Compared, aa: Compared, at_99: Compared, share: float, control_share: float | None = None
) -> Sessions:
    """Return sessions with their noise floor, and whether the control holds, of which further looks spend nothing."""
    control = control_share or share
    by_t, exact = p_values(at_99.mean, at_99.error, at_99.blocks), exact_p_values(at_99.effects, at_99.blocks)
    p = np.minimum(1.0, counted(by_t, exact, at_99.blocks, control, 1, 0.01) / control)
    trusted = ~(at_99.excludes() & (p <= 0.01))
    return Sessions(costs, np.maximum(np.abs(aa.low), np.abs(aa.high)), trusted, share)


def parts(
    logs: Floats, blocks: int, share: float = 1.0, control_share: float | None = None
) -> tuple[Compared, Compared, Compared]:
    """Compare what sessions have after so many blocks: the costs, and the A/A arm, of which the last is at 99 %.

    ``logs`` are by session, arm (the baseline, environments, the A/A arm) and block.
    """
    base, environments, again = logs[:, :1, :blocks], logs[:, 1:-1, :blocks], logs[:, -1:, :blocks]
    control = again[:, 0] - base[:, 0]
    at_99 = compared(control, control_share or share, 0.01)
    return compared(environments - base, share), compared(control, share), at_99


def sessions(logs: Floats, blocks: int) -> Sessions:
    """Judge sessions of a fixed number of blocks."""
    return judged(*parts(logs, blocks), 1.0)


def adaptive(logs: Floats, looks: Sequence[int] = LOOKS) -> Sessions:
    """Judge sessions that stop on precision, each comparison at a look of its own; the A/A arm with the last one.

    What is precise enough and undecided (of a margin of 3 %) goes on to the precision that decides it, and is looked
    at once more.
    """
    by_look = [parts(logs, blocks, LOOKS_SHARE) for blocks in looks]
    costs, aa, at_99 = (stacked(list(each)) for each in zip(*by_look, strict=True))
    number = costs.typical.shape[-1]

    def first(half_width: float) -> Places:
        reached = costs.high - costs.low <= 2 * math.log1p(half_width)
        return np.where(reached.any(axis=0), reached.argmax(axis=0), len(looks) - 1)

    chosen = first(TARGET)
    one_sided = stacked([compared(logs[:, 1:-1, :n] - logs[:, :1, :n], 2 * LOOKS_SHARE) for n in looks]).at(chosen)
    at_target = costs.at(chosen)
    equivalent = (one_sided.low > -math.log1p(MARGIN)) & (one_sided.high < math.log1p(MARGIN))
    level = verdicts.ALPHA * LOOKS_SHARE
    size = (at_target.high - at_target.low) / 2 * ndtri(1 - level / number / 2) / ndtri(1 - level / 2)
    different = at_target.excludes() & (np.abs(at_target.typical) > size)
    narrow = np.maximum(chosen, first(deciding_half_width(MARGIN, number, len(LOOKS))))
    chosen = np.where(equivalent | different, chosen, narrow)
    last = chosen.max(axis=1)
    return judged(costs.at(chosen), aa.at(last), at_99.at(last), LOOKS_SHARE)


def drawn(kind: str, repetitions: int, site: float, number: int) -> Floats:
    """Draw sessions of 60 blocks without a cost."""
    rng = np.random.default_rng([SEED, number])
    arms = ENVIRONMENTS + 2
    logs = np.log([session(rng, NOISES[kind], 1.0, arms=arms, blocks=BLOCKS[-1]) for _ in range(repetitions)])
    if site:
        logs += rng.normal(0.0, site / math.sqrt(2), (repetitions, arms, 1))
    return np.asarray(logs)


Row = tuple[str, str, str, float, float, float, float, float]
"""Noise, blocks, rule; in percent: false in a family, coverage, seen; the visible cost; untrusted sessions."""


def rows(kind: str, repetitions: int, site: float, number: int) -> list[Row]:
    """Simulate one noise with every rule and number of blocks."""
    logs, found = drawn(kind, repetitions, site, number), []
    for blocks in (*BLOCKS, None):
        these = adaptive(logs) if blocks is None else sessions(logs, blocks)
        untrusted = 100 * float((~these.trusted).mean())
        for rule in RULES:
            wider = WIDENED if rule == "widened" else 1.0
            false = 100 * float(these.different(rule).any(axis=1).mean())
            covered = 100 * float((~these.costs.excludes(0.0, wider)).mean())
            stated = these.stated(rule)
            seen = these.different(rule, np.roll(stated, 1))[:, 0]
            share, visible = 100 * float(seen[these.trusted].mean()), 100 * math.expm1(np.median(stated))
            found.append((kind, str(blocks or "looks"), rule, false, covered, share, visible, untrusted))
    return found


EXTENDED = (10, 13, 17, 22), (28, 35, 44, 60)
"""Looks of a run that was planned, and those after which somebody who saw nothing different went on with it."""


def extended(kind: str, repetitions: int, number: int) -> list[Row]:
    """Simulate runs that somebody goes on with until a cost is different, or the blocks are over.

    They begin with a fixed number of blocks, or stop on precision; whoever goes on looks soon again, or late.
    False is what is different at any look, coverage that of the look that was the last one; what is seen is that of
    the last look of all.
    """
    logs = drawn(kind, repetitions, 0.0, number)
    return [row for compared in ((0, 1, -1), range(logs.shape[1])) for row in _extended(kind, logs[:, compared])]


def _extended(kind: str, logs: Floats) -> list[Row]:
    (planned, later), number = EXTENDED, logs.shape[1] - 2
    ways = {
        "soon": (sessions(logs, planned[0]), Looks(1), (*planned[1:], *later)),
        "late": (sessions(logs, planned[0]), Looks(1), (20, 40, 60)),
        "looks": (adaptive(logs, planned), Looks(len(planned)), later),
    }
    found = []
    for name, (first, looks, further) in ways.items():
        every, control = [first], looks_share(looks)
        for times, blocks in enumerate(further, 1):
            share = looks_share(replace(looks, further=times))
            every.append(judged(*parts(logs, blocks, share, control), share, control))
        called = np.stack([each.different("report").any(axis=1) for each in every])
        ended = np.where(called.any(axis=0), called.argmax(axis=0), len(every) - 1)
        covers = np.stack([(~each.costs.excludes()).mean(axis=1) for each in every])
        stated = every[-1].stated("report")
        seen = every[-1].different("report", np.roll(stated, 1))[:, 0][every[-1].trusted]
        figures = (called.any(axis=0), covers[ended, np.arange(len(logs))], seen)
        false, covered, sees = (100 * float(each.mean()) for each in figures)
        untrusted = 100 * float((~every[-1].trusted).mean())
        visible = 100 * math.expm1(np.median(stated))
        found.append((kind, f"{number} {name}", "report", false, covered, sees, visible, untrusted))
    return found


def watched(kind: str, repetitions: int, number: int) -> list[Row]:
    """Simulate runs that somebody watches from `MIN_BLOCKS_VERDICT` blocks on.

    They have a fixed number of blocks, or looks on precision at which they do not end. ``asked``: in each block the
    report is asked for, and the run is stopped, or the answer believed, as soon as it says *different*; else it goes
    to its end. ``unkept``: the run is told to end with the block in which the interval of a run that had come to its
    end there excludes no cost, if the report took this for a planned end. Of one environment, as most programs are
    weighed, and of all. Of a run that is told to end early the report goes by the same share as before an end.
    """
    logs = drawn(kind, repetitions, 0.0, number)
    cases = product((Looks(1), Looks(len(LOOKS))), ((0, 1, -1), range(logs.shape[1])))
    return [row for planned, compared in cases for row in _watched(kind, logs[:, compared], planned)]


def _watched(kind: str, logs: Floats, planned: Looks) -> list[Row]:
    share = looks_share(planned)

    def reports(looks: Looks) -> list[Sessions]:
        spent = looks_share(looks)
        return [
            judged(*parts(logs, blocks, spent, share), spent, share)
            for blocks in range(MIN_BLOCKS_VERDICT, BLOCKS[-1])
        ]

    end, ended = judged(*parts(logs, BLOCKS[-1], share), share), reports(planned)
    asked = reports(replace(planned, interim=True))
    says = np.stack([each.different("report").any(axis=1) for each in asked])
    excludes = np.stack([each.costs.excludes().any(axis=1) for each in ended])
    policies = {"asked": (says, asked), "unkept": (excludes, ended)}
    found, how = [], "fixed" if planned.total == 1 else "looks"
    for name, (stops, at) in policies.items():
        when = np.where(stops.any(axis=0), stops.argmax(axis=0), len(at)), np.arange(len(logs))
        called = np.stack([each.different("report").any(axis=1) for each in (*at, end)])
        covers = np.stack([(~each.costs.excludes()).mean(axis=1) for each in (*at, end)])
        false, covered = 100 * float(called[when].mean()), 100 * float(covers[when].mean())
        where = f"{logs.shape[1] - 2} {how}"
        found.append((kind, where, name, false, covered, math.nan, math.nan, math.nan))
    return found


def check(repetitions: int = 5) -> int:
    """Count the verdicts in which this copy of the rule and the report's functions differ."""
    wrong = 0
    for number, kind in enumerate(NOISES):
        logs = drawn(kind, repetitions, 0.0, number)
        logs[:, 1] -= 0.03
        for blocks in (6, 10, 40, None):
            fast = adaptive(logs) if blocks is None else sessions(logs, blocks)
            for rule in ("report", "disturbed"):
                called = fast.different(rule)
                for session_logs, expected, trusted in zip(logs, called, fast.trusted, strict=True):
                    ours = by_report(np.exp(session_logs), blocks, disturbed=rule == "disturbed")
                    wrong += int(trusted) * sum(one != bool(other) for one, other in zip(ours, expected, strict=True))
    return wrong


def by_report(values: Floats, blocks: int | None, *, disturbed: bool) -> list[bool]:
    """Return which environments of a session the report's functions call different; None: stopped on precision."""
    looks = 1 if blocks else len(LOOKS)
    arms = [arm.tolist() for arm in values]
    if blocks is None:
        costs = [  # a cost within the margin counts as different, too: as if it had none
            replace(stop_on_precision(values[[0, number]], MARGIN, comparisons=len(arms) - 2)[0], equivalent=None)
            for number in range(1, len(arms) - 1)
        ]
    else:
        costs = [compare(arms[0][:blocks], arm[:blocks], better="higher") for arm in arms[1:-1]]
    p_values_of_family = [
        verdicts.p_values_of(
            OF_TWO.effects((arms[0][: cost.blocks], arm[: cost.blocks]), "ratio"), cost, looks, guarded=True
        )
        for cost, arm in zip(costs, arms[1:-1], strict=True)
    ]
    adjusted = verdicts.adjusted(p_values_of_family)
    few = blocks is not None and blocks < MIN_BLOCKS_SIGNED_RANK
    last = max(cost.blocks for cost in costs)
    control = compare(arms[0][:last], arms[-1][:last], better="higher", looks=looks)
    aa = control if few or disturbed else None
    return [
        verdicts.verdict(cost, p_value, never_different=verdicts.within_noise(cost, aa)) == "different"
        for cost, p_value in zip(costs, adjusted, strict=True)
    ]


MEASURED, LONG = 20, 200
"""Rounds of ``doctor --noise``, and of a run of ten minutes whose trials take a second."""


def of_machine(kind: str, repetitions: int, number: int) -> Row:
    """Simulate ``doctor --noise``, and then a run of ten minutes with the smallest cost that it states.

    The noise of the run continues the noise of the measurement. ``seen``: how often the report calls a cost of
    the stated size different; ``false``: how often no cost.
    """
    looks = len(planned_looks(LOOKS[0], LONG))
    share, stated, called = looks_share(looks), [], []
    for repetition in range(repetitions):
        rng = np.random.default_rng([SEED, number, repetition, LONG])
        logs = session(rng, NOISES[kind], 1.0, arms=3, blocks=MEASURED + LONG)
        logs = np.log(logs[1:2] / logs[0])
        spread = float(logs[0, :MEASURED].std(ddof=1))
        machine = WorkloadNoise("cpu", kind, spread, MEASURED, SPAN_S / ARMS / LONG)
        cost = math.log1p(machine.smallest_cost)
        effects = logs[:, MEASURED:] + np.array([[0.0], [cost]])
        found = compared(effects, share)
        p = exact_p_values(effects, found.blocks)
        called.append(found.excludes() & (p / share <= verdicts.ALPHA))
        stated.append(machine.smallest_cost)
    false, seen = 100 * np.mean(called, axis=0)
    visible = 100 * float(np.median(stated))
    return kind, str(LONG), "report", float(false), 100 - float(false), float(seen), visible, 0.0


OTHER = "lognormal CV 8 %"
"""The noise of the workload that shares a time with one of another noise."""


def within(kind: str, repetitions: int, number: int) -> Row:
    """Simulate a limited time that a workload of this noise shares with one of `OTHER`, by the report's functions.

    Each has two environments, a baseline and its A/A arm: all four comparisons are one family, both controls another.
    Blocks go where the widths fall most per second, until each comparison is precise enough or the time is over.
    """
    false, covered, seen = list[bool](), list[bool](), list[bool]()
    stated, untrusted = list[float](), 0
    for repetition in range(repetitions):
        rng = np.random.default_rng([SEED, number, repetition])
        pair = [session(rng, NOISES[noise], 1.0, arms=4, blocks=MANY_LOOKS[-1]) for noise in (kind, OTHER)]
        taken = blocks_in_a_time(pair, 2 * TIME_S, again=True)  # there are twice as many arms as that time is for
        sides = [
            (values[0, blocks], values[arm, blocks])
            for values, each in zip(pair, taken, strict=True)
            for arm, blocks in enumerate(each, 1)
        ]
        longest = [max(each, key=len) for each in taken]
        controls = [(values[0, blocks], values[-1, blocks]) for values, blocks in zip(pair, longest, strict=True)]
        trusted = not any(shifted for _, shifted in family(controls, DISTRUST))
        untrusted += not trusted
        costs = family(sides)
        false.append(trusted and any(different for _, different in costs))
        covered += [cost.low <= 1 <= cost.high for cost, _ in costs]
        base, other = sides[0]
        if trusted and stated:
            seen.append(family([(base, other * math.exp(-stated[-1])), *sides[1:]])[0][1])
        level = verdicts.ALPHA / len(sides) * LOOKS_SHARE
        stated.append(visible_effect(error_at(np.log(other / base).tolist(), level), len(base), level))
    errs, covers, sees = (100 * float(np.mean(each)) for each in (false, covered, seen))
    visible = 100 * math.expm1(float(np.median(stated)))
    return kind, "within", "report", errs, covers, sees, visible, 100 * untrusted / repetitions


def family(sides: Sequence[tuple[Floats, Floats]], alpha: float = verdicts.ALPHA) -> list[tuple[Cost, bool]]:
    """Return the comparisons of a family, each with whether its interval and Holm exclude no cost at this level."""
    looks = len(MANY_LOOKS)
    costs = [
        compare(one.tolist(), other.tolist(), better="higher", confidence=1 - alpha, looks=looks)
        for one, other in sides
    ]
    tested = [
        verdicts.p_values_of(OF_TWO.effects((one.tolist(), other.tolist()), "ratio"), cost, looks)
        for (one, other), cost in zip(sides, costs, strict=True)
    ]
    adjusted = verdicts.adjusted(tested, alpha)
    return [
        (cost, verdicts.excludes_no_cost(cost) and p_value is not None and p_value <= alpha)
        for cost, p_value in zip(costs, adjusted, strict=True)
    ]


def show(found: list[Row], title: str, most: float = FALSE) -> int:
    """Print rows, and count those of the report's rule that err more than in ``most`` percent of families."""
    heads = f"{'noise':<20}{'blocks':>9} {'rule':<10}{'false':>7}{'covered':>9}{'seen':>7}{'visible':>9}{'untr.':>7}"
    print(f"\n{title}\n{heads}")
    for kind, blocks, rule, false, covered, seen, visible, untrusted in found:
        promised = rule != "disturbed"  # of which no report states a visible cost
        missed = (
            "  MISSED"
            if rule != "unkept" and (false > most or covered < COVERAGE or (promised and seen < SEEN))
            else ""
        )
        print(
            f"{kind:<20}{blocks:>9} {rule:<10}{false:>6.1f}%{covered:>8.1f}%{seen:>6.1f}%{visible:>8.2f}%"
            f"{untrusted:>6.1f}%{missed}",
            flush=True,
        )
    return sum(each[2] in ("report", "asked") and each[3] > most for each in found)


SIZES = (1.03, 1.05, 1.10)
"""Costs of which ``--run`` says how many blocks they take, as ratios."""
MANY = (10, 13, 17, 22, 28, 35, 44, 60, 80, 110, 150, 200, 300, 400)
"""Numbers of blocks among which it looks."""


def noise_of(run: Path) -> dict[str, Floats]:
    """Return the logarithms of each headline with an A/A arm: environments by blocks, baseline first, A/A arm last.

    The environments' own costs are taken out.
    """
    with RunStore(run) as store:
        analysis, plan = analyse(store), plan_of(store)
        values = values_by_metric(store.values())
    found = {}
    for report in analysis.metrics:
        if not report.headline or report.aa is None or report.aa.cost is None or plan.aa_arm is None:
            continue
        others = [row.environment for row in report.comparisons if not row.aa]
        arms = arm_values(values[report.metric_id], (plan.baseline, *others, plan.aa_arm))
        if report.aa.cost.scale == "ratio" and len(arms[0]) > 1:
            logs = np.log(np.array(arms))
            effects = logs - logs[:1]
            found[report.label] = logs - np.median(effects, axis=1, keepdims=True)
    return found


def blocks_for(noise: Floats, ratio: float, family: int, floor: bool) -> int | None:
    """Return after how many blocks a cost is called different in four of five sessions; None beyond the last."""
    rng = np.random.default_rng(SEED)
    for blocks in MANY:
        drawn_blocks = rng.integers(0, noise.shape[1], (400, blocks))
        base, other, again = noise[0][drawn_blocks], noise[1][drawn_blocks], noise[-1][drawn_blocks]
        effects = other - base + math.log(ratio) + rng.normal(0, 1e-9, base.shape)  # no two are alike
        cost, aa = compared(effects), compared(again - base)
        p = p_values(cost.mean, cost.error, cost.blocks)
        if not floor:
            p = counted(
                p, exact_p_values(effects, cost.blocks), cost.blocks, 1.0, family, verdicts.ALPHA, guarded=False
            )
        called = cost.excludes() & (p * family <= verdicts.ALPHA)
        if floor:
            called &= np.abs(cost.typical) > np.maximum(np.abs(aa.low), np.abs(aa.high))
        if called.mean() >= POWER:
            return blocks
    return None


def show_run(run: Path) -> None:
    """Print after how many blocks costs show, with the noise of a run's headlines."""
    noises = noise_of(run)
    family = sum(len(each) - 2 for each in noises.values())
    print(
        f"blocks until a cost is different in four sessions of five, among {family} costs: with the floor -> without"
    )
    for label, noise in noises.items():
        each = [tuple(blocks_for(noise, ratio, family, floor) for floor in (True, False)) for ratio in SIZES]
        texts = (
            f"{ratio - 1:4.0%}: {old or '> 400'} -> {new or '> 400'}"
            for ratio, (old, new) in zip(SIZES, each, strict=True)
        )
        print(f"{label:<40}", "   ".join(texts), flush=True)


def main() -> int:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=1000, metavar="N", help="sessions per noise")
    parser.add_argument("--check", action="store_true", help="hold the fast copy against the report's functions")
    parser.add_argument("--run", type=Path, help="a run directory whose noise is taken")
    arguments = parser.parse_args()
    if arguments.run:
        show_run(arguments.run)
        return 0
    started = time.monotonic()
    if arguments.check:
        wrong = check()
        print(f"{wrong} verdicts differ from the report's functions")
        return int(wrong > 0)
    times = arguments.repetitions
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        fixed = [pool.submit(rows, kind, times, 0.0, number) for number, kind in enumerate(NOISES)]
        gone_on = [pool.submit(extended, kind, times, number) for number, kind in enumerate(NOISES)]
        stopped = [pool.submit(watched, kind, times, number) for number, kind in enumerate(NOISES)]
        with_sites = pool.submit(rows, "lognormal CV 2 %", times, SITE, len(NOISES))
        machines = [pool.submit(of_machine, kind, times, number) for number, kind in enumerate(NOISES)]
        in_a_time = [pool.submit(within, kind, times, number) for number, kind in enumerate(NOISES)]
        missed = show([row for job in fixed for row in job.result()], "Nothing that blocks do not average out")
        title = "The smallest cost of a machine (doctor --noise), in a run of ten minutes"
        missed += show([job.result() for job in machines], title)
        title = "Somebody goes on with the run until a cost is different"
        missed += show([row for job in gone_on for row in job.result()], title, GONE_ON)
        title = "Somebody watches the run, and ends it because of the costs that it shows"
        missed += show([row for job in stopped for row in job.result()], title, GONE_ON)
        show(with_sites.result(), f"Sites that differ by {100 * SITE:g} % for the whole session")
        missed += show([job.result() for job in in_a_time], f"A limited time, shared with a workload of {OTHER}")
    print(f"\n{arguments.repetitions} sessions per noise, {time.monotonic() - started:.0f} s")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
