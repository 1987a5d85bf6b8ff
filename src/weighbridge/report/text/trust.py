"""Whether a session can be trusted, and how precise it is, in words."""

import math

from weighbridge.analysis.results import Analysis, Trust, TrustReason
from weighbridge.analysis.trends import PlaceEffect
from weighbridge.model.flag import FlagCode
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import LEAST_NOISE, SPACE, margin, noise_text, percent_short, plain
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.summary import count
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK, MIN_BLOCKS_VERDICT

NOISE = "each table has its own: what this machine invents"
"""What a noise floor means."""


def imprecise(analysis: Analysis) -> bool:
    """Whether the A/A arm holds, but the session has too few blocks, or too much noise for its margin."""
    trust, equivalence = analysis.trust, analysis.equivalence
    noisy = trust.noise_floor is not None and equivalence is not None and trust.noise_floor > equivalence
    return trust.trusted is True and (trust.blocks < MIN_BLOCKS_SIGNED_RANK or noisy)


def trust_sentence(analysis: Analysis) -> str:
    """Give noise floor, whether the session can be trusted, and what depends on the place of a trial in its block.

    Empty where there are too few blocks to ask.
    """
    return " ".join(filter(None, (_control_sentence(analysis), place_sentence(analysis))))


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
        return f"UNTRUSTED: {_reason(trust)}. Do not rely on the costs of this session.{floor_sentence}"
    if trust.trusted is None:
        return "" if analysis.few else f"Not checked: {_reason(trust)}."
    if analysis.few:
        return ""
    baseline = display_name(analysis.baseline)
    control = f"the {baseline}-against-{baseline} control passed{_finds(trust)}"
    if not imprecise(analysis):
        return f"Trusted: {control}; {floor_words}."
    if floor_shown and (equivalence is None or (floor or 0.0) > equivalence):
        beside = "" if equivalence is None else f"; the margin is {margin(equivalence)}"
        return f"Not precise: {floor_words}{beside}. T{control[1:]}. {_advice(analysis)}"
    limit = f"{count(trust.blocks)} are too few to be sure of that ({MIN_BLOCKS_SIGNED_RANK} are needed)"
    return f"Not precise: {control}, but {limit}; {floor_words}."


def _finds(trust: Trust) -> str:
    """The size of shift that the control finds: without it that it passed says nothing."""
    if trust.visible_shift is None or 100 * trust.visible_shift < LEAST_NOISE:
        return ""
    return f" (it finds a shift of {percent_short(100 * trust.visible_shift)} in four sessions of five)"


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
    """Advise how to make a session more precise: not by blocks alone where a hypervisor took CPU time."""
    stolen = sum(
        any((flag.code, flag.where) == (FlagCode.STEAL, "") for flag in trial.flags) for trial in analysis.trials
    )
    if 2 * stolen <= len(analysis.trials):
        return "More blocks would help."
    polled = "" if analysis.polled else ", or idle CPUs that poll (cpu_idle),"
    took = f"The hypervisor took CPU time in {stolen} of {len(analysis.trials)} trials"
    return f"{took}: a quieter hour{polled} would help."
