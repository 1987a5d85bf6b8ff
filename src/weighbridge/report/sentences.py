"""A run in sentences, as the top of the design has them. Shared by the terminal and the page."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from weighbridge.model.flag import FlagKind
from weighbridge.model.text import printable
from weighbridge.report.bottleneck import MEANING
from weighbridge.report.content import Analysis, Comparison, MetricReport
from weighbridge.report.curve_words import broke_sentences
from weighbridge.report.names import metric_words
from weighbridge.report.numbers import (
    cost_text,
    floor_text,
    margin,
    percent_range,
    percent_text,
    quantity,
    share,
)
from weighbridge.report.remarks import CODES
from weighbridge.report.trial_flags import without as without_kinds
from weighbridge.statistics import Interval

NAMES_ITS_ENVIRONMENT = {"outliers", "drift", "autocorrelation", "broke", "failed", "selected", "errors", "trial",
                          "confounder"}  # fmt: skip
"""Codes of the remarks whose text begins with the environment that it is about."""

ENOUGH, LEAST = 10, 5e-5
"""Blocks from which a session can be precise; the smallest noise floor that is said as a number."""

MANY_LEVELS = 4
"""Levels of one workload from which one sentence speaks for all of them: a table has each."""

NOTHING = "No trial has finished: there is nothing to compare yet."


def _blocks(count: int) -> str:
    return "1 block" if count == 1 else f"{count} blocks"


def change(report: MetricReport, row: Comparison) -> str:
    """Give what an environment does to a metric: ``costs 27.4 % [25.9, 28.8] of tcp throughput``."""
    cost, what = row.cost, report.title
    if cost is None:
        return f"has no complete block for {what}"
    percent = cost.percent
    if percent is None:
        return f"changes {what} by {cost_text(row, report.unit)}"
    if percent.estimate >= 0:
        amount = cost_text(row, report.unit)
        return f"costs {amount} of {what}" if report.better == "higher" else f"adds {amount} to {what}"
    amount = percent_text(Interval(-percent.estimate, -percent.high, -percent.low), cost.blocks)
    return f"gains {amount} of {what}" if report.better == "higher" else f"takes {amount} off {what}"


def sentence(report: MetricReport, row: Comparison, baseline: str) -> str:
    """Give one comparison as a sentence: environment, cost with interval, baseline, blocks and verdict."""
    end = f"({_blocks(row.blocks)}) - {row.verdict_words}"
    end += "".join(f"; {remark.text}" for remark in row.remarks if remark.code in ("packet-size", "durability"))
    return f"{row.environment} {change(report, row)} against {baseline} {end}"


def swept(analysis: Analysis) -> set[str]:
    """Give the workloads with so many levels that a sentence for each would be too many."""
    levels = Counter(report.workload for report in analysis.headlines)
    return {workload for workload, count in levels.items() if count >= MANY_LEVELS}


_Row = tuple[MetricReport, Comparison]


def verdict_sentences(analysis: Analysis) -> list[tuple[str, str]]:
    """Give (verdict, sentence) for the headline metrics: what differs one by one, the rest by environment.

    Of a workload with many levels one sentence an environment. The verdict is "nothing" where the study has only its
    baseline.
    """
    found: list[tuple[str, str]] = []
    if analysis.native_only:
        return [("nothing", f"only {analysis.baseline} was measured: there is nothing to compare")]
    rows = [(report, row) for report in analysis.headlines for row in report.comparisons if not row.aa]
    many = swept(analysis)
    different = [each for each in rows if each[1].verdict == "different"]
    found += [("different", sentence(m, row, analysis.baseline)) for m, row in different if m.workload not in many]
    found += [("different", text) for text in _over_levels(analysis, different, many)]
    found += [("broke", text) for text in broke_sentences(analysis)]
    for environment in analysis.environments:
        same = [(m, row) for m, row in rows if row.environment == environment and row.verdict == "equivalent"]
        if same and analysis.equivalence is not None:
            what, blocks = _what(analysis, same, many, lambda m, _: m.title), _range([row for _, row in same])
            text = f"{environment} is equivalent to {analysis.baseline} within {margin(analysis.equivalence)}"
            found.append(("equivalent", f"{text} in {what} ({blocks})"))
    for environment in analysis.environments:
        mine = [(m, row) for m, row in rows if row.environment == environment and not row.instead]
        open_ = [each for each in mine if each[1].verdict == "inconclusive"]
        if open_:
            what = _what(analysis, open_, many, lambda m, row: f"{m.title} {cost_text(row, m.unit)}")
            blocks = _range([row for _, row in open_])
            found.append(("inconclusive", f"{environment}: inconclusive in {what} ({blocks})"))
    found += _hidden_sentences(analysis, rows, many)
    return found


def _hidden_sentences(analysis: Analysis, rows: Sequence[_Row], many: Collection[str]) -> list[tuple[str, str]]:
    """What a limit hides in each environment, and once what that means."""
    by_limit: dict[tuple[str, str], list[_Row]] = {}
    for report, row in rows:
        if row.hidden is not None:
            by_limit.setdefault((row.environment, row.hidden.words), []).append((report, row))
    found = [
        f"{environment}: hidden in {_what(analysis, mine, many, lambda m, _: m.title)}: {words}"
        f" ({_range([row for _, row in mine])})"
        for (environment, words), mine in by_limit.items()
    ]
    return [("hidden", text) for text in (*found, *([MEANING] if found else []))]


def _levels(analysis: Analysis, workload: str) -> int:
    return sum(report.workload == workload for report in analysis.headlines)


def _over_levels(analysis: Analysis, rows: Sequence[_Row], many: Collection[str]) -> list[str]:
    """What differs in the workloads with many levels: the range of the typical costs, for each environment."""
    found = []
    by_arm: dict[tuple[str, str], list[_Row]] = {}
    for report, row in rows:
        if report.workload in many:
            by_arm.setdefault((report.workload, row.environment), []).append((report, row))
    for (workload, environment), mine in by_arm.items():
        percents = [row.cost.percent.estimate for _, row in mine if row.cost is not None and row.cost.percent]
        metric = metric_words(mine[0][0].metric)
        spread = f"{percent_range(percents)} of {workload} {metric}" if percents else f"{workload} {metric}"
        where = f"at {len(mine)} of {_levels(analysis, workload)} levels"
        blocks = _range([row for _, row in mine])
        found.append(f"{environment} costs {spread} against {analysis.baseline} {where} ({blocks}) - different")
    return found


def _what(
    analysis: Analysis, rows: Sequence[_Row], many: Collection[str], words: Callable[[MetricReport, Comparison], str]
) -> str:
    """The metrics of some rows in words; of a workload with many levels only at how many of them."""
    items = [words(report, row) for report, row in rows if report.workload not in many]
    counts = Counter((m.workload, metric_words(m.metric)) for m, _ in rows if m.workload in many)
    for (workload, metric), count in counts.items():
        items.append(f"{workload} {metric} at {count} of {_levels(analysis, workload)} levels")
    return _listed(items)


def disagreements(analysis: Analysis) -> list[str]:
    """Give the comparisons whose mean cost is far from the typical one: a report leads with them."""
    return [
        f"{row.environment}, {report.title}: {remark.text}"
        for report in analysis.metrics
        for row in report.comparisons
        for remark in row.remarks
        if remark.code == "stalls" and not row.aa
    ]


def noise_sentence(analysis: Analysis) -> str:
    """Give the session's noise floor as one sentence."""
    trust = analysis.trust
    if trust.noise_floor is None:
        return f"noise floor of this session: not known ({trust.reason})"
    largest = ""
    if trust.largest_noise is not None and trust.largest_noise > trust.noise_floor:
        largest = f"; largest {share(trust.largest_noise)}, in {trust.largest_noise_in}"
    holds = "A/A arm holds: the baseline against itself shows no false cost"
    state = holds if trust.trusted else "A/A arm does not hold"
    return f"noise floor of this session: {floor_text(trust.noise_floor)} ({state}{largest})"


