"""Requirements on costs, such as ``bridge.tcp.throughput<=35%``, and the comparisons of a run that they apply to.

A budget is an allowed cost, a limit (``report --fail-if``) is a forbidden cost, and a margin is the allowed increase
of all costs since another run.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations, product
from typing import Literal, cast

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.model.address import ArmId
from weighbridge.model.measurement import scale_of
from weighbridge.model.quantity import RATE_UNITS, SIZE_UNITS, TIME_UNITS, parse_percent

EVERY = "*"
_EXPRESSION = re.compile(r"\s*([^<>]+?)\s*([<>]=?)\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d{1,3})?)\s*(\S*)\s*")
_DOT = re.compile(r"\.(?![^\[]*\])")  # but not inside [clients=50]
_PARTS = 5
"""The most parts of a pattern for which a correct spelling is suggested."""
_MOST_FACTORS = 6
"""The most factors of a level for which any subset can be named; with more, all or none."""

Sign = Literal["<", "<=", ">", ">="]
Operand = Literal["cost", "change"]


class RequirementError(ValueError):
    """The expression is not a requirement, or names something that is not in the run; one sentence for users."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """A way to write requirements. ``strict`` is whether a cost equal to the bound breaks it, by its sign."""

    word: Literal["budget", "limit", "margin"]
    strict: Mapping[Sign, bool]
    form: str
    """The syntax, shown to users who wrote something else."""
    operand: Operand = "cost"
    patterns: bool = False
    """Whether ``*`` matches any characters; otherwise it is a whole environment or workload."""


BUDGET = Spelling(
    "budget",
    {"<=": False, "<": True},
    f"ENVIRONMENT.WORKLOAD.METRIC<=NUMBER, like 'bridge.tcp.throughput<=35%'; '{EVERY}' stands for any part",
    patterns=True,
)
LIMIT = Spelling(
    "limit",
    {">": False, ">=": True},
    "ENVIRONMENT.WORKLOAD.METRIC > NUMBER, like 'bridge.tcp.throughput > 35%'",
)
MARGIN = Spelling("margin", {"<=": False}, "a percentage of 0 or more, like '3%'", operand="change")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A bound that a cost must not exceed or, if it is strict, not reach.

    ``names`` are the parts of the left side between its dots. A margin has none because it applies to every cost.
    """

    text: str
    spelling: Spelling
    names: tuple[str, ...]
    sign: Sign
    bound: float
    unit: str

    @property
    def strict(self) -> bool:
        """Whether a cost equal to the bound breaks the requirement."""
        return self.spelling.strict[self.sign]

    @property
    def operand(self) -> Operand:
        """Whether the requirement is about a cost or about its change since another run."""
        return self.spelling.operand


@dataclass(frozen=True, slots=True)
class Target:
    """One comparison that a requirement applies to; ``report`` and ``row`` are None if it was not measured."""

    environment: str
    label: str
    """The workload with its level, for people."""
    metric: str
    report: MetricReport | None = None
    row: Comparison | None = None

    @property
    def workload(self) -> str:
        """The workload with its level in the syntax of requirements: ``redis[clients=50]``."""
        return _as_written(self.label)

    @property
    def name(self) -> str:
        """The comparison in the syntax of requirements: ``bridge.redis[clients=50].requests``."""
        return f"{self.environment}.{self.workload}.{self.metric}"

    @property
    def arm(self) -> ArmId | None:
        """The measured arm; None if the workload was not measured."""
        return None if self.report is None else ArmId(self.report.cell, self.environment)


def parse_requirement(text: str, spelling: Spelling) -> Requirement:
    """Return the requirement in ``text``. Raises RequirementError, which explains the syntax."""
    requirement = _parse_margin(text) if spelling is MARGIN else _parse_expression(text, spelling)
    if requirement is None:
        raise RequirementError(f"'{text}' is not a {spelling.word}: write {spelling.form}")
    return requirement


def _parse_margin(text: str) -> Requirement | None:
    try:
        percent = parse_percent(text)
    except ValueError:
        return None
    return Requirement(f"change<={''.join(text.split())}", MARGIN, (), "<=", percent, "%")


