"""What a reader has to know beside a number. Nothing here changes a number."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weighbridge.analysis.bottleneck import Bottleneck, shared_limit
from weighbridge.analysis.confounders import OUTSIDE, bare
from weighbridge.analysis.durability import unlike
from weighbridge.analysis.formatting import difference_interval, floor_text, percent_interval, plain, share
from weighbridge.analysis.paths import Paths
from weighbridge.analysis.readings import Readings
from weighbridge.analysis.resources import SITES_CPU, by_difference
from weighbridge.analysis.results import Comparison, MetricReport, Remark
from weighbridge.analysis.sweep import Broke
from weighbridge.analysis.trial_flags import about_flags
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.analysis.verdicts import ALPHA, excludes_no_cost, failing, proves_nothing, within_noise
from weighbridge.model.flag import Flag
from weighbridge.model.interrupts import InterruptTime
from weighbridge.statistics import cost_percent, flags, next_look
from weighbridge.store.extensions import Extension

CODES = {
    "aa": "the row is the baseline measured a second time",
    "no-blocks": "no block has a value of both sides, so there is no cost",
    "one-block": "a single block: no interval can be given",
    "exploratory": "fewer than ten blocks: the interval leans on normality",
    "incomplete": "fewer blocks than were planned or tried",
    "extended": "the number of blocks was changed after looking: intervals and p-values are those of a further look",
    "target": "the precision that the study asked for was not reached",
    "difference": "the cost is a difference in the unit: a count, a share, beyond a baseline, or a value was zero",
    "holm": "the interval excludes no cost, but not after correction for the number of comparisons",
    "noise": "the cost is no larger than the noise floor that the A/A arm shows for this metric: never different",
    "identical": "every block says the same, but so few blocks may do so by chance: neither different nor equivalent",
    "stalls": "the arithmetic cost's interval excludes the typical cost: a few runs are far from the others",
    "selected": "more than one of ten trials failed: the cost is that of the runs that succeeded, never equivalent",
    "outliers": "values further than 5 * 1.4826 MAD from the median (kept); from eight values on",
    "drift": "values rise or fall in the order in which they ran (Kendall's tau, p < 0.01)",
    "autocorrelation": "successive values resemble one another (rank von Neumann ratio, p < 0.01)",
    "broke": "the load was more than the server bears: a result, never equivalent; the cost is that of other blocks",
    "failed": "trials that gave no measurement",
    "errors": "trials whose program reported errors beside its result",
    "trial": "trials that were flagged when they ran (steal, throttling, pressure, saturation)",
    "readings": "the trials are so short that the meters read only a few times in each: means and peaks are chance",
    "packet-size": "measured with other packet sizes than the baseline: part of the cost may be theirs",
    "path": "its network path differs from the baseline's besides the isolation: part of the cost may be the path's",
    "no-path": "the network path of one of the two is not known: never different, never equivalent",
    "interrupt-time": "a site's own CPU time leaves out the network stack's interrupts here: read cpu_all_per_*",
    "durability": "it keeps less, or more, of what it acknowledged than the baseline does: never equivalent",
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
    """Packet sizes by "ENVIRONMENT/WORKLOAD LABEL", see `weighbridge.analysis.confounders.packet_sizes`."""
    durability: Mapping[str, str] = field(default_factory=dict)
    """By "ENVIRONMENT/WORKLOAD LABEL", see `weighbridge.analysis.durability.durabilities`."""
    readings: Readings | None = None
    """How often the meters read; None where no trial has readings."""
    interrupts: Collection[str] = ()
    """`InterruptTime` of each of the run's hosts, as far as the run has it."""
    limits: Mapping[tuple[str, str, str], Sequence[Flag | None]] = field(default_factory=dict)
    """The bottleneck of each good trial, by workload, level and environment."""
    broken: Mapping[tuple[str, str, str], Broke] = field(default_factory=dict)
    """Where trials broke under their load: workload, level, environment."""
    paths: Paths = field(default_factory=Paths)
    extended: tuple[Remark, ...] = ()
    """That the number of blocks was changed after the run had begun."""
    cells: Mapping[tuple[str, str], Sequence[TrialRow]] | None = None
    """`trials` by workload and level, as `by_cell` gives them; it saves time."""
    known: dict[tuple[str, ...], list[Remark]] = field(default_factory=dict)
    """What was said of an arm before: an arm is in many comparisons."""

    def of_cell(self, workload: str, level: str) -> Sequence[TrialRow]:
        """Give the trials of a workload at a level."""
        cells = by_cell(self.trials) if self.cells is None else self.cells
        return cells.get((workload, level), ())

    def about_arm(self, report: MetricReport, environment: str) -> list[Remark]:
        """Give what is to be known of an environment's own values of a metric and of its trials."""
        arm = report.workload, report.level, environment
        series = (*arm, report.metric)
        if series not in self.known:
            mine = [trial for trial in self.of_cell(*arm[:2]) if trial.environment == environment]
            self.known[series] = _about_series(report.metric, environment, mine)
            if arm not in self.known:
                self.known[arm] = _about_trials(environment, mine, self.broken.get(arm))
        return self.known[series] + self.known[arm]

    def failing(self) -> set[tuple[str, str, str]]:
        """Give each (workload, level, environment) that failed too often, or broke: what is left is a selection."""
        outcomes: dict[tuple[str, str, str], list[bool]] = {}
        for trial in (each for each in self.trials if not each.broke):
            outcomes.setdefault((trial.workload, trial.level, trial.environment), []).append(trial.ok)
        return {where for where, ok in outcomes.items() if failing(ok)} | set(self.broken)

    def never_equivalent(
        self, report: MetricReport, environment: str, failing: Collection[tuple[str, str, str]]
    ) -> bool:
        """Whether one of the two sides is among the `failing`, or they do not keep alike what they acknowledged."""
        arms = ((report.workload, report.level, name) for name in (self.baseline, environment))
        return any(arm in failing for arm in arms) or bool(
            unlike(self.durability, report.label, environment, self.baseline)
        )

    def hidden(self, report: MetricReport, environment: str) -> Bottleneck | None:
        """What hides a difference between an environment and the baseline; nothing hides resource use."""
        if report.resource_use:
            return None
        sides = [self.limits.get((report.workload, report.level, name), ()) for name in (self.baseline, environment)]
        return shared_limit(sides[0], sides[1], report.unit)

    def with_breaks(self, report: MetricReport, row: Comparison) -> Comparison:
        """Give a comparison that knows which of its sides broke."""
        own, other = (
            self.broken.get((report.workload, report.level, name)) for name in (row.environment, self.baseline)
        )
        return replace(row, broke=own, baseline_broke=other)


