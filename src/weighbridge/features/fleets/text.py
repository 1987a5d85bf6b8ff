"""A fleet in words: typical costs, outliers and how they differ from their peers, changes, runs left out."""

import math
from collections.abc import Iterable, Sequence

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.features.fleets.analysis import (
    FleetMetric,
    FleetResult,
    FleetRun,
    LeftOutRun,
    RunEffect,
    SharedFact,
    UnlikeFact,
    WhyLeftOut,
    WhyNotCounted,
)
from weighbridge.features.fleets.changes import FleetsCompared, FleetShift, UnitChange, effect_name, unit_name
from weighbridge.features.fleets.statistics import MIN_MACHINES_ODD, MachineEffect, PairEffect
from weighbridge.features.fleets.unit import Purpose
from weighbridge.features.gate.compare_text import NOT_KNOWN, fact_name, fact_words, setting_words, shortened
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import (
    SPACE,
    TOO_FEW,
    difference_estimate,
    difference_interval,
    in_percent,
    margin,
    percent_estimate,
    percent_interval,
    percent_limits,
    plural,
    quantities,
    quantity,
    readable_unit,
    share_size,
)
from weighbridge.report.text.metric_names import metric_phrase, metric_title
from weighbridge.report.text.verdicts import direction_word, size_of, verdict_word
from weighbridge.statistics import Interval

NAMED = 6
"""Machines, runs or facts that are named in one sentence."""
LARGEST = 700.0
"""The largest logarithm whose exponential is a float."""

WHY_NOT_COUNTED = {
    WhyNotCounted.UNTRUSTED: "control failed", WhyNotCounted.ALONE: "measured alone",
    WhyNotCounted.FEW: TOO_FEW, WhyNotCounted.HIDDEN: "hidden by a bottleneck",
    WhyNotCounted.NO_PATH: "its network path is unknown", WhyNotCounted.UNIT: "measured in another unit",
    WhyNotCounted.NO_VALUE: "not measured",
}  # fmt: skip

HOW_TO_READ = (
    "Typical: the Hodges-Lehmann estimate over the machines, corrected for the noise of their runs. With fewer "
    "than ten machines, and for pairs, it is a mean in which precise runs count more. The brackets hold its 95% "
    "interval. Next: 95% of further machines would be in this range, if they come from the same population; it is "
    "at least as wide as the interval of the typical value. With fewer than thirty machines and a long tail of "
    "bad ones, it covers 90 to 95%. Outlier: the machine's interval, simultaneous over all machines and widened "
    "by the spread of the others, lies away from the others by at least the margin. An outlier is far away, not "
    "necessarily broken. If machines differ as in a normal distribution, at most 5% of pages name one; with a "
    "long tail of bad machines, about half of the pages name the worst of fifty. Costs compare runs inside "
    "rounds, so a machine that is slow in every environment has the same cost as its peers: the baseline's own "
    "values show it. Own values also differ from session to session."
)


READING_SPREADS = (
    "Positive is worse. Spreads are standard deviations, with their shares of the variance of a round. A machine or "
    "pair that is away from the others by less than {margin} is never an outlier."
)
READING_CHARTS = (
    "In the charts each mark is a machine with its interval, simultaneous over all of them, the others' spread "
    "included. Dashed: typical; green: its 95% interval; grey: 95% of further machines or pairs; an arrow: the "
    "interval goes on. In pairs, the cost of a machine is its cost with a typical partner, and a frame in the map "
    "marks a pair that is an outlier."
)


# -- numbers ---------------------------------------------------------------------------------------


def percent_of(metric: FleetMetric, effect: float) -> float:
    """Return an effect on the scale of ratios in percent, positive is worse."""
    if metric.report.better == "higher":
        return 100 * -math.expm1(max(-effect, -LARGEST) if effect > 0 else min(-effect, LARGEST))
    return 100 * math.expm1(min(effect, LARGEST))


def distance(metric: FleetMetric, effect: Interval) -> Interval:
    """Return a distance or a cost as people read it, positive is worse: in percent, or in the metric's unit."""
    if metric.scale == "difference":
        return effect
    return Interval(*(percent_of(metric, each) for each in (effect.estimate, effect.low, effect.high)))


