"""A run in sentences, as the top of README.md has them. Shared by the terminal and the page."""

from collections import Counter
from collections.abc import Collection, Sequence

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.overload import reason
from weighbridge.analysis.remarks import (
    AboutCost,
    AboutEnvironment,
    AsDifference,
    EmulatedCost,
    Nested,
    PartOfCost,
    Stalls,
    without_flags,
)
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.model.flag import FlagKind
from weighbridge.model.text import printable
from weighbridge.report.text.curves import broke_sentences
from weighbridge.report.text.environments import display_name, join_names
from weighbridge.report.text.formatting import (
    margin,
    noise_text,
    percent_range,
    plural,
    quantity,
)
from weighbridge.report.text.metric_names import metric_name, metric_phrase, value_unit
from weighbridge.report.text.remarks import CODES, remark_text
from weighbridge.report.text.verdicts import (
    HIDDEN,
    bottleneck_words,
    comparison_verdict,
    cost_text,
    effect,
    open_text,
    resolved_text,
)
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK, MIN_BLOCKS_VERDICT

MANY_LEVELS = 4
"""Levels of one workload from which one row, or one sentence, speaks for all of them: a table has each."""

TOO_FEW_BLOCKS = "too few blocks"


def nothing_sentence(analysis: Analysis) -> str:
    """Say that nothing was measured, of a run without any measurement."""
    trials = len(analysis.trials)
    if not trials:
        return "No trial has finished yet."
    every = {1: "The only trial", 2: "Both trials"}.get(trials, f"All {trials} trials")
    return f"{every} failed: there is nothing to compare."


def count(blocks: int) -> str:
    """Give a number of blocks: ``1 block``, ``10 blocks``."""
    return "1 block" if blocks == 1 else f"{blocks} blocks"


def change(report: MetricReport, row: Comparison, baseline: str) -> str:
    """Give what an environment does to a metric: ``costs 27.4 % [25.9, 28.8] of tcp throughput against native``.

    What is not proven has no direction: ``may cost 0.1 % [-4.9, 5.0] in tcp throughput against native``.
    """
    row_effect, what, baseline = effect(report, row), metric_phrase(report), display_name(baseline)
    if row_effect is None:
        return f"has {TOO_FEW_BLOCKS if row.few else 'no complete block'} for {what}"
    if row.verdict != "different" and not row.proven:
        return f"may cost {cost_text(row, report.unit)} in {what} against {baseline}"
    percent = row.cost is not None and row.cost.scale == "ratio"
    if percent and row_effect.worse and report.better == "higher":
        return f"costs {row_effect.amount} of {what} against {baseline}"
    if row_effect.times and row_effect.worse:
        return (
            f"takes {row_effect.amount} {row_effect.relation} as {baseline} in {what}"
            if row_effect.word == "slower"
            else f"is {row_effect.amount} {row_effect.relation} as {baseline} in {what}"
        )
    if row_effect.word == "higher" and row_effect.worse:
        return f"adds {row_effect.amount} to {what} against {baseline}"
    return f"is {row_effect.amount} {row_effect.word} than {baseline} in {what}"


def sentence(report: MetricReport, row: Comparison, baseline: str) -> str:
    """Give one comparison as a sentence: environment, cost with interval, baseline, blocks and verdict."""
    end = "; ".join(filter(None, (f"({count(row.blocks)}) - {comparison_verdict(row)}", open_text(report, row))))
    end += "".join(f"; {remark_text(remark)}" for remark in row.remarks if isinstance(remark, PartOfCost))
    return f"{display_name(row.environment)} {change(report, row, baseline)} {end}"


def swept(analysis: Analysis) -> set[str]:
    """Return the workloads with so many levels that one row, or one sentence, speaks for all of them."""
    levels = Counter(report.workload for report in analysis.headlines)
    return {workload for workload, count in levels.items() if count >= MANY_LEVELS}


_Row = tuple[MetricReport, Comparison]


