"""What a cost is required to be, ``bridge.tcp.throughput<=35%``, and the comparisons of a run that this is about.

It is written in three ways: as a budget, which says what a cost may be; as a limit (``report --fail-if``), which says
what it must not be; and as the margin by which all costs may have become worse since another run.
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
_DOT = re.compile(r"\.(?![^\[]*\])")  # none of those in [clients=50]
_PARTS = 5
"""Parts of a pattern that a right spelling is looked for."""
_MOST_FACTORS = 6
"""Of a level of which any may be named: of more all or none are."""

Sign = Literal["<", "<=", ">", ">="]
Operand = Literal["cost", "change"]


class RequirementError(ValueError):
    """The expression is no requirement, or names what is not in the run: one sentence for people."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a requirement is written. ``strict``: by its sign, whether a cost of exactly the bound breaks it."""

    word: Literal["budget", "limit", "margin"]
    strict: Mapping[Sign, bool]
    form: str
    """How one is written, for people who wrote something else."""
    about: Operand = "cost"
    patterns: bool = False
    """Whether ``*`` is any run of characters; else it is a whole environment or workload."""


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
MARGIN = Spelling("margin", {"<=": False}, "a percentage of 0 or more, like '3%'", about="change")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A bound that a cost must not exceed, or, where it is strict, not reach.

    ``names``: what its left side has between its dots; none of a margin, which is about every cost's change.
    """

    text: str
    spelling: Spelling
    names: tuple[str, ...]
    sign: Sign
    bound: float
    unit: str

    @property
    def strict(self) -> bool:
        """Whether a cost of exactly the bound breaks it."""
        return self.spelling.strict[self.sign]

    @property
    def about(self) -> Operand:
        """Whether it is about a cost, or about its change since another run."""
        return self.spelling.about


@dataclass(frozen=True, slots=True)
class Target:
    """One comparison that a requirement is about; ``report`` and ``row`` are None where it was not measured."""

    environment: str
    label: str
    """The workload with its level, as people read it."""
    metric: str
    report: MetricReport | None = None
    row: Comparison | None = None

    @property
    def workload(self) -> str:
        """The workload with its level as a requirement writes it: ``redis[clients=50]``."""
        return _as_written(self.label)

    @property
    def name(self) -> str:
        """The comparison as a requirement writes it: ``bridge.redis[clients=50].requests``."""
        return f"{self.environment}.{self.workload}.{self.metric}"

    @property
    def arm(self) -> ArmId | None:
        """The arm that was measured for the target; None where the workload was not measured."""
        return None if self.report is None else ArmId(self.report.cell, self.environment)


def parse_requirement(text: str, spelling: Spelling) -> Requirement:
    """Return the requirement that ``text`` says. Raises RequirementError with how one is written."""
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
    """Return every comparison that a requirement is about, at least one.

    Raises RequirementError, with the nearest right spelling, for names that the run does not have, and for a unit in
    which it has none of these costs.

    A workload without its level is every level. In a budget ``*`` is any run of characters of
    ``ENVIRONMENT.WORKLOAD.METRIC``, so that ``*.latency_p99`` is that of every environment and workload, and
    ``bridge.*`` all of the bridge; in a limit it is every environment or workload that was measured. Neither means
    the A/A arm.
    """
    pattern = ".".join(requirement.names)
    if requirement.spelling.patterns and EVERY in pattern:
        return _matching(requirement, pattern, analysis)
    return _parse_targets(requirement, analysis)


def targets_in_other_units(requirement: Requirement, analysis: Analysis) -> tuple[Target, ...]:
    """Return the comparisons that a pattern matches and `targets` leaves out: their costs are in another unit."""
    pattern = ".".join(requirement.names)
    if not requirement.spelling.patterns or EVERY not in pattern:
        return ()
    matches = (target for target, names in _candidates(pattern, analysis) if _matches(pattern, names))
    return tuple(target for target in matches if not _in_its_unit(requirement, target))


def reports_named(pattern: str, analysis: Analysis) -> tuple[MetricReport, ...]:
    """Return the metrics whose comparisons a pattern means, ``*.tcp.throughput``, as a budget writes it.

    Raises RequirementError where nothing that was measured is called so.
    """
    named = {id(each.report) for each, names in _candidates(pattern, analysis) if _matches(pattern, names)}
    reports = tuple(each for each in analysis.metrics if id(each) in named)
    if not reports:
        every = [each.name for each, _ in _candidates(EVERY, analysis) if each.report is not None]
        raise RequirementError(f"'{pattern}' matches nothing measured{_nearest(pattern, every)}")
    return reports


def unit_of_bound(report: MetricReport) -> str:
    """Return the unit in which a bound of the metric's cost is written; empty of a count."""
    own = difference_unit(report.unit) if scale_of(report.metric, report.unit) == "difference" else "%"
    return "" if own in ("count", "1") else own


