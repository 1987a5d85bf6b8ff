"""Every failure that a user can see: one class for each, with its stable exit code.

The first line of each class is the meaning of its exit code in docs/reference/exit-codes.md.
"""

from typing import ClassVar


class WeighbridgeError(Exception):
    """Another failure; the message describes it.

    Only the command line turns failures into messages for the user.
    """

    exit_code = 1
    kind: ClassVar[str] = "failure"
    """The name of the failure for programs. It is as stable as the exit code."""
    continuable: ClassVar[bool] = False
    """Whether the run can be continued after the user removes the cause."""
    continue_with: tuple[str, ...] = ()
    """The words of the command that continues the run; empty if no run can be continued."""


class StudyError(WeighbridgeError):
    """The study file is wrong; the message names the file, line and key, and suggests the nearest valid spelling."""

    exit_code = 3
    kind = "study"


class TimeTooShort(StudyError):
    """The study's time is too short for a verdict, as its first trials show. The run is removed."""

    kind = "time-too-short"


class SecretError(StudyError):
    """A secret has no value, or its value differs from the value at the start of the run."""

    kind = "secret"


class Unavailable(WeighbridgeError):
    """Something that the study needs is missing on this machine; the message says how to get it."""

    exit_code = 4
    kind = "unavailable"
    continuable = True


class UserlandError(WeighbridgeError):
    """The root filesystem with the study's programs could not be built or unpacked."""

    exit_code = 5
    kind = "root-filesystem"
    continuable = True

    @classmethod
    def too_slow(cls, what: str, deadline_s: float) -> "UserlandError":
        """Return the failure of a build step (``what``) that did not finish before its deadline."""
        return cls(
            f"{what} did not finish within {deadline_s / 60:.0f} minutes. Try again when this machine is less busy"
        )


class RunDirectoryError(WeighbridgeError):
    """The run directory has no run, belongs to a newer Weighbridge, cannot be read or written, or is in use."""

    exit_code = 6
    kind = "run-directory"


class DiskFull(WeighbridgeError):
    """The disk of the run directory is full; every finished trial is kept."""

    exit_code = 7
    kind = "disk-full"
    continuable = True

    @classmethod
    def of(cls, where: object) -> "DiskFull":
        """Return the failure for a run directory."""
        return cls(f"no space left in {where}. Finished trials are kept: free some space and continue the run")


class EnvironmentLost(WeighbridgeError):
    """An environment was lost during the run (its engine died, its container was removed)."""

    exit_code = 8
    kind = "environment-lost"
    continuable = True


class TrialsFailed(WeighbridgeError):
    """A comparison has no complete round, even after retries (``run``, ``gate``, ``report --fail-if``)."""

    exit_code = 9
    kind = "trials-failed"


class Untrusted(WeighbridgeError):
    """The control failed: two copies of the baseline differ (``run --strict``, ``gate``)."""

    exit_code = 10
    kind = "control-failed"


class LimitExceeded(WeighbridgeError):
    """A cost exceeds its limit: its whole interval is above it (``report --fail-if``, ``gate``)."""

    exit_code = 11
    kind = "limit-exceeded"


class LimitUndecided(WeighbridgeError):
    """Undecided: no cost certainly exceeds its limit, but at least one might (``report --fail-if``, ``gate``)."""

    exit_code = 12
    kind = "limit-undecided"


class Leftovers(WeighbridgeError):
    """``clean --check`` found leftovers, or ``clean`` could not remove them."""

    exit_code = 1
    kind = "leftovers"


class Cancelled(BaseException):
    """Another thread failed, or the user interrupted the run. It is not an Exception, as for `Interrupted`."""


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM. It is not an Exception, so that handlers of failures do not catch it."""

    kind = "interrupted"
    continuable = True
    continue_with: tuple[str, ...] = ()
    nothing_kept = False
    """Whether a new run ended before its first trial."""
    discarded = False
    """Whether the finished trials were discarded because they are useless alone."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.number = signal_number
        self.exit_code = 128 + signal_number

    def __str__(self) -> str:
        """Return what happened to the run."""
        if self.discarded:
            return "interrupted; nothing was kept. Start it again"
        if self.nothing_kept:
            return "interrupted before the first trial; nothing was kept"
        return "interrupted; finished trials are kept"
