"""Environments of the study that a run does not measure, in words."""

from weighbridge.analysis.results import Analysis
from weighbridge.model.study import nearest_base


def left_out_lines(analysis: Analysis) -> list[str]:
    """Return a line for each environment that could not be opened: why, what helps, what becomes of its step."""
    return [
        f"{each.environment} ({each.kind}) was left out, as it could not be opened: {each.reason}"
        f"{_of_ladder(analysis, each.environment)}"
        for each in analysis.left_out
    ]


def _of_ladder(analysis: Analysis, name: str) -> str:
    """What becomes of the steps of a ladder that are from or to an environment that was left out."""
    rungs = analysis.rungs
    if name not in (rung.name for rung in rungs):
        return ""
    above = [rung.name for rung in rungs if rung.base == name and rung.name in analysis.environments]
    linked = [(each, nearest_base(rungs, each, analysis.environments)) for each in above]
    told = [f"{each} is compared with {base}" if base else f"{each} adds to nothing" for each, base in linked]
    return f" (its step of the ladder falls away{''.join(f'; {each}' for each in told)})"
