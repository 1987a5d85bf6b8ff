"""The document of ``history --json``: its types, from which its JSON Schema is made, and how they are filled.

docs/reference/json.md says what the keys mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import ConfigDict, with_config

from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.analysis.run_result import document_json
from weighbridge.features.gate.compare_json import ChangeJson, CostLimits, FactRow, change_json, fact_rows
from weighbridge.features.gate.compare_text import why_skipped
from weighbridge.features.gate.compared_run import SettingChange
from weighbridge.features.gate.past_runs import History, PastRun
from weighbridge.report.export.json import penalty
from weighbridge.report.export.provenance import date_of
from weighbridge.statistics import Verdict

HISTORY_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class PastCost(CostLimits):
    """The cost in a primary metric of one run.

    ``change``: since the run ``since``; null if the costs cannot be compared. ``change_verdict``: the verdict on it.
    """

    environment: str
    workload: str
    level: Mapping[str, str]
    metric: str
    unit: str
    verdict: Verdict
    blocks: int
    change: ChangeJson | None
    change_verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class PastRunRow:
    """One run of a folder; ``changed`` and ``settings``: differences from the previous run of the same ``series``.

    ``since``: the name of the last earlier run of the series whose control did not fail; null if there is none.
    """

    name: str
    run: str
    study: str
    series: int
    date: str | None
    blocks: int
    trusted: bool | None
    costs: tuple[PastCost, ...]
    changed: tuple[FactRow, ...]
    settings: tuple[SettingChange, ...]
    since: str | None


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
                blocks=row.blocks, **_change(past, report, row),
            )
            for report, row in past.costs
        )  # fmt: skip
        runs.append(PastRunRow(
            past.run.name, analysis.run_id, analysis.study, past.series, date_of(past.run.created), past.blocks,
            analysis.trust.trusted, costs, fact_rows(past.changed), past.settings,
            history.runs[past.since - 1].run.name if past.since else None,
        ))  # fmt: skip
    skipped = tuple(SkippedRow(each.name, why_skipped(each)) for each in history.skipped)
    return document_json(HistoryDocument(HISTORY_VERSION, str(history.folder), tuple(runs), skipped))


def _change(past: PastRun, report: MetricReport, row: Comparison) -> dict[str, Any]:
    change = past.change_of(report, row)
    if change is None or change.change is None:
        return {"change": None, "change_verdict": None}
    verdict = "inconclusive" if change.few else change.verdict
    return {"change": change_json(change, report.unit), "change_verdict": verdict}
