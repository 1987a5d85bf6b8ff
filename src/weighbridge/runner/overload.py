"""When a failure is the load's: a result, and not a trial to be run again."""

import signal

from weighbridge.model.command import Completed
from weighbridge.model.measurement import Outcome, ServerDied, TrialFailure

_NO_SPACE = b"No space left on device"


def why_broke(failure: TrialFailure, server: Completed | None, kills: float) -> str:
    """What is said of a failed trial of a workload with a load where the load did it, with {} for its own message.

    That is a missed deadline, and a server that ended by itself or for its memory limit (``kills``: how often the
    kernel has killed for it in this trial). Empty where it was not the load: somebody killed the server, or its disk
    is full.
    """
    if failure.outcome is Outcome.DEADLINE:
        return "{}"
    if not isinstance(failure, ServerDied):
        return ""
    if kills > 0:
        return "the server ran out of its memory limit: {}"
    if failure.killed or server is None:
        return "" if failure.killed else "{}"
    killed = server.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
    return "" if killed or _NO_SPACE in server.stdout + server.stderr else "{}"
