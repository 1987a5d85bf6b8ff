"""Runs compared as Markdown, for an issue or the summary of a CI job."""

from collections.abc import Iterator

from weighbridge.analysis.between_runs import MetricChanges, RunPair, RunsCompared
from weighbridge.report.markdown import escaped, markdown_table
from weighbridge.report.text.between_runs import (
    HOW_TO_READ,
    beside_verdict,
    change_amount,
    change_verdict,
    disturbance_sentence,
    fact_lines,
    on_purpose_words,
    only_lines,
    own_values_words,
    pair_answer,
    run_letter,
    run_words,
    setting_words,
    shown_as,
    why_no_own_values,
)
from weighbridge.report.text.environments import display_name, names_of_runs, use_display_names
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.verdicts import cost_text


def compare_markdown(comparison: RunsCompared, *, all_metrics: bool = False) -> str:
    """Return the comparison; `all_metrics`: every metric, not only primary and changed ones."""
    lines = ["## Runs compared", ""]
    lines += [f"- {escaped(run_words(run_letter(number), run))}" for number, run in enumerate(comparison.runs)]
    with use_display_names(names_of_runs(comparison)):
        for number, pair in enumerate(comparison.pairs, 1):
            lines += _pair(pair, run_letter(0), run_letter(number), all_metrics=all_metrics)
    return "\n".join([*lines, "", f"_{escaped(HOW_TO_READ)}_", ""])


def _pair(pair: RunPair, first: str, second: str, *, all_metrics: bool) -> Iterator[str]:
    yield from ("", f"**{escaped(pair_answer(pair, first, second))}**", "")
    if sentence := disturbance_sentence(pair, first, second):
        yield from (escaped(sentence), "")
    yield from (f"### What changed from {first} to {second}", "")
    yield from (f"- {escaped(line)}" for line in fact_lines(pair.facts))
    yield from (f"- study: {escaped(setting_words(each))}" for each in pair.settings)
    yield from (f"- {escaped(line)}" for line in only_lines(pair.only, first, second))
    shown = [each for each in pair.metrics if all_metrics or each.headline or _changed(each)]
    if shown:
        yield from ("", "### Costs", "")
        heads = (
            "metric",
            "environment",
            f"cost in {first} [95%]",
            f"cost in {second} [95%]",
            "change [95%]",
            "verdict",
        )
        yield from markdown_table(heads, [cells for metric in shown for cells in _rows(metric)])
    yield ""
    if why := why_no_own_values(pair.no_own_values):
        yield escaped(why)
        return
    rows = [
        (metric_title(metric.before), display_name(own.environment), *own_values_words(metric, own))
        for metric in shown
        for own in metric.own
    ]
    if rows:
        yield from ("### Absolute rates, without verdicts (runs were not interleaved)", "")
        if pair.on_purpose:
            yield from (f"Changed on purpose: {escaped(on_purpose_words(pair))}", "")
        yield from markdown_table(("metric", "environment", f"median {first}", f"median {second}", "change"), rows)


def _changed(metric: MetricChanges) -> bool:
    return any(shown_as(row) == "different" for row in metric.rows)


def _rows(metric: MetricChanges) -> Iterator[tuple[str, ...]]:
    unit = metric.before.unit
    for row in metric.rows:
        reason = beside_verdict(metric, row)
        yield (
            metric_title(metric.before), display_name(row.environment), cost_text(row.before, unit),
            cost_text(row.after, metric.after.unit), change_amount(row, unit),
            change_verdict(row) + (f"; {reason}" if reason else ""),
        )  # fmt: skip
