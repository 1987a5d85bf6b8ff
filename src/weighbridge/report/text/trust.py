"""Whether a session can be trusted, and how precise it is, in words."""

import math
import statistics

from weighbridge.analysis.remarks import HostsDiffer, TargetMissed
from weighbridge.analysis.results import Analysis, Trust, TrustReason
from weighbridge.analysis.trends import PlaceEffect
from weighbridge.model.disturbance import Disturbance, Taken
from weighbridge.model.flag import FlagCode
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import (
    LEAST_NOISE,
    SPACE,
    margin,
    noise_size,
    percent_short,
    plain,
    plural,
)
from weighbridge.report.text.metric_names import metric_phrase, metric_title
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK, MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import within_noise

MUCH_LARGER = 1.5
"""How many times the typical cost that may be missed the largest is, from which it is said too."""


def imprecise(analysis: Analysis) -> bool:
    """Whether the A/A arm holds, but blocks are too few, noise exceeds the margin, or others hinder the run."""
    few = analysis.trust.blocks < MIN_BLOCKS_SIGNED_RANK
    return analysis.trust.trusted is True and (few or _noisy(analysis) or hindered(analysis))


def _noisy(analysis: Analysis) -> bool:
    floor, equivalence = analysis.trust.noise_floor, analysis.equivalence
    return floor is not None and equivalence is not None and floor > equivalence


def hindered(analysis: Analysis) -> bool:
    """Whether others took CPU time in most trials, and the run is not as precise as it was to be."""
    precise = analysis.trust.noise_floor is not None and not _noisy(analysis) and not _missed(analysis)
    return analysis.disturbance.heavy and not precise


def trust_sentence(analysis: Analysis) -> str:
    """Give whether the session can be trusted, what others took, noise floor, and what depends on a trial's place.

    Empty where there are too few blocks to ask, and nobody took anything.
    """
    return " ".join(filter(None, (checked_sentence(analysis), place_sentence(analysis))))


def checked_sentence(analysis: Analysis) -> str:
    """Give what the control says, which headlines have none, and what others took; empty as `trust_sentence` is."""
    control, others = control_sentence(analysis), disturbed_sentence(analysis)
    return " ".join(filter(None, (control, unchecked_sentence(analysis.trust), others, _could_miss(analysis))))


def unchecked_sentence(trust: Trust, shown: int = 3) -> str:
    """Say which headlines have no control, where others have one; empty where all have, or none."""
    titles = [metric_title(each) for each in trust.unchecked if trust.trusted is not None]
    if not titles:
        return ""
    others = f" and {len(titles) - shown} more" if len(titles) > shown else ""
    few = f"the A/A arm has fewer than {MIN_BLOCKS_VERDICT} blocks there"
    return f"Not checked: {', '.join(titles[:shown])}{others} ({few})."


def place_sentence(analysis: Analysis, shown: int = 3) -> str:
    """Say in which metrics a trial's place in its block changes its value; empty where it does in none."""
    titles = {(each.workload, each.level, each.metric): metric_title(each) for each in analysis.metrics}
    sizes = {each.key: _per_place(analysis, each) for each in analysis.trust.places}
    effects = [f"{titles[key]} ({size})" for key, size in sizes.items() if not size.startswith(f"0{SPACE}")]
    if not effects:
        return ""
    others = f" and {len(effects) - shown} more" if len(effects) > shown else ""
    return (
        f"Trials affect later trials in their block: {', '.join(effects[:shown])}{others}. "
        "Random order keeps this from biasing costs, but it widens intervals."
    )


def _per_place(analysis: Analysis, effect: PlaceEffect) -> str:
    if effect.logs:
        return f"{plain(100 * math.expm1(effect.per_place), 2)}{SPACE}% per place"
    unit = next(each.unit for each in analysis.metrics if (each.workload, each.level, each.metric) == effect.key)
    return f"{plain(effect.per_place, 2)}{SPACE}{unit} per place"


