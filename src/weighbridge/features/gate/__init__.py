"""Compares runs of one study, lists them over time, and checks a run's costs against budgets and an earlier run."""

from weighbridge.cli.feature import Feature
from weighbridge.features.gate.options import COMPARE, GATE, HISTORY

FEATURE = Feature(
    commands=(COMPARE, HISTORY, GATE),
    documents={
        "compare": "weighbridge.features.gate.compare_json:CompareDocument",
        "history": "weighbridge.features.gate.history_json:HistoryDocument",
        "gate": "weighbridge.features.gate.gate_export:GateDocument",
    },
)
