"""Several runs in words: the changes of costs, the runs of a folder, and the differences between two runs."""

from collections import Counter
from collections.abc import Iterator, Sequence

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.results import Comparison
from weighbridge.features.gate.between import SESSION_ALLOWANCE, CostShift
from weighbridge.features.gate.between_runs import (
    ChangeRow,
    MetricChanges,
    NoChange,
    OwnValues,
    RunPair,
    WhyNoOwnValues,
    WhyNot,
    disturbed_alike,
)
from weighbridge.features.gate.compared_run import ComparedRun, FactChange, FactKind, OnlyIn, Part, SettingChange
from weighbridge.features.gate.past_runs import History, PastRun, Skipped
from weighbridge.model.address import MetricId
from weighbridge.model.facts import KERNEL
from weighbridge.report.document import Amount, CostOf, Env, Inline, Text, plain_text
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.environments import join_names, names_of
from weighbridge.report.text.formatting import TOO_FEW, Shown, margin, plural, quantity, share
from weighbridge.report.text.metric_names import metric_phrase, value_unit
from weighbridge.report.text.trust import others_words
from weighbridge.report.text.verdicts import cost_text, direction_word, size_of, verdict_word
from weighbridge.statistics.cost import Cost
from weighbridge.statistics.verdicts import ALPHA

WHY_NO_CHANGE = {
    NoChange.NO_COST: "not measured in both", NoChange.BROKE: "overloaded", NoChange.FEW: TOO_FEW,
    NoChange.UNIT: "measured in different units",
}  # fmt: skip
"""The words in place of a change."""
SIGN = "Change of the cost; positive is worse."
"""The legend of the changes on the first screen, which have no heads."""
HOW_TO_READ = (
    "A change is the second run's cost ratio divided by the first's; positive is worse. The rounds of the two runs"
    " are independent, so the interval of a change is wider than the interval of either cost. Verdicts allow for"
    " differences between sessions and for both noise floors.",
    "Significant: the change's interval, widened by the allowance between sessions, excludes zero after Holm's"
    " correction, and the change exceeds both noise floors. Within the margin: the widened change is within the"
    ' margin. Undecided does not mean "no change". If the control of a run failed, every change is undecided; if'
    " other load on the machine differed, no change is significant.",
)
GAIN = "gain"
"""The tone of a significant gain."""
HOW_TO_READ_HISTORY = (
    "Each mark is one run's cost against its baseline with its 95% interval; up is worse. Runs are in time order, "
    "evenly spaced. Grey: the noise floor. A dashed line with ▲: the machine, engine, network path, programs or "
    "settings changed before that run. A thick line: a significant change since the last earlier run whose control "
    "did not fail. Verdicts are corrected for several comparisons: an interval without 0 can be undecided."
)


def cost_in_run(row: Comparison, unit: str) -> Inline:
    """Return a cost with its interval, positive is worse; or why there is none."""
    if row.cost is None or row.few:
        return cost_text(row, unit)
    return CostOf(row.cost.penalty, row.cost.scale, unit)


def tone_of(shown_as: str, cost: Cost | CostShift | None) -> str:
    """Return the tone of a cost or a change; a significant gain has one of its own."""
    return GAIN if shown_as == "different" and cost is not None and cost.penalty.estimate < 0 else shown_as


def change_amount(row: ChangeRow, unit: str) -> Inline:
    """Return a change with its 95% interval, positive is worse: ``9.1% [7.0, 11.2]``."""
    if row.change is None:
        return "–"
    return TOO_FEW if row.few else CostOf(row.change.penalty, row.change.scale, unit)


def change_verdict(row: ChangeRow) -> str:
    """Return the verdict as people read it."""
    if row.aa:
        return "control"
    if row.unknown is not None:
        return WHY_NO_CHANGE[row.unknown]
    if row.few:
        return TOO_FEW
    exploratory = row.change is not None and row.change.exploratory and row.verdict != "hidden"
    verdict = verdict_word(row.verdict, row.change.margin if row.change is not None else None)
    return f"{verdict} (exploratory)" if exploratory else verdict