def by_cell(trials: Sequence[TrialRow]) -> dict[tuple[str, str], list[TrialRow]]:
    """Give the trials of each workload and level."""
    found: dict[tuple[str, str], list[TrialRow]] = {}
    for trial in trials:
        found.setdefault((trial.workload, trial.level), []).append(trial)
    return found


def about(report: MetricReport, row: Comparison, context: Context) -> tuple[Remark, ...]:
    """Give every remark about one comparison, the ones that weigh most first."""
    here = context.of_cell(report.workload, report.level)
    found = [Remark("aa", f"this is {context.baseline} itself, measured a second time")] if row.aa else []
    found += _about_blocks(row, here, context)
    found += context.extended
    found += _about_target(report, row, context.target)
    found += _about_cost(report, row, context)
    found += _about_sizes(report, row, context)
    found += _about_paths(report, row, context)
    if text := unlike(context.durability, report.label, row.environment, context.baseline):
        found.append(Remark("durability", text))
    found += _about_interrupts(report, context.interrupts)
    found += _about_readings(report, here, context.readings)
    for environment in (context.baseline, row.environment):
        found += context.about_arm(report, environment)
    names = {context.baseline, row.environment, OUTSIDE}
    found += [each for each in context.confounders if each.code == "confounder" and each.text.split(":")[0] in names]
    return tuple(found)


def about_changes(changes: Sequence[Extension]) -> tuple[Remark, ...]:
    """Give the remark that the number of blocks was changed after results were there to be looked at."""
    looked = [change for change in changes if change.looked]
    if not looked:
        return ()
    first, last = looked[0], looked[-1]
    how = "extended" if last.blocks > first.planned else "cut"
    at = " and ".join(str(change.after) for change in looked)
    text = f"{how} from {first.planned} to {last.blocks} blocks after looking at {at}"
    text += ": after such looks more than 5 % of the verdicts are false alarms (about 7 % after one)"
    return (Remark("extended", text),)


