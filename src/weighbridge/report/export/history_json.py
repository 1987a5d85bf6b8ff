"""The runs of a folder for machines: the document of ``history --json``."""

from weighbridge.analysis.history import History, PastRun
from weighbridge.report.export.compare_document import HISTORY_VERSION, HistoryDocument, PastRunRow
from weighbridge.report.export.compare_json import facts_json
from weighbridge.report.export.json import worsening_json
from weighbridge.report.export.provenance import date_of
from weighbridge.report.text.between_runs import why_skipped


def history_json(run_history: History) -> HistoryDocument:
    """Give the document of ``history --json``."""
    return {
        "version": HISTORY_VERSION,
        "folder": str(run_history.folder),
        "runs": [_run(past) for past in run_history.runs],
        "skipped": [{"name": each.name, "why": why_skipped(each)} for each in run_history.skipped],
    }


def _run(past: PastRun) -> PastRunRow:
    analysis = past.run.analysis
    return {
        "name": past.run.name, "run": analysis.run_id, "study": analysis.study, "series": past.series,
        "date": date_of(past.run.created),
        "blocks": past.blocks, "trusted": analysis.trust.trusted,
        "costs": [
            {
                **worsening_json(row.cost, report.unit), "environment": row.environment, "workload": report.workload,
                "level": report.level.factors, "metric": report.metric, "unit": report.unit,
                "verdict": row.verdict, "blocks": row.blocks,
            }
            for report, row in past.costs
        ],
        "changed": facts_json(past.changed),
    }  # fmt: skip
