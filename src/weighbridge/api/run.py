"""A run as Python sees it, and how it is loaded."""

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.run_result import MeasuredCost, RunResult, finite
from weighbridge.api.chart import CostChart, cost_chart
from weighbridge.api.html import table_html
from weighbridge.api.rows import EnvironmentCost, MeterSample, PairedValues, RecordedFact, Rows, TrialValue
from weighbridge.api.source import opened, read_report
from weighbridge.errors import WeighbridgeError
from weighbridge.model.address import MetricId
from weighbridge.model.level import level_label
from weighbridge.model.text import one_line
from weighbridge.report.export.json import run_result
from weighbridge.report.text.formatting import quantity
from weighbridge.statistics import LOOKS_SHARE
from weighbridge.store.run import RunStore


class Run:
    """A run that `load` or `weigh` has read. A notebook shows its costs as a table.

    It does not change if the run continues: load it again.

    >>> run = weighbridge.load("runs/weigh")
    >>> run
    <run of weigh-dd-zero: native, docker>
    >>> [(cost.environment, cost.metric, cost.verdict) for cost in run.costs.where(primary=True, control=False)]
    [('docker', 'time', 'significant')]
    """

    path: Path
    """The path that the run was loaded from."""
    result: RunResult
    """Everything that `weighbridge report --json` prints, with the keys of the document as attributes."""

    def __init__(self, path: Path, result: RunResult, tables: "_Tables | None" = None) -> None:
        self.path = path
        self.result = result
        self._tables = tables

    @property
    def study(self) -> str:
        """The name of the study."""
        return self.result.study

    @property
    def environments(self) -> tuple[str, ...]:
        """The names of the environments, the baseline first, without the control."""
        others = [name for name, each in self.result.environments.items() if each.control_of is None]
        return tuple(dict.fromkeys([self.result.baseline, *others]))

    @property
    def control_passed(self) -> bool | None:
        """Whether the control passed. If it is False, do not rely on any cost; None if it cannot be decided."""
        return self.result.control_passed

    @cached_property
    def costs(self) -> Rows[EnvironmentCost]:
        """The cost of every environment in every metric, with the control and the use of resources.

        >>> cost = weighbridge.load("runs/weigh").costs.where(environment="docker", metric="time")[0]
        >>> print(cost)
        docker command time: 15.4% [13.2, 17.6], significant
        """
        return Rows(EnvironmentCost, (_cost(self.result, each) for each in self.result.costs))

    @property
    def trials(self) -> Rows[TrialValue]:
        """Every value of every trial, in the order of the trials. Raises WeighbridgeError for a report's JSON."""
        return self._read().trials

    @property
    def facts(self) -> Rows[RecordedFact]:
        """Everything that was recorded about machines and environments. Raises WeighbridgeError as `trials`."""
        return self._read().facts

    @cached_property
    def samples(self) -> Rows[MeterSample]:
        """Every number that meters measured for whole trials; it is read at the first use.

        Raises WeighbridgeError as `trials`.
        """
        finished = {each.trial for each in self._read().trials}
        with opened(self.path) as store:
            return Rows(
                MeterSample,
                (MeterSample(**each._asdict()) for each in store.samples() if each.trial in finished),
            )

    def pairs(
        self, environment: str, workload: str, metric: str, level: Mapping[str, str] | None = None
    ) -> Rows[PairedValues]:
        """Return the values of the baseline and of an environment round by round, from which the cost is computed.

        ``level`` is necessary if the workload has several. Raises WeighbridgeError if there is no such cost.

        >>> pairs = weighbridge.load("runs/weigh").pairs("docker", "command", "time")
        >>> sum(pair.environment > pair.baseline for pair in pairs), len(pairs)
        (114, 123)
        """
        matching = [
            each
            for each in self.result.costs
            if (each.environment, each.workload, each.metric) == (environment, workload, metric)
            and level in (None, each.level)
        ]
        if len(matching) == 1:
            pairs = matching[0].pairs
            rows = zip(pairs.round, pairs.baseline, pairs.environment, strict=True)
            return Rows(PairedValues, (PairedValues(round=n, baseline=b, environment=e) for n, b, e in rows))
        named = f"{environment}.{workload}.{metric}"
        if matching:
            levels = "; ".join(level_label(each.level) for each in matching)
            raise WeighbridgeError(f"'{named}' has several levels, so name one of them: {levels}")
        raise self._no_cost(named)

    def plot(self, workload: str, metric: str | None = None) -> CostChart:
        """Return a chart of the costs of a workload in a metric, by default the primary one.

        Raises WeighbridgeError if there is no such cost, or none with an interval.

        >>> weighbridge.load("runs/weigh").plot("command")
        <chart of 1 costs>
        """
        wanted = {"primary": True} if metric is None else {"metric": metric}
        costs = self.costs.where(workload=workload, control=False, **wanted)
        if not costs:
            raise self._no_cost(".".join(filter(None, (workload, metric))))
        return cost_chart(costs)

    def __repr__(self) -> str:
        return one_line(f"<run of {self.study}: {', '.join(self.environments)}>")

    def _repr_html_(self) -> str:
        against = {self.result.baseline, *(each.baseline for each in self.costs)}
        names = [name for name in self.environments if name not in against]
        rows: dict[tuple[str, str, str], list[str]] = {}
        for each in self._primary():
            key = each.workload, level_label(each.level), each.metric
            row = rows.setdefault(key, [quantity(each.baseline_value, each.unit), *["–"] * len(names)])
            if each.environment in names:
                base = f" against {each.baseline}" if each.baseline != self.result.baseline else ""
                row[names.index(each.environment) + 1] = f"{each.verdict}: {each.text}{base}"
        title = f"{self.study}: {self.result.question}"
        heads = ["metric", self.result.baseline, *names]
        lines = [[" ".join(filter(None, key)), *row] for key, row in rows.items()]
        return table_html(heads, lines, title=title, note=f"Positive costs are worse. {_control(self)}")

    def _no_cost(self, named: str) -> WeighbridgeError:
        names = dict.fromkeys(f"{each.environment}.{each.workload}.{each.metric}" for each in self._primary())
        return WeighbridgeError(f"the run has no cost '{named}'; its primary costs are {', '.join(names) or 'none'}")

    def _primary(self) -> Rows[EnvironmentCost]:
        return self.costs.where(primary=True, control=False)

    def _read(self) -> "_Tables":
        if self._tables is None:
            raise WeighbridgeError(f"{self.path} is a report, which has no trials: load the run directory")
        return self._tables


