"""The cost over the machines of a fleet: the typical cost, the cost of the next machine, and the outliers.

A **fleet** is one study run on many machines, alone or in pairs. The random-effects model of a run's cost is
``typical + machine + session + noise of its blocks``; for a pair also ``+ other machine + pair``.

**Spread between machines**: Paule and Mandel's estimate (J. Res. NBS 87, 1982). An estimate of 0 does not prove that
machines are alike; `FleetSpread.between_high` is the limit that the data allow. The noise of a run is moderated
(`shrunk_variances`), because its standard error is uncertain with few blocks. The spread of pairs is estimated by
restricted maximum likelihood, and the spread between machines by the scatter that machines explain.

**Typical cost**: the Hodges-Lehmann estimate over machines with its exact interval, as over the blocks of a run. It
estimates the pseudomedian, which a few bad machines do not move. Below ten machines, and for pairs, it is the
**mean** with Hartung, Knapp, Sidik and Jonkman's interval (Stat. Med. 20, 2001; 21, 2002) and the ad hoc modification
(Röver et al., BMC Med. Res. Methodol. 15, 2015). The mean alone is not enough: if a few machines are much worse, a
small fleet contains none of them, and no interval can account for them (Bahadur & Savage, Ann. Math. Statist. 27,
1956). With 10 machines from an exponential spread it covers the mean in 91%, from a lognormal one (sigma 0.8) in 90%;
ranks cover the pseudomedian in 95%. The noise of runs pulls the pseudomedian of a skewed spread towards its mean, in
proportion to its share of the scatter (`_freed_of_noise`): with 200 exponential machines ranks alone cover 86% if the
noise of runs equals the spread of machines. With a correction for that shift, and both ends in the interval, coverage
is at least 94%. Pairs use the wider interval of two models, with and without a spread between pairs, because few
pairs cannot separate it from the spread between machines. Coverage is at least 92.6%, for six machines 93.3%. An
analysis of pairs as independent machines would cover 63 to 89%.

**Next machine**: by the confidence distribution of the spread. The usual t interval (k - 1 or k - 2 degrees) covers
87 to 93% of next machines if the noise of runs equals the spread of machines. With k - 2 it is three times as wide
for 3 machines. This method covers 89 to 94% for 3 to 10 machines with a skewed spread, and at least 93% otherwise.

**Outliers**: a machine is compared with the others, without the outliers among them. Sets of suspects grow by the
furthest machine each time, as in Rosner's generalized extreme studentized deviate test (Technometrics 25, 1983), so
that several outliers do not mask one another. The result is the largest set that passes two tests. Each member is an
outlier by Student's t of its distance and Holm over all machines and pairs, and all members together are by F among
all sets of that size. The distance must reach the margin. Its variance is the spread of the others plus the noise of
the machine. The spread of few machines is uncertain, so the margin provides a prior: `PRIOR` more machines that
differ by half of it, if the others differ by less.

False alarms stay at 5% of fleets for normal spreads. Skewed spreads contain machines that are far from the others:
with 50 machines and an exponential spread of a third of the margin, 37 to 49% of fleets have a false outlier (fewer
if runs are noisy). With a lognormal spread, half of them have one. Alternatives were tried on these fleets, and on
fleets of 50 with one machine that is worse by two margins, which this rule finds in 89 to 92%: a gap to the next
machine that occurs in 10% of tails (13% false alarms, 82% found) or in 20% (23% and 90%). The others were
half-spreads of each side (17% and 83%), and a gamma distribution with the others' skewness (18% and 89%). With a
lognormal or contaminated spread they still have 25 to 40% false alarms. None was adopted: every reported outlier is
far from the others, whatever the reason.

**Pairs**: the effect of a machine can be separated from the effect of its pair from two partners on, because spreads
are random. With two partners each, only a very slow pair stands out from its machines; with three or more (pairs
outnumber machines), others do too. A machine is an outlier only if it remains one without its worst pair, so that a
bad cable does not accuse a machine.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from weighbridge.statistics.cost import Floats, Interval
from weighbridge.statistics.parametric import t_quantile
from weighbridge.statistics.ranks import signed_rank_interval
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK
from weighbridge.statistics.verdicts import holm

MIN_MACHINES_RANKS = MIN_BLOCKS_SIGNED_RANK
"""Number of machines from which the typical cost is computed by ranks, as with blocks."""

MIN_PARTNERS = 2
"""Number of partners from which a machine in pairs has an effect that can be separated from its pair's."""

