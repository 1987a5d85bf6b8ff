"""Remarks in words: the only place where one becomes a sentence."""

import math
from collections.abc import Sequence
from functools import singledispatch

from weighbridge.analysis.condition_remarks import (
    FewReadings,
    HostsDiffer,
    InterruptTimeApart,
    NoPath,
    NotHonoured,
    NotMetered,
    OtherDurability,
    OtherPacketSize,
    OtherPath,
    OtherValue,
    OwnOptions,
    PacketSizes,
    PathsUnrecorded,
)
from weighbridge.analysis.remarks import (
    AAArm,
    AsDifference,
    Autocorrelation,
    BrokeUnderLoad,
    Drift,
    Exploratory,
    Extended,
    FailedTrials,
    FlaggedTrials,
    Identical,
    Incomplete,
    NoBlocks,
    NotAfterHolm,
    OneBlock,
    Outliers,
    Remark,
    Selected,
    Stalls,
    TargetMissed,
    WithinNoise,
)
from weighbridge.model.facts import HostDifference
from weighbridge.report.text.formatting import difference_interval, noise_text, percent_interval, plain, share
from weighbridge.report.text.notices import NOTICES
from weighbridge.report.text.paths import difference_words, place_words
from weighbridge.report.text.trial_flags import flag_kind_text


def coded_text(remark: Remark) -> str:
    """Return a remark with its code before it, as machines get it."""
    return f"{remark.code}: {remark_text(remark)}"


@singledispatch
def remark_text(remark: Remark) -> str:
    """Return a remark as a sentence."""
    raise TypeError(f"{type(remark).__name__} has no words")


# -- about the blocks of a comparison --------------------------------------------------------------


@remark_text.register
def _(remark: AAArm) -> str:
    return f"this is {remark.baseline} itself, measured a second time"


@remark_text.register
def _(_: NoBlocks) -> str:
    return "no block has a value of both sides, so there is no cost"


@remark_text.register
def _(_: OneBlock) -> str:
    return "one block gives no interval: run more"


@remark_text.register
def _(remark: Exploratory) -> str:
    return f"{remark.blocks} blocks: exploratory below ten"


@remark_text.register
def _(remark: Incomplete) -> str:
    return f"{remark.blocks} of {remark.planned} blocks are complete"


@remark_text.register
def _(remark: Extended) -> str:
    how = "extended" if remark.blocks > remark.planned else "cut"
    at = " and ".join(map(str, remark.looked_after))
    text = f"{how} from {remark.planned} to {remark.blocks} blocks after looking at {at}"
    return f"{text}: after such looks more than 5 % of the verdicts are false alarms (about 7 % after one)"


# -- about its cost --------------------------------------------------------------------------------


@remark_text.register
def _(remark: TargetMissed) -> str:
    predicted = remark.predicted_blocks
    needed = f"; about {predicted} blocks would be needed" if predicted else ""
    width = share(remark.half_width) if math.isfinite(remark.half_width) else "no relative width"
    return f"target {share(remark.target)} not reached: {width} after {remark.blocks} blocks{needed}"


@remark_text.register
def _(remark: AsDifference) -> str:
    return f"the cost is a difference: {difference_interval(remark.difference, remark.unit)}"


@remark_text.register
def _(remark: Identical) -> str:
    return f"all {remark.blocks} blocks say the same: too few to rule out chance"


@remark_text.register
def _(remark: NotAfterHolm) -> str:
    return f"not significant after Holm's correction (p = {plain(remark.adjusted_p, 2)})"


@remark_text.register
def _(remark: WithinNoise) -> str:
    known = remark.low is not None and remark.high is not None
    floor = f" of {noise_text((remark.low or 0.0, remark.high or 0.0))}" if known else ""
    return f"no larger than this metric's noise floor{floor}"


@remark_text.register
def _(remark: Stalls) -> str:
    mean = percent_interval(remark.mean_percent)
    return f"the mean cost is {mean}, far from the typical one: a few runs stall or spring ahead"


# -- about the values and trials of one environment ------------------------------------------------


@remark_text.register
def _(remark: Outliers) -> str:
    are = "is an outlier" if remark.outliers == 1 else "are outliers"
    return f"{remark.environment}: {remark.outliers} of {remark.runs} runs {are} (kept)"


@remark_text.register
def _(remark: Drift) -> str:
    way = "up" if remark.tau > 0 else "down"
    return f"{remark.environment} drifts {way} during the session (tau {remark.tau:+.2f})"


@remark_text.register
def _(remark: Autocorrelation) -> str:
    return f"{remark.environment}: successive runs resemble one another"


@remark_text.register
def _(remark: BrokeUnderLoad) -> str:
    broke, begin = remark.broke, f"{remark.environment}:"
    if broke.always:
        return f"{begin} broke in every trial ({broke.trials}): {broke.reason}"
    text = f"measured in {broke.measured} of {broke.measured + broke.lost} blocks; broke in {broke.lost}"
    return f"{begin} {text} ({broke.reason}): the cost is that of the others"


