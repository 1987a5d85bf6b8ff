"""Remarks in words: the only module that turns a remark into a sentence and a code into its meaning."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import TypeVar

from weighbridge.analysis import remarks
from weighbridge.analysis.results import EXTENDED_ERROR, Remark
from weighbridge.model.facts import HostDifference
from weighbridge.model.flag import FlagCode
from weighbridge.report.text.environments import display_name, join_names
from weighbridge.report.text.formatting import (
    difference_interval,
    level,
    noise_text,
    percent_interval,
    plain,
    quantity,
    share,
)
from weighbridge.report.text.paths import difference_words, place_words
from weighbridge.report.text.trial_flags import flag_kind_text
from weighbridge.report.text.verdicts import LIMITS
from weighbridge.statistics.precision import MOST_BLOCKS
from weighbridge.statistics.verdicts import ALPHA

Kind = TypeVar("Kind", bound=Remark)
Sentence = Callable[[Kind], str]

CODES: dict[str, str] = {}
"""Every code with its meaning, in the order of the page."""


def coded_text(remark: Remark) -> str:
    """Return a remark with its code before it, as machines get it."""
    return f"{remark.code}: {remark_text(remark)}"


@singledispatch
def remark_text(remark: Remark) -> str:
    """Return a remark as a sentence."""
    raise TypeError(f"{type(remark).__name__} has no words")


def remark_texts(several: Iterable[Remark]) -> list[str]:
    """Return remarks as sentences; environments that lack the same meter or the same limit share one sentence."""
    environments: dict[str, list[str]] = {}
    for each in several:
        if isinstance(each, remarks.NotMetered | remarks.NotHonoured):
            environments.setdefault(remark_text(replace(each, environment="")), []).append(each.environment)
        else:
            environments[remark_text(each)] = []
    return [f"{join_names(names)}{text}" for text, names in environments.items()]


def words(kind: type[Kind], meaning: str = "") -> Callable[[Sentence[Kind]], Sentence[Kind]]:
    """Register the sentence of a class of remarks, and with the first class of a code also its `meaning`."""
    if meaning:
        CODES[kind.code] = meaning
    return remark_text.register(kind)


# -- about the rounds of a comparison --------------------------------------------------------------


@words(remarks.AAArm, "the row is the control: the baseline measured a second time")
def _(remark: remarks.AAArm) -> str:
    return f"this is the control: {display_name(remark.baseline)} measured a second time"


@words(remarks.NoBlocks, "no round measured both sides: no cost")
def _(_: remarks.NoBlocks) -> str:
    return "no round measured both sides, so there is no cost"


@words(remarks.OneBlock, "one round: no interval")
def _(_: remarks.OneBlock) -> str:
    return "one round gives no interval; run more"


@words(remarks.Exploratory, "fewer than ten rounds: the interval assumes a normal distribution")
def _(remark: remarks.Exploratory) -> str:
    return f"exploratory: {remark.rounds} rounds, fewer than ten"


@words(remarks.Incomplete, "fewer complete rounds than planned or tried")
def _(remark: remarks.Incomplete) -> str:
    return f"{remark.rounds} of {remark.planned} rounds are complete"


@words(remarks.FixedTime, "a program seems to run for a fixed time, so its run time cannot show a cost")
def _(remark: remarks.FixedTime) -> str:
    return (
        f"{remark.label} took {quantity(remark.seconds, 's')} in most trials. It seems to run for a fixed time, so "
        "its run time cannot show a cost. Give it a fixed amount of work, or use --metric."
    )


@words(
    remarks.Extended,
    "the number of rounds was changed after looking at the results: more than 5% false alarms",
)
def _(remark: remarks.Extended) -> str:
    how = "extended" if remark.rounds > remark.planned else "shortened"
    at = " and ".join(map(str, remark.looked_after))
    text = f"{how} from {remark.planned} to {remark.rounds} rounds after looking at the results of {at}"
    gate = ". Gates have an error rate of their own, so their intervals can be narrower" if remark.by_gate else ""
    alarms = f"up to about {level(EXTENDED_ERROR)} of such runs have a false alarm, instead of {level(ALPHA)}"
    return f"{text}: {alarms}{gate}"


@words(
    remarks.Unfinished,
    "not finished: intervals are wider than at the end, because you can look at any time",
)
def _(remark: remarks.Unfinished) -> str:
    of_planned = f" of {remark.planned}" if remark.planned else ""
    text = f"not finished: in round {remark.rounds}{of_planned}"
    return f"{text}; intervals are wider than at the end, because you can look at any time"


# -- about its cost --------------------------------------------------------------------------------


@words(remarks.TargetMissed, "the study's target precision was not reached")
def _(remark: remarks.TargetMissed) -> str:
    predicted = remark.predicted_rounds
    number = f"about {predicted}" if predicted and predicted <= MOST_BLOCKS else f"more than {MOST_BLOCKS}"
    needed = f"; it needs {number} rounds" if predicted else ""
    width = share(remark.half_width) if math.isfinite(remark.half_width) else "no relative width"
    return f"target {share(remark.target)} not reached: {width} after {remark.rounds} rounds{needed}"


@words(
    remarks.AsDifference,
    "the cost is a difference, not a percentage: a count, a share, or a value was not positive",
)
def _(remark: remarks.AsDifference) -> str:
    return f"the cost is a difference: {difference_interval(remark.difference, remark.unit)}"


@words(remarks.NotAfterHolm, "the interval excludes zero, but the cost is not significant after Holm's correction")
def _(remark: remarks.NotAfterHolm) -> str:
    return f"not significant after Holm's correction (p = {plain(remark.adjusted_p, 2)})"


@words(
    remarks.Unproven,
    "the control failed, so this run cannot show a cost in metrics of this kind",
)
def _(remark: remarks.Unproven) -> str:
    return "no verdict: the control failed"


@words(
    remarks.WithinNoise,
    "no larger than the noise floor: never significant (resource use, fewer than ten rounds, a disturbed run)",
)
def _(remark: remarks.WithinNoise) -> str:
    has_floor = remark.low is not None and remark.high is not None
    floor = f" of {noise_text((remark.low or 0.0, remark.high or 0.0))}" if has_floor else ""
    return f"within this metric's noise floor{floor}"


@words(
    remarks.Identical,
    "all rounds agree, but so few could agree by chance: undecided",
)
def _(remark: remarks.Identical) -> str:
    return f"all {remark.rounds} rounds agree, but so few could agree by chance"


@words(remarks.Stalls, "a few slow or fast runs pull the average away from the typical cost")
def _(remark: remarks.Stalls) -> str:
    mean, typical = remark.mean_percent, remark.typical_percent
    what = "slow runs raise" if mean.estimate > typical.estimate else "runs lower"
    return (
        f"a few {what} the average cost to {percent_interval(mean)}; a typical run pays {percent_interval(typical)}"
    )


# -- about the values and trials of one environment ------------------------------------------------


@words(
    remarks.Selected,
    "more than one trial in ten failed: the cost covers successful runs only, and is never equivalent",
)
def _(remark: remarks.Selected) -> str:
    return f"{display_name(remark.environment)}: the cost covers successful runs only"


@words(remarks.Outliers, "values more than 5 * 1.4826 MAD from the median, kept; tested from eight values on")
def _(remark: remarks.Outliers) -> str:
    are = "is an outlier" if remark.outliers == 1 else "are outliers"
    return f"{display_name(remark.environment)}: {remark.outliers} of {remark.runs} runs {are} (kept)"


@words(remarks.DelayedAck, "a latency equals the time for which Linux delays acknowledgements, with idle CPUs")
def _(remark: remarks.DelayedAck) -> str:
    name, milliseconds = display_name(remark.environment), plain(1000 * remark.seconds)
    return (
        f"{name}: {milliseconds} ms with idle CPUs looks like a delayed acknowledgement (40 ms), which TCP_NODELAY "
        "avoids"
    )


@words(remarks.Drift, "values rise or fall over the run (Kendall's tau, p < 0.01)")
def _(remark: remarks.Drift) -> str:
    way = "up" if remark.tau > 0 else "down"
    return f"{display_name(remark.environment)} drifts {way} during the run (tau {remark.tau:+.2f})"


@words(remarks.Autocorrelation, "successive values are correlated (rank von Neumann ratio, p < 0.01)")
def _(remark: remarks.Autocorrelation) -> str:
    return f"{display_name(remark.environment)}: successive runs are correlated"


@words(
    remarks.BrokeUnderLoad,
    "the server was overloaded: a result, never equivalent; the cost covers the other rounds",
)
def _(remark: remarks.BrokeUnderLoad) -> str:
    broke, begin = remark.overloaded, f"{display_name(remark.environment)}:"
    if broke.always:
        return f"{begin} overloaded in every trial ({broke.trials}): {broke.reason}"
    text = f"measured in {broke.measured} of {broke.measured + broke.lost} rounds, overloaded in {broke.lost}"
    return f"{begin} {text} ({broke.reason}): the cost covers the measured rounds"


@words(remarks.FailedTrials, "trials without a measurement")
def _(remark: remarks.FailedTrials) -> str:
    how = ", ".join(f"{count} {outcome}" for outcome, count in remark.outcomes)
    failed = sum(count for _, count in remark.outcomes)
    return f"{display_name(remark.environment)}: {failed} of {remark.trials} trials failed ({how})"


@words(remarks.ProgramErrors, "trials whose program also reported errors")
def _(remark: remarks.ProgramErrors) -> str:
    return _flagged(remark)


@words(remarks.FlaggedTrials, "trials flagged while they ran (steal, throttled, pressure, saturation)")
def _flagged(remark: remarks.FlaggedTrials) -> str:
    text = flag_kind_text(remark.flag, remark.figures)
    return f"{display_name(remark.environment)}: {text} in {remark.count} of {remark.trials} trials"


# -- about what was measured under which conditions ------------------------------------------------


@words(
    remarks.FewReadings,
    "trials too short for the meters: a few readings each, so a peak can be missed",
)
def _(remark: remarks.FewReadings) -> str:
    count = remark.readings
    read = f"about {count} reading{'' if count == 1 else 's'}" if count else "hardly one reading"
    if remark.chosen:
        return f"shortened trials: {read} each at {remark.hz:g} Hz, so a peak can be missed"
    begin = f"trials are too short for meters at {remark.hz:g} Hz ({read} each)"
    if remark.wanted_hz is None:
        return f"{begin}: a peak can be missed"
    return f"{begin}: raise meters: {{hz: {remark.wanted_hz}}}"


@words(remarks.Unresolved, "memory per instance is zero or less in some trials: too little for this meter")
def _(remark: remarks.Unresolved) -> str:
    return (
        f"{display_name(remark.environment)}: memory per instance is zero or less in {remark.count} of "
        f"{remark.trials} "
        "trials: too little to show in the machine's used memory"
    )


@words(remarks.OtherPacketSize, "packet sizes differ from the baseline's: part of the cost can come from that")
def _(remark: remarks.OtherPacketSize) -> str:
    return f"packets of {remark.size}; the baseline's are {remark.baseline_size}"


@words(remarks.PacketSizes)
def _(remark: remarks.PacketSizes) -> str:
    sizes = (
        f"packets of {each.size}, but {each.baseline_size} in {display_name(remark.baseline)} ({', '.join(labels)})"
        for each, labels in remark.sizes
    )
    return f"{display_name(remark.environment)}: {'; '.join(sizes)}"


@words(
    remarks.Capped,
    "a limit, such as a full cable, held back only one side: it is part of the cost",
)
def _(remark: remarks.Capped) -> str:
    where = f"{LIMITS[FlagCode(remark.limit)]} in {remark.trials} of {remark.of} trials"
    then = "larger" if remark.of_baseline else "smaller"
    return f"{display_name(remark.environment)} was limited by {where}: the cost would be {then} without it"


@words(remarks.Fragments, "one side's datagrams are fragmented: that is part of the cost")
def _(remark: remarks.Fragments) -> str:
    sizes = f"{remark.size} B each, {remark.in_one_piece} B fit its path"
    return f"datagrams of {display_name(remark.environment)} are fragmented: {sizes}"


@words(
    remarks.OtherPath,
    "its network path differs from the baseline's in more than isolation: part of the cost can come from the path",
)
def _(remark: remarks.OtherPath) -> str:
    text = difference_words(remark.difference)
    if not remark.environments:
        return f"different network path: {text}"
    where = f", {place_words(remark.place)}" if remark.place else ""
    return f"{join_names(remark.environments)}{where}: {text}"


@words(remarks.PathsUnrecorded)
def _(_: remarks.PathsUnrecorded) -> str:
    return "network paths were not recorded, so they might differ between environments"


@words(remarks.NoPath, "a network path is unknown: never significant, never equivalent")
def _(_: remarks.NoPath) -> str:
    return "no verdict: a network path is unknown"


@words(
    remarks.InterruptTimeApart,
    "an environment's own CPU time leaves out the network stack's interrupts here; read cpu_all_per_*",
)
def _(remark: remarks.InterruptTimeApart) -> str:
    is_ = "is not" if remark.sure else "might not be"
    return f"the network stack's interrupt time {is_} in this figure; read the CPU of the whole machine"


@words(
    remarks.OtherDurability,
    "its durability differs from the baseline's: never equivalent",
)
def _(remark: remarks.OtherDurability) -> str:
    mine, other = (each or "unknown" for each in (remark.durability, remark.baseline_durability))
    text = f"durability {mine}, {'and' if mine == other else 'but'} {other} in {display_name(remark.baseline)}"
    return f"{display_name(remark.environment)}: {text} ({', '.join(remark.labels)})" if remark.environment else text


# -- confounders -----------------------------------------------------------------------------------


@words(
    remarks.HostsDiffer,
    "environments differ in more than isolation: versions, limits not applied, quantities not metered",
)
def _(remark: remarks.HostsDiffer) -> str:
    return f"hosts: {_host_difference(remark.difference) if remark.difference else remark.sentence}"


def _host_difference(difference: HostDifference) -> str:
    if difference.kind == "clock":
        return f"the clock of host {difference.host} is {difference.ahead_s:+.3f} s off this machine's"
    if difference.kind == "fact":
        values = ", ".join(f"{host} {value}" for host, value in difference.values)
        return f"{difference.fact} differs: {values}"
    if difference.kind == "beside":
        runs = ", ".join(f"{run} ({directory})" if directory else run for run, directory in difference.values)
        if len(difference.values) > 1:
            number = len(difference.values)
            return (
                f"{number} other runs shared this machine, and each disturbed the others (--allow-concurrent): {runs}"
            )
        return f"another run shared this machine, and each disturbed the other (--allow-concurrent): {runs}"
    names = " and ".join(host for host, _ in difference.values)
    where = f"{names} share one machine's CPUs" if names else "all share this machine's CPUs"
    return f"{where}, so a sender's CPU also handles arriving packets"


@words(remarks.NotHonoured)
def _(remark: remarks.NotHonoured) -> str:
    whole = remark.why.startswith(remark.limit)  # as older runs have it
    why = remark.why if whole else f"{remark.limit}: {remark.why}"
    return f"{display_name(remark.environment)}: limit not applied: {why}"


@words(remarks.NotMetered)
def _(remark: remarks.NotMetered) -> str:
    return f"{display_name(remark.environment)}: not metered: {remark.quantity}: {remark.why}"


@words(remarks.OtherValue)
def _(remark: remarks.OtherValue) -> str:
    name, baseline = display_name(remark.environment), display_name(remark.baseline)
    if not remark.value and not remark.baseline_value:
        return f"{name} and {baseline} differ in {remark.fact}"
    return f"{remark.fact}: {remark.value or 'none'} in {name}, {remark.baseline_value or 'none'} in {baseline}"


@words(remarks.OwnOptions)
def _(remark: remarks.OwnOptions) -> str:
    return f"{display_name(remark.environment)}: own options in {', '.join(map(_options, remark.workloads))}"


def _options(own: tuple[str, Sequence[tuple[str, str]]]) -> str:
    workload, options = own
    return f"{workload} ({', '.join(f'{key}: {value}' for key, value in options)})"


# -- hypervisors, and what was never seen on real hardware -----------------------------------------


@words(
    remarks.Emulated,
    "measured under emulation: the cost is the emulator's, not real hardware's",
)
def _(remark: remarks.Emulated) -> str:
    layers = ", ".join(remark.layers)
    if remark.everywhere:
        return f"Everything was measured under emulation ({layers}). Real hardware would show different costs."
    begin = f"{join_names(remark.environments)}: measured under emulation ({layers})"
    if remark.baseline:
        baseline = display_name(remark.baseline)
        return f"{begin}. {baseline} is the baseline, so real hardware would show different costs."
    return f"{begin}. Their costs are the emulator's and do not apply to a hypervisor with hardware support."


@words(remarks.EmulatedCost)
def _(remark: remarks.EmulatedCost) -> str:
    layers = ", ".join(remark.layers)
    if remark.both:
        return f"both sides were emulated ({layers}): real hardware would show a different cost"
    return f"{display_name(remark.environment)} was emulated ({layers}): the cost is the emulator's"


@words(remarks.Unverified, "this kind of environment or host is untested on real hardware")
def _(remark: remarks.Unverified) -> str:
    who = display_name(remark.environment) or f"host {remark.host}"
    return f"{who}: untested on real hardware ({remark.what})"


@words(remarks.Nested, "measured on a host that is itself a guest: costs apply inside that machine")
def _(remark: remarks.Nested) -> str:
    if remark.everywhere:
        return f"Everything was measured on host {remark.host}, itself a guest: costs apply inside that machine"
    where = f"host {remark.host}, which is itself inside {' inside '.join(reversed(remark.layers))}"
    who = f"{join_names(remark.environments)}: " if remark.environments else "both were "
    return f"{who}measured on {where}: costs apply inside that machine"


@words(
    remarks.GuestTicks,
    "CPU time as an emulated host counts it: it can include time in which the host was not running",
)
def _(remark: remarks.GuestTicks) -> str:
    return (
        f"{display_name(remark.environment)}: its CPU time is what host {remark.host}'s kernel counted; that host is "
        "emulated and sees no steal, so the time might be too high"
    )
