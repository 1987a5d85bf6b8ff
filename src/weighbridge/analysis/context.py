"""What is known of a run as a whole, beside which each comparison is judged."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weighbridge.analysis.arm_remarks import about_series, about_trials
from weighbridge.analysis.bottleneck import Bottleneck, shared_limit
from weighbridge.analysis.confounders import Fact, confounders
from weighbridge.analysis.durability import other_durability
from weighbridge.analysis.isolation import Isolation
from weighbridge.analysis.overload import Broke
from weighbridge.analysis.paths import Paths
from weighbridge.analysis.plan import Plan
from weighbridge.analysis.readings import ReadingRate
from weighbridge.analysis.remarks import Extended, Remark
from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.flag import Flag
from weighbridge.model.level import Level
from weighbridge.statistics.verdicts import failing


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of the run as a whole. ``tolerance`` is the disagreement of means that is no news, a fraction."""

    trials: Sequence[TrialRow]
    confounders: Sequence[Remark]
    baseline: str
    planned_blocks: int | None
    tolerance: float | None
    target: float | None
    plan: Plan
    sizes: Mapping[str, str] = field(default_factory=dict)
    """Packet sizes by "ENVIRONMENT/WORKLOAD LABEL", see `weighbridge.analysis.confounders.packet_sizes`."""
    durability: Mapping[str, str] = field(default_factory=dict)
    """By "ENVIRONMENT/WORKLOAD LABEL", see `weighbridge.analysis.durability.durabilities`."""
    readings: ReadingRate | None = None
    """How often the meters read; None where no trial has readings."""
    interrupts: Collection[str] = ()
    """`InterruptTime` of each of the run's hosts, as far as the run has it."""
    limits: Mapping[tuple[str, Level, str], Sequence[Flag | None]] = field(default_factory=dict)
    """The bottleneck of each good trial, by workload, level and environment."""
    broken: Mapping[tuple[str, Level, str], Broke] = field(default_factory=dict)
    """Where trials broke under their load: workload, level, environment."""
    paths: Paths = field(default_factory=Paths)
    extended: Sequence[Extended] = ()
    """That the number of blocks was changed after the run had begun."""
    cells: Mapping[tuple[str, Level], Sequence[TrialRow]] | None = None
    """`trials` by workload and level, as `by_cell` gives them; it saves time."""
    isolation: Mapping[str, Isolation] = field(default_factory=dict)
    """The hypervisors of the environments that are in some."""
    facts: Sequence[Fact] = ()
    """All of the run's."""
    known: dict[tuple[str | Level, ...], list[Remark]] = field(default_factory=dict)
    """What was said of an arm before: an arm is in many comparisons."""

    def between(self, against: str, environment: str) -> "Context":
        """Give what is known as far as it concerns two environments, the first in the baseline's place."""
        return replace(
            self,
            baseline=against,
            confounders=confounders(self.facts, against, (against, environment)),
            target=None,  # the run stops on the precision of the comparisons with the baseline
        )

    def of_cell(self, workload: str, level: Level) -> Sequence[TrialRow]:
        """Give the trials of a workload at a level."""
        cells = by_cell(self.trials) if self.cells is None else self.cells
        return cells.get((workload, level), ())

    def about_arm(self, report: MetricReport, environment: str) -> list[Remark]:
        """Give what is to be known of an environment's own values of a metric and of its trials."""
        arm = report.workload, report.level, environment
        series = (*arm, report.metric)
        if series not in self.known:
            mine = [trial for trial in self.of_cell(*arm[:2]) if trial.environment == environment]
            self.known[series] = about_series(report.metric, environment, mine)
            if arm not in self.known:
                self.known[arm] = about_trials(environment, mine, self.broken.get(arm))
        return self.known[series] + self.known[arm]

    def failing(self) -> set[tuple[str, Level, str]]:
        """Give each (workload, level, environment) that failed too often, or broke: what is left is a selection."""
        outcomes: dict[tuple[str, Level, str], list[bool]] = {}
        for trial in (each for each in self.trials if not each.broke):
            outcomes.setdefault((trial.workload, trial.level, trial.environment), []).append(trial.ok)
        return {where for where, ok in outcomes.items() if failing(ok)} | set(self.broken)

    def never_equivalent(
        self, report: MetricReport, environment: str, failing: Collection[tuple[str, Level, str]]
    ) -> bool:
        """Whether one of the two sides is among the `failing`, or they do not keep alike what they acknowledged."""
        arms = ((report.workload, report.level, name) for name in (self.baseline, environment))
        unlike = other_durability(self.durability, report.label, environment, self.baseline)
        return unlike is not None or any(arm in failing for arm in arms)

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


def by_cell(trials: Sequence[TrialRow]) -> dict[tuple[str, Level], list[TrialRow]]:
    """Give the trials of each workload and level."""
    found: dict[tuple[str, Level], list[TrialRow]] = {}
    for trial in trials:
        found.setdefault((trial.workload, trial.level), []).append(trial)
    return found
