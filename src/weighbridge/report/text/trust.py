"""The control of a run, its precision and the load of other programs, in words."""

import math
import statistics

from weighbridge.analysis.remarks.confounders import HostsDiffer
from weighbridge.analysis.remarks.cost import TargetMissed
from weighbridge.analysis.results import Analysis, MetricReport, Trust, TrustReason
from weighbridge.analysis.trends import PlaceEffect
from weighbridge.model.disturbance import Disturbance, Taken
from weighbridge.model.flag import FlagCode
from weighbridge.model.stored_study import is_weighed
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import (
    BELOW_RESOLUTION,
    LEAST_NOISE,
    in_percent,
    margin,
    noise_size,
    percent_short,
    percentage,
    plain,
    plural,
    share_short,
    with_unit,
)
from weighbridge.report.text.metric_names import metric_phrase, metric_title
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK, MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import within_noise

MUCH_LARGER = 1.5
"""The largest cost that a run can miss is shown too if it is at least so many times the typical one."""
USELESS = 0.1
"""The noise floor, as a fraction, above which a control that passed shows little, unless the margin is larger."""


def imprecise(analysis: Analysis) -> bool:
    """Return whether the control passed, but rounds are few, the noise is large, or other programs interfere."""
    few = analysis.trust.blocks < MIN_BLOCKS_SIGNED_RANK
    return analysis.trust.trusted is True and (few or _noisy(analysis) or hindered(analysis))


def _noisy(analysis: Analysis) -> bool:
    floor, equivalence = analysis.trust.noise_floor, analysis.equivalence
    return floor is not None and equivalence is not None and floor > equivalence


def hindered(analysis: Analysis) -> bool:
    """Return whether other programs used CPU time in most trials, and the run is less precise than planned."""
    precise = analysis.trust.noise_floor is not None and not _noisy(analysis) and not _missed(analysis)
    return analysis.disturbance.heavy and not precise


def trust_sentence(analysis: Analysis) -> str:
    """Return what the control shows, the load of other programs, and which metrics depend on the order of trials.

    Empty if there are too few rounds for a control, and no other program used the CPU.
    """
    return " ".join(filter(None, (checked_sentence(analysis), place_sentence(analysis))))


def checked_sentence(analysis: Analysis) -> str:
    """Return what the control shows, and the load of other programs; empty as `trust_sentence` is."""
    control, others = control_sentence(analysis), disturbed_sentence(analysis)
    return " ".join(filter(None, (control, unchecked_sentence(analysis.trust), others, _could_miss(analysis))))


def unchecked_sentence(trust: Trust, shown: int = 3) -> str:
    """Return which primary metrics have no control if others have one; empty if all have one, or none has."""
    titles = [metric_title(each) for each in trust.unchecked if trust.trusted is not None]
    if not titles:
        return ""
    others = f" and {len(titles) - shown} more" if len(titles) > shown else ""
    few = f"the control has fewer than {MIN_BLOCKS_VERDICT} rounds there"
    return f"No control for {', '.join(titles[:shown])}{others}: {few}."


def place_sentence(analysis: Analysis, shown: int = 3) -> str:
    """Return in which metrics a trial's place in its round changes its value; empty if it does in none."""
    titles = {each.metric_id: metric_title(each) for each in analysis.metrics}
    units = {each.metric_id: each.unit for each in analysis.metrics}
    effects = [
        f"{titles[each.metric_id]} ({size} per place)"
        for each in analysis.trust.places
        if (size := _per_place(each, units[each.metric_id]))
    ]
    if not effects:
        return ""
    others = f" and {len(effects) - shown} more" if len(effects) > shown else ""
    return (
        f"Trials affect later trials in their round: {', '.join(effects[:shown])}{others}. "
        "Random order keeps this from biasing costs, but it widens intervals."
    )


def _per_place(effect: PlaceEffect, unit: str) -> str:
    """Return the change from one place to the next; empty if it rounds to zero."""
    size = 100 * math.expm1(effect.per_place) if effect.logs else effect.per_place
    if not size:
        return ""
    return percentage(size, 2) if effect.logs else with_unit(plain(size, 2), unit)


def control_sentence(analysis: Analysis) -> str:
    """Return whether the control passed, and how far its two copies can differ; empty without any verdict."""
    trust, baseline = analysis.trust, display_name(analysis.baseline)
    if trust.trusted is False:
        return (
            f"CONTROL FAILED: two {baseline} copies differ in {_shifted(trust)}, so this run cannot show a cost. "
            "Measure again, if possible on a quieter machine (weighbridge doctor --noise)."
        )
    if analysis.few:
        return ""
    if trust.trusted is None:
        return f"No control: {_no_control(analysis)}."
    few = "only " if trust.blocks < MIN_BLOCKS_SIGNED_RANK else ""
    rounds = control_rounds(analysis)
    checked = f" ({few}{rounds})" if rounds else ""
    return f"Control passed{_closeness(analysis, baseline)}{checked}.{_own_interval(analysis)}"