def own_value(metric: FleetMetric, effect: Interval) -> Interval:
    """Return an own value in the metric's unit."""
    sign = -1.0 if metric.report.better == "higher" else 1.0
    ends = [sign * each for each in (effect.estimate, effect.low, effect.high)]
    values = [math.exp(min(each, LARGEST)) for each in ends] if metric.scale == "ratio" else ends
    return Interval(values[0], min(values[1:]), max(values[1:]))


def distance_text(metric: FleetMetric, effect: Interval) -> str:
    """Return a distance with its interval, positive is worse: ``9.1% [7.0, 11.2]``."""
    if metric.scale == "ratio":
        return percent_interval(distance(metric, effect))
    return difference_interval(effect, metric.report.unit)


def amount(metric: FleetMetric, effect: Interval) -> str:
    """Return the position of a machine or the fleet: a cost, or an own value in its unit, with its interval."""
    if not metric.is_own_value:
        return distance_text(metric, effect)
    value = own_value(metric, effect)
    factor = readable_unit(value.estimate, metric.report.unit)[1]
    low, high = (quantity(each, "", ("", factor)) for each in (value.low, value.high))
    return f"{estimate_text(metric, effect)} [{low},{SPACE}{high}]"


def estimate_text(metric: FleetMetric, effect: Interval) -> str:
    """Return the same without the interval."""
    if metric.is_own_value:
        return quantity(own_value(metric, effect).estimate, metric.report.unit)
    if metric.scale == "ratio":
        return percent_estimate(distance(metric, effect))
    return difference_estimate(effect, metric.report.unit)


def range_text(metric: FleetMetric, effect: Interval | None) -> str:
    """Return the limits of an interval: ``8.0 to 16.2%``; a dash if there is none."""
    if effect is None or not (math.isfinite(effect.low) and math.isfinite(effect.high)):
        return "–"
    if metric.is_own_value:
        value = own_value(metric, effect)
        return quantities((value.low, value.high), metric.report.unit, " to ")
    if metric.scale == "difference":
        return quantities((effect.low, effect.high), difference_unit(metric.report.unit), " to ")
    return percent_limits(distance(metric, effect))


def deviation_text(metric: FleetMetric, deviation: float | None) -> str:
    """Return a standard deviation: ``±2.1%``, or in the metric's unit; a dash if it is not known."""
    if deviation is None or not math.isfinite(deviation):
        return "–"
    return f"±{deviation_size(metric, deviation)}"


def deviation_size(metric: FleetMetric, deviation: float) -> str:
    """Return the same without a sign."""
    if metric.scale == "ratio":
        return share_size(math.expm1(min(deviation, LARGEST)))
    return quantity(deviation, difference_unit(metric.report.unit))


def spread_texts(metric: FleetMetric) -> tuple[str, str, str]:
    """Return the spread between machines, between sessions and within a run, each with its share of the variance.

    For pairs, the spread beyond their machines follows; the two are one figure if they cannot be separated.
    """
    if metric.fleet is None:
        return "–", "–", "–"
    spread, size = metric.fleet.spread, len(metric.counted[0].run.machines)
    of_machines = size * spread.between**2
    whole = math.fsum((of_machines, (spread.pair or 0.0) ** 2, (spread.session or 0.0) ** 2, spread.within**2))

    def text(deviation: float | None, variance: float | None = None) -> str:
        if deviation is None or not whole:
            return deviation_text(metric, deviation)
        part = deviation**2 if variance is None else variance
        return f"{deviation_text(metric, deviation)} ({in_percent(f'{100 * part / whole:.0f}')})"

    together = size > 1 and spread.pair is None
    factor = math.sqrt(size) if together else 1.0
    between = text(factor * spread.between, of_machines)
    if not spread.between and math.isfinite(spread.between_high):
        between = f"none seen; {deviation_size(metric, factor * spread.between_high)} at most"
    if together:
        between = f"pairs {between}"
    elif spread.pair:
        between = f"{between}; pairs {text(spread.pair)}"
    return between, text(spread.session), text(spread.within)


# -- names -----------------------------------------------------------------------------------------


