"""The ladder in sentences: the cost of each step against the step below. Shared by the terminal and the page."""

from collections.abc import Mapping, Sequence

from weighbridge.analysis.plan import KIND, StepChange
from weighbridge.analysis.results import Analysis, LadderStep, MetricReport
from weighbridge.report.text.formatting import plural
from weighbridge.report.text.summary import sentence, swept

LADDER_INTRODUCTION = (
    "Each step is compared with the environment below it, in the same rounds. Its cost is therefore measured"
    " directly, not as a difference of two costs. Holm's correction treats the steps of all metrics as one family."
)
MOST_SENTENCES = 40
"""Steps up to which each has a sentence."""


def change_text(changes: Sequence[StepChange], between: str = ": ") -> str:
    """Return the changes from one environment to another: ``network: bridge → macvlan``, ``native → docker``."""
    return ", ".join(
        f"{'' if each.setting == KIND else each.setting.replace('_', ' ') + between}"
        f"{_setting(each.before)} → {_setting(each.now)}"
        for each in changes
    )


def _setting(value: object) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, Mapping):  # options that the other environment has not
        return ", ".join(f"{name} {_setting(each)}" for name, each in value.items())
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def step_sentence(number: int, report: MetricReport, step: LadderStep) -> str:
    """Return one step as a sentence: its changes, its cost with interval against the step below, and its verdict."""
    changes = f" ({change_text(step.changes, ' ')})" if step.changes else ""
    return f"step {number}{changes}: {sentence(report, step.row)}"


def ladder_sentences(analysis: Analysis) -> list[tuple[str, str]]:
    """Return (verdict, sentence) for every step on the primary metrics, in the ladder's order.

    Workloads with many levels are in the tables, and so are steps with too few rounds for a cost. If there are more
    than `MOST_SENTENCES`, only significant steps have one, and the last line has the number of the others.
    """
    many = swept(analysis)
    sentences: list[tuple[str, str]] = [
        (step.row.verdict, step_sentence(number, ladder.report, step))
        for ladder in analysis.ladder
        for number, step in enumerate(ladder.steps, 1)
        if ladder.report.headline and ladder.report.workload not in many and step.row.shown_as != "few"
    ]
    if len(sentences) <= MOST_SENTENCES:
        return sentences
    different = [each for each in sentences if each[0] == "different"]
    if others := len(sentences) - len(different):
        rest = f"the tables show {plural(others, 'more step')} with a verdict other than significant"
        return [*different, ("", rest)]
    return different