def shown_as(row: ChangeRow) -> str:
    """Return the verdict that decides the colour, or "aa", "few" or "broke" if that is more precise."""
    if row.aa:
        return "aa"
    if row.unknown is not None:
        return "broke" if row.unknown is NoChange.BROKE else "few"
    return "few" if row.few else row.verdict


def change_sentence(metric: MetricChanges, row: ChangeRow, first: str, second: str) -> Text:
    """Return a significant change: ``bridge: latency against native is 9.1% [7.0, 11.2] higher in B than in A``."""
    what = Env(row.environment), f": {metric_phrase(metric.before)} against ", Env(row.before.against), " is "
    return *what, *change_effect(metric, row), f" in {second} than in {first} - {change_verdict(row)}"


def change_effect(metric: MetricChanges, row: ChangeRow, *, short: bool = False) -> Text:
    """Return the amount of a change, positive in the direction of the word, and the word: slower, higher, ..."""
    change = row.change
    if change is None:
        return ("–",)
    word = direction_word(metric.before, worse=change.penalty.estimate >= 0)
    return CostOf(size_of(change.penalty), change.scale, metric.before.unit, short), f" {word}"


def why_inconclusive(row: ChangeRow, unit: str) -> str:
    """Return why a change is not significant although its own interval excludes zero; empty otherwise."""
    change = row.change
    if change is None or row.aa or row.verdict != "inconclusive":
        return ""
    if row.untrusted:
        return "the control of one run failed"
    nothing = 1.0 if change.scale == "ratio" else 0.0
    if change.low <= nothing <= change.high:
        return ""
    reasons = (
        (row.disturbed, "other load on the machine differed between the runs"),
        (not change.excludes_no_change, f"two identical runs can differ by {margin(change.allowance)}"),
        (change.within_noise, f"within both runs' noise floors ({floor_words(change, unit)})"),
        (row.adjusted_p is not None and row.adjusted_p > ALPHA, "not significant after Holm's correction"),
    )
    return next((words for holds, words in reasons if holds), "")


def medians(metric: MetricChanges, row: ChangeRow) -> Text:
    """Return the medians of both sides of a change; empty if one is missing.

    ``medians: bridge 8.2 → 7.1 Gbit/s, baseline 9.1 → 9.1 Gbit/s``. A cost also falls if its baseline gets worse.
    """
    values = row.before.value, row.after.value, row.before.baseline_value, row.after.baseline_value
    if None in values:
        return ()
    before, after, *baseline = (Amount(each, metric.before.unit, value_unit_of(metric)) for each in values)
    sides = "medians: ", Env(row.environment), " ", before, " → ", after
    return (*sides, ", baseline ", baseline[0], " → ", baseline[1])


def floor_words(change: CostShift, unit: str) -> str:
    """Return both runs' noise floors together: ``±1.9%``, or in the metric's unit."""
    if change.floor is None:
        return "unknown"
    if change.scale == "ratio":
        return share(change.floor)
    return f"±{quantity(change.floor, difference_unit(unit))}"


def pair_answer(pair: RunPair, first: str, second: str, *, brief: bool = False) -> Text:
    """Return the result of the comparison of two runs on the primary metrics, in one sentence.

    `brief`: in about twenty words, without the interval of the largest change.
    """
    decided = [
        (metric, row)
        for metric in pair.headlines
        for row in metric.rows
        if row.change is not None and not row.aa and not row.few
    ]
    if not decided:
        return (f"No cost could be compared between {first} and {second}: too few complete rounds.",)
    different = [each for each in decided if each[1].verdict == "different"]
    same = sum(row.verdict == "equivalent" for _, row in decided)
    undecided = len(decided) - len(different) - same
    rest = ", ".join(
        [*([f"{same} within the margin"] if same else []), *([f"{undecided} undecided"] if undecided else [])]
    )
    if not different:
        return (f"No cost of a primary metric changed significantly from {first} to {second}: {rest}.",)
    metric, row = max(different, key=lambda each: abs(_size(each[1])))
    colon = ": " if len(different) == 1 else ", the largest: "
    return (
        f"{len(different)} of {len(decided)} costs changed significantly from {first} to {second}{colon}",
        Env(row.environment), f" {metric_phrase(metric.before)} is ", *change_effect(metric, row, short=brief),
        " against ", Env(row.before.against), f"; {rest}." if rest and not brief else ".",
    )  # fmt: skip