def control_sentence(analysis: Analysis) -> str:
    """Give whether the session can be trusted, and how well the check can tell; empty where nobody asked."""
    trust, baseline = analysis.trust, display_name(analysis.baseline)
    if trust.trusted is False:
        return f"UNTRUSTED: {_reason(analysis)}. Do not rely on the costs of this run."
    if analysis.few:
        return ""
    if trust.trusted is None:
        return f"Not checked: {_reason(analysis)}."
    few = ", as far as so few blocks can tell" if trust.blocks < MIN_BLOCKS_SIGNED_RANK else ""
    return f"Check passed: {baseline} measured twice agrees{_in_blocks(analysis)}{_closeness(analysis)}{few}."


def disturbed_sentence(analysis: Analysis) -> str:
    """Say what others took in more than half of the baseline's trials, and what would help where that hinders."""
    if not analysis.disturbance.heavy:
        return ""
    if hindered(analysis):
        return f"Disturbed: {_disturbed(analysis)}"
    words = disturbance_words(analysis.disturbance, display_name(analysis.baseline))
    precise = ", but the run is as precise as it was to be" if analysis.trust.trusted else ""
    return f"Disturbed: {words}{precise}."


def _in_blocks(analysis: Analysis) -> str:
    """`` in 23 to 69 blocks``: how many the control has of each headline; empty where there is none."""
    blocks = [each.aa.blocks for each in analysis.headlines if each.aa is not None and each.aa.cost is not None]
    if not blocks:
        return ""
    least, most = min(blocks), max(blocks)
    return f" in {plural(most, 'block') if least == most else f'{least} to {most} blocks'}"


def _closeness(analysis: Analysis) -> str:
    """`` to within 1.7 %``: the noise floor; of several headlines the smallest and the largest, and of which.

    `` to within 0.9 % (tcp throughput) to 109 % (udp requests/s)``. Empty where it is not known. Where a cost is
    within a margin that is narrower than that, it says why.
    """
    checked = [each for each in analysis.headlines if not (each.aa and each.aa.hidden)]
    floors = [(each.noise_floor, each) for each in checked if each.noise_floor is not None]
    if not floors:
        return ""
    least, most = (pick(floors, key=lambda each: each[0])[1] for pick in (min, max))
    low, high = noise_size(least.noise), noise_size(most.noise)
    if low == high:
        return f" to within {high.replace('below the', 'the')}{_own_interval(analysis)}"
    floors_text = f"{low} ({metric_phrase(least)}) to {high} ({metric_phrase(most)})"
    return f" to within {floors_text}{_own_interval(analysis)}"


def _own_interval(analysis: Analysis) -> str:
    """Why a cost is proven, or within the margin, that is smaller than the noise floor of its metric; else empty."""
    narrower = any(
        (row.shown_as == "equivalent" and (report.noise_floor or 0.0) > (analysis.equivalence or 0.0))
        or (row.shown_as == "different" and row.cost and report.aa and within_noise(row.cost, report.aa.cost))
        for report in analysis.headlines
        for row in report.comparisons
    )
    return "; each cost is judged by its own interval" if narrower else ""