MIN_MACHINES_ODD = 3
"""Number of machines from which outliers and predictions are possible: of two, the other one has no spread."""

QUANTILES = 200
"""Number of quantiles of the spread between machines that a prediction uses."""

LOOK_AHEAD = 6
"""The number of suspects beyond the outliers proven so far; outliers can mask one another."""

PRIOR, EXPECTED = 3.0, 0.5
"""The prior's number of machines, and their deviation as a share of the margin.

Without the prior, one of three machines would have to be 41 times as far away as the distance of the other two."""

ONE_BY_ONE = 0.8
"""The share of the error for machines judged one by one: p-values are divided by it. The rest is for sets."""

BOUNDLESS = 1e9
"""The ratio of spread to noise that stands for an unlimited spread."""

TINY = 1e-100
"""The variance that replaces 0."""

MOST_SHIFTED = 4.0
"""The largest shift of the pseudomedian by noise, in distances between pseudomedian and mean of runs."""

MOST_OUTLIERS = 3
"""At most one in this number of machines is an outlier; the others are the fleet."""


@dataclass(frozen=True, slots=True)
class RunCost:
    """The cost of one run: the mean of its blocks' effects (logarithms of ratios, or differences)."""

    machines: tuple[str, ...]
    """One machine, or the two machines of a pair (client, server)."""
    effect: float
    """The mean effect; positive is worse."""
    standard_error: float
    """Standard error of the mean, from the blocks."""
    blocks: int


@dataclass(frozen=True, slots=True)
class FleetSpread:
    """Standard deviations on the effect's scale."""

    between: float
    """Standard deviation between machines (Paule and Mandel); includes sessions if `session` is None.

    A value of 0 does not prove that machines are alike; `between_high` is the limit that the data allow."""
    session: float | None
    """Standard deviation between runs of one machine (or pair); None if none was measured twice."""
    within: float
    """Standard deviation between the blocks of a run."""
    pair: float | None = None
    """Standard deviation of pairs beyond their machines' effects; None for single machines, or if unknown."""
    between_high: float = math.inf
    """Upper limit of `between` at the requested confidence (Q-profile)."""


@dataclass(frozen=True, slots=True)
class MachineEffect:
    """A machine's distance from the typical cost of the others."""

    machine: str
    estimate: float
    interval: Interval
    """Interval of the distance, including the others' spread (0 is like the others); Holm over machines and pairs."""
    adjusted_p: float | None
    """The p-value after Holm over machines and pairs."""
    outlier: bool
    """Whether the machine is an outlier by at least the margin; in pairs, with more than one partner."""
    runs: int


@dataclass(frozen=True, slots=True)
class PairEffect:
    """The rest of a pair's cost after both machines' effects."""

    machines: tuple[str, str]
    estimate: float
    interval: Interval
    """Interval of the effect, including the spread of other pairs; Holm over machines and pairs."""
    adjusted_p: float | None
    """The p-value after Holm over machines and pairs."""
    outlier: bool
    """Whether the pair differs by at least the margin from the effects of its machines."""


@dataclass(frozen=True, slots=True)
class FleetCost:
    """A cost over a fleet, on the scale of the effects."""

    typical: Interval
    """Hodges-Lehmann estimate over machines, corrected for noise; `mean` for fewer than ten, and for pairs."""
    prediction: Interval | None
    """Prediction for the next machine, or for the next pair of two new machines; None below three machines."""
    spread: FleetSpread
    machines: tuple[MachineEffect, ...]
    """Effects by name, without machines that have only one partner; empty for fewer than three machines."""
    pairs: tuple[PairEffect, ...]
    """Effects of pairs; empty for single machines, and without pairs in which a machine has no other partner."""
    mean: Interval | None = None
    """Paule and Mandel's mean, which times the number of machines is the total cost; `fleet_cost` always sets it."""