def _parse_expression(text: str, spelling: Spelling) -> Requirement | None:
    match = _EXPRESSION.fullmatch(text)
    if match is None or match[2] not in spelling.strict or not math.isfinite(float(match[3])):
        return None
    names = tuple(_DOT.split(match[1]))
    if not all(names) or (len(names) < 3 and not (spelling.patterns and EVERY in match[1])):
        return None
    return Requirement(text, spelling, names, cast(Sign, match[2]), float(match[3]), match[4])


def targets(requirement: Requirement, analysis: Analysis) -> tuple[Target, ...]:
    """Return all comparisons that a requirement applies to, at least one.

    Raises RequirementError for names that the run does not have, with the nearest correct spelling, and for a unit
    that none of these costs has.

    A workload without a level means all levels. In a budget, ``*`` matches any characters in
    ``ENVIRONMENT.WORKLOAD.METRIC``: ``*.latency_p99`` is this metric in every environment and workload, and
    ``bridge.*`` is all metrics of the bridge. In a limit, ``*`` is any environment or workload that was measured.
    Neither matches the A/A arm.
    """
    pattern = ".".join(requirement.names)
    if requirement.spelling.patterns and EVERY in pattern:
        return _matching(requirement, pattern, analysis)
    return _parse_targets(requirement, analysis)


def targets_in_other_units(requirement: Requirement, analysis: Analysis) -> tuple[Target, ...]:
    """Return comparisons that match a pattern but are left out by `targets` because their costs have another unit."""
    pattern = ".".join(requirement.names)
    if not requirement.spelling.patterns or EVERY not in pattern:
        return ()
    matches = (target for target, names in _candidates(pattern, analysis) if _matches(pattern, names))
    return tuple(target for target in matches if not _in_its_unit(requirement, target))


def reports_named(pattern: str, analysis: Analysis) -> tuple[MetricReport, ...]:
    """Return the metrics whose comparisons match a pattern in the syntax of budgets, such as ``*.tcp.throughput``.

    Raises RequirementError if nothing that was measured matches.
    """
    named = {id(each.report) for each, names in _candidates(pattern, analysis) if _matches(pattern, names)}
    reports = tuple(each for each in analysis.metrics if id(each) in named)
    if not reports:
        every = [each.name for each, _ in _candidates(EVERY, analysis) if each.report is not None]
        raise RequirementError(f"'{pattern}' matches nothing measured{_nearest(pattern, every)}")
    return reports


def unit_of_bound(report: MetricReport) -> str:
    """Return the unit for a bound of the metric's cost; empty for a count."""
    own = difference_unit(report.unit) if scale_of(report.metric, report.unit) == "difference" else "%"
    return "" if own in ("count", "1") else own


def bound_in_unit(requirement: Requirement, report: MetricReport) -> float:
    """Return the bound in percent, or in the metric's unit for a bound on a difference.

    Raises RequirementError if the requirement has another unit, or is in percent although ratios of the metric mean
    nothing.
    """
    own, unit = difference_unit(report.unit), requirement.unit
    has_ratio = scale_of(report.metric, report.unit) is None
    if (has_ratio and unit == "%") or unit == own or (not unit and own in ("count", "1")):
        return requirement.bound
    for units in (TIME_UNITS, SIZE_UNITS, RATE_UNITS):
        if unit in units and own in units:
            return requirement.bound * units[unit] / units[own]
    written = f"in '{unit}'" if unit else "without a unit"
    words = ["%", own] if has_ratio else [own]
    like = f"{requirement.sign} {requirement.bound:g}{words[0]}"
    raise RequirementError(
        f"'{requirement.text}' is {written}: a cost of {_as_written(report.label)}.{report.metric} is in "
        f"{' or '.join(words)}, like '{like}'"
    )


def _workload_of(label: str) -> tuple[str, tuple[str, ...]]:
    """Return a cell's workload and the factors of its level (``clients=50``) from its label."""
    name, _, swept = label.partition(" (")
    return name, tuple(swept.removesuffix(")").split(", ")) if swept else ()


def _as_written(label: str) -> str:
    """Return a cell's workload with its level in the syntax of requirements, from its label."""
    name, level = _workload_of(label)
    return f"{name}[{','.join(level)}]" if level else name


