"""The ladder in sentences: what each step costs against the one it adds to. Shared by the terminal and the page."""

from collections.abc import Mapping, Sequence

from weighbridge.analysis.plan import KIND, StepChange
from weighbridge.analysis.results import Analysis, LadderStep, MetricReport
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.summary import sentence, swept

LADDER_INTRODUCTION = (
    "Each step is compared with the environment below it, in the same blocks: its cost is measured, not a difference"
    " of two costs. Holm's correction treats the steps of all metrics as one family."
)
MOST_SENTENCES = 40
"""Steps of which every one is told in a sentence."""


def change_text(changes: Sequence[StepChange], between: str = ": ") -> str:
    """Return what changes from one environment to another: ``network: bridge → macvlan``, ``native → docker``."""
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
    """Give one step as a sentence: what changes, its cost with interval against what it adds to, verdict."""
    words = sentence(report, step.row, step.previous)
    if not step.changes:
        return f"step {number}: {words}"
    name = display_name(step.row.environment)
    return f"step {number}, {name} ({change_text(step.changes, ' ')}):{words.removeprefix(name)}"


def ladder_sentences(analysis: Analysis) -> list[tuple[str, str]]:
    """Give (verdict, sentence) of every step on the headline metrics, in the ladder's order.

    Of a workload with many levels the tables tell, and of steps with too few blocks for a cost. Where there are more
    sentences than anybody reads, those of the differences are given, and the number of the others.
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
    others = len(sentences) - len(different)
    return [
        *different,
        *([("", f"{others} more steps are in the tables, none different")] if others else []),
    ]
