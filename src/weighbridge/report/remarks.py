"""What a reader has to know beside a number. Nothing here changes a number."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from weighbridge.report.content import Comparison, MetricReport, Remark, TrialRow
from weighbridge.report.family import ALPHA, excludes_no_cost, failing, within_noise
from weighbridge.report.numbers import difference_interval, floor_text, percent_interval, plain, share
from weighbridge.statistics import cost_percent, flags, next_look

CODES = {
    "aa": "the row is the baseline measured a second time",
    "no-blocks": "no block has a value of both sides, so there is no cost",
    "one-block": "a single block: no interval can be given",
    "exploratory": "fewer than ten blocks: the interval leans on normality",
    "incomplete": "fewer blocks than were planned or tried",
    "target": "the precision that the study asked for was not reached",
    "difference": "the cost is a difference in the unit: a count, a share, beyond a baseline, or a value was zero",
    "holm": "the interval excludes no cost, but not after correction for the number of comparisons",
    "noise": "the cost is no larger than the noise floor that the A/A arm shows for this metric: never different",
    "stalls": "the arithmetic cost's interval excludes the typical cost: a few runs are far from the others",
    "selected": "more than one of ten trials failed: the cost is that of the runs that succeeded, never equivalent",
    "outliers": "values further than 5 * 1.4826 MAD from the median (kept); from eight values on",
    "drift": "values rise or fall in the order in which they ran (Kendall's tau, p < 0.01)",
    "autocorrelation": "successive values resemble one another (rank von Neumann ratio, p < 0.01)",
    "failed": "trials that gave no measurement",
    "errors": "trials whose program reported errors beside its result",
    "trial": "trials that were flagged when they ran (steal, throttling, pressure, load, saturation)",
    "packet-size": "measured with other packet sizes than the baseline: part of the cost may be theirs",
    "confounder": "something besides the isolation differs: versions, limits that could not be honoured",
}
"""Every code of a Remark with its meaning. Codes are stable: they are in ``report --json``."""


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of the run as a whole. ``tolerance`` is the disagreement of means that is no news, a fraction."""

    trials: Sequence[TrialRow]
    confounders: Sequence[Remark]
    baseline: str
    planned_blocks: int | None
    tolerance: float | None
    target: float | None
    sizes: Mapping[str, str] = field(default_factory=dict)
    """Packet sizes by "ENVIRONMENT/WORKLOAD LABEL", see `packet_sizes`."""

    def failing(self) -> set[tuple[str, str, str]]:
        """Give each (workload, level, environment) that failed too often."""
        outcomes: dict[tuple[str, str, str], list[bool]] = {}
        for trial in self.trials:
            outcomes.setdefault((trial.workload, trial.level, trial.environment), []).append(trial.ok)
        return {where for where, ok in outcomes.items() if failing(ok)}


def about(report: MetricReport, row: Comparison, context: Context) -> tuple[Remark, ...]:
    """Give every remark about one comparison, the ones that weigh most first."""
    here = [t for t in context.trials if (t.workload, t.level) == (report.workload, report.level)]
    found = [Remark("aa", f"this is {context.baseline} itself, measured a second time")] if row.aa else []
    found += _about_blocks(row, here, context)
    found += _about_target(report, row, context.target)
    found += _about_cost(report, row, context)
    found += _about_sizes(report, row, context)
    for environment in (context.baseline, row.environment):
        mine = [trial for trial in here if trial.environment == environment]
        found += _about_series(report.metric, environment, mine)
        found += _about_trials(environment, mine)
    names = {context.baseline, row.environment, OUTSIDE}
    found += [each for each in context.confounders if each.text.split(":")[0] in names]
    return tuple(found)