def _about_blocks(row: Comparison, trials: Sequence[TrialRow], context: Context) -> list[Remark]:
    planned = context.planned_blocks or len({t.block for t in trials if t.environment == row.environment})
    if row.cost is None:
        return [] if row.instead else [Remark("no-blocks", "no block has a value of both sides, so there is no cost")]
    found = []
    if row.blocks == 1:
        found.append(Remark("one-block", "one block gives no interval: run more"))
    elif row.cost.exploratory:
        found.append(Remark("exploratory", f"{row.blocks} blocks: exploratory below ten"))
    arms = (context.baseline, row.environment)
    broke = {trial.block for trial in trials if trial.broke and trial.environment in arms}
    if row.blocks + len(broke) < planned:
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
    if row.blocks > 1 and proves_nothing(cost) and not row.aa:
        found.append(Remark("identical", f"all {row.blocks} blocks say the same: too few to rule out chance"))
    if row.verdict == "inconclusive" and excludes_no_cost(cost) and not cost.equivalent and not row.aa:
        if row.adjusted_p is not None and row.adjusted_p > ALPHA:
            p_value = plain(row.adjusted_p, 2)
            found.append(Remark("holm", f"not significant after Holm's correction (p = {p_value})"))
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


def _about_sizes(report: MetricReport, row: Comparison, context: Context) -> list[Remark]:
    """A size that was probed and one that was given are the same when they are as large."""
    names = (f"{name}/{report.label}" for name in (row.environment, context.baseline))
    mine, other = (bare(context.sizes.get(name, "")) for name in names)
    if not mine or not other or mine == other:
        return []
    return [Remark("packet-size", f"measured with other packet sizes: {mine} against {other}")]


def _about_paths(report: MetricReport, row: Comparison, context: Context) -> list[Remark]:
    where = report.workload, report.level
    if context.paths.missing(*where, context.baseline, row.environment):
        return [Remark("no-path", "the network path of one of the two is not known: no verdict")]
    text = context.paths.difference(*where, row.environment, context.baseline)
    return [Remark("path", f"another network path: {text}")] if text else []


def _about_readings(report: MetricReport, trials: Sequence[TrialRow], readings: Readings | None) -> list[Remark]:
    """What a host used and what memory peaked at is read a few times a second: short trials have too few readings."""
    if readings is None or not by_difference(report.metric):
        return []
    advice = readings.advice([trial.id for trial in trials if trial.ok])
    return [Remark("readings", advice)] if advice else []


def _about_interrupts(report: MetricReport, kinds: Collection[str]) -> list[Remark]:
    charged: InterruptTime = "charged to the interrupted task"
    apart: InterruptTime = "accounted apart"
    if not report.metric.startswith(SITES_CPU) or set(kinds) <= {charged}:
        return []
    sure = apart in kinds
    text = f"the network stack's interrupt time is {'not in this figure' if sure else 'perhaps not in this figure'}"
    return [Remark("interrupt-time", f"{text}: read the CPU of all of the machine")]


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


def _about_trials(environment: str, trials: Sequence[TrialRow], broke: Broke | None) -> list[Remark]:
    found = []
    if broke is not None and broke.always:
        found.append(Remark("broke", f"{environment}: broke in every trial ({broke.trials}): {broke.reason}"))
    elif broke is not None:
        text = f"measured in {broke.measured} of {broke.measured + broke.lost} blocks; broke in {broke.lost}"
        found.append(Remark("broke", f"{environment}: {text} ({broke.reason}): the cost is that of the others"))
    others = [trial for trial in trials if not trial.broke]
    failed = Counter(trial.outcome for trial in others if not trial.ok)
    if failed:
        how = ", ".join(f"{count} {outcome}" for outcome, count in failed.most_common())
        found.append(Remark("failed", f"{environment}: {failed.total()} of {len(trials)} trials failed ({how})"))
    if failing([trial.ok for trial in others]):
        found.append(Remark("selected", f"{environment}: the cost is that of the runs that succeeded"))
    return [*found, *about_flags(environment, trials)]
