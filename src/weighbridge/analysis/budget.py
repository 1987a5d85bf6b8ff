"""A budget of a cost as it is written: ``bridge.tcp.throughput<=35%``, ``*.latency_p99<=10%``."""

import math
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import combinations, product
from typing import Literal, cast

from weighbridge.analysis.limit import (
    DOT,
    EVERY,
    Limit,
    LimitError,
    Target,
    amount,
    nearest,
    targets,
    workload_of,
)
from weighbridge.analysis.results import Analysis
from weighbridge.model.quantity import parse_percent

_PARTS = 5
"""Parts of a pattern that a right spelling is looked for."""
EXAMPLE = "bridge.tcp.throughput<=35%"
_WRITTEN = re.compile(r"\s*([^<>]+?)\s*(<=?)\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d{1,3})?)\s*(\S*)\s*")


def parse_budget(text: str) -> Limit:
    """Give the limit that keeps the budget ``text``. Raises LimitError with how one is written."""
    found = _WRITTEN.fullmatch(text)
    names = tuple(DOT.split(found[1])) if found else ()
    patterns = EVERY in "".join(names)
    if found is None or not all(names) or not (patterns or len(names) >= 3) or not math.isfinite(float(found[3])):
        form = f"write ENVIRONMENT.WORKLOAD.METRIC<=NUMBER, like '{EXAMPLE}'"
        raise LimitError(f"'{text}' is no budget: {form}; '{EVERY}' is any part of it")
    sign = cast(Literal["<", "<="], found[2])
    return Limit(text, names, ">" if sign == "<=" else ">=", float(found[3]), found[4], sign)


def parse_margin(text: str) -> Limit:
    """Give the limit that keeps a change within the margin ``text``, ``3%``. Raises LimitError."""
    try:
        most = parse_percent(text)
    except ValueError:
        raise LimitError(f"'{text}' is no margin: write a percentage that is not negative, like '3%'") from None
    return Limit(f"change<={''.join(text.split())}", (), ">", most, "%", "<=")


_MOST_FACTORS = 6
"""Of a level of which any may be named: of more all or none are."""


def budget_targets(limit: Limit, analysis: Analysis) -> tuple[Target, ...]:
    """Give every comparison that a budget is about, at least one. Raises LimitError with the nearest right spelling.

    ``*`` is any run of characters of ``ENVIRONMENT.WORKLOAD.METRIC``, so that ``*.latency_p99`` is that of every
    environment and workload, and ``bridge.*`` all of the bridge; a workload without its level is every level. No
    pattern means the A/A arm, nor a metric whose cost is in another unit, unless no other is meant.
    """
    pattern = ".".join(limit.names)
    if EVERY not in pattern:
        return targets(limit, analysis)
    found = [target for target, names in _candidates(pattern, analysis) if _matches(pattern, names)]
    if not found:
        raise LimitError(f"'{limit.text}' matches nothing that was measured{_meant(limit, pattern, analysis)}")
    right = [target for target in found if _in_its_unit(limit, target)]
    if not right and (report := found[0].report) is not None:
        amount(limit, report)  # raises what is wrong
    return tuple(right)


def _in_its_unit(limit: Limit, target: Target) -> bool:
    try:
        return target.report is None or math.isfinite(amount(limit, target.report))
    except LimitError:
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
    asked = DOT.split(pattern)[-1].replace(EVERY, "")
    measured = {report.label for report in analysis.metrics}
    left_out = [each.environment for each in analysis.left_out]  # they were to be measured: no reason to pass
    for label in analysis.labels:
        for name in (*left_out, *(analysis.environments if label not in measured else ())):
            if name not in (analysis.baseline, analysis.aa_arm):
                target = Target(name, label, asked or EVERY)
                yield target, _spellings(target)


def _spellings(target: Target) -> list[str]:
    """The names of a comparison: without its workload's level, and with each choice of the level's factors."""
    name, factors = workload_of(target.label)
    sizes = range(len(factors) + 1) if len(factors) <= _MOST_FACTORS else (0, len(factors))
    chosen = [some for size in sizes for some in combinations(factors, size)]
    workloads = [f"{name}[{','.join(some)}]" if some else name for some in chosen]
    return [f"{target.environment}.{each}.{target.metric}" for each in workloads]


def _matches(pattern: str, names: Sequence[str]) -> bool:
    wanted = re.compile(".*".join(re.escape(each) for each in re.split(r"\*+", pattern.replace(", ", ","))))
    return any(wanted.fullmatch(name) for name in names)


def _meant(limit: Limit, pattern: str, analysis: Analysis) -> str:
    """The nearest pattern that matches something, as the end of a sentence; else what there is."""
    every = [(target, names) for target, names in _candidates(pattern, analysis) if target.report is not None]
    columns: list[set[str]] = [set(), set(), set()]
    for target, _ in every:
        for column, word in zip(columns, (target.environment, target.workload, target.metric), strict=True):
            column.add(word)
        columns[1].add(workload_of(target.label)[0])
    parts = DOT.split(pattern)[:_PARTS]
    known = [columns[0], *(columns[1] for _ in parts[1:-1]), columns[2]] if len(parts) > 1 else [columns[2]]
    choices = [[part, *_near(part, words)] for part, words in zip(parts, known, strict=True)]
    for chosen in sorted(product(*choices), key=lambda each: sum(a != b for a, b in zip(each, parts, strict=True))):
        if any(_matches(".".join(chosen), names) for _, names in every):
            return f"; did you mean '{'.'.join(chosen)}{limit.sign}{limit.amount:g}{limit.unit}'?"
    return nearest("", [target.name for target, _ in every])


def _near(part: str, words: set[str]) -> list[str]:
    """Words that a part of a pattern may have meant: those that have it in them, then those that are alike."""
    bare = part.replace(EVERY, "")
    if not bare:
        return []
    holding = sorted((word for word in words if bare in word), key=len)
    return list(dict.fromkeys([*holding, *get_close_matches(bare, sorted(words), n=2, cutoff=0.6)]))[:3]
