"""The conditions of a run in words: durability, calibration, sessions, environments that were left out."""

import time
from collections.abc import Sequence

from weighbridge.analysis.conditions import READABLE, Durabilities
from weighbridge.analysis.curves import LoadSweep
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.sessions import RunSession, SessionDifference
from weighbridge.model.choices import Promise
from weighbridge.model.ladder import nearest_base
from weighbridge.model.power_cut import DurabilityVerdict, PowerCut
from weighbridge.report.text.environments import display_name, join_names
from weighbridge.report.text.formatting import margin
from weighbridge.report.text.trust import control_power

NOT_THIS_PATH = "this machine's calibration is for one host without cables, not for this path"
NOT_POLLED = "this machine's calibration is for idle CPUs that halt; here they were kept awake"
POLLED = "idle CPUs were kept awake in every environment (cpu_idle: poll), so costs do not include CPU wake-up time"


def condition_lines(analysis: Analysis) -> list[str]:
    """Return a line for each condition that a reader should know."""
    lines = [
        *power_cut_lines(analysis),
        *([power] if (power := control_power(analysis)) else []),
        *([POLLED] if analysis.polled else []),
        *_lengths(analysis),
    ]
    if analysis.time_shared:
        target = "its target" if analysis.target is None else margin(analysis.target)
        lines.append(f"not every workload reached {target} in time; slow ones got fewer rounds")
    calibration = analysis.calibration
    if calibration is None:
        return lines
    if calibration.scope == "another-path":
        return [*lines, NOT_THIS_PATH]
    if calibration.scope == "halting-cpus":
        return [*lines, NOT_POLLED]
    return [*lines, *(f"{key} {value}" for key, value in calibration.facts.items())]


def _lengths(analysis: Analysis) -> list[str]:
    lengths = sorted(each.chosen_s for each in analysis.lengths)
    if not lengths:
        return []
    ends = dict.fromkeys(f"{each:.2g}" for each in (lengths[0], lengths[-1]))
    return [f"trials were shortened to {' to '.join(ends)} s to fit more of them into the time"]


# -- durability ------------------------------------------------------------------------------------


MEANING = {
    "synchronous": "acknowledged writes are on the disk",
    "unknown": "whether acknowledged writes are on the disk is not known",
    "asynchronous": "a power cut loses the last acknowledged writes",
    "none": "acknowledged writes are in memory only",
}

PROMISES = {
    Promise.FSYNC: "write and fsync",
    Promise.O_DSYNC: "write with O_DSYNC",
    Promise.WRITE: "plain write",
    Promise.COMMIT: "commit",
}
"""The operation before a record was acknowledged."""
HOW_CHECKED = (
    "each disk had a write cache that lost its unflushed data at the cut; a record counts as acknowledged if the "
    "acknowledgement arrived before the cut"
)


def how_kept(cut: PowerCut) -> str:
    """Return the operation before a record was acknowledged: ``commit of db``."""
    return PROMISES[cut.promise] + (f" of {cut.workload}" if cut.workload else "")


def power_cut_verdict(cut: PowerCut) -> str:
    """Return the result: ``kept all 187``, ``claims synchronous, lost 3 of 187 (first: 184; 1 torn)``."""
    if cut.verdict is DurabilityVerdict.KEPT:
        return f"kept all {cut.acknowledged}"
    about = [f"first: {cut.first_lost}"]
    about += [f"{count} {what}" for count, what in ((cut.torn, "torn"), (cut.displaced, "out of place")) if count]
    about += [f"its server said: {cut.failure}"] if cut.failure else []
    lost = f"lost {cut.lost} of {cut.acknowledged} ({'; '.join(about)})"
    if cut.verdict is DurabilityVerdict.OVERCLAIMED:
        return f"claims {cut.claimed}, {lost}"
    if cut.promise is Promise.WRITE:
        return f"{lost}; nothing was synced"
    if cut.claimed == "unknown":
        return f"{lost}; nothing was claimed"
    return f"{lost}, as claimed ({cut.claimed})"


def power_cut_lines(analysis: Analysis) -> list[str]:
    """Return a line for each check by power cut of the run."""
    return [
        f"acknowledged records after a power cut in {display_name(cut.environment)} "
        f"({cut.storage}, {how_kept(cut)}): {power_cut_verdict(cut)}"
        for cut in analysis.power_cuts
    ]