def _parse_targets(requirement: Requirement, analysis: Analysis) -> tuple[Target, ...]:
    """Return the comparisons of an environment, a workload and a metric; two of these can be ``*``.

    Names can contain dots, so every way to split them is tried.
    """
    readings = [(reading, _unknown(reading, analysis)) for reading in _readings(requirement.names)]
    right = [reading for reading, problems in readings if not problems]
    if not right:
        raise RequirementError(f"'{requirement.text}': {min((problems for _, problems in readings), key=len)[0]}")
    if len(right) > 1:
        ways = " or ".join(" / ".join(reading) for reading in right)
        raise RequirementError(f"'{requirement.text}' is ambiguous; it can mean {ways}")
    environment, workload, metric = right[0]
    comparisons = tuple(_comparisons(environment, workload, metric, analysis))
    return comparisons or (Target(environment, workload, metric),)


def _readings(names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield every way to split the names between dots into environment, workload and metric."""
    for second in range(1, len(names) - 1):
        for third in range(second + 1, len(names)):
            yield ".".join(names[:second]), ".".join(names[second:third]), ".".join(names[third:])


def _cells(workload_pattern: str, analysis: Analysis) -> list[str]:
    """Return the labels of the cells that a workload name means, possibly restricted by factors of the level."""
    if workload_pattern == EVERY:
        return list(analysis.labels)
    name, _, level = workload_pattern.partition("[")
    factors = {each.strip() for each in level.removesuffix("]").split(",")} if level else set()
    return [
        label
        for label in analysis.labels
        for workload, own in [_workload_of(label)]
        if workload == name and (factors <= set(own) or level.removesuffix("]") == ",".join(own))
    ]


def _unknown(reading: tuple[str, str, str], analysis: Analysis) -> list[str]:
    """Return one sentence for each part of a reading that the run does not have."""
    environment, workload, metric = reading
    problems = []
    if environment == analysis.baseline:
        problems.append(f"'{environment}' is the baseline, which has no cost: name another environment")
    elif environment not in {EVERY, *analysis.others, analysis.aa_arm}:
        compared = [*analysis.others, *filter(None, [analysis.aa_arm])]
        problems.append(f"there is no environment '{environment}'{_nearest(environment, compared)}")
    cells = _cells(workload, analysis)
    if not cells:
        names = [*map(_as_written, analysis.labels), *(_workload_of(label)[0] for label in analysis.labels)]
        problems.append(f"there is no workload '{workload}'{_nearest(workload, names)}")
    metrics = dict.fromkeys(each.metric for each in analysis.metrics if not cells or each.label in cells)
    measured = {each.label for each in analysis.metrics}
    if metric not in metrics and (not cells or workload == EVERY or measured & set(cells)):
        problems.append(f"there is no metric '{metric}' of workload '{workload}'{_nearest(metric, metrics)}")
    return problems


def _comparisons(environment: str, workload: str, metric: str, analysis: Analysis) -> Iterator[Target]:
    reports = {each.label: each for each in analysis.metrics if each.metric == metric}
    measured = {each.label for each in analysis.metrics}
    with_trials = {(trial.label, trial.environment) for trial in analysis.trials}
    others = analysis.others
    cells = list(_cells(workload, analysis))
    with_trials_in_cells = {name for label, name in with_trials if label in cells} if len(cells) > 1 else set()
    for label in cells:
        report = reports.get(label)
        if report is None and label in measured and workload == EVERY:
            continue  # another workload's metric
        for name in others if environment == EVERY else [environment]:
            if (
                label in measured
                and (label, name) not in with_trials
                and (EVERY in (environment, workload) or name in with_trials_in_cells)
            ):
                continue  # the environment is not measured on it
            rows = (row for row in report.comparisons if row.environment == name) if report else iter(())
            yield Target(name, label, metric, report, next(rows, None))


def _matching(requirement: Requirement, pattern: str, analysis: Analysis) -> tuple[Target, ...]:
    """Return the comparisons that a pattern matches, without costs in other units unless all have another unit."""
    matches = [target for target, names in _candidates(pattern, analysis) if _matches(pattern, names)]
    if not matches:
        nearest = _nearest_pattern(requirement, pattern, analysis)
        raise RequirementError(f"'{requirement.text}' matches nothing measured{nearest}")
    right = [target for target in matches if _in_its_unit(requirement, target)]
    if not right and (report := matches[0].report) is not None:
        bound_in_unit(requirement, report)  # raises the error
    return tuple(right)


def _in_its_unit(requirement: Requirement, target: Target) -> bool:
    try:
        return target.report is None or math.isfinite(bound_in_unit(requirement, target.report))
    except RequirementError:
        return False


def _candidates(pattern: str, analysis: Analysis) -> Iterator[tuple[Target, list[str]]]:
    """Yield every comparison of the run with the ways to write its name, for a pattern to match.

    The metrics are unknown for a workload without measurements and for an environment that was left out. These are
    assumed to have the metric in the pattern.
    """
    for report in analysis.metrics:
        for row in report.comparisons:
            if not row.aa or pattern.startswith(f"{row.environment}."):
                target = Target(row.environment, report.label, report.metric, report, row)
                yield target, _spellings(target)
    metric = _DOT.split(pattern)[-1].replace(EVERY, "")
    measured = {report.label for report in analysis.metrics}
    left_out = [each.environment for each in analysis.left_out]  # planned, so a gate must not pass without them
    for label in analysis.labels:
        for name in (*left_out, *(analysis.others if label not in measured else ())):
            target = Target(name, label, metric or EVERY)
            yield target, _spellings(target)


def _spellings(target: Target) -> list[str]:
    """Return the names of a comparison, without its workload's level and with each choice of the level's factors."""
    name, factors = _workload_of(target.label)
    sizes = range(len(factors) + 1) if len(factors) <= _MOST_FACTORS else (0, len(factors))
    chosen = [some for size in sizes for some in combinations(factors, size)]
    workloads = [f"{name}[{','.join(some)}]" if some else name for some in chosen]
    return [f"{target.environment}.{each}.{target.metric}" for each in workloads]


def _matches(pattern: str, names: Sequence[str]) -> bool:
    expression = re.compile(".*".join(re.escape(each) for each in re.split(r"\*+", pattern.replace(", ", ","))))
    return any(expression.fullmatch(name) for name in names)


def _nearest_pattern(requirement: Requirement, pattern: str, analysis: Analysis) -> str:
    """Return the nearest pattern that matches something, as the end of a sentence, or else the known names."""
    every = [(target, names) for target, names in _candidates(pattern, analysis) if target.report is not None]
    columns: list[set[str]] = [set(), set(), set()]
    for target, _ in every:
        for column, word in zip(columns, (target.environment, target.workload, target.metric), strict=True):
            column.add(word)
        columns[1].add(_workload_of(target.label)[0])
    parts = _DOT.split(pattern)[:_PARTS]
    vocabularies = [columns[0], *(columns[1] for _ in parts[1:-1]), columns[2]] if len(parts) > 1 else [columns[2]]
    choices = [[part, *_near(part, words)] for part, words in zip(parts, vocabularies, strict=True)]
    for chosen in sorted(product(*choices), key=lambda each: sum(a != b for a, b in zip(each, parts, strict=True))):
        if any(_matches(".".join(chosen), names) for _, names in every):
            right = f"{'.'.join(chosen)}{requirement.sign}{requirement.bound:g}{requirement.unit}"
            return f". Did you mean '{right}'?"
    return _nearest("", [target.name for target, _ in every])


def _near(part: str, words: set[str]) -> list[str]:
    """Return words that a part of a pattern could mean: words that contain it, then similar words."""
    bare = part.replace(EVERY, "")
    if not bare:
        return []
    holding = sorted((word for word in words if bare in word), key=len)
    return list(dict.fromkeys([*holding, *get_close_matches(bare, sorted(words), n=2, cutoff=0.6)]))[:3]


def _nearest(word: str, choices: Iterable[str]) -> str:
    """Return ``. Did you mean 'X'?``, or the known names if none is similar."""
    names = list(dict.fromkeys(choices))
    near = get_close_matches(word, names, n=1, cutoff=0.6)
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f". Did you mean '{near[0]}'?" if near else f"; known: {shown}" if names else ""
