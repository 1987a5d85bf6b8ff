"""What a plug-in says of a trial that ended well, and what becomes of its faults."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from weighbridge.model.command import Completed
from weighbridge.model.flag import Flag
from weighbridge.model.measurement import Measurement, TrialFailure
from weighbridge.model.plugin import Work, Workload


@dataclass(frozen=True, slots=True)
class Result:
    """What the plug-in reads from the outputs of a trial that ended well."""

    parsed: tuple[Measurement, ...]
    busy_s: float | None
    histograms: Mapping[str, str]
    flags: tuple[Flag, ...]
    work: Work | None
    work_s: float | None
    sending_s: float | None
    asked_rate: Measurement | None

    @classmethod
    def read(cls, workload: Workload, options: Any, completed: Mapping[str, Completed]) -> "Result":
        """Ask for everything once."""
        parsed = workload.parse(options, completed)
        return cls(
            parsed, workload.busy_s(options, completed), workload.histograms(options, completed),
            workload.flags(options, completed), workload.done(options, parsed, completed), workload.work_s(options),
            workload.sending_s(options, parsed), workload.asked_rate(options),
        )  # fmt: skip


@contextmanager
def plugin_faults(workload: Workload, outcome: type[TrialFailure]) -> Iterator[None]:
    """Turn a fault of a plug-in into a failed trial, whose output is kept. One of the runner's own is not caught."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as fault:
        raise outcome(f"{workload.kind} failed with {type(fault).__name__}: {fault}") from fault
