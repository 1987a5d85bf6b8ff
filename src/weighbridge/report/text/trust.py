"""Whether a session can be trusted, and how precise it is, in words."""

import math

from weighbridge.analysis.remarks import HostsDiffer, TargetMissed
from weighbridge.analysis.results import Analysis, Trust, TrustReason
from weighbridge.analysis.trends import PlaceEffect
from weighbridge.model.disturbance import Disturbance, Taken
from weighbridge.model.flag import FlagCode
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import LEAST_NOISE, SPACE, margin, noise_text, percent_short, plain
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.summary import count
from weighbridge.statistics.precision import MOST_BLOCKS
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK, MIN_BLOCKS_VERDICT

NOISE = "each table has its own: what this machine invents"
"""What a noise floor means."""


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
    parts = (_control_sentence(analysis), unchecked_sentence(analysis.trust), place_sentence(analysis))
    return " ".join(filter(None, parts))


def unchecked_sentence(trust: Trust, shown: int = 3) -> str:
    """Say which headlines have no control, where others have one; empty where all have, or none."""
    titles = [metric_title(each) for each in trust.unchecked if trust.trusted is not None]
    if not titles:
        return ""
    others = f" and {len(titles) - shown} more" if len(titles) > shown else ""
    few = f"the A/A arm has fewer than {MIN_BLOCKS_VERDICT} blocks there"
    return f"Without a control: {', '.join(titles[:shown])}{others} ({few})."


def place_sentence(analysis: Analysis, shown: int = 3) -> str:
    """Say in which metrics a trial's place in its block changes its value; empty where it does in none."""
    titles = {(each.workload, each.level, each.metric): metric_title(each) for each in analysis.metrics}
    effects = [f"{titles[each.key]} ({_per_place(analysis, each)})" for each in analysis.trust.places]
    if not effects:
        return ""
    others = f" and {len(effects) - shown} more" if len(effects) > shown else ""
    return (
        f"A trial's place in its block changes {', '.join(effects[:shown])}{others}: trials affect those after them. "
        "As the order is random, that biases no cost, but makes intervals wider."
    )


def _per_place(analysis: Analysis, effect: PlaceEffect) -> str:
    if effect.logs:
        return f"{plain(100 * math.expm1(effect.per_place), 2)}{SPACE}% from one place to the next"
    unit = next(each.unit for each in analysis.metrics if (each.workload, each.level, each.metric) == effect.key)
    return f"{plain(effect.per_place, 2)}{SPACE}{unit} from one place to the next"


def _control_sentence(analysis: Analysis) -> str:
    trust, equivalence = analysis.trust, analysis.equivalence
    disturbed = _disturbed(analysis) if hindered(analysis) else ""
    floor, largest = trust.noise_floor, ""
    if floor is not None and trust.largest_noise_in is not None and (trust.largest_noise or 0.0) > floor:
        most = trust.largest_noise_in
        largest = f", largest {noise_text(most.noise)} in {metric_title(most)}"
    floor_shown = floor is not None and 100 * floor >= LEAST_NOISE
    floor_words = (
        f"typical noise floor {noise_text(trust.noise)}{largest}{f' ({NOISE})' if floor_shown or largest else ''}"
    )
    if trust.trusted is False:
        floor_sentence = f" T{floor_words[1:]}." if floor is not None else ""
        others = f" {_capital(disturbed)}" if disturbed else ""
        return f"UNTRUSTED: {_reason(trust)}. Do not rely on the costs of this session.{others}{floor_sentence}"
    if analysis.few or trust.trusted is None:
        checked = "" if analysis.few else f"Not checked: {_reason(trust)}."
        return " ".join(filter(None, (_capital(disturbed), checked)))
    baseline = display_name(analysis.baseline)
    control = f"the {baseline}-against-{baseline} control passed{_finds(trust)}"
    beside = "" if equivalence is None else f"; the margin is {margin(equivalence)}"
    if disturbed:
        return f"Not precise: {disturbed} T{control[1:]}; {floor_words}{beside if _noisy(analysis) else ''}."
    if not imprecise(analysis):
        words = disturbance_words(analysis.disturbance, baseline) if analysis.disturbance.heavy else ""
        return f"Trusted: {control}; {floor_words}{f', although {words}' if words else ''}."
    if floor_shown and (equivalence is None or (floor or 0.0) > equivalence):
        return f"Not precise: {floor_words}{beside}. T{control[1:]}. {_advice(analysis)}"
    limit = f"{count(trust.blocks)} are too few to be sure of that ({MIN_BLOCKS_SIGNED_RANK} are needed)"
    return f"Not precise: {control}, but {limit}; {floor_words}."


