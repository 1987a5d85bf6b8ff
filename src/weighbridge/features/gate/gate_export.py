"""The outcomes of requirements on costs as documents: the JSON of a gate, and the formats of CI systems."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from xml.etree import ElementTree as ET

from pydantic import ConfigDict, with_config

from weighbridge.analysis.comparisons import cost_unit
from weighbridge.analysis.limits import Finding, Reason
from weighbridge.analysis.requirement import Operand, Target
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.run_result import InEnvironment, Number, Penalty, document_json, finite
from weighbridge.features.gate.gate_analysis import Gate, GateAnswer, visible_excess
from weighbridge.features.gate.gate_text import EXTENSION_S, OUTCOMES, GateRow, gate_answer, next_sentence
from weighbridge.features.gate.gate_text import RequirementOutcome as GateOutcome
from weighbridge.model.document import SuggestedStep
from weighbridge.report.document import Column, Document, Table, say
from weighbridge.report.export.disturbance import DisturbanceRow, disturbance_json
from weighbridge.report.export.limits import finding_figures
from weighbridge.report.export.next_steps import reason_of
from weighbridge.report.render_markdown import markdown

VERSION: Final = 1
"""The version of the document of ``gate --json``."""
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_XML_ENDS: dict[str, str] = {"failed": "failure", "undecided": "error"}
"""In JUnit, a cost over its budget is a failure, and an undecided cost is an error."""
_GITHUB_COMMANDS = {"failed": "error", "undecided": "warning", "passed": "notice"}
_GITLAB_SEVERITIES = {"failed": "major", "undecided": "minor"}
_COLUMNS = (
    Column(""), Column("comparison"), Column("budget"), Column("cost"), Column("rounds", align="right"), Column(""),
)  # fmt: skip
_SIGNS = {"passed": "✅", "failed": "❌", "undecided": "❔"}
Bmf = dict[str, dict[str, dict[str, float]]]
"""Benchmark -> measure -> ``value``, and also ``lower_value`` and ``upper_value`` if there is an interval."""


@dataclass(frozen=True, kw_only=True)
class GateFinding(Penalty, InEnvironment):
    """The outcome of one budget in one comparison, or of the margin in one change.

    ``confidence``: the confidence level of the interval from ``cost_low`` to ``cost_high`` (a fraction). In a report
    it is 0.95.
    """

    about: Operand
    budget: str
    workload: str
    metric: str
    outcome: GateOutcome
    reason: Reason
    confidence: float | None
    visible_cost: Number
    blocks: int


@dataclass(frozen=True)
class GateLookRow:
    """An earlier look of the gate: its blocks, and the share of the error budget that it spent."""

    blocks: int
    share: float


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class GateDocument:
    """The document of ``weighbridge gate RUN --json``.

    ``not_judged``: the number of costs that match a pattern but are in another unit than its budget.
    """

    version: Literal[1]
    study: str
    run: str
    against: str | None
    disturbance: DisturbanceRow
    against_disturbance: DisturbanceRow | None
    answer: GateAnswer
    findings: tuple[GateFinding, ...]
    not_judged: int
    looks: int
    share: float
    earlier_looks: tuple[GateLookRow, ...]
    next_steps: tuple[SuggestedStep, ...]


def gate_json(
    gate: Gate, analysis: Analysis, against: Analysis | None = None, command: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the document of ``gate --json``, as docs/reference/json.md has it.

    ``against`` is the earlier run, ``command`` the words of the present command.
    """
    return document_json(GateDocument(
        version=VERSION,
        study=analysis.study,
        run=analysis.run_id,
        against=against.run_id if against is not None else None,
        disturbance=disturbance_json(analysis),
        against_disturbance=disturbance_json(against) if against is not None else None,
        answer=gate.answer,
        findings=tuple(_finding(each, gate, analysis) for each in gate.findings),
        not_judged=gate.not_judged,
        looks=gate.looks,
        share=gate.share,
        earlier_looks=tuple(GateLookRow(each.blocks, each.share) for each in gate.earlier),
        next_steps=tuple(_next_steps(gate, command)),
    ))  # fmt: skip


def _next_steps(gate: Gate, command: Sequence[str]) -> Iterator[SuggestedStep]:
    if gate.answer == "untrusted":
        yield SuggestedStep(code="control-failed", reason=gate_answer(gate))
    if sentence := next_sentence(gate):
        words = (*command, "--extend", f"{EXTENSION_S / 60:g}min") if gate.lasting else None
        seconds = EXTENSION_S if gate.lasting else None
        yield SuggestedStep(code="undecided", reason=reason_of(sentence), command=words, seconds=seconds)


