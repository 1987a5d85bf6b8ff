"""A run in sentences, shared by the terminal and the page."""

from collections import Counter
from collections.abc import Collection, Sequence

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.overload import reason
from weighbridge.analysis.remarks.flags import without_flags
from weighbridge.analysis.results import Analysis, Comparison, MetricReport, RemarkPlace
from weighbridge.model.address import grouped
from weighbridge.model.flag import FlagKind
from weighbridge.model.measurement import Outcome
from weighbridge.model.text import printable
from weighbridge.report.text.curves import broke_sentences
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import (
    TOO_FEW,
    listed,
    margin,
    noise_text,
    percent_range,
    plural,
    quantity,
)
from weighbridge.report.text.metric_names import RUN_TIME, metric_phrase, titled, value_unit
from weighbridge.report.text.remarks import joint_texts, remark_text
from weighbridge.report.text.verdicts import (
    HIDDEN,
    bottleneck_words,
    effect,
    judged_cost_text,
    open_range,
    open_text,
    reasoned_verdict,
    resolved_text,
)
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK, MIN_BLOCKS_VERDICT

MANY_LEVELS = 4
"""Levels of one workload from which one row, or one sentence, summarises all of them: a table has each."""


def nothing_sentence(analysis: Analysis) -> str:
    """Return that nothing was measured, for a run without any measurement."""
    trials = len(analysis.trials)
    if not trials:
        return "No trial has finished yet."
    every = {1: "The only trial", 2: "Both trials"}.get(trials, f"All {trials} trials")
    return f"{every} failed: there is nothing to compare."


def count(blocks: int) -> str:
    """Return a number of rounds: ``1 round``, ``10 rounds``."""
    return plural(blocks, "round")


def change(report: MetricReport, row: Comparison) -> str:
    """Return a cost as the rest of a sentence: ``has 27.4% [25.9, 28.8] lower TCP throughput than native``.

    An undecided cost is a range: ``has between 4.9% higher and 5.0% lower TCP throughput than native``.
    """
    row_effect, what, baseline = effect(report, row), metric_phrase(report), display_name(row.against)
    if row_effect is None:
        return f"has {TOO_FEW if row.few else 'no complete round'} for {what}"
    time = row_effect.word in ("slower", "faster")
    where = "" if what == RUN_TIME else f" in {what}"
    if row.verdict != "different" and not row.proven:
        if row.shown_as == "equivalent":
            return f"has a cost of {judged_cost_text(row, report.unit)} in {what} against {baseline}"
        size = open_range(report, row)
        return f"is {size} than {baseline}{where}" if time else f"has {size} {what} than {baseline}"
    if row_effect.times and row_effect.worse:
        return (
            f"takes {row_effect.amount} {row_effect.relation} as {baseline}{where}"
            if time
            else (f"has {row_effect.amount} as high {what} as {baseline}")
        )
    if time:
        return f"takes {row_effect.amount} {'longer' if row_effect.worse else 'less time'} than {baseline}{where}"
    return f"has {row_effect.amount} {row_effect.relation} {what} than {baseline}"


def sentence(report: MetricReport, row: Comparison) -> str:
    """Return one comparison as a sentence: environment, cost with interval, baseline, rounds and verdict."""
    end = "; ".join(filter(None, (f"({count(row.blocks)}) - {reasoned_verdict(row)}", open_text(report, row))))
    end += "".join(f"; {remark_text(remark)}" for remark in row.remarks if remark.placement is RemarkPlace.SENTENCE)
    return f"{display_name(row.environment)} {change(report, row)} {end}"


def swept(analysis: Analysis) -> set[str]:
    """Return the workloads with at least `MANY_LEVELS` levels."""
    levels = Counter(report.workload for report in analysis.headlines)
    return {workload for workload, count in levels.items() if count >= MANY_LEVELS}


_Row = tuple[MetricReport, Comparison]


def verdict_sentences(analysis: Analysis) -> list[tuple[str, str]]:
    """Return (verdict, sentence) for the primary metrics: significant costs one by one, the others by environment.

    Undecided costs are in the matrix. A workload with many levels has one sentence per environment. The verdict is
    "nothing" if the study has only its baseline.
    """
    sentences: list[tuple[str, str]] = []
    if analysis.native_only:
        return [("nothing", f"only {display_name(analysis.baseline)} was measured")]
    rows = [(report, row) for report in analysis.headlines for row in report.comparisons if not (row.aa or row.few)]
    many = swept(analysis)
    different = [each for each in rows if each[1].verdict == "different"]
    sentences += [("different", sentence(m, row)) for m, row in different if m.workload not in many]
    sentences += [("different", text) for text in _over_levels(analysis, different, many)]
    sentences += [("broke", text) for text in broke_sentences(analysis)]
    for environment in analysis.environments:
        mine = [(m, row) for m, row in rows if row.environment == environment and row.verdict == "equivalent"]
        small = [(m, row) for m, row in mine if row.proven and m.workload not in many]
        sentences += [("equivalent", sentence(m, row)) for m, row in small]
        same = [each for each in mine if each not in small]
        if same and analysis.equivalence is not None:
            what, blocks = _what(analysis, same, many), _range([row for _, row in same])
            within = f"within {margin(analysis.equivalence)} of {display_name(same[0][1].against)}"
            sentences.append(("equivalent", f"{display_name(environment)} is {within} in {what} ({blocks})"))
    sentences += _hidden_sentences(analysis, rows, many)
    few = Counter(row.environment for report in analysis.headlines for row in report.comparisons if row.few)
    for environment in few if not analysis.few else ():
        number = plural(few[environment], "comparison")
        text = f"{display_name(environment)}: {number} with fewer than {MIN_BLOCKS_VERDICT} rounds: no verdict"
        sentences.append(("few", text))
    return sentences


