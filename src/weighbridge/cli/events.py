"""The events of ``--progress json``: one line of JSON each on standard error, and nothing else there."""

import json
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Literal

from pydantic_core import to_jsonable_python

from weighbridge.analysis.run_result import Penalty
from weighbridge.model.document import Documented
from weighbridge.secret_values import redacted

VERSION: Literal[1] = 1
"""The version of the events."""
_BEGAN = time.monotonic()  # this module is imported for the first event
_LOCK = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class TimedEvent(Documented):
    """The key that every event has in addition to its name."""

    at_s: float = field(default_factory=lambda: round(time.monotonic() - _BEGAN, 2))
    """The seconds since the first event."""


@dataclass(frozen=True, kw_only=True)
class BeginEvent(TimedEvent):
    """A measurement begins."""

    event: Literal["begin"] = "begin"
    version: Literal[1] = VERSION
    directory: str | None
    """The directory of the run; null if nothing is kept."""


@dataclass(frozen=True, kw_only=True)
class StepEvent(TimedEvent):
    """A step of the run, such as the start of a host."""

    event: Literal["step"] = "step"
    text: str
    """The step, for people."""


@dataclass(frozen=True, kw_only=True)
class CostSoFar(Penalty):
    """A primary cost so far. Its interval is wider than at the end; below six rounds it has none."""

    environment: str
    workload: str
    """The workload and its level."""
    metric: str
    rounds: int
    target: float | None
    """The half-width at which the comparison is precise enough: 0.02 is ±2%."""
    half_width: float | None
    """The present half-width: 0.02 is ±2%."""


@dataclass(frozen=True, kw_only=True)
class ProgressEvent(TimedEvent):
    """The state of the measurement: at each interim look, and otherwise at most every ten seconds."""

    event: Literal["progress"] = "progress"
    round: int
    """The number of the round; 0 in the pilot round."""
    trials: int
    """The number of finished trials."""
    trials_planned: int
    """The number of trials up to the next interim look."""
    left_s: float | None
    """The seconds until the end of the measurement; null if they are not known."""
    at_most: bool
    """Whether the measurement can end earlier."""
    costs: tuple[CostSoFar, ...]


@dataclass(frozen=True, kw_only=True)
class WarningEvent(TimedEvent):
    """Something that makes the result worse."""

    event: Literal["warning"] = "warning"
    code: Literal["failed-trial", "overloaded", "disturbed"]
    text: str
    """The warning, for people."""


@dataclass(frozen=True, kw_only=True)
class MessageEvent(TimedEvent):
    """A text that standard error has without ``--progress json``."""

    event: Literal["message"] = "message"
    text: str


@dataclass(frozen=True, kw_only=True)
class EndEvent(TimedEvent):
    """The command has ended. This is always the last event."""

    event: Literal["end"] = "end"
    exit_code: int
    kind: str | None
    """The kind of the failure, as in the table of exit codes; null without a failure."""
    message: str | None
    """The message for people; null without a failure."""


Event = BeginEvent | StepEvent | ProgressEvent | WarningEvent | MessageEvent | EndEvent
"""One line of ``--progress json``."""


def emit(event: Event) -> None:
    """Write an event as one line. Any thread can call this."""
    document = to_jsonable_python(event, inf_nan_mode="null")
    line = json.dumps(document, allow_nan=False).replace("\x7f", r"\u007f")
    with _LOCK:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def emit_message(text: str) -> None:
    """Write a text as an event."""
    if text.strip():
        emit(MessageEvent(text=redacted(text.strip())))


def emit_end(code: int, kind: str | None = None, message: str | None = None) -> None:
    """Write the last event."""
    emit(EndEvent(exit_code=code, kind=kind, message=message))