def verdict_sentences(analysis: Analysis) -> list[tuple[str, str]]:
    """Give (verdict, sentence) for the headline metrics: what differs one by one, what does not by environment.

    What is not decided the matrix says.
    Of a workload with many levels one sentence an environment. The verdict is "nothing" where the study has only its
    baseline.
    """
    sentences: list[tuple[str, str]] = []
    if analysis.native_only:
        return [("nothing", f"only {display_name(analysis.baseline)} was measured")]
    rows = [(report, row) for report in analysis.headlines for row in report.comparisons if not (row.aa or row.few)]
    many = swept(analysis)
    different = [each for each in rows if each[1].verdict == "different"]
    sentences += [
        ("different", sentence(m, row, analysis.baseline)) for m, row in different if m.workload not in many
    ]
    sentences += [("different", text) for text in _over_levels(analysis, different, many)]
    sentences += [("broke", text) for text in broke_sentences(analysis)]
    for environment in analysis.environments:
        mine = [(m, row) for m, row in rows if row.environment == environment and row.verdict == "equivalent"]
        small = [(m, row) for m, row in mine if row.proven and m.workload not in many]
        sentences += [("equivalent", sentence(m, row, analysis.baseline)) for m, row in small]
        same = [each for each in mine if each not in small]
        if same and analysis.equivalence is not None:
            what, blocks = _what(analysis, same, many), _range([row for _, row in same])
            text = f"{display_name(environment)} is equivalent to {display_name(analysis.baseline)}"
            within = margin(analysis.equivalence)
            sentences.append(("equivalent", f"{text} within {within} in {what} ({blocks})"))
    sentences += _hidden_sentences(analysis, rows, many)
    few = Counter(row.environment for report in analysis.headlines for row in report.comparisons if row.few)
    for environment in few if not analysis.few else ():
        count = f"{few[environment]} comparison{'' if few[environment] == 1 else 's'}"
        sentences.append(
            (
                "few",
                f"{display_name(environment)}: {count} with fewer than {MIN_BLOCKS_VERDICT} blocks: no verdict",
            )
        )
    return sentences


def _hidden_sentences(analysis: Analysis, rows: Sequence[_Row], many: Collection[str]) -> list[tuple[str, str]]:
    """Return a sentence for each environment about the metrics whose cost a limit hides, and one that explains it."""
    by_limit: dict[tuple[str, str], list[_Row]] = {}
    for report, row in rows:
        if row.hidden is not None:
            by_limit.setdefault((row.environment, bottleneck_words(row.hidden)), []).append((report, row))
    sentences = [
        f"{display_name(environment)}: hidden in {_what(analysis, mine, many)}: {words} "
        f"({_range([row for _, row in mine])})"
        for (environment, words), mine in by_limit.items()
    ]
    return [("hidden", text) for text in (*sentences, *([HIDDEN] if sentences else []))]


def undecided_lines(analysis: Analysis) -> list[str]:
    """Give for each undecided headline cost what would have shown, and what would settle it.

    ``docker, tcp throughput: a cost of 4.2 % would likely have shown; about 38 blocks (3 min more) would settle it``.
    Of a workload with many levels one line an environment, about the level that takes the most.
    """
    many, lines = swept(analysis), []
    by_arm: dict[tuple[str, str], list[_Row]] = {}
    for report in analysis.headlines:
        for row in (each for each in report.comparisons if open_text(report, each)):
            if report.workload in many:
                by_arm.setdefault((row.environment, report.workload), []).append((report, row))
            else:
                lines.append(f"{display_name(row.environment)}, {metric_phrase(report)}: {open_text(report, row)}")
    for (environment, workload), mine in by_arm.items():
        worst = max(mine, key=lambda each: each[1].visible.cost if each[1].visible is not None else 0.0)
        where = metric_phrase(worst[0])
        if len(mine) > 1:
            undecided = f"undecided at {len(mine)} of {_levels(analysis, workload)} levels"
            where = f"{over_levels(worst[0])} {undecided}; at {worst[0].level.label}"
        lines.append(f"{display_name(environment)}, {where}: {open_text(*worst)}")
    return lines


def over_levels(report: MetricReport) -> str:
    """Give a metric's name without its level: ``web requests/s``."""
    name = metric_name(report)
    return report.workload if name == report.workload else f"{report.workload} {name}"