def own_values_amounts(metric: MetricChanges, own: OwnValues) -> tuple[Inline, Inline, Inline]:
    """Return an environment's own values in both runs and the shift between them, positive is worse."""
    before, after = (Amount(each, metric.before.unit, value_unit_of(metric)) for each in (own.before, own.after))
    return before, after, "–" if own.penalty is None else CostOf(own.penalty, own.scale, metric.before.unit)


def value_unit_of(metric: MetricChanges) -> Shown:
    """Return one unit for a metric's values in both runs."""
    if metric.before.unit != metric.after.unit:
        return value_unit(metric.before)
    return value_unit(metric.before, metric.after)


def _size(row: ChangeRow) -> float:
    return row.change.penalty.estimate if row.change is not None and row.change.scale == "ratio" else 0.0


# -- the runs of a folder --------------------------------------------------------------------------


def history_answer(run_history: History) -> str:
    """Return how many costs changed significantly from one run to the next."""
    rows = [row for past in run_history.runs for _, row in compared_rows(past)]
    significant = sum(row.verdict == "different" for row in rows)
    if not rows:
        return "No two runs could be compared."
    compared = f"{len(rows):,} comparison{'' if len(rows) == 1 else 's'}"
    if not significant:
        return f"No cost of a primary metric changed significantly from one run to the next ({compared})."
    times = plural(significant, "time")
    return f"A cost of a primary metric changed significantly {times} from one run to the next ({compared})."


def compared_rows(past: PastRun) -> list[tuple[MetricChanges, ChangeRow]]:
    """Return the changes of a run's primary costs that have a verdict."""
    return [
        (metric, row)
        for metric in past.changes
        for row in metric.rows
        if row.change is not None and not (row.aa or row.few)
    ]


def about_changes(run_history: History) -> str:
    """Return what a significant change is, and how many false ones to expect; empty if nothing was compared."""
    pairs = sum(bool(compared_rows(past)) for past in run_history.runs)
    if not pairs:
        return ""
    of_all = f", so at most {pairs * ALPHA:.3g} of {plural(pairs, 'pair')} on average" if pairs > 1 else ""
    return (
        "Each run is compared with the last run before it whose control did not fail, as 'weighbridge compare' does."
        f" At most {100 * ALPHA:g}% of pairs have a false significant change{of_all}, if identical sessions differ by"
        f" at most {100 * SESSION_ALLOWANCE:g}%. A slow drift can be too small to be significant from run to run."
    )


def significant_changes(run_history: History) -> Iterator[tuple[int, MetricId, str, str, str]]:
    """Yield each significant change: number of the run, metric, environment, a sentence and its tone."""
    for number, past in enumerate(run_history.runs, 1):
        analysis = past.run.analysis
        for change, row in compared_rows(past):
            if row.change is not None and row.verdict == "different":
                sentence = change_sentence(change, row, f"run {past.since}", f"run {number}")
                words = plain_text(sentence, names_of(analysis))
                yield number, change.after.metric_id, row.environment, words, tone_of(row.verdict, row.change)


# -- differences between two runs: facts, settings, and parts that only one of them has ------------


LONGEST = 160
"""Letters of a value that are shown."""
NAMED = 4
"""Facts that are named in short."""
NOT_KNOWN = "unknown"
NOTHING_CHANGED = "machine, engine, network paths and programs are unchanged"


def run_letter(number: int) -> str:
    """Return the letter of the first, second, ... run: A, B, ...; R27 after Z."""
    return chr(ord("A") + number) if number < 26 else f"R{number + 1}"


