"""A limit on a cost as it is written, ``bridge.tcp.throughput > 35%``, and the comparisons that it is about."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, cast

from weighbridge.analysis.comparisons import difference_unit, scale
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.model.quantity import RATE_UNITS, SIZE_UNITS, TIME_UNITS

EXAMPLE = "bridge.tcp.throughput > 35%"
EVERY = "*"
_WRITTEN = re.compile(r"\s*([^<>]+?)\s*(>=?)\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d{1,3})?)\s*(\S*)\s*")
DOT = re.compile(r"\.(?![^\[]*\])")  # none of those in [clients=50]


class LimitError(ValueError):
    """The expression is no limit, or names what is not in the run: one sentence for people."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A condition on a cost under which a report fails. ``names``: what its left side has between its dots."""

    text: str
    names: tuple[str, ...]
    operator: Literal[">", ">="]
    amount: float
    unit: str
    sign: Literal["<", "<=", ">", ">="] = ">"
    """As it is written: a budget says what a cost may be, and not what it must not."""


@dataclass(frozen=True, slots=True)
class Target:
    """One comparison that a limit is about; ``report`` and ``row`` are None where it was not measured."""

    environment: str
    label: str
    """The workload with its level, as people read it."""
    metric: str
    report: MetricReport | None = None
    row: Comparison | None = None

    @property
    def workload(self) -> str:
        """The workload with its level as a limit writes it: ``redis[clients=50]``."""
        return as_written(self.label)

    @property
    def name(self) -> str:
        """The comparison as a limit writes it: ``bridge.redis[clients=50].requests``."""
        return f"{self.environment}.{self.workload}.{self.metric}"


def parse_limit(text: str) -> Limit:
    """Give the limit that ``text`` says. Raises LimitError with how one is written."""
    found = _WRITTEN.fullmatch(text)
    names = tuple(DOT.split(found[1])) if found else ()
    if found is None or len(names) < 3 or not all(names) or not math.isfinite(float(found[3])):
        form = f"write ENVIRONMENT.WORKLOAD.METRIC > NUMBER, like '{EXAMPLE}'"
        raise LimitError(f"'{text}' is no limit: {form}")
    operator = cast(Literal[">", ">="], found[2])
    return Limit(text, names, operator, float(found[3]), found[4], operator)


def targets(limit: Limit, analysis: Analysis) -> tuple[Target, ...]:
    """Give every comparison that the limit is about, at least one. Raises LimitError for names that are not known.

    ``*`` is every environment or workload that was measured, but for the baseline and its A/A arm; a workload without
    its level is every level. Names may have dots: each way to read them is tried.
    """
    read = [(choice, _unknown(choice, analysis)) for choice in _choices(limit.names)]
    right = [choice for choice, problems in read if not problems]
    if not right:
        raise LimitError(f"'{limit.text}': {min((problems for _, problems in read), key=len)[0]}")
    if len(right) > 1:
        ways = " or ".join(" / ".join(choice) for choice in right)
        raise LimitError(f"'{limit.text}' can be read in {len(right)} ways: {ways}")
    environment, workload, metric = right[0]
    return tuple(_targets(environment, workload, metric, analysis)) or (Target(environment, workload, metric),)


def amount(limit: Limit, report: MetricReport) -> float:
    """Give the limit's number in the unit of the metric's cost: percent, or the metric's own for a difference.

    Raises LimitError where the limit has another unit.
    """
    own = difference_unit(report.unit) if scale(report.metric, report.unit) == "difference" else "%"
    if limit.unit == own or (not limit.unit and own in ("count", "1")):
        return limit.amount
    for units in (TIME_UNITS, SIZE_UNITS, RATE_UNITS):
        if limit.unit in units and own in units:
            return limit.amount * units[limit.unit] / units[own]
    said = f"in '{limit.unit}'" if limit.unit else "without a unit"
    like = f"{limit.sign} {limit.amount:g}{own}"
    raise LimitError(
        f"'{limit.text}' is {said}: a cost of {as_written(report.label)}.{report.metric} is in {own}, like '{like}'"
    )


