"""Every failure that a user can meet: one class each, with its stable exit code (docs/reference/exit-codes.md)."""

from typing import ClassVar


class WeighbridgeError(Exception):
    """Something else failed; the message says what.

    Each kind of failure is told to the user as one sentence, which only the CLI does.
    """

    exit_code = 1
    continuable: ClassVar[bool] = False
    """Whether a run that ended so can be continued once the cause is removed."""
    continue_with = ""
    """The command that continues the run; empty where there is none to continue."""


class StudyError(WeighbridgeError):
    """The study file is wrong; the message names file, line, key and the nearest valid spelling."""

    exit_code = 3


class TimeTooShort(StudyError):
    """The study's time is too short for a verdict, as its first trials show; nothing of the run is kept."""


class SecretError(StudyError):
    """A secret has no value, or its value differs from the value that the run began with."""


class Unavailable(WeighbridgeError):
    """This machine lacks something that the study needs; the message says how to get it."""

    exit_code = 4
    continuable = True


class UserlandError(WeighbridgeError):
    """The root file system with the study's programs could not be built or unpacked."""

    exit_code = 5
    continuable = True

    @classmethod
    def too_slow(cls, what: str, deadline_s: float) -> "UserlandError":
        """The failure of what builds, a program or a compilation, that was ended at its deadline."""
        return cls(
            f"{what} did not finish within {deadline_s / 60:.0f} minutes: try again when this machine is less busy"
        )


class RunDirectoryError(WeighbridgeError):
    """The run directory holds no run or one of a newer Weighbridge, cannot be read or written, or is in use."""

    exit_code = 6


class DiskFull(WeighbridgeError):
    """No space is left where the run is saved; every finished trial is kept."""

    exit_code = 7
    continuable = True

    @classmethod
    def of(cls, where: object) -> "DiskFull":
        """The failure for a run directory, with the one sentence that a user needs."""
        return cls(f"no space left in {where}: finished trials are kept; make room and continue the run")


class EnvironmentLost(WeighbridgeError):
    """An environment was lost during the run (its engine died, its container was removed)."""

    exit_code = 8
    continuable = True


class TrialsFailed(WeighbridgeError):
    """A comparison has no complete block, even after repeated trials (``run``, ``gate``, ``report --fail-if``)."""

    exit_code = 9


class Untrusted(WeighbridgeError):
    """``run --strict``, ``gate``: the A/A arm shows a cost where there is none, so the session cannot be trusted."""

    exit_code = 10


class LimitExceeded(WeighbridgeError):
    """``report --fail-if`` and ``gate``: the whole interval of a cost is above its limit."""

    exit_code = 11


class LimitUndecided(WeighbridgeError):
    """``report --fail-if`` and ``gate``: no cost is certainly above its limit, but some may be."""

    exit_code = 12


class Leftovers(WeighbridgeError):
    """``clean --check`` found something, or ``clean`` could not remove it."""

    exit_code = 1


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM. Not an Exception, so that no handler of failures swallows it."""

    continuable = True
    continue_with = ""
    nothing_kept = False
    """Whether a new run ended before its first trial."""
    discarded = False
    """Whether the trials that ended are of no use alone, and are gone."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.number = signal_number
        self.exit_code = 128 + signal_number

    def __str__(self) -> str:
        """Return what became of the run."""
        if self.discarded:
            return "interrupted: nothing was kept, start it again"
        if self.nothing_kept:
            return "interrupted before the first trial: nothing was kept"
        return "interrupted; finished trials are kept"