def fleet_title(metric: FleetMetric) -> str:
    """Return the title of a metric over a fleet: ``bridge, TCP throughput``."""
    return f"{display_name(metric.environment)}, {metric_title(metric.report)}"


def of_what(metric: FleetMetric, baseline: str) -> str:
    """Return a metric inside a sentence: ``TCP throughput in native``, ``bridge TCP throughput against native``."""
    if metric.is_own_value:
        return f"{metric_phrase(metric.report)} in {display_name(metric.environment)}"
    return f"{display_name(metric.environment)} {metric_phrase(metric.report)} against {display_name(baseline)}"


def some_of(names: Sequence[str], shown: int = NAMED) -> str:
    """Return names, the first few of many: ``n1, n2 and 14 more``."""
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


# -- outliers ------------------------------------------------------------------------------------


def fleet_answer(fleet: FleetResult) -> str:
    """Return the outliers of a fleet in a sentence or two."""
    number = len(fleet.machines)
    if number < 2:
        run = fleet.runs[0].name
        return (
            f"One machine only, {next(iter(fleet.machines), run)}: a fleet needs two. Its own report has its costs."
        )
    if not fleet.costs and not fleet.own_values:
        return f"{plural(number, 'machine')}: nothing was measured on them."
    judged = [each for each in fleet.metrics if each.fleet is not None]
    if not judged:
        return f"{plural(number, 'machine')}: no two of them have a run that counts."
    machines, pairs = fleet.outlier_machines, fleet.outlier_pairs
    total = len({tuple(run.machines) for run in fleet.runs if run.purpose is Purpose.TOGETHER})
    sentences = []
    if machines:
        sentences.append(f"{len(machines)} of {number} machines {_outliers(len(machines))}: {some_of(machines)}.")
    if pairs:
        names = some_of([unit_name(each) for each in pairs])
        sentences.append(f"{len(pairs)} of {total} pairs {_outliers(len(pairs))} beyond their machines: {names}.")
    if not sentences:
        compared = any(each.fleet is not None and each.fleet.machines for each in judged)
        sentences.append(
            f"None of {number} machines is an outlier.{_not_ruled_out(fleet, judged)}"
            if compared
            else f"{_counted(judged, number)}: an outlier needs at least {MIN_MACHINES_ODD} machines"
            f"{', each with two partners' if fleet.size == 2 else ''}."
        )
    return " ".join(sentences)


def _outliers(number: int) -> str:
    return "is an outlier" if number == 1 else "are outliers"


def _counted(judged: Sequence[FleetMetric], number: int) -> str:
    """Return the number of machines, and how many count unless all do: ``2 of 3 machines count``."""
    count = max(len({name for run in each.counted for name in run.run.machines}) for each in judged)
    return plural(number, "machine") if count == number else f"{count} of {number} machines count"


def _not_ruled_out(fleet: FleetResult, judged: Sequence[FleetMetric]) -> str:
    """Return the largest distance of a machine that is not ruled out in any metric; empty within the margin."""
    reaches = [
        (max(max(abs(each.interval.low), abs(each.interval.high)) for each in metric.fleet.machines), metric)
        for metric in judged
        if metric.scale == "ratio" and metric.fleet is not None and metric.fleet.machines
    ]
    reach, metric = max(reaches, key=lambda each: each[0], default=(0.0, None))
    if metric is None or reach <= math.log1p(fleet.margin):
        return ""
    distance = share_size(math.expm1(min(reach, LARGEST)))
    return f" A distance of {distance} cannot be ruled out in {of_what(metric, fleet.baseline)}."


def outlier_machine_sentence(fleet: FleetResult, machine: str) -> str:
    """Return the largest distance of an outlier from the other machines, and its other metrics."""
    outliers = [
        (metric, each) for metric in fleet.metrics for each in metric.outlier_machines if each.machine == machine
    ]
    metric, effect = max(outliers, key=lambda each: _size(*each))
    partners = f", with {plural(effect.runs, 'partner')}" if fleet.size == 2 else ""
    amount_text, word = _amount_and_word(metric, effect.interval, effect.estimate)
    others = [of_what(each, fleet.baseline) for each, _ in outliers if each is not metric]
    also = f"; also an outlier in {some_of(others, 3)}" if others else ""
    what = of_what(metric, fleet.baseline)
    return f"{machine}{partners}: {what} is {amount_text} {word} than on the other machines{also}."