def _hidden_sentences(analysis: Analysis, rows: Sequence[_Row], many: Collection[str]) -> list[tuple[str, str]]:
    """Return a sentence for each environment with metrics that a bottleneck hides, and one that explains it."""
    by_limit: dict[tuple[str, str], list[_Row]] = {}
    for report, row in rows:
        if row.hidden is not None:
            by_limit.setdefault((row.environment, bottleneck_words(row.hidden)), []).append((report, row))
    sentences = [
        f"{display_name(environment)}: cost hidden by a bottleneck in {_what(analysis, mine, many)}: {words} "
        f"({_range([row for _, row in mine])})"
        for (environment, words), mine in by_limit.items()
    ]
    return [("hidden", text) for text in (*sentences, *([HIDDEN] if sentences else []))]


def undecided_lines(analysis: Analysis) -> list[str]:
    """Return a line for each undecided cost of a primary metric: the cost it detects, and the rounds that decide it.

    ``docker, TCP throughput: a cost of 4.2% or more would probably have been detected; about 38 rounds (3 min more)
    would decide it``. A workload with many levels has one line per environment, about its least precise level.
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
    """Return a metric's name without its level: ``web requests/s``, ``TCP throughput``."""
    return titled(report.workload, report.workload, report.metric, report.unit).replace(" · ", " ")


def _levels(analysis: Analysis, workload: str) -> int:
    return sum(report.workload == workload for report in analysis.headlines)


def _over_levels(analysis: Analysis, rows: Sequence[_Row], many: Collection[str]) -> list[str]:
    """Return the range of each environment's significant costs in the workloads with many levels."""
    sentences = []
    swept_rows = [each for each in rows if each[0].workload in many]
    by_arm = grouped(swept_rows, lambda each: (each[0].workload, each[1].environment))
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
            end = f"{where} ({_range([row for _, row in rows_])}) - significant"
            verb = "is" if first.word in ("slower", "faster") else "has"
            than = f"than {display_name(rows_[0][1].against)}"
            what = f"{than} in {name}" if verb == "is" else f"{name} {than}"
            sentences.append(f"{display_name(environment)} {verb} {spread} {what} {end}")
    return sentences


def _what(analysis: Analysis, rows: Sequence[_Row], many: Collection[str]) -> str:
    """Return the metrics of some rows; for a workload with many levels the number of levels."""
    items = [metric_phrase(report) for report, _ in rows if report.workload not in many]
    counts = Counter((m.workload, over_levels(m)) for m, _ in rows if m.workload in many)
    for (workload, name), number in counts.items():
        items.append(f"{name} at {number} of {_levels(analysis, workload)} levels")
    return listed(items)


def disagreements(analysis: Analysis) -> list[str]:
    """Return the comparisons whose mean cost is far from the typical one: a report leads with them."""
    return [
        f"{display_name(row.environment)}, {metric_phrase(report)}: {remark_text(remark)}"
        for report in analysis.metrics
        for row in report.comparisons
        for remark in row.remarks
        if remark.placement is RemarkPlace.LEAD and not row.aa
    ]


def exploratory_sentence(analysis: Analysis) -> str:
    """Return that every verdict is exploratory, or that there is none; empty if some comparison has ten rounds."""
    if not analysis.exploratory:
        return ""
    rows = [row for report in analysis.metrics if not report.resource_use for row in report.comparisons if not row.aa]
    compared = [row for row in rows if row.cost is not None] or analysis.compared
    low, high = (pick(row.blocks for row in compared) for pick in (min, max))
    rounds = count(high) if low == high else f"{low} to {high} rounds"
    if analysis.few:
        return (
            f"Only {rounds}. You need {MIN_BLOCKS_VERDICT} for a first verdict and {MIN_BLOCKS_SIGNED_RANK} for a "
            "reliable one."
        )
    return f"Every verdict is exploratory: {rounds}. You need {MIN_BLOCKS_SIGNED_RANK} for a reliable verdict."


def partly_exploratory_sentence(analysis: Analysis) -> str:
    """Return which environments have exploratory costs of primary metrics; empty if all are exploratory, or none."""
    rows = [row for report in analysis.headlines for row in report.comparisons if row.exploratory and not row.aa]
    counts = Counter(row.environment for row in rows if not row.few)
    if analysis.exploratory or not counts:
        return ""
    listed = ", ".join(f"{plural(number, 'comparison')} in {display_name(name)}" for name, number in counts.items())
    return f"exploratory (fewer than {MIN_BLOCKS_SIGNED_RANK} complete rounds): {listed}"


