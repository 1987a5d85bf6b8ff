"""The document of ``history --json``: its types, from which its JSON Schema is made, and how they are filled.

docs/reference/json.md says what the keys mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import ConfigDict, with_config

from weighbridge.analysis.run_result import document_json
from weighbridge.features.gate.compare_json import CostLimits, FactRow, fact_rows
from weighbridge.features.gate.compare_text import why_skipped
from weighbridge.features.gate.past_runs import History
from weighbridge.report.export.json import penalty
from weighbridge.report.export.provenance import date_of
from weighbridge.statistics import Verdict

HISTORY_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class PastCost(CostLimits):
    """The cost in a primary metric of one run."""

    environment: str
    workload: str
    level: Mapping[str, str]
    metric: str
    unit: str
    verdict: Verdict
    blocks: int


@dataclass(frozen=True, slots=True)
class PastRunRow:
    """One run of a folder; ``changed``: facts that differ from the previous run of the same ``series``."""

    name: str
    run: str
    study: str
    series: int
    date: str | None
    blocks: int
    trusted: bool | None
    costs: tuple[PastCost, ...]
    changed: tuple[FactRow, ...]


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """Something in the folder that is not a readable run."""

    name: str
    why: str


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class HistoryDocument:
    """The document of ``weighbridge history --json``; ``runs`` are in time order, the oldest first."""

    version: Literal[1]
    folder: str
    runs: tuple[PastRunRow, ...]
    skipped: tuple[SkippedRow, ...]


def history_json(history: History) -> dict[str, Any]:
    """Return the document of ``history --json``."""
    runs = []
    for past in history.runs:
        analysis = past.run.analysis
        costs = tuple(
            PastCost(
                **penalty(row.cost, report.unit), environment=row.environment, workload=report.workload,
                level=report.level.factors, metric=report.metric, unit=report.unit, verdict=row.verdict,
                blocks=row.blocks,
            )
            for report, row in past.costs
        )  # fmt: skip
        runs.append(PastRunRow(
            past.run.name, analysis.run_id, analysis.study, past.series, date_of(past.run.created), past.blocks,
            analysis.trust.trusted, costs, fact_rows(past.changed),
        ))  # fmt: skip
    skipped = tuple(SkippedRow(each.name, why_skipped(each)) for each in history.skipped)
    return document_json(HistoryDocument(HISTORY_VERSION, str(history.folder), tuple(runs), skipped))
