"""The ladder in sentences: what each step costs against the one it adds to. Shared by the terminal and the page."""

from weighbridge.analysis.results import Analysis, MetricReport, Step
from weighbridge.report.text.summary import sentence, swept

LADDER_INTRODUCTION = (
    "Each step is compared with the one that it adds to inside the same blocks: its cost is measured, never the"
    " difference of two costs. The steps of all metrics are a family of their own in the correction for many"
    " comparisons (Holm)."
)


def step_sentence(number: int, report: MetricReport, step: Step) -> str:
    """Give one step as a sentence: what changes, its cost with interval against what it adds to, verdict."""
    words = sentence(report, step.row, step.previous)
    if not step.change:
        return f"step {number}: {words}"
    name, _, rest = words.partition(" ")
    return f"step {number}, {name} ({step.change.replace(': ', ' ')}): {rest}"


def ladder_sentences(analysis: Analysis) -> list[tuple[str, str]]:
    """Give (verdict, sentence) of every step on the headline metrics, in the ladder's order.

    Of a workload with many levels the tables tell.
    """
    many = swept(analysis)
    return [
        (step.row.verdict, step_sentence(number, ladder.report, step))
        for ladder in analysis.ladder
        for number, step in enumerate(ladder.steps, 1)
        if ladder.report.headline and ladder.report.workload not in many
    ]