def run_words(letter: str, run: ComparedRun) -> str:
    """Return a run in one line: ``A: runs/before (2026-11-25 02:10 UTC, 15 rounds, control passed)``."""
    control = {True: "control passed", False: "CONTROL FAILED", None: "no control"}[run.analysis.trust.trusted]
    parts = [*([date_words(run.created)] if run.created else []), blocks_words(run), control]
    parts.append(others_words(run.analysis))
    return f"{letter}: {run.name} ({', '.join(parts)})"


def blocks_words(run: ComparedRun) -> str:
    """Return how many rounds the primary metrics have: ``15 rounds``, ``10 to 15 rounds``."""
    block_counts = sorted({row.blocks for report in run.analysis.headlines for row in report.comparisons})
    if not block_counts:
        return "no complete round"
    low, high = block_counts[0], block_counts[-1]
    return plural(low, "round") if low == high else f"{low} to {high} rounds"


def series_names(run_history: History) -> dict[int, str]:
    """Return the name of each series of runs: its study, and its question if studies share a name."""
    first = {past.series: past.run.analysis for past in reversed(run_history.runs)}
    studies = Counter(analysis.study for analysis in first.values())
    return {
        series: analysis.study if studies[analysis.study] == 1 else f"{analysis.study} ({analysis.question})"
        for series, analysis in sorted(first.items())
    }


def trust_words(run: ComparedRun) -> str:
    """Return whether the control passed, for a column with this head."""
    return {True: "passed", False: "FAILED", None: "none"}[run.analysis.trust.trusted]


def disturbance_sentence(pair: RunPair, first: str, second: str) -> str:
    """Return that other load differed between two runs, and the consequence; empty if it did not."""
    first_run, second_run = pair.first, pair.second
    names = [name for name in first_run.environments if name in second_run.environments]
    unlike = [name for name in names if not disturbed_alike(first_run, second_run, name)]
    if not unlike:
        return ""
    cost = "cost" if first_run.analysis.baseline in unlike else f"cost of {join_names(unlike)}"
    one, other = (others_words(run.analysis) for run in (pair.first, pair.second))
    return (
        f"Other load on the machine differed ({first}: {one}; {second}: {other}), so no change of a {cost} is "
        "significant."
    )


def on_purpose_words(pair: RunPair) -> str:
    """Return the facts that were changed on purpose, to show with rates: ``sysctl vm.swappiness: 60 → 10``."""
    return "; ".join(fact_words(each) for each in pair.on_purpose)


def fact_lines(facts: Sequence[FactChange]) -> list[str]:
    """Return a line for each fact that changed, and one for all packages; or a line which says that none did."""
    if not facts:
        return [NOTHING_CHANGED]
    packages = [each for each in facts if each.kind is FactKind.PACKAGES]
    lines, packages_listed = [], False
    for each in facts:
        if each.kind is not FactKind.PACKAGES:
            lines.append(fact_words(each))
        elif not packages_listed:
            listed = ", ".join(f"{one.fact} {_arrow(one.before, one.after)}" for one in packages)
            lines.append(f"{len(packages)} package{'' if len(packages) == 1 else 's'}: {listed}")
            packages_listed = True
    return lines


def fact_words(change: FactChange) -> str:
    """Return a fact that changed: ``docker in bridge: 20.10 → 29.1``."""
    name = change.fact
    if name == "version" and change.kind is FactKind.WEIGHBRIDGE:
        name = "Weighbridge"
    if change.kind is FactKind.LAUNCHER:
        return "launcher: changed, so times of short programs can differ"
    if change.kind is FactKind.PROGRAM:
        name = f"measured program {name}"
    if change.kind is FactKind.MITIGATIONS:
        return f"{name}: {_parts_apart(change.before, change.after)}"
    where = f" on host {change.place}" if change.place else ""
    where += f" in {join_names(change.environments)}" if change.environments else ""
    return f"{fact_name(name)}{where}: {_arrow(change.before, change.after)}"