def fleet_cost(measured: Sequence[RunCost], *, margin: float, confidence: float = 0.95) -> FleetCost | None:
    """Return the cost over the measured machines; None for fewer than two machines or pairs.

    ``margin`` is the distance that matters, on the scale of the effects and not negative. Raises ValueError for
    effects that are not finite, and for a mixture of single machines and pairs.
    """
    _check(measured, margin, confidence)
    units = _Units(measured)
    if len(units.keys) < 2:
        return None
    model = _Model(units)
    mean = model.mean(confidence)
    if units.paired:  # few pairs cannot separate the pairs' spread from the machines', which would count more
        as_machines = _Model(units, pairs_differ=False).mean(confidence)
        half = max(each.high - each.low for each in (mean, as_machines)) / 2
        mean = Interval(mean.estimate, mean.estimate - half, mean.estimate + half)
    typical = mean
    if not units.paired and len(units.names) >= MIN_MACHINES_RANKS:
        typical = _freed_of_noise(signed_rank_interval(units.values, confidence), units, model.between)
    prediction = None
    if len(units.names) >= MIN_MACHINES_ODD:
        following = model.next_one(confidence)
        prediction = Interval(typical.estimate, min(following.low, typical.low), max(following.high, typical.high))
    spread = FleetSpread(
        between=math.sqrt(model.between),
        session=math.sqrt(units.session) if units.session is not None else None,
        within=units.within,
        pair=math.sqrt(model.pair) if units.paired and (units.partners >= MIN_PARTNERS).any() else None,
        between_high=model.between_high(confidence),
    )
    machines, pairs = _effects(units, margin, confidence)
    return FleetCost(typical, prediction, spread, machines, pairs, mean)


def _freed_of_noise(ranks: Interval, units: "_Units", between: float) -> Interval:
    """Return the pseudomedian of machines, using the pseudomedian of their runs, which noise makes less skewed.

    Median and mean of a sum differ by its third cumulant over six times its variance (Cornish and Fisher's first
    term), and noise adds to the variance alone. Precise runs have more weight in both, so that a noisy one shifts
    nothing. The interval grows by the shift, which is itself uncertain and stays within the interval of the ranks.
    """
    weights = 1 / (units.noise + between)
    noise, mean = (float(weights @ each / weights.sum()) for each in (units.noise, units.values))
    times = min(noise / between, MOST_SHIFTED) if between > 0 else 0.0
    shift = min(max((ranks.estimate - mean) * times, ranks.low - ranks.estimate), ranks.high - ranks.estimate)
    return Interval(ranks.estimate + shift, ranks.low + min(shift, 0.0), ranks.high + max(shift, 0.0))


def _check(measured: Sequence[RunCost], margin: float, confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"The confidence must be between 0 and 1, not {confidence}.")
    if not 0 <= margin < math.inf:
        raise ValueError(f"The margin must be finite and not negative, not {margin}.")
    if len({len(each.machines) for each in measured}) > 1:
        raise ValueError("A fleet is of single machines or of pairs, not of both.")
    for run in measured:
        if len({*run.machines}) != len(run.machines) or len(run.machines) not in {1, 2}:
            raise ValueError(f"A run is of one machine or of two different ones, not of {run.machines}.")
        if not (math.isfinite(run.effect) and 0 <= run.standard_error < math.inf and run.blocks >= 2):
            raise ValueError("Every run needs two blocks, a finite effect and a finite standard error.")


class _Units:
    """The runs as one value per machine or pair, with the variance of its noise."""

    def __init__(self, measured: Sequence[RunCost]) -> None:
        runs: dict[frozenset[str], list[int]] = {}
        for i, run in enumerate(measured):
            runs.setdefault(frozenset(run.machines), []).append(i)
        self.keys = [measured[places[0]].machines for places in runs.values()]
        self.names = sorted({name for key in self.keys for name in key})
        self.paired = bool(self.keys) and len(self.keys[0]) == 2
        self.runs = {name: sum(name in each.machines for each in measured) for name in self.names}
        blocks = np.array([each.blocks for each in measured], dtype=np.float64)
        variances = np.array([each.blocks * each.standard_error**2 for each in measured])
        self.within = math.sqrt(float(variances @ (blocks - 1) / (blocks - 1).sum())) if runs else 0.0
        noise = shrunk_variances(variances, blocks - 1) / blocks
        effects = np.array([each.effect for each in measured])
        self.session = _between_runs([(effects[places], noise[places]) for places in runs.values()])
        weights = [1 / np.maximum(noise[places] + (self.session or 0.0), TINY) for places in runs.values()]
        self.values = np.array(
            [each @ effects[places] / each.sum() for each, places in zip(weights, runs.values(), strict=True)]
        )
        least = max(1e-10 * float(np.ptp(self.values)) ** 2, TINY) if runs else TINY
        self.noise = np.maximum([1 / each.sum() for each in weights], least)
        columns = {name: i for i, name in enumerate(self.names)}
        self.incidence = np.zeros((len(self.keys), len(self.names)))
        for row, key in enumerate(self.keys):
            self.incidence[row, [columns[name] for name in key]] = 1.0
        self.candidates = np.column_stack([self.incidence, np.eye(len(self.keys))]) if self.paired else self.incidence
        """The possible outliers, one per column: machines, then pairs."""
        self.directions, self.sizes = (
            _directions(self.incidence) if self.paired else (self.incidence, np.ones(len(self.names)))
        )
        self.partners = self.incidence.sum(axis=0)
        separable = self.partners >= (MIN_PARTNERS if self.paired else 1)
        self.comparable = (
            np.concatenate([separable, (self.incidence @ ~separable == 0)]) if self.paired else separable
        )
        """The candidates that have an effect."""


