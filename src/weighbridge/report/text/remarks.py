"""Remarks in words: the only place where one becomes a sentence, and where its code gets a meaning."""

import math
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import TypeVar

from weighbridge.analysis import remarks
from weighbridge.analysis.results import Remark
from weighbridge.model.facts import HostDifference
from weighbridge.model.flag import FlagCode
from weighbridge.report.text.environments import display_name, join_names
from weighbridge.report.text.formatting import difference_interval, noise_text, percent_interval, plain, share
from weighbridge.report.text.paths import difference_words, place_words
from weighbridge.report.text.trial_flags import flag_kind_text
from weighbridge.report.text.verdicts import LIMITS

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


def words(kind: type[Kind], meaning: str = "") -> Callable[[Sentence[Kind]], Sentence[Kind]]:
    """Register the sentence of a class of remarks; with what its code means, which the first class of a code says."""
    if meaning:
        CODES[kind.code] = meaning
    return remark_text.register(kind)


# -- about the blocks of a comparison --------------------------------------------------------------


@words(remarks.AAArm, "the row is the baseline measured a second time")
def _(remark: remarks.AAArm) -> str:
    return f"this is {display_name(remark.baseline)} itself, measured a second time"


@words(remarks.NoBlocks, "no block has a value of both sides, so there is no cost")
def _(_: remarks.NoBlocks) -> str:
    return "no block has a value of both sides, so there is no cost"


@words(remarks.OneBlock, "a single block: no interval can be given")
def _(_: remarks.OneBlock) -> str:
    return "one block gives no interval: run more"


@words(remarks.Exploratory, "fewer than ten blocks: the interval leans on normality")
def _(remark: remarks.Exploratory) -> str:
    return f"{remark.blocks} blocks: exploratory below ten"


@words(remarks.Incomplete, "fewer blocks than were planned or tried")
def _(remark: remarks.Incomplete) -> str:
    return f"{remark.blocks} of {remark.planned} blocks are complete"


@words(
    remarks.Extended,
    "the number of blocks was changed after looking: intervals and p-values are those of a further look",
)
def _(remark: remarks.Extended) -> str:
    how = "extended" if remark.blocks > remark.planned else "cut"
    at = " and ".join(map(str, remark.looked_after))
    text = f"{how} from {remark.planned} to {remark.blocks} blocks after looking at {at}"
    return f"{text}: after such looks more than 5 % of the verdicts are false alarms (about 7 % after one)"


# -- about its cost --------------------------------------------------------------------------------


@words(remarks.TargetMissed, "the precision that the study asked for was not reached")
def _(remark: remarks.TargetMissed) -> str:
    predicted = remark.predicted_blocks
    needed = f"; about {predicted} blocks would be needed" if predicted else ""
    width = share(remark.half_width) if math.isfinite(remark.half_width) else "no relative width"
    return f"target {share(remark.target)} not reached: {width} after {remark.blocks} blocks{needed}"


@words(
    remarks.AsDifference,
    "the cost is a difference in the unit: a count, a share, beyond a baseline, or a value was zero",
)
def _(remark: remarks.AsDifference) -> str:
    return f"the cost is a difference: {difference_interval(remark.difference, remark.unit)}"


@words(remarks.NotAfterHolm, "the interval excludes no cost, but not after correction for the number of comparisons")
def _(remark: remarks.NotAfterHolm) -> str:
    return f"not significant after Holm's correction (p = {plain(remark.adjusted_p, 2)})"


@words(
    remarks.Unproven,
    "the A/A arm shows a cost where there is none: of its kind of metric this session proves no cost",
)
def _(remark: remarks.Unproven) -> str:
    return "proven by nothing: this session's control shows a cost where there is none"