def _about_blocks(row: Comparison, trials: Sequence[TrialRow], context: Context) -> list[Remark]:
    tried = {trial.block for trial in trials if trial.environment == row.environment}
    planned = context.planned_blocks or len(tried)
    if row.cost is None:
        return [Remark("no-blocks", "no block has a value of both sides, so there is no cost")]
    found = []
    if row.blocks == 1:
        found.append(Remark("one-block", "one block gives no interval: run more"))
    elif row.cost.exploratory:
        found.append(Remark("exploratory", f"{row.blocks} blocks: exploratory below ten"))
    if row.blocks < planned:
        found.append(Remark("incomplete", f"{row.blocks} of {planned} blocks are complete"))
    return found


def _about_target(report: MetricReport, row: Comparison, target: float | None) -> list[Remark]:
    """The target is about each workload's headline metric."""
    cost = row.cost
    if target is None or cost is None or row.aa or not report.headline or cost.half_width <= target:
        return []
    predicted = next_look(cost.blocks, [cost], target).predicted_blocks
    needed = f"; about {predicted} blocks would be needed" if predicted else ""
    width = share(cost.half_width) if math.isfinite(cost.half_width) else "no relative width"
    return [Remark("target", f"target {share(target)} not reached: {width} after {cost.blocks} blocks{needed}")]


def _about_cost(report: MetricReport, row: Comparison, context: Context) -> list[Remark]:
    cost, found = row.cost, []
    if cost is None:
        return []
    if cost.scale == "difference":
        difference = difference_interval(cost.interval, report.unit)
        text = f"the cost is a difference: {difference}"
        found.append(Remark("difference", text))
    if row.verdict == "inconclusive" and excludes_no_cost(cost) and not cost.equivalent and not row.aa:
        if row.adjusted_p is not None and row.adjusted_p > ALPHA:
            p_value = plain(row.adjusted_p, 2)
            found.append(Remark("holm", f"does not stand after correction for all comparisons (Holm p = {p_value})"))
        aa = report.aa.cost if report.aa else None
        if within_noise(cost, aa):
            floor = "" if report.noise_floor is None else f" of {floor_text(report.noise_floor)}"
            found.append(Remark("noise", f"no larger than this metric's noise floor{floor}"))
    gap = cost.disagreement
    if cost.exploratory or gap is None or context.tolerance is None:
        return found  # with few blocks, neither of the two means says much
    if gap > context.tolerance and not cost.arithmetic.low <= cost.typical <= cost.arithmetic.high:
        mean = percent_interval(cost_percent(cost.arithmetic, cost.better))
        text = f"the mean cost is {mean}, far from the typical one: a few runs stall or spring ahead"
        found.append(Remark("stalls", text))
    return found


def packet_sizes(facts: Iterable[tuple[str, str, str, float]]) -> dict[str, str]:
    """Give the facts of scope "packet sizes": "ENVIRONMENT/WORKLOAD LABEL" -> "1418 B", perhaps "1472 B (probed)"."""
    return {key: value for scope, key, value, _ in facts if scope == "packet sizes"}


def _about_sizes(report: MetricReport, row: Comparison, context: Context) -> list[Remark]:
    """A size that was probed and one that was given are the same when they are as large."""
    names = (f"{name}/{report.label}" for name in (row.environment, context.baseline))
    mine, other = (context.sizes.get(name, "").split(" (")[0] for name in names)
    if not mine or not other or mine == other:
        return []
    return [Remark("packet-size", f"measured with other packet sizes: {mine} against {other}")]


def _about_series(metric: str, environment: str, trials: Sequence[TrialRow]) -> list[Remark]:
    series = [trial.values[metric] for trial in trials if metric in trial.values]
    seen, found = flags(series), []
    if seen.outliers:
        are = "is an outlier" if len(seen.outliers) == 1 else "are outliers"
        found.append(Remark("outliers", f"{environment}: {len(seen.outliers)} of {len(series)} runs {are} (kept)"))
    if seen.drift is not None and seen.drift.flagged:
        way = "up" if seen.drift.statistic > 0 else "down"
        found.append(
            Remark("drift", f"{environment} drifts {way} during the session (tau {seen.drift.statistic:+.2f})")
        )
    if seen.autocorrelation is not None and seen.autocorrelation.flagged:
        found.append(Remark("autocorrelation", f"{environment}: successive runs resemble one another"))
    return found