def _directions(incidence: Floats) -> tuple[Floats, Floats]:
    """Return the directions in which machines move the values of pairs, and the weights of their variance."""
    directions: Floats
    sizes: Floats
    directions, sizes, _ = np.linalg.svd(incidence, full_matrices=False)
    moving = sizes > 1e-9 * sizes.max()
    return directions[:, moving], sizes[moving] ** 2


def shrunk_variances(variances: Floats, degrees: Floats) -> Floats:
    """Return variances shrunk towards their common value, the more similar the stronger.

    The variances of few blocks are uncertain, and weights by them would prefer machines whose blocks were alike by
    chance. Source: Smyth, "Linear models and empirical Bayes methods", Stat. Appl. Genet. Mol. Biol. 3 (2004),
    section 6.2.
    """
    from scipy.special import digamma, polygamma

    if variances.size < 3 or not variances.any():
        return variances
    logs = np.log(np.maximum(variances, 1e-5 * np.median(variances[variances > 0])))
    centred = logs - digamma(degrees / 2) + np.log(degrees / 2)
    mean = float(centred.mean())
    beyond = float(((centred - mean) ** 2).sum() / (variances.size - 1) - polygamma(1, degrees / 2).mean())
    if beyond <= 0:
        return np.full_like(variances, float(variances @ degrees / degrees.sum()))
    half = 0.5 + 1 / beyond  # Newton's steps to trigamma(half) = beyond
    for _ in range(50):
        value = float(polygamma(1, half))
        step = value * (1 - value / beyond) / float(polygamma(2, half))
        half += step
        if abs(step) < 1e-8 * half:
            break
    common = math.exp(mean + float(digamma(half)) - math.log(half))
    return (2 * half * common + degrees * variances) / (2 * half + degrees)


def _between_runs(groups: Sequence[tuple[Floats, Floats]]) -> float | None:
    """Return Paule and Mandel's variance between runs of one machine; None if no machine has two runs."""
    repeated = [group for group in groups if group[0].size > 1]
    if not repeated:
        return None
    degrees = sum(effects.size - 1 for effects, _ in repeated)

    def scatter(variance: float) -> tuple[float, float]:
        total = slope = 0.0
        for effects, noise in repeated:
            weights = 1 / np.maximum(noise + variance, TINY)
            squares = weights * (effects - weights @ effects / weights.sum()) ** 2
            total += float(squares.sum())
            slope -= float(weights @ squares)
        return total, slope

    return falling_root(scatter, degrees)


def falling_root(scatter: Callable[[float], tuple[float, float]], target: float) -> float:
    """Return the variance at which a scatter falls to ``target``; 0 if it is never above.

    ``scatter`` returns its value and slope. It is convex and falling, so that Newton's steps from 0 do not overshoot.
    """
    variance = 0.0
    for _ in range(200):
        value, slope = scatter(variance)
        if value <= target * (1 + 1e-10) or slope >= 0:
            break
        variance += (value - target) / -slope
    return variance