@words(
    remarks.WithinNoise,
    "resource use, or a cost of fewer than ten blocks, that is no larger than the A/A arm shows: never different",
)
def _(remark: remarks.WithinNoise) -> str:
    has_floor = remark.low is not None and remark.high is not None
    floor = f" of {noise_text((remark.low or 0.0, remark.high or 0.0))}" if has_floor else ""
    return f"no larger than this metric's noise floor{floor}"


@words(
    remarks.Identical,
    "every block says the same, but so few blocks may do so by chance: neither different nor equivalent",
)
def _(remark: remarks.Identical) -> str:
    return f"all {remark.blocks} blocks say the same: too few to rule out chance"


@words(remarks.Stalls, "the arithmetic cost's interval excludes the typical cost: a few runs are far from the others")
def _(remark: remarks.Stalls) -> str:
    mean = percent_interval(remark.mean_percent)
    return f"the mean cost is {mean}, far from the typical one: a few runs stall or spring ahead"


# -- about the values and trials of one environment ------------------------------------------------


@words(
    remarks.Selected,
    "more than one of ten trials failed: the cost is that of the runs that succeeded, never equivalent",
)
def _(remark: remarks.Selected) -> str:
    return f"{display_name(remark.environment)}: the cost is that of the runs that succeeded"


@words(remarks.Outliers, "values further than 5 * 1.4826 MAD from the median (kept); from eight values on")
def _(remark: remarks.Outliers) -> str:
    are = "is an outlier" if remark.outliers == 1 else "are outliers"
    return f"{display_name(remark.environment)}: {remark.outliers} of {remark.runs} runs {are} (kept)"


@words(remarks.DelayedAck, "a latency stands at the time for which Linux holds acknowledgements back, with CPUs idle")
def _(remark: remarks.DelayedAck) -> str:
    name, milliseconds = display_name(remark.environment), plain(1000 * remark.seconds)
    return (
        f"{name}: {milliseconds} ms with idle CPUs looks like a delayed acknowledgement (40 ms): one side waits for "
        "the other's, which TCP_NODELAY avoids"
    )


@words(remarks.Drift, "values rise or fall in the order in which they ran (Kendall's tau, p < 0.01)")
def _(remark: remarks.Drift) -> str:
    way = "up" if remark.tau > 0 else "down"
    return f"{display_name(remark.environment)} drifts {way} during the session (tau {remark.tau:+.2f})"


@words(remarks.Autocorrelation, "successive values resemble one another (rank von Neumann ratio, p < 0.01)")
def _(remark: remarks.Autocorrelation) -> str:
    return f"{display_name(remark.environment)}: successive runs resemble one another"


@words(
    remarks.BrokeUnderLoad,
    "the load was more than the server bears: a result, never equivalent; the cost is that of other blocks",
)
def _(remark: remarks.BrokeUnderLoad) -> str:
    broke, begin = remark.broke, f"{display_name(remark.environment)}:"
    if broke.always:
        return f"{begin} broke in every trial ({broke.trials}): {broke.reason}"
    text = f"measured in {broke.measured} of {broke.measured + broke.lost} blocks; broke in {broke.lost}"
    return f"{begin} {text} ({broke.reason}): the cost is that of the others"


@words(remarks.FailedTrials, "trials that gave no measurement")
def _(remark: remarks.FailedTrials) -> str:
    how = ", ".join(f"{count} {outcome}" for outcome, count in remark.outcomes)
    failed = sum(count for _, count in remark.outcomes)
    return f"{display_name(remark.environment)}: {failed} of {remark.trials} trials failed ({how})"


@words(remarks.ProgramErrors, "trials whose program reported errors beside its result")
def _(remark: remarks.ProgramErrors) -> str:
    return _flagged(remark)


@words(remarks.FlaggedTrials, "trials that were flagged when they ran (steal, throttling, pressure, saturation)")
def _flagged(remark: remarks.FlaggedTrials) -> str:
    text = flag_kind_text(remark.flag, remark.figures)
    return f"{display_name(remark.environment)}: {text} in {remark.count} of {remark.trials} trials"