def bound_in_unit(requirement: Requirement, report: MetricReport) -> float:
    """Return the bound in percent, or in the metric's own unit where it is written in one: then of a difference.

    Raises RequirementError where the requirement has another unit, or percent of what has no telling ratio.
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
    """A cell's workload and the factors of its level (``clients=50``), from its label."""
    name, _, swept = label.partition(" (")
    return name, tuple(swept.removesuffix(")").split(", ")) if swept else ()


def _as_written(label: str) -> str:
    """A cell's workload with its level as requirements write it, from its label."""
    name, level = _workload_of(label)
    return f"{name}[{','.join(level)}]" if level else name


def _parse_targets(requirement: Requirement, analysis: Analysis) -> tuple[Target, ...]:
    """The comparisons of an environment, workload and metric, two of which may be ``*``.

    Names may have dots: each way to read them is tried.
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
    """Every way to read the names between dots as environment, workload and metric."""
    for second in range(1, len(names) - 1):
        for third in range(second + 1, len(names)):
            yield ".".join(names[:second]), ".".join(names[second:third]), ".".join(names[third:])


def _cells(workload_pattern: str, analysis: Analysis) -> list[str]:
    """The labels of the cells that a workload's name means, perhaps with some factors of its level."""
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
    """What a reading names that the run does not have, a sentence each."""
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
    """The comparisons that a pattern means, but for those whose cost has another unit, unless all have."""
    matches = [target for target, names in _candidates(pattern, analysis) if _matches(pattern, names)]
    if not matches:
        nearest = _nearest_pattern(requirement, pattern, analysis)
        raise RequirementError(f"'{requirement.text}' matches nothing measured{nearest}")
    right = [target for target in matches if _in_its_unit(requirement, target)]
    if not right and (report := matches[0].report) is not None:
        bound_in_unit(requirement, report)  # raises what is wrong
    return tuple(right)


def _in_its_unit(requirement: Requirement, target: Target) -> bool:
    try:
        return target.report is None or math.isfinite(bound_in_unit(requirement, target.report))
    except RequirementError:
        return False


def _candidates(pattern: str, analysis: Analysis) -> Iterator[tuple[Target, list[str]]]:
    """Every comparison of the run that a pattern may mean, with the ways to write its name.

    Of a workload without any measurement, and of an environment that was left out, the metrics are not known: it is
    taken to have the one that is asked for.
    """
    for report in analysis.metrics:
        for row in report.comparisons:
            if not row.aa or pattern.startswith(f"{row.environment}."):
                target = Target(row.environment, report.label, report.metric, report, row)
                yield target, _spellings(target)
    metric = _DOT.split(pattern)[-1].replace(EVERY, "")
    measured = {report.label for report in analysis.metrics}
    left_out = [each.environment for each in analysis.left_out]  # they were to be measured: no reason to pass
    for label in analysis.labels:
        for name in (*left_out, *(analysis.others if label not in measured else ())):
            target = Target(name, label, metric or EVERY)
            yield target, _spellings(target)


def _spellings(target: Target) -> list[str]:
    """The names of a comparison: without its workload's level, and with each choice of the level's factors."""
    name, factors = _workload_of(target.label)
    sizes = range(len(factors) + 1) if len(factors) <= _MOST_FACTORS else (0, len(factors))
    chosen = [some for size in sizes for some in combinations(factors, size)]
    workloads = [f"{name}[{','.join(some)}]" if some else name for some in chosen]
    return [f"{target.environment}.{each}.{target.metric}" for each in workloads]


def _matches(pattern: str, names: Sequence[str]) -> bool:
    expression = re.compile(".*".join(re.escape(each) for each in re.split(r"\*+", pattern.replace(", ", ","))))
    return any(expression.fullmatch(name) for name in names)


def _nearest_pattern(requirement: Requirement, pattern: str, analysis: Analysis) -> str:
    """The nearest pattern that matches something, as the end of a sentence; else what there is."""
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
    """Words that a part of a pattern may have meant: those that have it in them, then those that are alike."""
    bare = part.replace(EVERY, "")
    if not bare:
        return []
    holding = sorted((word for word in words if bare in word), key=len)
    return list(dict.fromkeys([*holding, *get_close_matches(bare, sorted(words), n=2, cutoff=0.6)]))[:3]


def _nearest(word: str, choices: Iterable[str]) -> str:
    """``. Did you mean 'X'?``, or what there is where nothing is near."""
    names = list(dict.fromkeys(choices))
    near = get_close_matches(word, names, n=1, cutoff=0.6)
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f". Did you mean '{near[0]}'?" if near else f"; known: {shown}" if names else ""