def overclaimed_lines(analysis: Analysis) -> list[str]:
    """Return the lines of `power_cut_lines` for environments that lost more than they claim."""
    claims = zip(analysis.power_cuts, power_cut_lines(analysis), strict=True)
    return [line for cut, line in claims if cut.verdict is DurabilityVerdict.OVERCLAIMED]


def durability_words(durabilities: Durabilities) -> str:
    """Return the effect of a power cut on a workload's data, for each environment if they differ."""
    clauses = []
    for kind, names in durabilities.items():
        where = f" in {join_names(names)}" if len(durabilities) > 1 else ""
        clauses.append(f"{MEANING.get(kind, f'durability {kind}')}{where}")
    return "; ".join(clauses)


def durability_of(analysis: Analysis, label: str) -> str:
    """Return the durability of a workload and level; empty if it has none."""
    return durability_words(analysis.durability.get(label, {}))


def sweep_durability(analysis: Analysis, sweep: LoadSweep) -> str:
    """Return the durability of a workload under a rising load; empty if it has none."""
    return "; ".join(dict.fromkeys(filter(None, (durability_of(analysis, each.cell.label) for each in sweep.levels))))


# -- sessions --------------------------------------------------------------------------------------


def session_lines(analysis: Analysis) -> list[str]:
    """Return the rounds of each session, and the facts that changed; nothing for a single session."""
    sessions = analysis.sessions
    if len(sessions.sessions) < 2:
        return []
    listed = ", ".join(
        f"{_blocks(each.blocks)} in session {number} ({started(each)})"
        for number, each in enumerate(sessions.sessions, 1)
    )
    lines = [f"measured in {len(sessions.sessions)} sessions; this machine might have changed in between: {listed}"]
    if sessions.mixed:
        one = len(sessions.mixed) == 1
        lines.append(
            f"{_blocks(sessions.mixed)} {'was' if one else 'were'} interrupted: part was measured before "
            "the stop, part after it"
        )
    return [*lines, *map(_difference, sessions.differences)]


def started(session: RunSession) -> str:
    """Return when a session began: ``2026-11-22 20:01 UTC``."""
    return date_words(session.started_at)


def date_words(at: float) -> str:
    """Return an instant in seconds since the epoch: ``2026-11-22 20:01 UTC``; ``at an unknown time`` beyond all."""
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"


def _difference(each: SessionDifference) -> str:
    where = f" in {join_names(each.environments)}" if each.environments else ""
    values = [value or "unknown" for value in each.values]
    then = f": {', then '.join(values)}" if max(map(len, values)) <= READABLE else ""
    return f"{each.fact}{where} changed between sessions{then}"


def _blocks(blocks: Sequence[int]) -> str:
    """Return ``round 4``, ``rounds 1 to 3 and 5``."""
    runs: list[list[int]] = []
    for block in blocks:
        if runs and block == runs[-1][-1] + 1:
            runs[-1].append(block)
        else:
            runs.append([block])
    parts = [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    listed = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
    return f"round{'' if len(blocks) == 1 else 's'} {listed}"


# -- environments that a run does not measure ------------------------------------------------------


def left_out_lines(analysis: Analysis) -> list[str]:
    """Return a line for each skipped environment: the reason, and the comparison that replaces its step."""
    return [
        f"{display_name(each.environment)} was skipped ({each.reason}){_of_ladder(analysis, each.environment)}"
        for each in analysis.left_out
    ]


def _of_ladder(analysis: Analysis, name: str) -> str:
    """Return the comparisons that replace the steps from a skipped environment; empty if it is not in the ladder."""
    rungs = analysis.rungs
    if name not in (rung.name for rung in rungs):
        return ""
    above = [rung.name for rung in rungs if rung.base == name and rung.name in analysis.environments]
    linked = [(each, nearest_base(rungs, each, analysis.environments)) for each in above]
    steps = [
        f"{display_name(each)} is compared with {display_name(base)} instead"
        if base
        else f"{display_name(each)} has nothing to be compared with in the ladder"
        for each, base in linked
    ]
    return "".join(f"; {each}" for each in steps)