def _choices(names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Every way to read the names between dots as environment, workload and metric."""
    for second in range(1, len(names) - 1):
        for third in range(second + 1, len(names)):
            yield ".".join(names[:second]), ".".join(names[second:third]), ".".join(names[third:])


def workload_of(label: str) -> tuple[str, tuple[str, ...]]:
    """Give a cell's workload and the factors of its level (``clients=50``), from its label."""
    name, _, swept = label.partition(" (")
    return name, tuple(swept.removesuffix(")").split(", ")) if swept else ()


def as_written(label: str) -> str:
    """Give a cell's workload with its level as limits write it, from its label."""
    name, level = workload_of(label)
    return f"{name}[{','.join(level)}]" if level else name


def _cells(wanted: str, analysis: Analysis) -> list[str]:
    """The labels of the cells that a workload's name means, perhaps with some factors of its level."""
    if wanted == EVERY:
        return list(analysis.labels)
    name, _, level = wanted.partition("[")
    factors = {each.strip() for each in level.removesuffix("]").split(",")} if level else set()
    return [
        label
        for label in analysis.labels
        for workload, own in [workload_of(label)]
        if workload == name and (factors <= set(own) or level.removesuffix("]") == ",".join(own))
    ]


def _unknown(choice: tuple[str, str, str], analysis: Analysis) -> list[str]:
    """What a choice names that the run does not have, a sentence each."""
    environment, workload, metric = choice
    found = []
    if environment == analysis.baseline:
        found.append(f"'{environment}' is the baseline, with which the others are compared")
    elif environment != EVERY and environment not in analysis.environments:
        others = [name for name in analysis.environments if name != analysis.baseline]
        found.append(f"there is no environment '{environment}'{nearest(environment, others)}")
    cells = _cells(workload, analysis)
    if not cells:
        known = [*map(as_written, analysis.labels), *(workload_of(label)[0] for label in analysis.labels)]
        found.append(f"there is no workload '{workload}'{nearest(workload, known)}")
    metrics = {each.metric for each in analysis.metrics if not cells or each.label in cells}
    measured = {each.label for each in analysis.metrics}
    if metric not in metrics and (not cells or workload == EVERY or measured & set(cells)):
        found.append(f"there is no metric '{metric}' of workload '{workload}'{nearest(metric, metrics)}")
    return found


def _targets(environment: str, workload: str, metric: str, analysis: Analysis) -> Iterator[Target]:
    reports = {each.label: each for each in analysis.metrics if each.metric == metric}
    begun = {each.label for each in analysis.metrics}
    tried = {(trial.label, trial.environment) for trial in analysis.trials}
    others = [name for name in analysis.environments if name not in (analysis.baseline, analysis.aa_arm)]
    cells = list(_cells(workload, analysis))
    measured = {name for label, name in tried if label in cells} if len(cells) > 1 else set()
    for label in cells:
        report = reports.get(label)
        if report is None and label in begun and workload == EVERY:
            continue  # another workload's metric
        for name in others if environment == EVERY else [environment]:
            if (
                label in begun
                and (label, name) not in tried
                and (EVERY in (environment, workload) or name in measured)
            ):
                continue  # the environment is not measured on it
            rows = (row for row in report.comparisons if row.environment == name) if report else iter(())
            yield Target(name, label, metric, report, next(rows, None))


def nearest(word: str, known: Iterable[str]) -> str:
    """Give ``; did you mean 'X'?``, or what there is where nothing is near."""
    names = list(dict.fromkeys(known))
    near = get_close_matches(word, names, n=1, cutoff=0.6)
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"; did you mean '{near[0]}'?" if near else f"; there are: {shown}" if names else ""