def exploratory_sentence(analysis: Analysis) -> str:
    """Say that every verdict is exploratory; empty where some comparison has ten blocks."""
    if not analysis.exploratory:
        return ""
    low, high = (pick(row.blocks for row in analysis.compared) for pick in (min, max))
    blocks = _blocks(high) if low == high else f"{low} to {high} blocks"
    return f"Only {blocks}: every verdict here is exploratory ({ENOUGH} are needed)"


def imprecise(analysis: Analysis) -> bool:
    """Whether the A/A arm holds, but the session has too few blocks, or too much noise for its margin."""
    trust, wanted = analysis.trust, analysis.equivalence
    noisy = trust.noise_floor is not None and wanted is not None and trust.noise_floor > wanted
    return trust.trusted is True and (trust.blocks < ENOUGH or noisy)


def trust_sentence(analysis: Analysis) -> str:
    """Give whether the session can be trusted as one sentence: trusted, not precise, untrusted or not checked."""
    trust = analysis.trust
    if imprecise(analysis):
        limit = f"{_blocks(trust.blocks)} are too few to be sure of that ({ENOUGH} are needed)"
        floor, wanted = trust.noise_floor, analysis.equivalence
        if floor is not None and floor >= LEAST and (wanted is None or floor > wanted):
            beside = "" if wanted is None else f" (the margin is {margin(wanted)})"
            limit = f"this session cannot see costs below {share(floor)}{beside}"
        start = "Not precise: the baseline against itself shows no false cost, but"
        return f"{start} {limit}. More blocks would help."
    if trust.trusted is None:
        return f"Not checked: {trust.reason}."
    if trust.trusted:
        return "Trusted: the A/A arm shows no cost where there is none."
    return f"UNTRUSTED: {trust.reason}. Do not rely on the costs of this session."