def _could_miss(analysis: Analysis) -> str:
    """Say how large a cost a run may have missed: the median and the largest of its undecided headlines.

    The largest is that of a metric, and where the run has one metric alone of an environment. Empty where the control
    was not asked, or did not pass.
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
    largest = f" ({percent_short(most)} in {where})" if most > MUCH_LARGER * typical else ""
    return f"Where undecided, a cost of {percent_short(typical)} would likely have shown{largest}."


def control_power(analysis: Analysis) -> str:
    """Say which shift the control finds: without it that it passed says nothing; empty where it did not pass."""
    trust = analysis.trust
    if trust.trusted is not True or analysis.few or trust.visible_shift is None:
        return ""
    if 100 * trust.visible_shift < LEAST_NOISE:
        return ""
    shift = percent_short(100 * trust.visible_shift)
    of = trust.visible_shifts
    where = "" if of == 1 else f" in any of {of} headlines"
    baseline = display_name(analysis.baseline)
    return f"one run in five would not notice a shift of {shift} between two copies of {baseline}{where}"


def _reason(analysis: Analysis, shown: int = 3) -> str:
    """Why a session is not trusted, or could not be checked."""
    trust, baseline = analysis.trust, display_name(analysis.baseline)
    titles = [metric_phrase(each) for each in trust.shifted]
    others = f" and {len(titles) - shown} more" if len(titles) > shown else ""
    shifted = f"{', '.join(titles[:shown])}{others}"
    return {
        TrustReason.NO_AA_ARM: f"{baseline} was measured only once (no A/A arm), so the noise floor is unknown",
        TrustReason.FEW_BLOCKS: f"{baseline} was measured twice in fewer than {MIN_BLOCKS_VERDICT} blocks",
        TrustReason.SHIFTED: f"{baseline} measured twice disagrees with itself in {shifted}",
        TrustReason.HOLDS: f"{baseline} measured twice agrees",
    }[trust.reason]


# -- others on the machine -------------------------------------------------------------------------


def _disturbed(analysis: Analysis) -> str:
    """What others took of the CPU time, what that cost the run, and what would help."""
    disturbance = analysis.disturbance
    beside = any(
        isinstance(each, HostsDiffer) and each.difference is not None and each.difference.kind == "beside"
        for each in analysis.confounders
    )
    words = disturbance_words(disturbance, display_name(analysis.baseline))
    return f"{words}{_missed(analysis)}. {_help(analysis, beside=beside)}"


def _help(analysis: Analysis, *, beside: bool) -> str:
    return what_helps(analysis.disturbance, polled=analysis.polled, beside=beside, on_nodes=analysis.on_nodes)


def _capital(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}"


def _missed(analysis: Analysis) -> str:
    """In how many of its comparisons an adaptive run has not reached its target; empty where in none."""
    rows = [row for report in analysis.headlines for row in report.comparisons if row.cost is not None and not row.aa]
    missed = sum(any(isinstance(each, TargetMissed) for each in row.remarks) for row in rows)
    if analysis.target is None or not missed:
        return ""
    return f", and {missed} of {plural(len(rows), 'comparison')} missed {margin(analysis.target)}"


def others_words(analysis: Analysis, shown: int = 2) -> str:
    """Return what others took in each environment of a run, as `disturbance_words` has it, or ``undisturbed``."""
    words = [disturbance_words(taken, display_name(name)) for name, taken in analysis.disturbances.items()]
    more = len(words) - shown
    named = [*words[:shown], *([f"more in {plural(more, 'other environment')}"] if more > 0 else [])]
    return ", and ".join(named) or "undisturbed"


def disturbance_words(disturbance: Disturbance, baseline: str) -> str:
    """Return what others took, which is something: ``other processes took 1.8 CPUs in 20 of 20 trials of native``."""
    parts = [f"{_taken(each)} in {each.flagged}" for each in disturbance.taken]
    of = f" of {plural(disturbance.trials, f'{baseline} trial')}"
    return " and ".join([f"{parts[0]}{of}", *parts[1:]])


def _taken(taken: Taken) -> str:
    factor, unit = (1.0, "CPUs") if taken.code is FlagCode.OTHER_WORK else (100.0, "% of the CPU time")
    low, high = (plain(factor * value, 2) for value in (taken.low, taken.high))
    figure = f"{low if low == high else f'{low} to {high}'}{SPACE}{unit}"
    who = "other processes" if taken.code is FlagCode.OTHER_WORK else "the hypervisor"
    return f"{who} took {figure}{f' of {taken.host}' if taken.host else ''}"


def what_helps(disturbance: Disturbance, *, polled: bool, beside: bool, on_nodes: bool = False) -> str:
    """Return what would help against others.

    ``beside``: another run of Weighbridge is one of them; ``on_nodes``: the machines are a cluster's, which are not
    ours to set.
    """
    others = disturbance.took(FlagCode.OTHER_WORK)
    ways = [
        *(["wait until they end"] if others else []),
        "pick a quieter hour",
        *(["pin to other CPUs (resources: pin)"] if others and not on_nodes else []),
        *([] if polled or on_nodes or not disturbance.took(FlagCode.STEAL) else ["let idle CPUs poll (cpu_idle)"]),
        *(["run without --beside-others"] if beside else []),
    ]
    return f"{_capital(' or '.join(filter(None, (', '.join(ways[:-1]), ways[-1]))))}."