def _levels(analysis: Analysis, workload: str) -> int:
    return sum(report.workload == workload for report in analysis.headlines)


def _over_levels(analysis: Analysis, rows: Sequence[_Row], many: Collection[str]) -> list[str]:
    """Return the range of the different typical costs of each environment in the workloads with many levels."""
    sentences = []
    by_arm: dict[tuple[str, str], list[_Row]] = {}
    for report, row in rows:
        if report.workload in many:
            by_arm.setdefault((report.workload, row.environment), []).append((report, row))
    for (workload, environment), mine in by_arm.items():
        name = over_levels(mine[0][0])
        for worse in (True, False):
            rows_ = [each for each in mine if (row_effect := effect(*each)) is not None and row_effect.worse is worse]
            percents = [abs(row.cost.percent.estimate) for _, row in rows_ if row.cost and row.cost.percent]
            first = effect(*rows_[0]) if rows_ else None
            if first is None:
                continue
            spread = f"{percent_range(percents)} {first.word}" if percents else first.word
            where = f"at {len(rows_)} of {_levels(analysis, workload)} levels"
            end = f"{where} ({_range([row for _, row in rows_])}) - different"
            sentences.append(
                f"{display_name(environment)} is {spread} than {display_name(analysis.baseline)} in {name} {end}"
            )
    return sentences


def _what(analysis: Analysis, rows: Sequence[_Row], many: Collection[str]) -> str:
    """The metrics of some rows; of a workload with many levels only at how many of them."""
    items = [metric_phrase(report) for report, _ in rows if report.workload not in many]
    counts = Counter((m.workload, over_levels(m)) for m, _ in rows if m.workload in many)
    for (workload, name), number in counts.items():
        items.append(f"{name} at {number} of {_levels(analysis, workload)} levels")
    return _listed(items)


def disagreements(analysis: Analysis) -> list[str]:
    """Give the comparisons whose mean cost is far from the typical one: a report leads with them."""
    return [
        f"{display_name(row.environment)}, {metric_phrase(report)}: {remark_text(remark)}"
        for report in analysis.metrics
        for row in report.comparisons
        for remark in row.remarks
        if isinstance(remark, Stalls) and not row.aa
    ]


def exploratory_sentence(analysis: Analysis) -> str:
    """Say that every verdict is exploratory, or that there is none; empty where some comparison has ten blocks."""
    if not analysis.exploratory:
        return ""
    rows = [row for report in analysis.metrics if not report.resource_use for row in report.comparisons if not row.aa]
    compared = [row for row in rows if row.cost is not None] or analysis.compared
    low, high = (pick(row.blocks for row in compared) for pick in (min, max))
    blocks = count(high) if low == high else f"{low} to {high} blocks"
    if analysis.few:
        return (
            f"Quick test of {blocks}: {MIN_BLOCKS_VERDICT} give a first verdict, {MIN_BLOCKS_SIGNED_RANK} a reliable "
            "one. Drift was not tested."
        )
    return f"Every verdict is exploratory: {blocks}; {MIN_BLOCKS_SIGNED_RANK} are needed."


def partly_exploratory_sentence(analysis: Analysis) -> str:
    """Say which environments have exploratory headline costs, where not all are: the matrix does not show it."""
    rows = [row for report in analysis.headlines for row in report.comparisons if row.exploratory and not row.aa]
    counts = Counter(row.environment for row in rows if not row.few)
    if analysis.exploratory or not counts:
        return ""
    listed = ", ".join(f"{display_name(name)} ({number})" for name, number in counts.items())
    return f"exploratory (fewer than {MIN_BLOCKS_SIGNED_RANK} complete blocks): {listed}"


def baseline_sentence(report: MetricReport, baseline: str) -> str:
    """Give the baseline's absolute value and the metric's noise floor as one line."""
    value = quantity(report.baseline_value, report.unit, value_unit(report))
    value = resolved_text(value, baseline, *report.comparisons)
    if report.aa is not None and report.aa.few:
        return f"{display_name(baseline)} {value}"
    return f"{display_name(baseline)} {value}, noise floor {metric_noise(report)}"