# -- about what was measured under which conditions ------------------------------------------------


@words(
    remarks.FewReadings,
    "the trials are so short that the meters read only a few times in each: means and peaks are chance",
)
def _(remark: remarks.FewReadings) -> str:
    count = remark.readings
    read = f"about {count} reading{'' if count == 1 else 's'}" if count else "hardly one reading"
    if remark.chosen:
        return f"meters at {remark.hz:g} Hz had {read} in each trial, which were made short: a peak may be missed"
    begin = f"trials are too short for meters at {remark.hz:g} Hz ({read} in each)"
    if remark.wanted_hz is None:
        return f"{begin}: a peak may be missed"
    return f"{begin}: raise meters: {{hz: {remark.wanted_hz}}}"


@words(
    remarks.Unresolved, "memory per site is zero or less in some trials: less than the machine's own memory varies"
)
def _(remark: remarks.Unresolved) -> str:
    return (
        f"{display_name(remark.environment)}: memory per site is zero or less in {remark.count} of {remark.trials} "
        "trials: it is the growth of the whole machine's used memory, and values around zero are below what that can "
        "resolve"
    )


@words(remarks.OtherPacketSize, "measured with other packet sizes than the baseline: part of the cost may be theirs")
def _(remark: remarks.OtherPacketSize) -> str:
    return f"measured with other packet sizes: {remark.size} against {remark.baseline_size}"


@words(remarks.PacketSizes)
def _(remark: remarks.PacketSizes) -> str:
    sizes = (
        f"packets of {each.size}, but {each.baseline_size} in {display_name(remark.baseline)} ({', '.join(labels)})"
        for each, labels in remark.sizes
    )
    return f"{display_name(remark.environment)}: {'; '.join(sizes)}"


@words(
    remarks.Capped,
    "a limit, such as a full cable, held one of the two sides back and not the other: part of the cost",
)
def _(remark: remarks.Capped) -> str:
    where = f"{LIMITS[FlagCode(remark.limit)]} in {remark.trials} of {remark.of} trials"
    then = "larger" if remark.of_baseline else "smaller"
    return f"{display_name(remark.environment)} was limited by {where}: without that the cost would be {then}"


@words(
    remarks.Fragments, "one side's datagrams are larger than its path carries in one piece: that is part of the cost"
)
def _(remark: remarks.Fragments) -> str:
    sizes = f"{remark.size} B, of which its path carries {remark.in_one_piece} B at once"
    return f"each datagram of {display_name(remark.environment)} goes in pieces: {sizes}"


@words(
    remarks.OtherPath,
    "its network path differs from the baseline's besides the isolation: part of the cost may be the path's",
)
def _(remark: remarks.OtherPath) -> str:
    text = difference_words(remark.difference)
    if not remark.environments:
        return f"another network path: {text}"
    where = f", {place_words(remark.place)}" if remark.place else ""
    return f"{join_names(remark.environments)}{where}: {text}"


@words(remarks.PathsUnrecorded)
def _(_: remarks.PathsUnrecorded) -> str:
    return "the network paths were not recorded: whether they differ between the environments is not known"


@words(remarks.NoPath, "the network path of one of the two is not known: never different, never equivalent")
def _(_: remarks.NoPath) -> str:
    return "the network path of one of the two is not known: no verdict"


@words(
    remarks.InterruptTimeApart,
    "a site's own CPU time leaves out the network stack's interrupts here: read cpu_all_per_*",
)
def _(remark: remarks.InterruptTimeApart) -> str:
    where = "not in this figure" if remark.sure else "perhaps not in this figure"
    return f"the network stack's interrupt time is {where}: read the CPU of all of the machine"


@words(
    remarks.OtherDurability,
    "it keeps less, or more, of what it acknowledged than the baseline does: never equivalent",
)
def _(remark: remarks.OtherDurability) -> str:
    mine, other = (each or "unknown" for each in (remark.durability, remark.baseline_durability))
    text = f"durability {mine}, but {other} in {display_name(remark.baseline)}"
    return f"{display_name(remark.environment)}: {text} ({', '.join(remark.labels)})" if remark.environment else text