def _finding(finding: Finding, gate: Gate, analysis: Analysis) -> GateFinding:
    return GateFinding(
        **finding_figures(finding, analysis),
        about=finding.requirement.operand,
        budget=finding.requirement.text,
        outcome=OUTCOMES[finding.outcome],
        reason=finding.reason,
        confidence=finding.confidence if finding.blocks > 1 else None,
        visible_cost=visible_excess(finding, gate, analysis),
        blocks=finding.blocks,
    )


def junit_xml(study: str, rows: Sequence[GateRow], answer: str = "") -> bytes:
    """Return a JUnit report of one test suite, called after the study, as UTF-8; ``answer``: the gate's sentence."""
    counts = {
        "tests": len(rows),
        "failures": sum(row.outcome == "failed" for row in rows),
        "errors": sum(row.outcome == "undecided" for row in rows),
    }
    numbers = {key: str(value) for key, value in counts.items()}
    root = ET.Element("testsuites", {"name": "weighbridge gate", **numbers})
    suite = ET.SubElement(root, "testsuite", {"name": _xml(study), **numbers, "skipped": "0", "time": "0"})
    for row in rows:
        named = f"{row.name}{' change' if row.change else ''} {row.budget}"
        case = ET.SubElement(suite, "testcase", {"classname": _xml(study), "name": _xml(named), "time": "0"})
        if (end := _XML_ENDS.get(row.outcome)) is not None:
            sentence = _xml(row.sentence)
            ET.SubElement(case, end, {"type": row.outcome, "message": sentence}).text = sentence
        else:
            ET.SubElement(case, "system-out").text = _xml(row.sentence)
    if answer:
        ET.SubElement(suite, "system-out").text = _xml(answer)
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _xml(text: str) -> str:
    """Return the text with the characters replaced that XML 1.0 cannot represent."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text.replace("\N{NO-BREAK SPACE}", " "))


def github_commands(rows: Sequence[GateRow]) -> str:
    """Return a workflow command for each comparison, a line each.

    Messages are escaped as GitHub's own toolkit does it; a title needs no escape.
    """
    return "".join(
        f"::{_GITHUB_COMMANDS[row.outcome]} title=weighbridge gate {row.outcome}::{_github(row.sentence)}\n"
        for row in rows
    )


def _github(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def gitlab_code_quality(rows: Sequence[GateRow], path: str) -> str:
    """Return GitLab's code quality report: a JSON list of the costs that are not within their budgets.

    ``path``: the file at which GitLab shows it. A fingerprint identifies a finding, whatever the numbers are.
    """
    findings = [
        {
            "description": row.sentence,
            "check_name": "weighbridge-gate",
            "fingerprint": _fingerprint(row, path),
            "severity": _GITLAB_SEVERITIES[row.outcome],
            "location": {"path": path, "lines": {"begin": 1}},
        }
        for row in rows
        if row.outcome in _GITLAB_SEVERITIES
    ]
    return json.dumps(findings, indent=2) + "\n"


def _fingerprint(row: GateRow, path: str) -> str:
    named = "\0".join((path, row.name, row.budget, "change" if row.change else "cost"))
    return hashlib.sha256(named.encode(errors="surrogateescape")).hexdigest()


def gate_markdown(study: str, answer: str, rows: Sequence[GateRow]) -> str:
    """Return Markdown for job summaries and comments: a heading, the answer and a table of every comparison."""
    cells = (
        (f"{_SIGNS[row.outcome]} {row.outcome}", f"{'change of ' if row.change else ''}{row.name}", row.budget,
         row.cost or "–", row.block_count, row.reason)
        for row in rows
    )  # fmt: skip
    table = Table(_COLUMNS, tuple(tuple(map(say, row)) for row in cells))
    return markdown(Document("gate", f"Weighbridge: {study}", answer, (table,))) + "\n"


def bmf(analysis: Analysis) -> Bmf:
    """Return every cost of a run, including the control's, with its 95% interval, in Bencher's metric format.

    A session that is not trusted has none. As in a report, hidden costs and costs from fewer than six blocks are left
    out. A benchmark is ``ENVIRONMENT.WORKLOAD``. A measure is the metric with the unit of its cost:
    ``throughput cost (%)``.
    """
    costs: Bmf = {}
    if analysis.trust.trusted is False:
        return costs
    for report in analysis.metrics:
        for row in report.comparisons:
            cost = row.usable_cost
            if cost is None or (value := finite(cost.penalty.estimate)) is None:
                continue
            target = Target(row.environment, report.label, report.metric, report, row)
            measured = {"value": value}
            limits = {"lower_value": cost.penalty.low, "upper_value": cost.penalty.high}
            measured |= {key: limit for key, bound in limits.items() if (limit := finite(bound)) is not None}
            measure = f"{report.metric} cost ({cost_unit(cost.scale, report.unit)})"
            costs.setdefault(f"{row.environment}.{target.workload}", {})[measure] = measured
    return costs
