"""A cost over the machines of a fleet: the typical one, that of the next machine, and which machines are odd.

A **fleet** is one study run on many machines, alone or in pairs. A run's cost is ``typical + machine (+ the other
machine + what the pair has beside both) + session + noise of its blocks``: a random-effects model.

**Spread between machines**: Paule and Mandel's estimate (J. Res. NBS 87, 1982). **Typical cost**: the mean with
Hartung, Knapp, Sidik and Jonkman's interval (Stat. Med. 20, 2001; 21, 2002), never narrower than the blocks' noise
allows (the ad hoc modification, Röver et al., BMC Med. Res. Methodol. 15, 2015).

**Odd machines** are found by Rosner's generalized extreme studentized deviate (Technometrics 25, 1983): a machine is
compared with the others, odd ones left out, so that several do not hide one another. Its p-value is of Student's t
of its distance by what the others' spread and its own blocks make of it, Holm over the machines; and the distance
has to reach the margin.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weighbridge.statistics.cost import Floats, Interval
from weighbridge.statistics.parametric import t_quantile
from weighbridge.statistics.verdicts import holm

MIN_PARTNERS = 2
"""Partners from which a machine of pairs has an effect: of fewer it is not told from that of its pair."""

MIN_MACHINES_ODD = 4
"""Machines from which one is compared with the others: fewer have no spread to compare with."""

MOST_ODD = 1 / 3
"""The largest share of a fleet that can be odd."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One run's cost: the mean of its blocks' effects, on the additive scale (logarithm of a ratio, or a difference)."""

    machines: tuple[str, ...]
    """One machine, or the two of a pair (client, server)."""
    effect: float
    """Positive is worse."""
    standard_error: float
    """Of the mean, from the blocks."""
    blocks: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviations on the effect's scale."""

    between: float
    """Between machines, Paule and Mandel's estimate; with sessions in it where `session` is None.

    0 is no proof that machines are alike: `between_high` is what the data allow."""
    session: float | None
    """Between runs of one machine (or pair); None where none was measured twice."""
    within: float
    """Between the blocks of a run."""
    pair: float | None = None
    """What pairs have beside their machines' effects; None of single machines, or where it cannot be told."""
    between_high: float = math.inf
    """Upper limit of `between` at the confidence asked for (Q-profile)."""


@dataclass(frozen=True, slots=True)
class MachineEffect:
    """A machine's distance from the typical cost of the others."""

    machine: str
    estimate: float
    interval: Interval
    """Of the distance, simultaneous over machines (Holm); 0 is like the others, their spread is in it."""
    adjusted_p: float | None
    """After Holm."""
    odd: bool
    """Whether it is away from the others, and by the margin at least."""
    runs: int


@dataclass(frozen=True, slots=True)
class PairEffect:
    """What is left of a pair after both machines' effects."""

    machines: tuple[str, str]
    estimate: float
    interval: Interval
    """Simultaneous over pairs (Holm)."""
    adjusted_p: float | None
    odd: bool


@dataclass(frozen=True, slots=True)
class FleetCost:
    """A cost over a fleet, on the scale of the effects."""

    typical: Interval
    prediction: Interval | None
    """For the next machine; of pairs for the next pair, of two other machines. None below three."""
    spread: Spread
    machines: tuple[MachineEffect, ...]
    """By name. Without those that cannot be told from their pair, and empty below four machines."""
    pairs: tuple[PairEffect, ...]
    """Empty of single machines; without pairs of which a machine has no other partner."""


def fleet_cost(measured: Sequence[Measured], *, margin: float, confidence: float = 0.95) -> FleetCost | None:
    """Return the cost over the machines that were measured; None of fewer than two.

    ``margin`` is the distance that matters, on the scale of the effects and not negative.
    Raises ValueError for effects that are not finite, and where single machines and pairs are mixed.
    """
    _check(measured, margin, confidence)
    units = _Units(measured)
    if len(units.keys) < 2:
        return None
    fit = _Fit(units, ())
    degrees = min(len(units.keys), len(units.machines)) - 1
    half = t_quantile(degrees, confidence) * fit.error
    typical = Interval(fit.mean, fit.mean - half, fit.mean + half)
    prediction = None
    if degrees >= 2:
        next_one = math.sqrt(fit.between * units.size + fit.pair + fit.error**2)
        half = t_quantile(degrees, confidence) * next_one
        prediction = Interval(fit.mean, fit.mean - half, fit.mean + half)
    spread = Spread(
        math.sqrt(fit.between),
        math.sqrt(units.session) if units.session is not None else None,
        units.within,
        math.sqrt(fit.pair) if units.size == 2 else None,
    )
    machines, pairs = _effects(units, margin, confidence)
    return FleetCost(typical, prediction, spread, machines, pairs)


