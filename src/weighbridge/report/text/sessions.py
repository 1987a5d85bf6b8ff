"""Which blocks come from which session, in words: only of a run that was continued."""

import time
from collections.abc import Sequence

from weighbridge.analysis.conditions import READABLE
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.sessions import Session, SessionDifference


def session_lines(analysis: Analysis) -> list[str]:
    """Return which blocks come from which session, which mix two, and what differs; none of a single session."""
    found = analysis.sessions
    if len(found.found) < 2:
        return []
    told = ", ".join(
        f"{_blocks(each.blocks)} in session {number} ({started(each)})" for number, each in enumerate(found.found, 1)
    )
    lines = [f"measured in {len(found.found)} sessions, between which this machine may have changed: {told}"]
    if found.mixed:
        one = len(found.mixed) == 1
        lines.append(
            f"{_blocks(found.mixed)} {'was' if one else 'were'} begun in one session and finished in another: "
            f"{'its' if one else 'their'} costs compare values of both"
        )
    return [*lines, *map(_difference, found.differences)]


def started(session: Session) -> str:
    """Return when a session began: ``2026-11-22 20:01 UTC``."""
    return date_words(session.started_at)


def date_words(at: float) -> str:
    """Return an instant in seconds since the epoch: ``2026-11-22 20:01 UTC``; ``at an unknown time`` beyond all."""
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"


def _difference(each: SessionDifference) -> str:
    where = f" in {', '.join(each.environments)}" if each.environments else ""
    values = [value or "not known" for value in each.values]
    then = f": {', then '.join(values)}" if max(map(len, values)) <= READABLE else ""
    return f"{each.fact}{where} is not the same in all sessions{then}"


def _blocks(blocks: Sequence[int]) -> str:
    """``block 4``, ``blocks 1 to 3 and 5``."""
    runs: list[list[int]] = []
    for block in blocks:
        if runs and block == runs[-1][-1] + 1:
            runs[-1].append(block)
        else:
            runs.append([block])
    parts = [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    listed = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
    return f"block{'' if len(blocks) == 1 else 's'} {listed}"