class _Model:
    """The random-effects model with a separate shift for each of the candidates ``outliers``."""

    def __init__(self, units: _Units, outliers: Sequence[int] = (), *, pairs_differ: bool = True) -> None:
        self.units, self.outliers = units, list(outliers)
        self.design = np.column_stack([np.ones(len(units.keys)), units.candidates[:, self.outliers]])
        self.pair = self._pair_variance() if units.paired and pairs_differ else 0.0
        weights = 1 / np.maximum(units.noise + self.pair, TINY)
        incidence, values = units.incidence, units.values
        if units.paired:
            eigenvalues, vectors = np.linalg.eigh(incidence.T @ (weights[:, None] * incidence))
            self.eigenvalues = np.maximum(eigenvalues, 0.0)
            base = vectors.T @ (incidence * weights[:, None]).T
        else:
            self.eigenvalues, base = weights, None
        known = np.column_stack([self.design, values])
        self.known = known.T @ (weights[:, None] * known)
        self.known_parts = weights[:, None] * known if base is None else base @ known
        self.cross = (weights[:, None] * known).T @ units.candidates
        self.information = weights @ units.candidates**2
        self.parts = weights[:, None] * units.candidates if base is None else base @ units.candidates
        self.noise = float((1 / weights).mean())
        self.are_pairs = np.arange(units.candidates.shape[1]) >= len(units.names)
        self.degrees = len(values) - self.design.shape[1]
        self.between = self._between()
        products = self.products(self.between)
        self.covariance: Floats = np.asarray(np.linalg.pinv(products[:-1, :-1]), dtype=np.float64)
        self.solution = self.covariance @ products[:-1, -1]

    def mean(self, confidence: float) -> Interval:
        """Return the mean with Hartung, Knapp, Sidik and Jonkman's interval.

        With Paule and Mandel's variance their factor is 1 by construction, and lower only if that variance is 0. The
        ad hoc modification then makes it 1, which gives Student's t interval of the mean's standard error.
        """
        centre, error = float(self.solution[0]), math.sqrt(max(0.0, float(self.covariance[0, 0])))
        half = t_quantile(self.freedom, confidence) * error
        return Interval(centre, centre - half, centre + half)

    @property
    def freedom(self) -> int:
        """Return the degrees of freedom of the spread without the outliers."""
        machines = len(self.units.names)
        machines_out = sum(each < machines for each in self.outliers)
        return max(1, min(machines - machines_out, len(self.units.keys) - (len(self.outliers) - machines_out)) - 1)

    def freedoms(self) -> Floats:
        """Return the degrees of freedom of the comparison for each candidate.

        For machines it is `freedom`; for pairs, the number of pairs beyond those that machines explain.
        """
        pairs_out = sum(self.are_pairs[each] for each in self.outliers)
        spare = max(0, len(self.units.values) - len(self.units.sizes) - pairs_out)
        return np.where(self.are_pairs, float(spare), float(self.freedom))

    def _pair_variance(self) -> float:
        """Return the variance of pairs beyond their machines, by restricted maximum likelihood with equal noise.

        Pairs that share a machine share its effect. Source: Patterson & Thompson, Biometrika 58 (1971), in the
        eigenbasis of machines.
        """
        units = self.units
        known = np.column_stack([self.design, units.values])
        parts, plain = units.directions.T @ known, known.T @ known
        ratios = np.concatenate(
            [[0.0], np.geomspace(1e-2, 1e4, 90)]
        )  # a machine's variance relative to the noise variance
        shares = ratios[:, None] * units.sizes / (1 + ratios[:, None] * units.sizes)
        products = plain - np.einsum("ri,gr,rj->gij", parts, shares, parts, optimize=True)
        inverses = np.linalg.pinv(products[:, :-1, :-1], hermitian=True)
        degrees = len(units.values) - self.design.shape[1]
        scatter = products[:, -1, -1] - np.einsum(
            "gi,gij,gj->g", products[:, :-1, -1], inverses, products[:, :-1, -1], optimize=True
        )
        noise = float(units.noise.mean())
        if degrees < 1:
            return 0.0
        totals = np.maximum(scatter / degrees, max(noise, TINY))
        criterion = degrees * np.log(totals) + scatter / totals + np.log1p(ratios[:, None] * units.sizes).sum(axis=1)
        criterion += np.linalg.slogdet(products[:, :-1, :-1])[1]
        return max(0.0, float(totals[np.argmin(criterion)]) - noise)

    def products(self, between: float) -> Floats:
        """Return the products of design and values with one another, by the inverse covariance."""
        shares = between / (1 + between * self.eigenvalues)
        return np.asarray(self.known - self.known_parts.T @ (shares[:, None] * self.known_parts), dtype=np.float64)

    def _between(self) -> float:
        """Return Paule and Mandel's variance between machines.

        For pairs, only the scatter that machines explain counts: no variance between machines reduces the rest, so
        Cochran's Q might otherwise never fall to its degrees of freedom.
        """
        spare = max(0, len(self.units.values) - len(self.units.sizes) - int(self.are_pairs[self.outliers].sum()))
        if self.degrees - spare < 1:
            return 0.0
        of_pairs = self._scatter(BOUNDLESS * self.noise)[0] if spare else 0.0
        return falling_root(self._scatter, of_pairs + self.degrees - spare)

    def _scatter(self, between: float) -> tuple[float, float]:
        """Return the weighted sum of squares around the model (Cochran's Q), and its slope."""
        products = self.products(between)
        solution = _solved(products[:-1, :-1], products[:-1, -1])
        residual = np.append(-solution, 1.0)
        slope = ((self.known_parts @ residual) / (1 + between * self.eigenvalues)) ** 2
        return max(0.0, float(residual @ products @ residual)), -float(slope.sum())

    def between_high(self, confidence: float) -> float:
        """Return the upper limit of the spread between machines (Viechtbauer's Q-profile, Stat. Med. 26, 2007)."""
        from scipy.special import chdtri

        spare = len(self.units.values) - len(self.units.sizes)  # degrees of freedom that machines do not explain
        machines = self.degrees - spare
        if machines < 1:
            return math.inf
        target = float(chdtri(machines, (1 + confidence) / 2))
        of_pairs = self._scatter(BOUNDLESS * (self.between + self.noise))[0] if spare else 0.0
        if self._scatter(0.0)[0] <= of_pairs + machines:  # a spread below the noise counts as equal to it
            noise = self.eigenvalues.size / float(self.eigenvalues.sum()) if self.units.paired else self.noise
            return math.sqrt(noise * (machines / target - 1))
        return math.sqrt(falling_root(self._scatter, of_pairs + target))

    def next_one(self, confidence: float) -> Interval:
        """Return the interval of the next machine, or of the next pair of new machines, by a model without shifts.

        The spread between machines has the uncertainty of Cochran's Q: each of its values is weighted by its
        confidence (Nagashima et al., Stat. Methods Med. Res. 28, 2019). For machines that are measured well it is
        Student's t.
        """
        from scipy.special import chdtri, ndtr

        spare = len(self.units.values) - len(self.units.sizes)
        machines = max(1, self.degrees - spare)
        scale = self.between + self.noise
        of_pairs = self._scatter(BOUNDLESS * scale)[0] if spare else 0.0
        targets = of_pairs + chdtri(machines, (np.arange(QUANTILES) + 0.5) / QUANTILES)
        totals = self.noise + scale * np.concatenate([[0.0], np.geomspace(1e-3, 1e5, 100)])
        spreads = totals[:, None] - self.noise
        shares = spreads / (1 + spreads * self.eigenvalues)
        ones, both, squares = (
            self.known[i, j] - shares @ (self.known_parts[:, i] * self.known_parts[:, j])
            for i, j in ((0, 0), (0, -1), (-1, -1))
        )
        centres, variances, scatters = both / ones, 1 / ones, squares - both**2 / ones
        reached = 1 / np.interp(targets, scatters[::-1], 1 / totals[::-1])
        between = np.maximum(0.0, reached - self.noise)
        middles = np.interp(reached, totals, centres)
        deviations = np.sqrt(between * (1 + self.units.paired) + self.pair + np.interp(reached, totals, variances))
        if not deviations.any():
            return Interval(middles[0], middles[0], middles[0])
        limits = []
        for share in ((1 - confidence) / 2, (1 + confidence) / 2):
            low, high = float(np.min(middles - 50 * deviations)), float(np.max(middles + 50 * deviations))
            for _ in range(60):
                middle = (low + high) / 2
                below = float(ndtr((middle - middles) / np.maximum(deviations, TINY)).mean())
                low, high = (middle, high) if below < share else (low, middle)
            limits.append((low + high) / 2)
        return Interval(sum(limits) / 2, *limits)

    def distances(self) -> tuple[Floats, Floats]:
        """Return each candidate's distance from the others, and its variance; nan if unknown.

        For each candidate, the spread is the variance at which the scatter without it has its expected value. The
        scatter is nearly linear in 1 / (variance between + noise), so the root is interpolated on a grid.
        """
        total = (self.between + self.noise) * self.degrees / max(1, self.degrees - 1)
        totals = np.unique(np.maximum(total * np.geomspace(1e-3, 1.05, 16), self.noise))
        grid = [self.one_by_one(max(0.0, each - self.noise)) for each in totals]
        distances, variances, scatters = (np.array(each) for each in zip(*grid, strict=True))
        if len(totals) == 1:
            return distances[0], variances[0]
        above = scatters > self.degrees - 1  # falls with the variance
        left = np.clip(above.sum(axis=0) - 1, 0, len(totals) - 2)
        columns = np.arange(len(left))
        first, second = scatters[left, columns], scatters[left + 1, columns]
        inverse = 1 / totals
        with np.errstate(invalid="ignore", divide="ignore"):
            inverted = inverse[left] + (self.degrees - 1 - first) / (second - first) * (
                inverse[left + 1] - inverse[left]
            )
            inverted = np.clip(inverted, inverse[left + 1], inverse[left])
            share = (1 / inverted - totals[left]) / (totals[left + 1] - totals[left])
        share = np.where(above[0] & np.isfinite(share), share, 0.0)
        mix = [each[left, columns] * (1 - share) + each[left + 1, columns] * share for each in (distances, variances)]
        return mix[0], mix[1]

    def one_by_one(self, between: float) -> tuple[Floats, Floats, Floats]:
        """Return each candidate's distance, its variance, and the scatter that is left without it."""
        products = self.products(between)
        shares = between / (1 + between * self.eigenvalues)
        cross = self.cross - self.known_parts.T @ (shares[:, None] * self.parts)
        information = self.information - shares @ self.parts**2
        solved = _solved(products[:-1, :-1], np.column_stack([products[:-1, -1], cross[:-1]]))
        solution, candidates = solved[:, 0], solved[:, 1:]
        left = information - (cross[:-1] * candidates).sum(axis=0)
        known = left > 1e-7 * self.information
        left = np.where(known, left, np.nan)
        pull = cross[-1] - solution @ cross[:-1]
        scatter = float(products[-1, -1] - solution @ products[:-1, -1])
        return pull / left, 1 / left, scatter - pull**2 / left