@remark_text.register
def _(remark: FailedTrials) -> str:
    how = ", ".join(f"{count} {outcome}" for outcome, count in remark.outcomes)
    failed = sum(count for _, count in remark.outcomes)
    return f"{remark.environment}: {failed} of {remark.trials} trials failed ({how})"


@remark_text.register
def _(remark: Selected) -> str:
    return f"{remark.environment}: the cost is that of the runs that succeeded"


@remark_text.register
def _(remark: FlaggedTrials) -> str:
    text = flag_kind_text(remark.flag, remark.figures)
    return f"{remark.environment}: {text} in {remark.count} of {remark.trials} trials"


# -- about what was measured under which conditions ------------------------------------------------


@remark_text.register
def _(remark: FewReadings) -> str:
    count = remark.readings
    read = f"about {count} reading{'' if count == 1 else 's'}" if count else "hardly one reading"
    if remark.chosen:
        return f"meters at {remark.hz:g} Hz had {read} in each trial, which were made short: a peak may be missed"
    begin = f"trials are too short for meters at {remark.hz:g} Hz ({read} in each)"
    if remark.wanted_hz is None:
        return f"{begin}: a peak may be missed"
    return f"{begin}: raise meters: {{hz: {remark.wanted_hz}}}"


@remark_text.register
def _(remark: InterruptTimeApart) -> str:
    where = "not in this figure" if remark.sure else "perhaps not in this figure"
    return f"the network stack's interrupt time is {where}: read the CPU of all of the machine"


@remark_text.register
def _(_: NoPath) -> str:
    return "the network path of one of the two is not known: no verdict"


@remark_text.register
def _(remark: OtherPath) -> str:
    text = difference_words(remark.difference)
    if not remark.environments:
        return f"another network path: {text}"
    where = f", {place_words(remark.place)}" if remark.place else ""
    return f"{', '.join(remark.environments)}{where}: {text}"


@remark_text.register
def _(_: PathsUnrecorded) -> str:
    return "the network paths were not recorded: whether they differ between the environments is not known"


@remark_text.register
def _(remark: OtherPacketSize) -> str:
    return f"measured with other packet sizes: {remark.size} against {remark.baseline_size}"


@remark_text.register
def _(remark: PacketSizes) -> str:
    told = (
        f"packets of {each.size}, but {each.baseline_size} in {remark.baseline} ({', '.join(labels)})"
        for each, labels in remark.sizes
    )
    return f"{remark.environment}: {'; '.join(told)}"


@remark_text.register
def _(remark: OtherDurability) -> str:
    mine, other = (each or "unknown" for each in (remark.durability, remark.baseline_durability))
    text = f"durability {mine}, but {other} in {remark.baseline}"
    return f"{remark.environment}: {text} ({', '.join(remark.labels)})" if remark.environment else text


# -- confounders -----------------------------------------------------------------------------------


@remark_text.register
def _(remark: HostsDiffer) -> str:
    return f"hosts: {_host_difference(remark.difference) if remark.difference else remark.sentence}"


def _host_difference(difference: HostDifference) -> str:
    if difference.kind == "clock":
        return f"the clock of host {difference.host} is {difference.ahead_s:+.3f} s off this machine's"
    if difference.kind == "fact":
        values = ", ".join(f"{host} {value}" for host, value in difference.values)
        return f"{difference.fact} differs: {values}"
    return "those made on this machine share its CPUs: a packet's arrival is partly worked off on its sender's CPU"


@remark_text.register
def _(remark: NotHonoured) -> str:
    named = remark.why.startswith(remark.limit)  # as older runs have it
    return f"{remark.environment}: not honoured: {remark.why if named else f'{remark.limit}: {remark.why}'}"


@remark_text.register
def _(remark: NotMetered) -> str:
    return f"{remark.environment}: not metered: {remark.quantity}: {remark.why}"


@remark_text.register
def _(remark: OtherValue) -> str:
    how = f"{remark.value or 'none'}, but {remark.baseline_value or 'none'} in {remark.baseline}"
    how = how if remark.value or remark.baseline_value else f"not the same as in {remark.baseline}"
    return f"{remark.environment}: {remark.fact}: {how}"


@remark_text.register
def _(remark: OwnOptions) -> str:
    return f"{remark.environment}: options of its own in {', '.join(map(_options, remark.workloads))}"


def _options(own: tuple[str, Sequence[tuple[str, str]]]) -> str:
    workload, options = own
    return f"{workload} ({', '.join(f'{key}: {value}' for key, value in options)})"


# -- hypervisors -----------------------------------------------------------------------------------


for words in NOTICES:
    remark_text.register(words)
