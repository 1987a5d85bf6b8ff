"""Whether a session can be trusted, and how precise it is, in words."""

from weighbridge.analysis.results import FEW_BLOCKS, Analysis, Trust, TrustReason
from weighbridge.model.flag import FlagCode
from weighbridge.report.text.formatting import floor_text, margin, share, unsigned
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.summary import ENOUGH, count

LEAST = 5e-5
"""The smallest noise floor that is said as a number."""


def imprecise(analysis: Analysis) -> bool:
    """Whether the A/A arm holds, but the session has too few blocks, or too much noise for its margin."""
    trust, wanted = analysis.trust, analysis.equivalence
    noisy = trust.noise_floor is not None and wanted is not None and trust.noise_floor > wanted
    return trust.trusted is True and (trust.blocks < ENOUGH or noisy)


def trust_sentence(analysis: Analysis) -> str:
    """Give noise floor and whether the session can be trusted; empty where there are too few blocks to ask."""
    trust, wanted = analysis.trust, analysis.equivalence
    floor = trust.noise_floor
    largest = ""
    if floor is not None and trust.largest_noise_in is not None and (trust.largest_noise or 0.0) > floor:
        largest = f", largest {share(trust.largest_noise)} in {metric_title(trust.largest_noise_in)}"
    noise = f"noise floor {floor_text(floor)}{largest}"
    if trust.trusted is False:
        known = f" N{noise[1:]}." if floor is not None else ""
        return f"UNTRUSTED: {_reason(trust)}. Do not rely on the costs of this session.{known}"
    if trust.trusted is None:
        return "" if analysis.few else f"Not checked: {_reason(trust)}."
    if analysis.few:
        return ""
    control = f"the {analysis.baseline}-against-{analysis.baseline} control passed"
    if not imprecise(analysis):
        return f"Trusted: {control}; {noise}."
    if floor is not None and floor >= LEAST and (wanted is None or floor > wanted):
        beside = f"noise floor{largest}{'' if wanted is None else f'; the margin is {margin(wanted)}'}"
        seen = f"differences below {unsigned(floor)} cannot be detected ({beside})"
        return f"Not precise: {seen}. T{control[1:]}. {_advice(analysis)}"
    limit = f"{count(trust.blocks)} are too few to be sure of that ({ENOUGH} are needed)"
    return f"Not precise: {control}, but {limit}; {noise}."


def _reason(trust: Trust, shown: int = 3) -> str:
    """Why a session is not trusted, or could not be checked."""
    titles = [metric_title(each) for each in trust.shifted]
    more = f" and {len(titles) - shown} more" if len(titles) > shown else ""
    return {
        TrustReason.NO_AA_ARM: "this study has no A/A arm, so its noise floor is not known",
        TrustReason.FEW_BLOCKS: f"the A/A arm has fewer than {FEW_BLOCKS} blocks",
        TrustReason.SHIFTED: f"the A/A arm shows a cost where there is none: {', '.join(titles[:shown])}{more}",
        TrustReason.HOLDS: "A/A arm holds",
    }[trust.reason]


def _advice(analysis: Analysis) -> str:
    """What would make a session more precise: where a hypervisor took CPU time in most trials, not blocks alone."""
    stolen = sum(
        any((flag.code, flag.where) == (FlagCode.STEAL, "") for flag in trial.flags) for trial in analysis.trials
    )
    if 2 * stolen <= len(analysis.trials):
        return "More blocks would help."
    polled = "" if analysis.polled else ", or idle CPUs that poll (cpu_idle),"
    took = f"The hypervisor took CPU time in {stolen} of {len(analysis.trials)} trials"
    return f"{took}: a quieter hour{polled} would help."