def outlier_pair_sentence(fleet: FleetResult, pair: tuple[str, str]) -> str:
    """Return how a pair that is an outlier differs from its machines with other partners."""
    outliers = [(metric, each) for metric in fleet.metrics for each in metric.outlier_pairs if each.machines == pair]
    metric, effect = max(outliers, key=lambda each: _size(*each))
    amount_text, word = _amount_and_word(metric, effect.interval, effect.estimate)
    others = [of_what(each, fleet.baseline) for each, _ in outliers if each is not metric]
    also = f"; also an outlier in {some_of(others, 3)}" if others else ""
    where = "look at the cable or port between them"
    what = of_what(metric, fleet.baseline)
    return f"{unit_name(pair)}: {what} is {amount_text} {word} than with their other partners; {where}{also}."


def _size(metric: FleetMetric, effect: MachineEffect | PairEffect) -> float:
    """Return the distance of an outlier; differences count as 0, because they have no common scale."""
    return abs(effect.estimate) if metric.scale == "ratio" else 0.0


def _amount_and_word(metric: FleetMetric, interval: Interval, estimate: float) -> tuple[str, str]:
    word = direction_word(metric.report, worse=estimate >= 0)
    if metric.scale == "ratio":
        return percent_interval(size_of(distance(metric, interval))), word
    return difference_interval(size_of(interval), metric.report.unit), word


def unlike_words(fact: UnlikeFact) -> str:
    """Return a fact that differs from a machine's peers: ``firmware 1.2 (17 of 19 others: 1.3)``."""
    mine, usual = _apart(fact.value, fact.usual)
    name = fact_name(fact.fact)
    return f"{name} {mine} ({fact.peers} of {plural(fact.total, 'other')}: {usual})"


def unlike_sentence(fleet: FleetResult, machines: Iterable[str]) -> str:
    """Return the facts in which outliers differ from their peers, or that no such fact is known."""
    sentences = []
    several = len([*machines]) > 1
    for machine in machines:
        facts = [unlike_words(each) for each in fleet.unlike_peers(machine)]
        if facts:
            whose = f"{machine} differs from its peers" if several else "It differs from its peers"
            sentences.append(f"{whose}: {'; '.join(facts[:NAMED])}{_and_more(len(facts) - NAMED)}")
    return ". ".join(sentences) or "No known fact distinguishes it"


def outlier_sentences(fleet: FleetResult) -> list[str]:
    """Return a sentence for each machine that is an outlier, with its facts, then for each pair."""
    machines = [
        f"{outlier_machine_sentence(fleet, name)} {unlike_sentence(fleet, [name])}."
        for name in fleet.outlier_machines
    ]
    return [*machines, *(outlier_pair_sentence(fleet, pair) for pair in fleet.outlier_pairs)]


def _and_more(number: int) -> str:
    return f"; and {number} more" if number > 0 else ""


def _apart(value: str, usual: str) -> tuple[str, str]:
    """Return two values, and for long lists only the parts that differ."""
    one, other = value.split("; "), usual.split("; ")
    if len(one) > 1 and len(other) > 1:
        value = "; ".join(each for each in one if each not in other)
        usual = "; ".join(each for each in other if each not in one)
    return shortened(value) or NOT_KNOWN, shortened(usual) or NOT_KNOWN


def shared_fact_words(fact: SharedFact) -> tuple[str, str]:
    """Return a fact that is not the same everywhere: its name, and its values with their machines."""
    (usual, most), *others = fact.machines.items()
    texts = [f"{shortened(usual) or NOT_KNOWN} on {len(most)}"]
    texts += [f"{_apart(value, usual)[0]} on {some_of(names)}" for value, names in others[:NAMED]]
    more = f"; {len(others) - NAMED} other values" if len(others) > NAMED else ""
    return fact_name(fact.fact), "; ".join(texts) + more


# -- which runs count ------------------------------------------------------------------------------