def baseline_sentence(analysis: Analysis, report: MetricReport) -> str:
    """Return the values that others are compared with, the baseline's first, and the noise floor as one line."""
    shown, rows = value_unit(report), report.comparisons
    values = [
        f"{display_name(name)} {resolved_text(quantity(value, report.unit, shown), name, *rows)}"
        for name, value in analysis.references(report).items()
    ]
    few = report.aa is not None and report.aa.few
    return ", ".join([*values, *([] if few else [f"noise floor {metric_noise(report)}"])])


def metric_noise(report: MetricReport) -> str:
    """Return a metric's noise floor, in percent or in its unit: ``-50.0 to 33.3%``."""
    unit = "%" if report.noise_floor is not None else difference_unit(report.unit)
    return noise_text(report.noise, unit)


def others_text(analysis: Analysis) -> str:
    """Return how many costs are not in the matrix: ``9 more costs, 2 of them significant``; empty if none are."""
    rows = [row for report in analysis.metrics if not report.headline for row in report.comparisons if not row.aa]
    costs = [row for row in rows if row.cost is not None and not row.few]
    different = sum(row.shown_as == "different" for row in costs)
    if not costs:
        return ""
    if len(costs) == 1:
        return f"1 more cost, {'significant' if different else 'not significant'}"
    return f"{len(costs)} more costs, {different or 'none'} of them significant"


def unmeasured_text(analysis: Analysis, label: str) -> str:
    """Return why a workload and level has no measurement."""
    broke = reason(trial for trial in analysis.trials if trial.label == label and trial.broke)
    return f"{label}: {f'every trial was overloaded: {broke}' if broke else 'no trial finished'}"


FAILED: dict[str, str] = {
    Outcome.PROGRAM_FAILED: "failed",
    Outcome.UNPARSEABLE: "had unreadable output",
    Outcome.SERVER_NOT_READY: "did not start: the server was not ready",
    Outcome.SERVER_DIED: "failed because the server died",
    Outcome.DEADLINE: "timed out",
    Outcome.ENVIRONMENT_LOST: "failed because the environment was lost",
}
"""The predicate of a trial without a measurement, by its outcome."""


def failure_lines(analysis: Analysis, shown: int = 3) -> list[str]:
    """Return how many trials failed, and a line for each of the first `shown` environments and kinds of failure."""
    if not analysis.failed:
        return []
    trials = grouped(analysis.failed, lambda trial: (trial.environment, trial.outcome, trial.message))
    ways = sorted(trials.items(), key=lambda each: -len(each[1]))
    lines = [
        f"{plural(len(failed), 'trial')} in {display_name(name)} "
        f"({', '.join(dict.fromkeys(trial.label for trial in failed))}) "
        f"{FAILED.get(outcome, outcome)}{f': {message}' if message else ''}"
        for (name, outcome, message), failed in ways[:shown]
    ]
    more = [f"and {len(ways) - shown} other kinds of failure"] if len(ways) > shown else []
    return [f"{len(analysis.failed)} of {len(analysis.trials)} trials failed", *map(printable, lines), *more]


def failed_sentences(analysis: Analysis) -> list[str]:
    """Return each failed trial with its reason."""
    lines = []
    for trial in analysis.failed:
        again = f" (repetition {trial.attempt})" if trial.attempt else ""
        why = f": {trial.message}" if trial.message else ""
        where = f"{display_name(trial.environment)}, {trial.label}, round {trial.block}{again}"
        lines.append(printable(f"trial {trial.id}: {where}: {FAILED.get(trial.outcome, trial.outcome)}{why}"))
    return lines


def remark_lines(
    report: MetricReport, shown_lines: set[str], without: Collection[str] = (), kinds: Collection[FlagKind] = ()
) -> list[str]:
    """Return each remark about a metric once, with the names of its environments unless it is about all of them.

    Lines in `shown_lines` are left out, and new lines are added to it, because the metrics of one workload share most
    remarks. Codes in `without` and flags of trials of these `kinds` are shown elsewhere. So are hypervisors: notices
    and the name of each environment have them.
    """
    rows = [row for row in report.comparisons if not row.aa]
    few = rows and all(row.few for row in rows)
    hidden = {RemarkPlace.NAME, *({RemarkPlace.COST} if few else ())}
    found = [
        (remark, row.environment)
        for row in rows
        for remark in without_flags(row.remarks, kinds)
        if remark.code not in without and remark.placement not in hidden
    ]
    lines = joint_texts(found, len(rows))
    fresh = [line for line in lines if line not in shown_lines]
    shown_lines.update(fresh)
    return fresh


def _range(rows: Sequence[Comparison]) -> str:
    """Return how many rounds comparisons have, and whether they are exploratory."""
    low, high = min(row.blocks for row in rows), max(row.blocks for row in rows)
    few = [row.exploratory for row in rows if row.cost is not None]
    words = ", exploratory" if few and all(few) else ", exploratory below 10" if any(few) else ""
    return f"{count(high) if low == high else f'{low} to {high} rounds'}{words}"