def fact_name(fact: str) -> str:
    """Return a fact's name as people say it: ``docker`` for ``version of docker``, ``kernel`` for a site's too."""
    return "kernel" if fact == KERNEL else fact.removeprefix("version of ")


def setting_words(change: SettingChange) -> str:
    """Return a setting that differs: ``bridge · userland proxy: yes → no``."""
    place = f"{change.name} · " if change.name else ""
    if change.setting == "equivalence":
        before, after = (margin(x) if isinstance(x, float) else _value(x) for x in (change.before, change.after))
    else:
        before, after = _value(change.before), _value(change.after)
    return f"{place}{change.setting.replace('_', ' ')}: {before} → {after}"


def only_lines(only: Sequence[OnlyIn], first: str, second: str) -> list[str]:
    """Return a line for each run and part of a study: ``only in A: environments host, macvlan``."""
    lines = []
    for letter, later in ((first, False), (second, True)):
        for part in Part:
            names = [each.name for each in only if each.part is part and each.second is later]
            if names:
                lines.append(f"only in {letter}: {part}{'' if len(names) == 1 else 's'} {', '.join(names)}")
    return lines


def why_no_own_values(reasons: Sequence[WhyNoOwnValues]) -> str:
    """Return why absolute values are not compared; empty if they are."""
    clauses = []
    for each in reasons:
        names = ", ".join(each.about)
        many = len(each.about) > 1
        clauses.append({
            WhyNot.MACHINE: f"the machine changed ({names})",
            WhyNot.UNTRUSTED: f"the control of {names} failed",
            WhyNot.DISTURBED: f"other load differed in {' and '.join(each.about)}",
            WhyNot.NOT_KNOWN: f"{names} {'have' if many else 'has'} no control",
        }[each.reason])  # fmt: skip
    return f"Absolute values are not compared: {'; '.join(clauses)}." if clauses else ""


def changes_in_short(facts: Sequence[FactChange]) -> str:
    """Return which facts changed, without their values: ``kernel, docker, 14 packages and 3 more``."""
    names = [_short_name(each) for each in facts if each.kind is not FactKind.PACKAGES]
    packages = sum(each.kind is FactKind.PACKAGES for each in facts)
    return _named(names, *([f"{packages} package{'' if packages == 1 else 's'}"] if packages else []))


def _named(names: Sequence[str], *further: str) -> str:
    """Return the first of several names, then the further ones, and how many were left out."""
    once = list(dict.fromkeys(names))
    others = f" and {len(once) - NAMED} more" if len(once) > NAMED else ""
    return f"{', '.join((*once[:NAMED], *further))}{others}"


def changed_in_short(past: PastRun) -> str:
    """Return which facts and settings changed since the previous run: ``kernel, docker; settings: cpus``."""
    settings = [each.setting.replace("_", " ") for each in past.settings]
    words = changes_in_short(past.changed), f"settings: {_named(settings)}" if settings else ""
    return "; ".join(filter(None, words))


def _short_name(change: FactChange) -> str:
    return "Weighbridge" if change.kind is FactKind.WEIGHBRIDGE else fact_name(change.fact)


def _arrow(before: str, after: str) -> str:
    return f"{shortened(before) or NOT_KNOWN} → {shortened(after) or NOT_KNOWN}"


def shortened(text: str) -> str:
    """Return a value, shortened if it is very long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _parts_apart(before: str, after: str) -> str:
    """Return the parts of two lists that differ: a list of mitigations is longer than a screen."""
    one, other = before.split("; "), after.split("; ")
    removed, added = "; ".join(x for x in one if x not in other), "; ".join(x for x in other if x not in one)
    return _arrow(removed, added)


def _value(value: object) -> str:
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, tuple):
        return ", ".join(_value(each) for each in value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else shortened(str(value))


def why_skipped(skipped: Skipped) -> str:
    """Return why a folder was skipped."""
    return skipped.reason or "no run in it"