def _check(measured: Sequence[Measured], margin: float, confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"The confidence must be between 0 and 1, not {confidence}.")
    if not 0 <= margin < math.inf:
        raise ValueError(f"The margin must be finite and not negative, not {margin}.")
    if len({len(each.machines) for each in measured}) > 1:
        raise ValueError("A fleet is of single machines or of pairs, not of both.")
    for each in measured:
        if len({*each.machines}) != len(each.machines) or len(each.machines) not in {1, 2}:
            raise ValueError(f"A run is of one machine or of two different ones, not of {each.machines}.")
        if not (math.isfinite(each.effect) and 0 <= each.standard_error < math.inf and each.blocks >= 2):
            raise ValueError("Every run needs two blocks, a finite effect and a finite standard error.")


class _Units:
    """The runs as one value for each machine or pair."""

    def __init__(self, measured: Sequence[Measured]) -> None:
        runs: dict[frozenset[str], list[Measured]] = {}
        for each in measured:
            runs.setdefault(frozenset(each.machines), []).append(each)
        self.keys = [each[0].machines for each in runs.values()]
        self.size = len(self.keys[0]) if self.keys else 1
        self.machines = sorted({name for key in self.keys for name in key})
        self.runs = {name: sum(name in each.machines for each in measured) for name in self.machines}
        squared = {id(each): each.standard_error**2 for each in measured}
        blocks = [(each.blocks - 1, each.blocks * each.standard_error**2) for each in measured]
        self.within = math.sqrt(sum(n * v for n, v in blocks) / sum(n for n, _ in blocks)) if blocks else 0.0
        groups = [
            (np.array([each.effect for each in group]), np.array([squared[id(each)] for each in group]))
            for group in runs.values()
        ]
        self.session = _session(groups)
        values, variances = [], []
        for effects, noise in groups:
            weights = 1 / np.maximum(noise + (self.session or 0.0), 1e-300)
            values.append(float(weights @ effects / weights.sum()))
            variances.append(1 / float(weights.sum()))
        self.values, self.variances = np.array(values), np.array(variances)
        place = {name: i for i, name in enumerate(self.machines)}
        self.incidence = np.zeros((len(self.keys), len(self.machines)))
        for row, key in enumerate(self.keys):
            self.incidence[row, [place[name] for name in key]] = 1


def _session(groups: Sequence[tuple[Floats, Floats]]) -> float | None:
    """Paule and Mandel's estimate of the variance between runs of one machine."""
    repeated = [group for group in groups if group[0].size > 1]
    if not repeated:
        return None

    def beyond(variance: float) -> float:
        total = 0.0
        for effects, noise in repeated:
            weights = 1 / np.maximum(noise + variance, 1e-300)
            mean = weights @ effects / weights.sum()
            total += float(weights @ (effects - mean) ** 2) - (effects.size - 1)
        return total

    return _root(beyond, max(float(np.ptp(effects)) ** 2 for effects, _ in repeated))


def _root(beyond, most: float) -> float:  # type: ignore[no-untyped-def]
    """Where a falling function of a variance is 0; 0 where it is nowhere above."""
    if most <= 0 or beyond(0.0) <= 0:
        return 0.0
    low, high = 0.0, most
    while beyond(high) > 0:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > 0 else (low, middle)
    return (low + high) / 2


class _Fit:
    """The model with shifts (columns) for what is left out as odd."""

    def __init__(self, units: _Units, columns: Sequence[Floats]) -> None:
        self.units = units
        ones = np.ones(len(units.keys))
        design = np.column_stack([ones, *columns])
        noise = np.maximum(units.variances, 1e-300)
        values, incidence = units.values, units.incidence
        self.pair = 0.0
        if units.size == 2:
            full = np.column_stack([incidence, *columns])
            degrees = len(values) - int(np.linalg.matrix_rank(full))
            if degrees:
                self.pair = _root(lambda v: _residual(values, full, noise + v) - degrees, float(np.ptp(values)) ** 2)
        degrees = len(values) - int(np.linalg.matrix_rank(design))
        joint = incidence @ incidence.T

        def beyond(variance: float) -> float:
            inverse = np.linalg.inv(np.diag(noise + self.pair) + variance * joint)
            residual = values - design @ _solve(design, inverse, values)
            return float(residual @ inverse @ residual) - degrees

        self.between = _root(beyond, float(np.ptp(values)) ** 2) if degrees else 0.0
        self.inverse = np.linalg.inv(np.diag(noise + self.pair) + self.between * joint)
        self.design, self.degrees = design, degrees
        solved = _solve(design, self.inverse, values)
        self.mean = float(solved[0])
        self.error = math.sqrt(float(np.linalg.pinv(design.T @ self.inverse @ design)[0, 0]))

    def shift(self, column: Floats) -> tuple[float, float]:
        """The distance of what the column marks, and its standard error."""
        design = np.column_stack([self.design, column])
        inverse = np.linalg.pinv(design.T @ self.inverse @ design)
        return float((inverse @ design.T @ self.inverse @ self.units.values)[-1]), math.sqrt(float(inverse[-1, -1]))


