"""What programs and their sites used, for machines: the key ``programs`` of ``report --json``."""

from weighbridge.analysis.program_use import program_use
from weighbridge.analysis.results import Analysis
from weighbridge.report.export.document import ProgramRow
from weighbridge.report.export.within import within_json
from weighbridge.store.run import RunStore


def programs_json(store: RunStore, analysis: Analysis) -> list[ProgramRow]:
    """One object per workload, level, role and environment, with medians over the blocks."""
    cells = {trial.label: (trial.workload, trial.level) for trial in analysis.trials}
    return [
        {
            "environment": each.environment,
            **within_json(analysis, each.environment),
            "workload": cells[label][0],
            "level": cells[label][1].factors,
            "role": each.role,
            "blocks": each.blocks,
            "medians": dict(each.medians),
        }
        for label, rows in program_use(store, analysis).items()
        for each in rows
    ]