def _solved(products: Floats, values: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(products, values), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(products, values, rcond=None)[0], dtype=np.float64)


# -- outliers -----------------------------------------------------------------------------------


def _effects(
    units: _Units, margin: float, confidence: float
) -> tuple[tuple[MachineEffect, ...], tuple[PairEffect, ...]]:
    if min(len(units.names), len(units.keys)) < MIN_MACHINES_ODD:
        return (), ()
    alpha = 1 - confidence
    model = _without_odd(units, margin, alpha)
    distances, variances, freedom = _distances(model, margin)
    places = np.flatnonzero(units.comparable & np.isfinite(variances))
    p_values = _p_values(distances[places], variances[places], freedom[places])
    adjusted = [min(1.0, p / ONE_BY_ONE) for p in holm(p_values.tolist())]
    rejected = sum(each <= alpha for each in adjusted)
    results: dict[int, tuple[float, Interval, float, bool]] = {}
    for rank, i in enumerate(np.argsort(p_values, kind="stable").tolist()):
        place, distance = int(places[i]), float(distances[places[i]])
        level = ONE_BY_ONE * alpha / (len(places) - min(rank, rejected))
        half = t_quantile(float(freedom[place]), 1 - level) * math.sqrt(float(variances[place]))
        is_outlier = (
            adjusted[i] <= alpha and abs(distance) >= margin and _with_every_partner(model, place, distance, margin)
        )
        results[place] = distance, Interval(distance, distance - half, distance + half), adjusted[i], is_outlier
    machines = len(units.names)
    return (
        tuple(
            MachineEffect(name, *results[i], runs=units.runs[name])
            for i, name in enumerate(units.names)
            if i in results
        ),
        tuple(
            PairEffect((key[0], key[1]), *results[machines + i])
            for i, key in enumerate(units.keys)
            if machines + i in results
        ),
    )