def disturbed_sentence(analysis: Analysis) -> str:
    """Return the load of other programs in more than half of the baseline's trials, and what helps if it hinders."""
    if not analysis.disturbance.heavy:
        return ""
    if hindered(analysis):
        return f"Disturbed: {_disturbed(analysis)}"
    words = disturbance_words(analysis.disturbance, display_name(analysis.baseline))
    precise = ", but the run is as precise as planned" if analysis.trust.trusted else ""
    return f"Disturbed: {words}{precise}."


def control_rounds(analysis: Analysis) -> str:
    """Return ``23 to 69 rounds``, how many the control has for each primary metric; empty if it has none."""
    rounds = [each.aa.blocks for each in analysis.headlines if each.aa is not None and each.aa.cost is not None]
    if not rounds:
        return ""
    least, most = min(rounds), max(rounds)
    return plural(most, "round") if least == most else f"{least} to {most} rounds"


def _closeness(analysis: Analysis, baseline: str) -> str:
    """Return ``: two native copies differ by at most 1.7%``: the noise floor, or the smallest and the largest.

    ``... differ by at most 0.9% in TCP throughput and 109% in UDP requests/s``; ``... agree`` if no noise floor is
    known; ``, but it could have missed a difference of 101%`` if all of them are `USELESS`.
    """
    floors = _floors(analysis)
    copies = f": two {baseline} copies"
    if not floors:
        return f"{copies} agree"
    least, most = floors[0][1], floors[-1][1]
    low, high = noise_size(least.noise), noise_size(most.noise)
    if low == high == BELOW_RESOLUTION:
        return f"{copies} differ by less than the resolution of the metric"
    joined = "and" if len(floors) == 2 else "to"
    both = f"{low} in {metric_phrase(least)} {joined} {high} in {metric_phrase(most)}"
    size = low if low == high else both
    if min(floor for floor, _ in floors) > max(USELESS, analysis.equivalence or 0.0):
        return f", but it could have missed a difference of {size}"
    return f"{copies} differ by at most {size}"


def noise_range(analysis: Analysis) -> str:
    """Return the smallest and the largest noise floor: ``2.2% to 12.0%``; empty if none is known."""
    sizes = [noise_size(report.noise) for _, report in _floors(analysis)]
    return " to ".join(dict.fromkeys((sizes[0], sizes[-1]))) if sizes else ""


def _floors(analysis: Analysis) -> list[tuple[float, MetricReport]]:
    """Return the noise floors of the primary metrics that a control has checked, the smallest first."""
    checked = [each for each in analysis.headlines if not (each.aa and each.aa.hidden)]
    floors = [(each.noise_floor, each) for each in checked if each.noise_floor is not None and each.noise is not None]
    return sorted(floors, key=lambda each: each[0])


def _own_interval(analysis: Analysis) -> str:
    """Return why a cost below its metric's noise floor is significant or within the margin; empty if none is."""
    narrower = any(
        (row.shown_as == "equivalent" and (report.noise_floor or 0.0) > (analysis.equivalence or 0.0))
        or (row.shown_as == "different" and row.cost and report.aa and within_noise(row.cost, report.aa.cost))
        for report in analysis.headlines
        for row in report.comparisons
    )
    return " Each cost is judged by its own interval." if narrower else ""


def _could_miss(analysis: Analysis) -> str:
    """Return the cost that every undecided primary metric detects in four runs of five, and the median.

    A much larger cost comes with its metric, or with its environment if the run has a single metric. Empty unless the
    control passed.
    """
    if analysis.few or analysis.trust.trusted is not True:
        return ""
    missed = [
        (row.visible.cost, report, row)
        for report in analysis.headlines
        for row in report.comparisons
        if row.visible is not None and row.cost is not None and row.cost.scale == "ratio"
        if row.shown_as == "inconclusive"
    ]
    if not missed:
        return ""
    typical = statistics.median_low(cost for cost, *_ in missed)
    most, report, row = max(missed, key=lambda each: each[0])
    where = display_name(row.environment) if len(analysis.headlines) == 1 else metric_phrase(report)
    largest, median = percent_short(most), percent_short(typical)
    details = [f"least precise: {where}"] if most > MUCH_LARGER * typical else []
    details += [f"{median} in half of the undecided comparisons"] if median != largest else []
    added = f" ({'; '.join(details)})" if details else ""
    return f"A cost of {largest} or more would probably have been detected{added}."