def _finds(trust: Trust) -> str:
    """The size of shift that the control finds: without it that it passed says nothing."""
    if trust.visible_shift is None or 100 * trust.visible_shift < LEAST_NOISE:
        return ""
    shift = percent_short(100 * trust.visible_shift)
    of = trust.visible_shifts
    where = "" if of == 1 else f" in any of {of} headlines"
    return f" (it would have shown a shift of {shift} or more{where} in four sessions of five)"


def _reason(trust: Trust, shown: int = 3) -> str:
    """Why a session is not trusted, or could not be checked."""
    titles = [metric_title(each) for each in trust.shifted]
    others = f" and {len(titles) - shown} more" if len(titles) > shown else ""
    return {
        TrustReason.NO_AA_ARM: "this study has no A/A arm, so its noise floor is not known",
        TrustReason.FEW_BLOCKS: f"the A/A arm has fewer than {MIN_BLOCKS_VERDICT} blocks",
        TrustReason.SHIFTED: f"the A/A arm shows a cost where there is none: {', '.join(titles[:shown])}{others}",
        TrustReason.HOLDS: "A/A arm holds",
    }[trust.reason]


def _advice(analysis: Analysis) -> str:
    """Advise how to bring the noise floor within the margin: by as many blocks as that takes."""
    trust, equivalence = analysis.trust, analysis.equivalence
    aa = trust.noise_floor_in.aa if trust.noise_floor_in is not None else None
    if trust.noise_floor is None or aa is None or equivalence is None:
        return "More blocks would help."
    needed = aa.blocks * (math.log1p(trust.noise_floor) / math.log1p(equivalence)) ** 2
    if needed > MOST_BLOCKS:
        return "No number of blocks would bring the noise floor within the margin: the same runs differ too much."
    return f"About {math.ceil(needed)} blocks in all would bring the noise floor within the margin."


# -- others on the machine -------------------------------------------------------------------------


def _disturbed(analysis: Analysis) -> str:
    """What others took of the CPU time, what that cost the run, and what would help."""
    disturbance = analysis.disturbance
    beside = any(
        isinstance(each, HostsDiffer) and each.difference is not None and each.difference.kind == "beside"
        for each in analysis.confounders
    )
    words = disturbance_words(disturbance, display_name(analysis.baseline))
    return f"{words}{_missed(analysis)}. {what_helps(disturbance, polled=analysis.polled, beside=beside)}"


def _capital(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}"


def _missed(analysis: Analysis) -> str:
    """In how many of its comparisons an adaptive run has not reached its target; empty where in none."""
    rows = [row for report in analysis.headlines for row in report.comparisons if row.cost is not None and not row.aa]
    missed = sum(any(isinstance(each, TargetMissed) for each in row.remarks) for row in rows)
    if analysis.target is None or not missed:
        return ""
    return f", and {margin(analysis.target)} was out of reach in {missed} of {_plural(len(rows), 'comparison')}"


def others_words(analysis: Analysis, shown: int = 2) -> str:
    """Return what others took in each environment of a run, as `disturbance_words` has it, or ``undisturbed``."""
    words = [disturbance_words(taken, display_name(name)) for name, taken in analysis.disturbances.items()]
    more = len(words) - shown
    named = [*words[:shown], *([f"more in {_plural(more, 'other environment')}"] if more > 0 else [])]
    return ", and ".join(named) or "undisturbed"


def disturbance_words(disturbance: Disturbance, baseline: str) -> str:
    """Return what others took, which is something: ``other processes took 1.8 CPUs in 20 of 20 trials of native``."""
    parts = [f"{_taken(each)} in {each.flagged}" for each in disturbance.taken]
    of = f" of {_plural(disturbance.trials, 'trial')} of {baseline}"
    return " and ".join([f"{parts[0]}{of}", *parts[1:]])


def _taken(taken: Taken) -> str:
    factor, unit = (1.0, "CPUs") if taken.code is FlagCode.OTHER_WORK else (100.0, "% of the CPU time")
    low, high = (plain(factor * value, 2) for value in (taken.low, taken.high))
    figure = f"{low if low == high else f'{low} to {high}'}{SPACE}{unit}"
    who = "other processes" if taken.code is FlagCode.OTHER_WORK else "the hypervisor"
    return f"{who} took {figure}{f' of {taken.host}' if taken.host else ''}"


def what_helps(disturbance: Disturbance, *, polled: bool, beside: bool) -> str:
    """Return what would help against others; ``beside``: another run of Weighbridge is one of them."""
    others = disturbance.took(FlagCode.OTHER_WORK)
    ways = [
        *(["waiting for their end"] if others else []),
        "a quieter hour",
        *(["CPUs that they leave alone (resources: pin)"] if others else []),
        *([] if polled or not disturbance.took(FlagCode.STEAL) else ["idle CPUs that poll (cpu_idle)"]),
        *(["a run without --beside-others, which starts beside no other"] if beside else []),
    ]
    return f"What would help: {' or '.join(filter(None, (', '.join(ways[:-1]), ways[-1])))}."


def _plural(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