def _solve(design: Floats, inverse: Floats, values: Floats) -> NDArray[np.float64]:
    return np.linalg.pinv(design.T @ inverse @ design) @ (design.T @ inverse @ values)


def _residual(values: Floats, design: Floats, variances: Floats) -> float:
    root = 1 / np.sqrt(variances)
    scaled, target = design * root[:, None], values * root
    solution, *_ = np.linalg.lstsq(scaled, target, rcond=None)
    return float(((target - scaled @ solution) ** 2).sum())


def _effects(
    units: _Units, margin: float, confidence: float
) -> tuple[tuple[MachineEffect, ...], tuple[PairEffect, ...]]:
    if len(units.machines) < MIN_MACHINES_ODD:
        return (), ()
    partners = {name: sum(name in key for key in units.keys) for name in units.machines}
    machines = [name for name in units.machines if units.size == 1 or partners[name] >= MIN_PARTNERS]
    pairs = [i for i, key in enumerate(units.keys) if units.size == 2 and min(partners[name] for name in key) >= 2]
    columns = {("machine", name): units.incidence[:, units.machines.index(name)] for name in machines}
    columns |= {("pair", i): np.eye(len(units.keys))[i] for i in pairs}
    alpha = (1 - confidence) / (2 if pairs else 1)
    family = {"machine": len(machines), "pair": len(pairs)}

    def compared(key, without):  # type: ignore[no-untyped-def]
        fit = _Fit(units, [columns[each] for each in (*without, key)])
        rest = _Fit.shift(_Refit(fit, len(without)), columns[key])
        return (*rest, max(1, min(len(units.keys), len(units.machines)) - 2 - len(without)))

    removed: list = []
    odd: list = []
    for _ in range(int(len(machines) * MOST_ODD)):
        fit = _Fit(units, [columns[each] for each in removed])
        scores = {}
        for key, column in columns.items():
            if key not in removed:
                distance, error = fit.shift(column)
                scores[key] = abs(distance) / error if abs(distance) >= margin else 0.0
        worst = max(scores, key=lambda each: scores[each])
        if scores[worst] < 2:
            break
        removed.append(worst)
        judged = [(key, *compared(key, [each for each in removed if each != key])) for key in removed]
        if all(abs(d) >= margin and _p(d, e, f) * family[key[0]] <= alpha for key, d, e, f in judged):
            odd = [*removed]
    found = {key: compared(key, [each for each in odd if each != key]) for key in columns}
    results: dict = {}
    for kind in ("machine", "pair"):
        keys = [key for key in columns if key[0] == kind]
        p_values = [_p(*found[key]) for key in keys]
        adjusted = [min(1.0, p * (2 if pairs else 1)) for p in holm(p_values)] if keys else []
        for rank, i in enumerate(sorted(range(len(keys)), key=lambda each: p_values[each])):
            distance, error, degrees = found[keys[i]]
            is_odd = keys[i] in odd
            half = (
                t_quantile(
                    degrees,
                    1 - alpha / (len(keys) - (rank if is_odd else len([each for each in odd if each[0] == kind]))),
                )
                * error
            )
            interval = Interval(distance, distance - half, distance + half)
            results[keys[i]] = distance, interval, adjusted[i], is_odd
    return (
        tuple(MachineEffect(name, *results["machine", name], units.runs[name]) for name in machines),
        tuple(PairEffect((units.keys[i][0], units.keys[i][1]), *results["pair", i]) for i in pairs),
    )


class _Refit(_Fit):
    """A fit whose last columns are taken out again, its variances kept."""

    def __init__(self, fit: _Fit, columns: int) -> None:
        self.units, self.inverse, self.design = fit.units, fit.inverse, fit.design[:, : 1 + columns]


def _p(distance: float, error: float, degrees: int) -> float:
    from scipy.special import stdtr

    return float(2 * stdtr(degrees, -abs(distance) / error)) if error else float(distance == 0)
