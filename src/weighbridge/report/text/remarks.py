"""Remarks in words: the only module that turns a remark into a sentence and a code into its meaning."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import TypeVar

from weighbridge.analysis.part_cost import PartCost
from weighbridge.analysis.remarks.confounders import (
    HostsDiffer,
    IoUringRefused,
    NotCovered,
    NotHonoured,
    NotMetered,
    OtherDurability,
    OtherValue,
    OwnOptions,
)
from weighbridge.analysis.remarks.cost import (
    AsDifference,
    Identical,
    NotAfterHolm,
    Stalls,
    TargetMissed,
    Unproven,
    WithinNoise,
)
from weighbridge.analysis.remarks.entry import EntryAndSteady
from weighbridge.analysis.remarks.flags import FlaggedTrials, ProgramErrors
from weighbridge.analysis.remarks.hypervisors import Emulated, EmulatedCost, Nested, Unverified
from weighbridge.analysis.remarks.meters import FewReadings, GuestTicks, InterruptTimeApart, Unresolved
from weighbridge.analysis.remarks.network import (
    Capped,
    DelayedAck,
    Fragments,
    NoPath,
    OtherPacketSize,
    OtherPath,
    PacketSizes,
    PathsUnrecorded,
)
from weighbridge.analysis.remarks.rounds import (
    AAArm,
    Exploratory,
    Extended,
    Incomplete,
    NoBlocks,
    OneBlock,
    Unfinished,
)
from weighbridge.analysis.remarks.rules import AboutEnvironment
from weighbridge.analysis.remarks.trials import (
    Autocorrelation,
    BrokeUnderLoad,
    Drift,
    FailedTrials,
    FixedTime,
    Outliers,
    Selected,
)
from weighbridge.analysis.results import DECIDED, EXTENDED_ERROR, Remark
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
from weighbridge.report.text.verdicts import LIMITS, verdict_word
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
    """Return remarks as sentences; remarks that differ only in their environment share one sentence."""
    return joint_texts((each, "") for each in several)


def joint_texts(remarks_of: Iterable[tuple[Remark, str]], compared: int = 0) -> list[str]:
    """Return the remarks of comparisons as sentences, each with the environment of its comparison.

    Remarks that differ only in their environment share a sentence. It names the environments, unless they are all
    that are `compared`.
    """
    groups: dict[Hashable, list[tuple[Remark, str]]] = {}
    for remark, environment in remarks_of:
        groups.setdefault(_shared(remark), []).append((remark, environment))
    return [_joint_text(mine, compared) for mine in groups.values()]


def _about(remark: Remark, environment: str) -> Remark:
    """Return a remark about another environment, or about several."""
    return replace(remark, environment=environment) if isinstance(remark, AboutEnvironment) else remark


def _shared(remark: Remark) -> Hashable:
    """Return what remarks that share a sentence have in common."""
    if isinstance(remark, AsDifference):  # the costs themselves are in the table next to it
        return remark.code
    return _about(remark, "") if remark.subject else remark


def _joint_text(group: Sequence[tuple[Remark, str]], compared: int) -> str:
    first = group[0][0]
    about = [each for each in dict.fromkeys(remark for remark, _ in group) if isinstance(each, AboutEnvironment)]
    names = join_names(
        dict.fromkeys(each.environment for each in about) or [*filter(None, (name for _, name in group))]
    )
    if about:
        return remark_text(_about(first, names) if len(about) > 1 else first)
    text = CODES[first.code] if isinstance(first, AsDifference) else remark_text(first)
    return text if not names or len(group) == compared else f"{names}: {text}"


def words(kind: type[Kind], meaning: str = "") -> Callable[[Sentence[Kind]], Sentence[Kind]]:
    """Register the sentence of a class of remarks, and with the first class of a code also its `meaning`."""
    if meaning:
        CODES[kind.code] = meaning
    return remark_text.register(kind)


# -- about the rounds of a comparison --------------------------------------------------------------


@words(AAArm, "the row is the control: the baseline measured a second time")
def _(remark: AAArm) -> str:
    return f"this is the control: {display_name(remark.baseline)} measured a second time"


@words(NoBlocks, "no round measured both sides: no cost")
def _(_: NoBlocks) -> str:
    return "no round measured both sides, so there is no cost"


@words(OneBlock, "one round: no interval")
def _(_: OneBlock) -> str:
    return "one round gives no interval; run more"


@words(Exploratory, "fewer than ten rounds: the interval assumes a normal distribution")
def _(remark: Exploratory) -> str:
    return f"exploratory: {remark.rounds} rounds, fewer than ten"


@words(Incomplete, "fewer complete rounds than planned or tried")
def _(remark: Incomplete) -> str:
    return f"{remark.rounds} of {remark.planned} rounds are complete"


@words(FixedTime, "a program seems to run for a fixed time, so its run time cannot show a cost")
def _(remark: FixedTime) -> str:
    return (
        f"{remark.label} took {quantity(remark.seconds, 's')} in most trials. It seems to run for a fixed time, so "
        "its run time cannot show a cost. Give it a fixed amount of work, or use --metric."
    )


@words(
    Extended,
    "the number of rounds was changed after looking at the results: more than 5% false alarms",
)
def _(remark: Extended) -> str:
    how = "extended" if remark.rounds > remark.planned else "shortened"
    at = " and ".join(map(str, remark.looked_after))
    text = f"{how} from {remark.planned} to {remark.rounds} rounds after looking at the results of {at}"
    gate = ". Gates have an error rate of their own, so their intervals can be narrower" if remark.by_gate else ""
    alarms = f"up to about {level(EXTENDED_ERROR)} of such runs have a false alarm, instead of {level(ALPHA)}"
    return f"{text}: {alarms}{gate}"


@words(
    Unfinished,
    "not finished: intervals are wider than at the end, because you can look at any time",
)
def _(remark: Unfinished) -> str:
    of_planned = f" of {remark.planned}" if remark.planned else ""
    text = f"not finished: in round {remark.rounds}{of_planned}"
    return f"{text}; intervals are wider than at the end, because you can look at any time"


# -- about its cost --------------------------------------------------------------------------------


@words(TargetMissed, "the study's target precision was not reached")
def _(remark: TargetMissed) -> str:
    predicted = remark.predicted_rounds
    number = f"about {predicted}" if predicted and predicted <= MOST_BLOCKS else f"more than {MOST_BLOCKS}"
    needed = f"; it needs {number} rounds" if predicted else ""
    return f"target {share(remark.target)} not reached: {_width(remark)} after {remark.rounds} rounds{needed}"


def _width(remark: TargetMissed) -> str:
    return share(remark.half_width) if math.isfinite(remark.half_width) else "no relative width"


@words(
    AsDifference,
    "the cost is a difference, not a percentage: a count, a share, or a value was not positive",
)
def _(remark: AsDifference) -> str:
    return f"the cost is a difference: {difference_interval(remark.difference, remark.unit)}"


@words(NotAfterHolm, "the interval excludes zero, but the cost is not significant after Holm's correction")
def _(remark: NotAfterHolm) -> str:
    return f"not significant after Holm's correction (p = {plain(remark.adjusted_p, 2)})"


@words(
    Unproven,
    "the control failed, so this run cannot show a cost in metrics of this kind",
)
def _(remark: Unproven) -> str:
    return "no verdict: the control failed"


@words(
    WithinNoise,
    "no larger than the noise floor: never significant (resource use, fewer than ten rounds, a disturbed run)",
)
def _(remark: WithinNoise) -> str:
    has_floor = remark.low is not None and remark.high is not None
    floor = f" of {noise_text((remark.low or 0.0, remark.high or 0.0))}" if has_floor else ""
    return f"within this metric's noise floor{floor}"


@words(
    Identical,
    "all rounds agree, but so few could agree by chance: undecided",
)
def _(remark: Identical) -> str:
    return f"all {remark.rounds} rounds agree, but so few could agree by chance"


@words(Stalls, "a few slow or fast trials pull the average away from the typical cost")
def _(remark: Stalls) -> str:
    mean, typical = remark.mean_percent, remark.typical_percent
    what = "slow trials raise" if mean.estimate > typical.estimate else "trials lower"
    return (
        f"a few {what} the average cost to {percent_interval(mean)}; a typical trial pays {percent_interval(typical)}"
    )


@words(EntryAndSteady, "the cost of starting a command in a sandbox, and the cost of the running program")
def _(remark: EntryAndSteady) -> str:
    name = display_name(remark.environment)
    entry = _part_text("starting a command", "entry, once per start", remark.entry)
    return f"{name}: {entry}; {_part_text('running it', 'steady', remark.steady)}"


def _part_text(what: str, kind: str, part: PartCost) -> str:
    """Return a part as a cost if its comparison is decided, and otherwise that it is not."""
    interval = percent_interval(part.cost) if part.unit == "%" else difference_interval(part.cost, part.unit)
    word = verdict_word(part.verdict, part.margin)
    if part.verdict not in DECIDED:
        return f"the cost of {what} ({kind}) is {word}: {interval}"
    times = f"{quantity(part.value, 's')} instead of {quantity(part.baseline_value, 's')}"
    return f"{what} costs {interval}, {word} ({kind}: {times})"


# -- about the values and trials of one environment ------------------------------------------------


@words(
    Selected,
    "more than one trial in ten failed: the cost covers successful runs only, and is never equivalent",
)
def _(remark: Selected) -> str:
    return f"{display_name(remark.environment)}: the cost covers successful runs only"


@words(Outliers, "values more than 5 * 1.4826 MAD from the median, kept; tested from eight values on")
def _(remark: Outliers) -> str:
    are = "is an outlier" if remark.outliers == 1 else "are outliers"
    return f"{display_name(remark.environment)}: {remark.outliers} of {remark.runs} trials {are} (kept)"


@words(DelayedAck, "a latency equals the time for which Linux delays acknowledgements, with idle CPUs")
def _(remark: DelayedAck) -> str:
    name, milliseconds = display_name(remark.environment), plain(1000 * remark.seconds)
    return (
        f"{name}: {milliseconds} ms with idle CPUs looks like a delayed acknowledgement (40 ms), which TCP_NODELAY "
        "avoids"
    )


@words(Drift, "values rise or fall over the run (Kendall's tau, p < 0.01)")
def _(remark: Drift) -> str:
    way = "up" if remark.tau > 0 else "down"
    return f"{display_name(remark.environment)}: values drift {way} during the run (tau {remark.tau:+.2f})"


@words(Autocorrelation, "successive values are correlated (rank von Neumann ratio, p < 0.01)")
def _(remark: Autocorrelation) -> str:
    return f"{display_name(remark.environment)}: successive trials are correlated"


@words(
    BrokeUnderLoad,
    "the server was overloaded: a result, never equivalent; the cost covers the other rounds",
)
def _(remark: BrokeUnderLoad) -> str:
    broke, begin = remark.overloaded, f"{display_name(remark.environment)}:"
    if broke.always:
        return f"{begin} overloaded in every trial ({broke.trials}): {broke.reason}"
    text = f"measured in {broke.measured} of {broke.measured + broke.lost} rounds, overloaded in {broke.lost}"
    return f"{begin} {text} ({broke.reason}): the cost covers the measured rounds"


@words(FailedTrials, "trials without a measurement")
def _(remark: FailedTrials) -> str:
    how = ", ".join(f"{count} {outcome}" for outcome, count in remark.outcomes)
    failed = sum(count for _, count in remark.outcomes)
    return f"{display_name(remark.environment)}: {failed} of {remark.trials} trials failed ({how})"


@words(ProgramErrors, "trials whose program also reported errors")
def _(remark: ProgramErrors) -> str:
    return _flagged(remark)


@words(FlaggedTrials, "trials flagged while they ran (steal, throttled, pressure, saturation)")
def _flagged(remark: FlaggedTrials) -> str:
    text = flag_kind_text(remark.flag, remark.figures)
    return f"{display_name(remark.environment)}: {text} in {remark.count} of {remark.trials} trials"


# -- about what was measured under which conditions ------------------------------------------------


@words(
    FewReadings,
    "trials too short for the meters: a few readings each, so a peak can be missed",
)
def _(remark: FewReadings) -> str:
    count = remark.readings
    read = f"about {count} reading{'' if count == 1 else 's'}" if count else "hardly one reading"
    if remark.chosen:
        return f"shortened trials: {read} each at {remark.hz:g} Hz, so a peak can be missed"
    begin = f"trials are too short for meters at {remark.hz:g} Hz ({read} each)"
    if remark.wanted_hz is None:
        return f"{begin}: a peak can be missed"
    return f"{begin}: raise meters: {{hz: {remark.wanted_hz}}}"


@words(Unresolved, "memory per instance is zero or less in some trials: too little for this meter")
def _(remark: Unresolved) -> str:
    return (
        f"{display_name(remark.environment)}: memory per instance is zero or less in {remark.count} of "
        f"{remark.trials} "
        "trials: too little to show in the machine's used memory"
    )


@words(OtherPacketSize, "packet sizes differ from the baseline's: part of the cost can come from that")
def _(remark: OtherPacketSize) -> str:
    return f"packets of {remark.size}; the baseline's are {remark.baseline_size}"


@words(PacketSizes)
def _(remark: PacketSizes) -> str:
    sizes = (
        f"packets of {each.size}, but {each.baseline_size} in {display_name(remark.baseline)} ({', '.join(labels)})"
        for each, labels in remark.sizes
    )
    return f"{display_name(remark.environment)}: {'; '.join(sizes)}"


@words(
    Capped,
    "a limit, such as a full cable, held back only one side: it is part of the cost",
)
def _(remark: Capped) -> str:
    where = f"{LIMITS[FlagCode(remark.limit)]} in {remark.trials} of {remark.total} trials"
    then = "larger" if remark.of_baseline else "smaller"
    return f"{display_name(remark.environment)} was limited by {where}: the cost would be {then} without it"


@words(Fragments, "one side's datagrams are fragmented: that is part of the cost")
def _(remark: Fragments) -> str:
    sizes = f"{remark.size} B each, {remark.in_one_piece} B fit its path"
    return f"datagrams of {display_name(remark.environment)} are fragmented: {sizes}"


@words(
    OtherPath,
    "its network path differs from the baseline's in more than isolation: part of the cost can come from the path",
)
def _(remark: OtherPath) -> str:
    text = difference_words(remark.difference)
    if not remark.environments:
        return f"different network path: {text}"
    where = f", {place_words(remark.place)}" if remark.place else ""
    return f"{join_names(remark.environments)}{where}: {text}"


@words(PathsUnrecorded)
def _(_: PathsUnrecorded) -> str:
    return "network paths were not recorded, so they might differ between environments"


@words(NoPath, "a network path is unknown: never significant, never equivalent")
def _(_: NoPath) -> str:
    return "no verdict: a network path is unknown"


@words(
    InterruptTimeApart,
    "an environment's own CPU time leaves out the network stack's interrupts here; read cpu_all_per_*",
)
def _(remark: InterruptTimeApart) -> str:
    is_ = "is not" if remark.sure else "might not be"
    return f"the network stack's interrupt time {is_} in this figure; read the CPU of the whole machine"


@words(
    OtherDurability,
    "its durability differs from the baseline's: never equivalent",
)
def _(remark: OtherDurability) -> str:
    mine, other = (each or "unknown" for each in (remark.durability, remark.baseline_durability))
    text = f"durability {mine}, {'and' if mine == other else 'but'} {other} in {display_name(remark.baseline)}"
    return f"{display_name(remark.environment)}: {text} ({', '.join(remark.labels)})" if remark.environment else text


# -- confounders -----------------------------------------------------------------------------------


@words(
    HostsDiffer,
    "environments differ in more than isolation: versions, limits not applied, quantities not metered",
)
def _(remark: HostsDiffer) -> str:
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


@words(NotHonoured)
def _(remark: NotHonoured) -> str:
    whole = remark.reason.startswith(remark.limit)  # as older runs have it
    why = remark.reason if whole else f"{remark.limit}: {remark.reason}"
    return f"{display_name(remark.environment)}: limit not applied: {why}"


@words(NotCovered)
def _(remark: NotCovered) -> str:
    return f"{display_name(remark.environment)}: its policy differs ({remark.part}): {remark.instead}"


@words(NotMetered)
def _(remark: NotMetered) -> str:
    return f"{display_name(remark.environment)}: not metered: {remark.quantity}: {remark.reason}"


@words(OtherValue)
def _(remark: OtherValue) -> str:
    name, baseline = display_name(remark.environment), display_name(remark.baseline)
    if not remark.value and not remark.baseline_value:
        return f"{name} and {baseline} differ in {remark.fact}"
    return f"{remark.fact}: {remark.value or 'none'} in {name}; {remark.baseline_value or 'none'} in {baseline}"


@words(IoUringRefused)
def _(remark: IoUringRefused) -> str:
    refusing, allowing = display_name(remark.refusing), display_name(remark.allowing)
    return (
        f"io_uring is {remark.state} in {refusing}, and allowed in {allowing}: programs that would use it make other "
        f"system calls in {refusing}, often without a message"
    )


@words(OwnOptions)
def _(remark: OwnOptions) -> str:
    return f"{display_name(remark.environment)}: own options in {', '.join(map(_options, remark.workloads))}"


def _options(own: tuple[str, Sequence[tuple[str, str]]]) -> str:
    workload, options = own
    return f"{workload} ({', '.join(f'{key}: {value}' for key, value in options)})"


# -- hypervisors, and what was never seen on real hardware -----------------------------------------


@words(
    Emulated,
    "measured under emulation: the cost is the emulator's, not real hardware's",
)
def _(remark: Emulated) -> str:
    layers = ", ".join(remark.layers)
    if remark.everywhere:
        return f"Everything was measured under emulation ({layers}). Real hardware would show different costs."
    begin = f"{join_names(remark.environments)}: measured under emulation ({layers})"
    if remark.baseline:
        baseline = display_name(remark.baseline)
        return f"{begin}. {baseline} is the baseline, so real hardware would show different costs."
    return f"{begin}. Their costs are the emulator's and do not apply to a hypervisor with hardware support."


@words(EmulatedCost)
def _(remark: EmulatedCost) -> str:
    layers = ", ".join(remark.layers)
    if remark.both:
        return f"both sides were emulated ({layers}): real hardware would show a different cost"
    return f"{display_name(remark.environment)} was emulated ({layers}): the cost is the emulator's"


@words(Unverified, "this kind of environment or host is untested on real hardware")
def _(remark: Unverified) -> str:
    who = display_name(remark.environment) or f"host {remark.host}"
    return f"{who}: untested on real hardware ({remark.part})"


@words(Nested, "measured on a host that is itself a guest: costs apply inside that machine")
def _(remark: Nested) -> str:
    if remark.everywhere:
        return f"Everything was measured on host {remark.host}, itself a guest: costs apply inside that machine"
    where = f"host {remark.host}, which is itself inside {' inside '.join(reversed(remark.layers))}"
    who = f"{join_names(remark.environments)}: " if remark.environments else "both were "
    return f"{who}measured on {where}: costs apply inside that machine"


@words(
    GuestTicks,
    "CPU time as an emulated host counts it: it can include time in which the host was not running",
)
def _(remark: GuestTicks) -> str:
    return (
        f"{display_name(remark.environment)}: its CPU time is what host {remark.host}'s kernel counted; that host is "
        "emulated and sees no steal, so the time might be too high"
    )