def baseline_sentence(report: MetricReport, baseline: str) -> str:
    """Give the baseline's absolute value and the metric's noise floor as one line."""
    floor = f"noise floor {floor_text(report.noise_floor)}"
    aa = report.aa
    if report.noise_floor is None and aa is not None and aa.cost is not None and aa.cost.scale == "difference":
        floor = f"A/A arm {cost_text(aa, report.unit)}"
    return f"{baseline} {quantity(report.baseline_value, report.unit)}, {floor}"


def failed_sentences(analysis: Analysis) -> list[str]:
    """Give each failed trial with its reason."""
    lines = []
    for trial in analysis.failed:
        again = f" (repetition {trial.attempt})" if trial.attempt else ""
        why = f" - {trial.message}" if trial.message else ""
        where = f"{trial.environment}, {trial.label}, block {trial.block}{again}"
        lines.append(printable(f"trial {trial.id}: {where}: {trial.outcome}{why}"))
    return lines


def remark_lines(
    report: MetricReport, seen: set[str], without: Collection[str] = (), kinds: Collection[FlagKind] = ()
) -> list[str]:
    """Give each remark about a metric once, with the environments that it is about unless it is about all.

    What is in `seen` is left out; what is given is added: the metrics of one workload share most remarks.
    Codes in `without` and flags of trials of these `kinds` are said elsewhere.
    """
    rows = [row for row in report.comparisons if not row.aa]
    about: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for remark in (each for each in without_kinds(row.remarks, kinds) if each.code not in without):
            text = CODES["difference"] if remark.code == "difference" else remark.text
            about.setdefault((remark.code, text), []).append(row.environment)
    lines = [
        text if code in NAMES_ITS_ENVIRONMENT or len(names) == len(rows) else f"{', '.join(names)}: {text}"
        for (code, text), names in about.items()
    ]
    fresh = [line for line in lines if line not in seen]
    seen.update(fresh)
    return fresh


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _range(rows: Sequence[Comparison]) -> str:
    """How many blocks comparisons have, and whether they are exploratory."""
    low, high = min(row.blocks for row in rows), max(row.blocks for row in rows)
    few = [row.exploratory for row in rows if row.cost is not None]
    words = ", exploratory" if few and all(few) else ", exploratory below 10" if any(few) else ""
    return f"{_blocks(high) if low == high else f'{low} to {high} blocks'}{words}"