def trust_lines(fleet: FleetResult) -> list[str]:
    """Return a line for the runs whose control failed, and one for the runs without a control."""
    lines = []
    if untrusted := fleet.untrusted:
        names = some_of([_untrusted(each) for each in untrusted])
        number = f"{len(untrusted)} of {plural(len(fleet.runs), 'run')}"
        lines.append(f"CONTROL FAILED in {number}, which verdicts leave out: {names}.")
    if unchecked := [each.name for each in fleet.runs if each.trusted is None]:
        lines.append(f"No control, or too few rounds of it: {some_of(unchecked)}.")
    return lines


def trust_words(run: FleetRun) -> str:
    """Return whether the control of a run passed, for a column with this head."""
    return {True: "passed", False: "FAILED", None: "none"}[run.trusted]


def _untrusted(run: FleetRun) -> str:
    return f"{run.name} ({metric_phrase(run.shifted[0])})" if run.shifted else run.name


def condition_lines(fleet: FleetResult) -> list[str]:
    """Return the unfinished runs, those with other load on the machine, and failed trials."""
    lines = []
    if unfinished := [f"{each.name} ({plural(each.blocks, 'round')})" for each in fleet.runs if each.unfinished]:
        lines.append(f"Not finished: {some_of(unfinished)}.")
    if disturbed := [each.name for each in fleet.runs if each.disturbed]:
        lines.append(
            f"Other programs used CPU time in more than half of the baseline's trials: {some_of(disturbed)}."
        )
    if failed := [f"{each.name} ({each.failed} of {each.trials})" for each in fleet.runs if each.failed]:
        lines.append(f"Trials failed: {some_of(failed)}.")
    return lines


def left_out_lines(fleet: FleetResult) -> list[str]:
    """Return each directory that was left out, and why."""
    return [f"{each.name}: {why_left_out(each, fleet)}" for each in fleet.left_out]


def why_left_out(run: LeftOutRun, fleet: FleetResult) -> str:
    """Return why a directory is not one of the fleet's runs."""
    if run.setting is not None:
        return f"another study of this name ({setting_words(run.setting)})"
    return {
        WhyLeftOut.NO_RUN: "no run in it", WhyLeftOut.UNREADABLE: run.detail,
        WhyLeftOut.OTHER_STUDY: f"it belongs to another study, {run.detail}",
        WhyLeftOut.OTHER_BASELINE: f"it has another baseline, {run.detail}",
        WhyLeftOut.OTHER_SIZE: "on one machine, the others on pairs"
        if fleet.size == 2 else "on a pair, the others on one machine",
        WhyLeftOut.OTHER_SETTING: "another study of this name",
        WhyLeftOut.COPY: f"it is a copy of {run.detail}",
    }[run.reason]  # fmt: skip


def not_counted_words(metric: FleetMetric) -> str:
    """Return which runs a metric does not count, except controls, and why; empty if it counts all."""
    names: dict[WhyNotCounted, list[str]] = {}
    for each in metric.runs:
        if each.reason is not None and each.reason is not WhyNotCounted.ALONE:
            names.setdefault(each.reason, []).append(each.run.name)
    return "; ".join(f"{some_of(mine)} ({WHY_NOT_COUNTED[why]})" for why, mine in names.items())


def run_effect_text(metric: FleetMetric, each: RunEffect) -> str:
    """Return a metric of one run, with the interval of its own rounds; a dash with fewer than two rounds."""
    return amount(metric, each.effect) if each.effect is not None else "–"


# -- changes ---------------------------------------------------------------------------------------