def metric_noise(report: MetricReport) -> str:
    """Give the costs of a metric that may be noise, in percent or in its unit: ``-50.0 to 33.3 %``."""
    unit = "%" if report.noise_floor is not None else difference_unit(report.unit)
    return noise_text(report.noise, unit)


def others_text(analysis: Analysis) -> str:
    """Give how many costs are not in the matrix: ``9 costs not shown (2 proven)``; empty where none are."""
    rows = [row for report in analysis.metrics if not report.headline for row in report.comparisons if not row.aa]
    costs = [row for row in rows if row.cost is not None and not row.few]
    different = sum(row.shown_as == "different" for row in costs)
    return f"{plural(len(costs), 'cost')} not shown ({different or 'none'} proven)" if costs else ""


def unmeasured_text(analysis: Analysis, label: str) -> str:
    """Give why a workload and level has no measurement."""
    broke = reason(trial for trial in analysis.trials if trial.label == label and trial.broke)
    return f"{label}: {f'every trial broke: {broke}' if broke else 'no trial finished'}"


def failure_lines(analysis: Analysis, shown: int = 3) -> list[str]:
    """Give how many trials failed, and a line for each environment and way in which they did: the first `shown`."""
    if not analysis.failed:
        return []
    trials: dict[tuple[str, str, str], list[str]] = {}
    for trial in analysis.failed:
        trials.setdefault((trial.environment, trial.outcome, trial.message), []).append(trial.label)
    ways = sorted(trials.items(), key=lambda each: -len(each[1]))
    lines = [
        f"{display_name(name)}, {', '.join(dict.fromkeys(labels))}: {len(labels)} × {outcome}"
        f"{f' - {message}' if message else ''}"
        for (name, outcome, message), labels in ways[:shown]
    ]
    more = [f"and {len(ways) - shown} other kinds of failure"] if len(ways) > shown else []
    return [f"{len(analysis.failed)} of {len(analysis.trials)} trials failed", *map(printable, lines), *more]


def failed_sentences(analysis: Analysis) -> list[str]:
    """Give each failed trial with its reason."""
    lines = []
    for trial in analysis.failed:
        again = f" (repetition {trial.attempt})" if trial.attempt else ""
        why = f" - {trial.message}" if trial.message else ""
        where = f"{display_name(trial.environment)}, {trial.label}, block {trial.block}{again}"
        lines.append(printable(f"trial {trial.id}: {where}: {trial.outcome}{why}"))
    return lines


def remark_lines(
    report: MetricReport, shown_lines: set[str], without: Collection[str] = (), kinds: Collection[FlagKind] = ()
) -> list[str]:
    """Give each remark about a metric once, with the environments that it is about unless it is about all.

    What is in `shown_lines` is left out; what is given is added: the metrics of one workload share most remarks.
    Codes in `without` and flags of trials of these `kinds` are said elsewhere; so are hypervisors, by notices on top
    and by the name of each environment.
    """
    rows = [row for row in report.comparisons if not row.aa]
    few = rows and all(row.few for row in rows)
    without = {*without, EmulatedCost.code, Nested.code}
    about: dict[tuple[bool, str], list[str]] = {}
    for row in rows:
        for remark in without_flags(row.remarks, kinds):
            if remark.code in without or (few and isinstance(remark, AboutCost)):
                continue
            own = isinstance(remark, AboutEnvironment)
            text = CODES[remark.code] if isinstance(remark, AsDifference) else remark_text(remark)
            about.setdefault((own, text), []).append(row.environment)
    lines = [
        text if own or len(names) == len(rows) else f"{join_names(names)}: {text}"
        for (own, text), names in about.items()
    ]
    fresh = [line for line in lines if line not in shown_lines]
    shown_lines.update(fresh)
    return fresh


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _range(rows: Sequence[Comparison]) -> str:
    """How many blocks comparisons have, and whether they are exploratory."""
    low, high = min(row.blocks for row in rows), max(row.blocks for row in rows)
    few = [row.exploratory for row in rows if row.cost is not None]
    words = ", exploratory" if few and all(few) else ", exploratory below 10" if any(few) else ""
    return f"{count(high) if low == high else f'{low} to {high} blocks'}{words}"
