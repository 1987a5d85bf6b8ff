"""The rules that find remarks: what a rule is about, and the order of what the rules find."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from weighbridge.analysis.context import Context
from weighbridge.analysis.overload import Breakage
from weighbridge.analysis.results import Comparison, MetricReport, Remark
from weighbridge.analysis.trends import SeriesTrends
from weighbridge.analysis.trial_row import TrialRow

Subject = TypeVar("Subject")


Rule = Callable[[Subject], Iterable[Remark]]


class Rules(Generic[Subject]):
    """The rules about subjects of one type. An instance, called with a rank, is a decorator for rules."""

    def __init__(self) -> None:
        self._rules: dict[int, Rule[Subject]] = {}

    def __call__(self, rank: int) -> Callable[[Rule[Subject]], Rule[Subject]]:
        """Add a rule. Its remarks come after those of rules with a lower rank. No two rules have the same rank."""

        def add(rule: Rule[Subject]) -> Rule[Subject]:
            assert rank not in self._rules, rank
            self._rules = dict(sorted({**self._rules, rank: rule}.items()))
            return rule

        return add

    def remarks(self, subject: Subject) -> list[Remark]:
        """Return the remarks of all rules, in the order of their ranks."""
        return [remark for rule in self._rules.values() for remark in rule(subject)]


@dataclass(frozen=True, slots=True)
class ComparisonInRun:
    """A comparison with its metric and the context of its run."""

    report: MetricReport
    row: Comparison
    context: Context

    @property
    def sides(self) -> tuple[str, str]:
        """The baseline and the environment."""
        return self.context.baseline, self.row.environment

    @property
    def trials(self) -> Sequence[TrialRow]:
        """The trials of its workload and level."""
        return self.context.of_cell(self.report.cell)


@dataclass(frozen=True, slots=True)
class ArmValues:
    """An environment's values of a metric in chronological order, and suspicious trends in them."""

    environment: str
    metric: str
    values: Sequence[float]
    trends: SeriesTrends


@dataclass(frozen=True, slots=True)
class ArmTrials:
    """An environment's trials of one cell, and whether they broke under load."""

    environment: str
    trials: Sequence[TrialRow]
    broke: Breakage | None


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """The facts of an environment's site, and of the baseline's site with the same role.

    The baseline's facts include the facts of the root filesystem.
    """

    environment: str
    facts: Mapping[str, str]
    baseline: str
    baseline_facts: Mapping[str, str]


about_comparison: Rules[ComparisonInRun] = Rules()


about_values: Rules[ArmValues] = Rules()


about_trials: Rules[ArmTrials] = Rules()


about_site: Rules[SiteFacts] = Rules()


about_run: Rules[Context] = Rules()
"""Rules about differences in the run besides the isolation."""


on_top: Rules[Context] = Rules()
"""Rules about facts that a report shows before all costs."""


@dataclass(frozen=True, slots=True)
class AboutEnvironment(Remark):
    """A remark about one environment's own values, trials or sites."""

    environment: str

    @property
    def subject(self) -> str:
        """The environment itself."""
        return self.environment