def _about_trials(environment: str, trials: Sequence[TrialRow]) -> list[Remark]:
    found = []
    failed = Counter(trial.outcome for trial in trials if not trial.ok)
    if failed:
        how = ", ".join(f"{count} {outcome}" for outcome, count in failed.most_common())
        found.append(Remark("failed", f"{environment}: {failed.total()} of {len(trials)} trials failed ({how})"))
    if failing([trial.ok for trial in trials]):
        found.append(Remark("selected", f"{environment}: the cost is that of the runs that succeeded"))
    kinds = Counter(kind for trial in trials for kind in sorted({_kind(flag) for flag in trial.flags}))
    for kind, count in kinds.most_common():
        code = "errors" if kind.startswith("error") else "trial"
        found.append(Remark(code, f"{environment}: {kind} in {count} of {len(trials)} trials"))
    return found


def _kind(flag: str) -> str:
    """What a trial's flag is about, without its figures: ``steal 3.1 %`` -> ``steal``."""
    return re.split(r"[:=(]|\s+[-+]?\d", flag, maxsplit=1)[0].strip() or flag


COMPARED = ("userland", "packages", "user")
"""Facts of a site that have to be the same in every environment, beside those that start with ``version``."""

OUTSIDE = "outside"
"""Scope of the roles that are in no environment: what is said of them is about every environment."""

HOST_DIFFERENCES = "host differences"
"""Scope of what differs between the hosts of a run: clock, kernel, packages, CPU."""


def confounders(
    facts: Iterable[tuple[str, str, str, float]], baseline: str, environments: Sequence[str]
) -> tuple[Remark, ...]:
    """Give what differs besides the isolation, from the facts of scopes ``environment`` or ``environment/role``.

    A key that starts with ``not honoured`` is one by itself; those in `COMPARED` and with ``version`` at the start
    are one where the value differs from that of the baseline's same role (or, where the baseline has none, from the
    userland's). The text starts with the name of the environment concerned and a colon. What differs between the
    hosts (scope "host differences": what -> sentence) is about every environment and starts with "hosts:".
    """
    by_site: dict[tuple[str, str], dict[str, str]] = {}
    hosts: dict[str, str] = {}
    for scope, key, value, _ in facts:
        if scope == HOST_DIFFERENCES:
            hosts[key] = value
        name, _, role = scope.partition("/")
        by_site.setdefault((name, role), {})[key] = value
    found = [f"hosts: {text}" for text in hosts.values()]
    for (name, role), site in by_site.items():
        if name in (*environments, OUTSIDE):
            reference = {**by_site.get(("userland", ""), {}), **by_site.get((baseline, role), {})}
            found += [f"{name}: {text}" for text in _not_honoured(site)]
            if name not in (baseline, OUTSIDE):
                found += [f"{name}: {text}" for text in _different(site, reference, baseline)]
    return tuple(Remark("confounder", text) for text in dict.fromkeys(found))


def _not_honoured(site: dict[str, str]) -> list[str]:
    found = []
    for key, value in site.items():
        if key.startswith("not honoured"):
            what = key.removeprefix("not honoured").lstrip(": ")
            found.append(f"not honoured: {value if value.startswith(what) else f'{what}: {value}'}")
    return found


def _different(site: dict[str, str], reference: dict[str, str], baseline: str) -> list[str]:
    found = []
    for key, value in site.items():
        if (key in COMPARED or key.startswith("version")) and reference.get(key, value) != value:
            what = key.removeprefix("version").lstrip(": ") or "version"
            long = len(value) > 40 or len(reference[key]) > 40  # a digest says nothing to a reader
            how = f"not the same as in {baseline}" if long else f"{value}, but {reference[key]} in {baseline}"
            found.append(f"{what}: {how}")
    return found