def control_power(analysis: Analysis) -> str:
    """Return the shift that the control detects, without which its passing means little; empty if it did not pass."""
    trust = analysis.trust
    if trust.trusted is not True or analysis.few or trust.visible_shift is None:
        return ""
    if 100 * trust.visible_shift < LEAST_NOISE:
        return ""
    shift = percent_short(100 * trust.visible_shift)
    of = trust.visible_shifts
    where = "" if of == 1 else f" in any of {of} primary metrics"
    return f"the control detects a shift of {shift}{where} in four of five runs"


def _shifted(trust: Trust, shown: int = 3) -> str:
    """Return the metrics in which the control failed."""
    titles = [metric_phrase(each) for each in trust.shifted]
    others = f" and {len(titles) - shown} more" if len(titles) > shown else ""
    return f"{', '.join(titles[:shown])}{others}"


def _no_control(analysis: Analysis) -> str:
    """Return why a run has no control."""
    baseline = display_name(analysis.baseline)
    if analysis.trust.reason is TrustReason.FEW_BLOCKS:
        return f"{baseline} was measured twice in fewer than {MIN_BLOCKS_VERDICT} rounds"
    return f"{baseline} was measured only once per round, so the noise floor is unknown"


# -- others on the machine -------------------------------------------------------------------------


def _disturbed(analysis: Analysis) -> str:
    """Return the load of other programs, its effect on the run, and what helps."""
    disturbance = analysis.disturbance
    beside = any(
        isinstance(each, HostsDiffer) and each.difference is not None and each.difference.kind == "beside"
        for each in analysis.confounders
    )
    words = disturbance_words(disturbance, display_name(analysis.baseline))
    return f"{words}{_missed(analysis)}. {_help(analysis, beside=beside)}"


def _help(analysis: Analysis, *, beside: bool) -> str:
    return what_helps(
        analysis.disturbance, polled=analysis.polled, beside=beside, on_nodes=analysis.on_nodes,
        weighed=is_weighed(analysis.study),
    )  # fmt: skip


def _capital(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}"


def _missed(analysis: Analysis) -> str:
    """Return how many intervals of an adaptive run are wider than its target; empty if none is."""
    rows = [row for report in analysis.headlines for row in report.comparisons if row.cost is not None and not row.aa]
    missed = [each.half_width for row in rows for each in row.remarks if isinstance(each, TargetMissed)]
    if analysis.target is None or not missed:
        return ""
    wider = f"wider than the target of {margin(analysis.target)}"
    if len(rows) > 1:
        return f", and {len(missed)} of {len(rows)} intervals {'is' if len(missed) == 1 else 'are'} {wider}"
    return f", and the interval is {f'{share_short(missed[0])}, ' if math.isfinite(missed[0]) else ''}{wider}"


def others_words(analysis: Analysis, shown: int = 2) -> str:
    """Return the load of other programs in each environment of a run as `disturbance_words`, or ``undisturbed``."""
    words = [disturbance_words(taken, display_name(name)) for name, taken in analysis.disturbances.items()]
    more = len(words) - shown
    named = [*words[:shown], *([f"more in {plural(more, 'other environment')}"] if more > 0 else [])]
    return ", and ".join(named) or "undisturbed"


def disturbance_words(disturbance: Disturbance, baseline: str) -> str:
    """Return the load of other programs: ``other programs used 1.8 CPUs in 20 of 20 native trials``."""
    parts = [f"{_taken(each)} in {each.flagged}" for each in disturbance.taken]
    of = f" of {plural(disturbance.trials, f'{baseline} trial')}"
    return " and ".join([f"{parts[0]}{of}", *parts[1:]])


def _taken(taken: Taken) -> str:
    others = taken.code is FlagCode.OTHER_WORK
    low, high = (plain((1.0 if others else 100.0) * value, 2) for value in (taken.low, taken.high))
    figure = low if low == high else f"{low} to {high}"
    of = f" of {taken.host}" if taken.host else ""
    if others:
        return f"other programs used {with_unit(figure, 'CPUs')}{of}"
    return f"the hypervisor took {in_percent(figure)} of the CPU time{of}"


def what_helps(
    disturbance: Disturbance, *, polled: bool, beside: bool, on_nodes: bool = False, weighed: bool = False
) -> str:
    """Return what helps against the load of other programs.

    ``beside``: another run of Weighbridge is one of them. ``on_nodes``: the machines belong to a cluster, which
    chooses their settings. ``weighed``: the study has no file in which CPUs can be pinned.
    """
    others = disturbance.took(FlagCode.OTHER_WORK)
    ways = [
        *(["wait until the other programs end"] if others else []),
        "measure at a quieter time",
        *(["pin to other CPUs (resources: pin)"] if others and not on_nodes and not weighed else []),
        *([] if polled or on_nodes or not disturbance.took(FlagCode.STEAL) else ["let idle CPUs poll (cpu_idle)"]),
        *(["run without --allow-concurrent"] if beside else []),
    ]
    return f"{_capital(', or '.join(filter(None, (', '.join(ways[:-1]), ways[-1]))))}."
