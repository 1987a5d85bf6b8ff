"""Compares runs of one study, lists them over time, and checks a run's costs against budgets and an earlier run."""

from weighbridge.cli.feature import Feature

FEATURE = Feature(
    commands={
        "compare": "weighbridge.features.gate.options:COMPARE",
        "history": "weighbridge.features.gate.options:HISTORY",
        "gate": "weighbridge.features.gate.options:GATE",
    },
    after="explain",
    documents={
        "compare": "weighbridge.features.gate.compare_json:CompareDocument",
        "history": "weighbridge.features.gate.history_json:HistoryDocument",
        "gate": "weighbridge.features.gate.gate_export:GateDocument",
    },
    api={"compared_costs": "weighbridge.features.gate.compared_costs:compared_costs"},
)