# -- confounders -----------------------------------------------------------------------------------


@words(
    remarks.HostsDiffer,
    "something besides the isolation differs: versions, limits that could not be honoured, what is not metered",
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
        return f"this machine was shared with another run, each of them noise for the other (--beside-others): {runs}"
    return "those made on this machine share its CPUs: a packet's arrival is partly worked off on its sender's CPU"


@words(remarks.NotHonoured)
def _(remark: remarks.NotHonoured) -> str:
    whole = remark.why.startswith(remark.limit)  # as older runs have it
    why = remark.why if whole else f"{remark.limit}: {remark.why}"
    return f"{display_name(remark.environment)}: not honoured: {why}"


@words(remarks.NotMetered)
def _(remark: remarks.NotMetered) -> str:
    return f"{display_name(remark.environment)}: not metered: {remark.quantity}: {remark.why}"


@words(remarks.OtherValue)
def _(remark: remarks.OtherValue) -> str:
    how = f"{remark.value or 'none'}, but {remark.baseline_value or 'none'} in {display_name(remark.baseline)}"
    how = how if remark.value or remark.baseline_value else f"not the same as in {display_name(remark.baseline)}"
    return f"{display_name(remark.environment)}: {remark.fact}: {how}"


@words(remarks.OwnOptions)
def _(remark: remarks.OwnOptions) -> str:
    return f"{display_name(remark.environment)}: options of its own in {', '.join(map(_options, remark.workloads))}"


def _options(own: tuple[str, Sequence[tuple[str, str]]]) -> str:
    workload, options = own
    return f"{workload} ({', '.join(f'{key}: {value}' for key, value in options)})"


# -- hypervisors, and what was never seen on real hardware -----------------------------------------


@words(
    remarks.Emulated,
    "measured under emulation: the cost is the emulator's, or of emulated against emulated: not real hardware's",
)
def _(remark: remarks.Emulated) -> str:
    begin = f"{join_names(remark.environments)}: measured under emulation ({', '.join(remark.layers)})"
    if remark.baseline:
        return (
            f"{begin}: as {display_name(remark.baseline)} is the baseline, each cost is the emulator's or compares "
            "emulated with emulated, and is not what real hardware would show"
        )
    return (
        f"{begin}: what they cost is the emulator's on this machine, and says nothing of a hypervisor with hardware "
        "support"
    )


@words(remarks.EmulatedCost)
def _(remark: remarks.EmulatedCost) -> str:
    layers = ", ".join(remark.layers)
    if remark.both:
        return f"both sides were measured under emulation ({layers}): the cost is not what real hardware would show"
    return f"{display_name(remark.environment)}: measured under emulation ({layers}): the cost is the emulator's"


@words(remarks.Unverified, "an environment or a host of a kind that was never seen to work on real hardware")
def _(remark: remarks.Unverified) -> str:
    who = display_name(remark.environment) or f"host {remark.host}"
    return f"{who}: unverified on real hardware: {remark.what}"


@words(remarks.Nested, "measured on a host that is itself a guest: the cost is one inside of that machine")
def _(remark: remarks.Nested) -> str:
    where = f"host {remark.host}, which is itself inside {' inside '.join(reversed(remark.layers))}"
    who = f"{join_names(remark.environments)}: " if remark.environments else "both were "
    return f"{who}measured on {where}: costs are those inside of that machine"


@words(remarks.GuestTicks, "CPU time as an emulated host counts it, which may hold time in which it was not let run")
def _(remark: remarks.GuestTicks) -> str:
    return (
        f"{display_name(remark.environment)}: its CPU time is what the kernel of host {remark.host} counted, "
        "which its emulator tells of no steal: time in which this machine did not let it run may be in it"
    )