def _without_odd(units: _Units, margin: float, alpha: float) -> _Model:
    """Return the model with a shift for each outlier: the largest set in which all, taken together, are outliers."""
    model = clean = _Model(units)
    suspects: list[int] = []
    while len(suspects) < min(len(units.names) // MOST_OUTLIERS, len(clean.outliers) + LOOK_AHEAD):
        distances, variances, _ = model.one_by_one(model.between)
        scores = np.abs(distances) / np.sqrt(variances)
        scores[~units.comparable | (np.abs(distances) < margin / 2) | ~np.isfinite(scores)] = 0.0
        scores[(model.freedoms() < 2) & (margin == 0)] = 0.0
        if model.freedom < 2 or not scores.any():
            break
        suspects.append(int(np.argmax(scores)))
        model = _Model(units, suspects)
        if _all_odd(model, margin, alpha):
            clean = model
    return clean


def _all_odd(model: _Model, margin: float, alpha: float) -> bool:
    """Return whether each suspect is an outlier, and all of them together among all sets of that size.

    The second test is a Wald test of all shifts by F with Bonferroni's correction, because sets are chosen by
    distance.
    """
    from scipy.special import fdtrc, gammaln

    shifts, together, number = model.solution[1:], len(model.outliers), int(model.units.comparable.sum())
    covariance, freedom = _covariance(model, margin)
    p_values = np.sort(_p_values(shifts, np.diag(covariance), freedom))
    if np.any(np.abs(shifts) < margin) or np.any(p_values * (number - np.arange(together)) > alpha * ONE_BY_ONE):
        return False
    if not all(
        _with_every_partner(model, *each, margin) for each in zip(model.outliers, shifts.tolist(), strict=True)
    ):
        return False
    if together == 1:
        return True
    sets = gammaln(number + 1) - gammaln(together + 1) - gammaln(number - together + 1)
    wald = float(shifts @ np.linalg.pinv(covariance, hermitian=True) @ shifts) / together
    chance = float(fdtrc(together, freedom.min(), wald))
    return chance == 0 or math.log(chance) + float(sets) <= math.log(alpha * (1 - ONE_BY_ONE))


def _distances(model: _Model, margin: float) -> tuple[Floats, Floats, Floats]:
    """Return each candidate's distance from the others, its variance and degrees of freedom; nan if unknown."""
    distances, variances = model.distances()
    freedom = np.maximum(model.freedoms() - 1, 0.0)
    expected = (margin * EXPECTED) ** 2
    at_margin = model.one_by_one(expected)[1] + np.where(model.are_pairs, expected, 0.0)
    unknown = freedom == 0  # too few others to have a spread
    prior = np.where(unknown | (variances <= at_margin), PRIOR, 0.0)  # no prior if the others differ by more
    if margin:
        mixed = (freedom * variances + prior * at_margin) / np.maximum(freedom + prior, 1)
        variances, freedom = np.where(unknown, at_margin, mixed), freedom + prior
    else:
        variances = np.where(unknown, np.nan, variances)
    if model.outliers:
        distances[model.outliers] = model.solution[1:]
        covariance, freedom[model.outliers] = _covariance(model, margin)
        variances[model.outliers] = np.diag(covariance)
    return distances, variances, freedom


def _covariance(model: _Model, margin: float) -> tuple[Floats, Floats]:
    freedom, covariance = model.freedoms()[model.outliers], model.covariance[1:, 1:]
    if not margin:
        return covariance, freedom
    expected = (margin * EXPECTED) ** 2
    at_margin = np.linalg.pinv(model.products(expected)[:-1, :-1], hermitian=True)[1:, 1:]
    at_margin += np.diag(np.where(model.are_pairs[model.outliers], expected, 0.0))
    prior = np.where((freedom == 0) | (np.diag(covariance) <= np.diag(at_margin)), PRIOR, 0.0)
    total = freedom + prior
    of_data, of_prior = np.sqrt(freedom / total), np.sqrt(prior / total)
    mixed = np.outer(of_data, of_data) * covariance + np.outer(of_prior, of_prior) * at_margin
    return np.asarray(mixed, dtype=np.float64), total


def _with_every_partner(model: _Model, place: int, distance: float, margin: float) -> bool:
    """Return whether a machine is half as far away without its worst partner; True for pairs and single machines."""
    units = model.units
    if not units.paired or model.are_pairs[place]:
        return True
    others = [each for each in model.outliers if each != place]
    shifts = dict(zip(model.outliers, model.solution[1:].tolist(), strict=True))
    explained = units.candidates[:, others] @ np.array([shifts[each] for each in others]) + model.solution[0]
    away = math.copysign(1.0, distance) * (units.values - explained)[units.candidates[:, place] > 0]
    return float(np.sort(away)[:-1].mean()) >= max(margin, abs(distance)) / 2


def _p_values(distances: Floats, variances: Floats, freedom: Floats) -> Floats:
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(variances > 0, np.abs(distances) / np.sqrt(variances), np.where(distances == 0, 0.0, np.inf))
    return np.asarray(np.minimum(1.0, 2 * stdtr(freedom, -t)))