class _Tables:
    """The rows of a run that a report's JSON does not have."""

    def __init__(self, store: RunStore, analysis: Analysis) -> None:
        self.trials = Rows(TrialValue, _trial_values(store, analysis))
        facts = (RecordedFact(scope=s, key=k, value=v, at=at) for s, k, v, at in store.facts())
        self.facts = Rows(RecordedFact, facts)


def load(path: str | os.PathLike[str]) -> Run:
    """Load a run: its directory, its ``run.sqlite``, a kept ``.sqlite.xz``, or the JSON of its report.

    A run from a stranger is checked as `weighbridge report` checks it: nothing in it is executed. Raises
    WeighbridgeError if there is no run, or if it is damaged.

    >>> weighbridge.load("runs/weigh").control_passed
    True
    """
    place = Path(path)
    if place.suffix == ".json":
        return Run(place, read_report(place))
    with opened(place) as store:
        analysis = analyse(store)
        return Run(place, run_result(store, analysis), _Tables(store, analysis))


def _cost(result: RunResult, cost: MeasuredCost) -> EnvironmentCost:
    share = result.control_error_share if cost.control else result.error_share
    return EnvironmentCost(
        environment=cost.environment, workload=cost.workload, level=cost.level, metric=cost.metric, unit=cost.unit,
        better=cost.better, primary=cost.primary, resource_use=cost.resource_use, control=cost.control,
        baseline=cost.against or result.baseline, baseline_value=cost.baseline_value, value=cost.value,
        cost=finite(cost.cost), cost_low=finite(cost.cost_low), cost_high=finite(cost.cost_high),
        cost_unit=cost.cost_unit,
        confidence=0.95 if share >= LOOKS_SHARE else 1 - 0.05 * share,  # planned looks together keep 95%
        verdict=cost.verdict, rounds=cost.rounds, adjusted_p=cost.adjusted_p, noise_low=cost.noise_low,
        noise_high=cost.noise_high, visible_cost=finite(cost.visible_cost),
        emulated=cost.emulated or cost.baseline_emulated,
        remarks=tuple(result.remarks[number]["text"] for number in cost.remarks),
    )  # fmt: skip


def _trial_values(store: RunStore, analysis: Analysis) -> Iterator[TrialValue]:
    described = {value.metric_id: (value.unit, value.better) for value in store.values()}
    for trial in analysis.trials:
        for metric, value in trial.values.items() or [(None, None)]:
            unit, better = described[MetricId(trial.cell, metric)] if metric is not None else (None, None)
            yield TrialValue(
                trial=trial.id, round=trial.block, attempt=trial.attempt, order=trial.order,
                environment=trial.environment, workload=trial.workload, level=trial.level.factors, metric=metric,
                unit=unit, better=better, value=value, outcome=str(trial.outcome), message=trial.message,
                started_at=trial.started_at, duration_s=trial.duration_s,
                flags=tuple(str(flag.code) for flag in trial.flags),
            )  # fmt: skip


def _control(run: Run) -> str:
    """Return a sentence about the control."""
    sentences = {
        True: "The control passed.",
        False: "The control failed: do not rely on these costs.",
        None: "No control decides whether this machine was steady.",
    }
    return sentences[run.control_passed]