def changes_answer(compared: FleetsCompared) -> str:
    """Return which machines changed from one fleet to the other, in one sentence or two."""
    what = "machine" if compared.after.size == 1 else "pair"
    costs = [each for each in compared.shifts if not each.metric.is_own_value]
    number = len({row.machines for each in compared.shifts for row in each.rows})
    changed = list(dict.fromkeys(unit_name(row.machines) for each in costs for row in each.different))
    if changed:
        sentences = [f"A cost changed on {len(changed)} of {plural(number, what)}: {some_of(changed)}."]
    elif any(each.rows for each in costs):
        sentences = [f"No cost changed significantly on any of {plural(number, what)}."]
    else:
        sentences = ["No cost can be compared."]
    if ids := compared.other_ids:
        whose, they = ("has another machine id", "it is") if len(ids) == 1 else ("have other machine ids", "they are")
        kind = "another machine" if len(ids) == 1 else "other machines"
        were = "was" if len(ids) == 1 else "were"
        sentences.append(f"{some_of(ids)} {whose} than before: {they} {kind}, or {were} reinstalled.")
    sentences += [
        f"Over all of them, {shift_sentence(each, compared.after.baseline)}"
        for each in compared.shifts
        if each.proven and each.judged is not None
    ]
    sentences += [
        unlike_change_sentence(shift, each, compared.after.baseline)
        for shift in compared.shifts
        for each in shift.unlike
    ]
    if names := [of_what(each.metric, compared.after.baseline) for each in compared.not_compared]:
        sentences.append(f"Not compared because the fleets use different units: {some_of(names, 3)}.")
    return " ".join(sentences)


def shift_sentence(shift: FleetShift, baseline: str, then: str = "than before") -> str:
    """Return a clause on the change of a metric over all machines together."""
    if shift.judged is None:
        return ""
    amount_text, word = _amount_and_word(shift.metric, shift.judged, shift.judged.estimate)
    return f"{of_what(shift.metric, baseline)} is {amount_text} {word} {then}."


def unlike_change_sentence(shift: FleetShift, effect: MachineEffect | PairEffect, baseline: str) -> str:
    """Return that the change of one machine or pair is an outlier."""
    amount_text, word = _amount_and_word(shift.metric, effect.interval, effect.estimate)
    what = of_what(shift.metric, baseline)
    return (
        f"{effect_name(effect)}'s change is an outlier: {what} is {amount_text} {word} than the change of the others "
        "explains."
    )


def controls_answer(shifts: Sequence[FleetShift], baseline: str) -> str:
    """Return whether pairs that are measured at the same time disturb each other; empty without controls."""
    if not shifts:
        return ""
    pairs = plural(len({row.machines for each in shifts for row in each.rows}), "pair")
    proven = [each for each in shifts if each.proven]
    if proven:
        worst = max(proven, key=lambda each: abs(each.judged.estimate) if each.judged is not None else 0.0)
        sentence = shift_sentence(worst, baseline, "together than alone")
        more = f" So are {len(proven) - 1} more metrics." if len(proven) > 1 else ""
        return f"Pairs of one wave disturb each other ({pairs} also measured alone): {sentence}{more}"
    if all(each.fleet is None for each in shifts):
        return f"Only {pairs} was also measured alone: two are needed to test whether pairs disturb each other."
    widest = max(_reach(each) for each in shifts)
    limit = f" A difference of {share_size(math.expm1(min(widest, LARGEST)))} cannot be ruled out."
    ratios = any(each.metric.scale == "ratio" for each in shifts)
    return f"{pairs} were also measured alone: no difference is significant.{limit if ratios else ''}"


def _reach(shift: FleetShift) -> float:
    if shift.judged is None or shift.metric.scale != "ratio":
        return 0.0
    return max(abs(shift.judged.low), abs(shift.judged.high))


def unit_change_texts(shift: FleetShift, row: UnitChange) -> tuple[str, str, str, str]:
    """Return a machine's values before and after, the change with its interval, and the verdict."""
    before, after = (run_effect_text(shift.metric, each) for each in (row.first, row.second))
    verdict = "–" if row.change is None else verdict_word(row.verdict, row.change.margin)
    return before, after, distance_text(shift.metric, row.shift), verdict


def changed_facts_words(compared: FleetsCompared, machines: Iterable[str]) -> str:
    """Return the facts of machines that changed between the two fleets; empty if none is known."""
    words = []
    for machine in machines:
        facts = [fact_words(each) for each in compared.facts(machine)]
        if facts:
            words.append(f"{machine}: {'; '.join(facts[:NAMED])}{_and_more(len(facts) - NAMED)}")
    return ". ".join(words)


def margin_words(fleet: FleetResult) -> str:
    """Return the margin: ``±3%``."""
    return margin(fleet.margin)
