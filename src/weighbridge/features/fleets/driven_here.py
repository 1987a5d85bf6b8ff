"""A driver on this machine, in the background, for machines that are reached from here."""

import os
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from weighbridge.errors import Unavailable
from weighbridge.features.fleets.machine_provider import DriverState, MachineProvider, ProviderOptions, Submission
from weighbridge.linux.detached import detach, parsed

_PER_CPU, _RUN_BYTES = 8, 320 * 2**20
"""The limits of parallel runs. A run on another machine needs 5 to 9 s of CPU time here at its begin and end, and
otherwise 0.3% of a CPU; 106 MB of memory, 215 MB at its end, and a third more for its programs (five kubectl, or one
ssh)."""


class DrivenHereOptions(ProviderOptions):
    """The options of machines whose runs are processes on this one."""

    at_once: Annotated[
        int | None,
        Field(
            ge=1,
            description="Number of runs to drive from this machine at once; default: chosen by the size of "
            "this machine",
        ),
    ] = None


class DrivenHere(MachineProvider):
    """Every run is a process on this machine, and so is the driver; the fleet's machines are its hosts."""

    drives_here: ClassVar[bool] = True

    def at_once(self, options: Any) -> int:
        """Return the requested number, else the number for this machine's CPUs and memory."""
        return int(options.at_once or most_runs(len(os.sched_getaffinity(0)), _available_bytes()))

    def submit(self, options: Any, submission: Submission) -> str:
        """Start the driver on this machine, in its own session."""
        return str(detach(submission.argv, submission.folder / "drive.log"))

    def state(self, options: Any, job: str) -> DriverState:
        """Return whether the driver's process runs."""
        process = parsed(job)
        if process is not None and process.is_of_earlier_boot:
            return DriverState("ended", f"process {process.pid}, before this machine's last boot")
        if process is None or not process.is_here:
            return DriverState("unknown", "its process is on another machine, or in another container")
        word = f"process {process.pid} on this machine"
        return DriverState("running", word) if process.is_alive else DriverState("ended", word)

    def cancel(self, options: Any, job: str, folder: Path) -> None:
        """Send SIGTERM to the driver, but to no other process."""
        process = parsed(job)
        if process is None or not process.is_alive:
            return
        words = process.command
        command = [word for word in words[:-1] if word != "--yes"]  # an older driver does not have it
        if words and not (command[-2:] == ["fleet", "drive"] and Path(words[-1]).resolve() == folder.resolve()):
            raise Unavailable(f"process {process.pid} does not drive the fleet in {folder}, so it was not stopped")
        try:
            process.end()
        except PermissionError:
            raise Unavailable(
                f"process {process.pid} belongs to another user: ask that user to cancel the fleet"
            ) from None


def most_runs(cpus: int, available: int) -> int:
    """Return how many runs a machine with these CPUs and bytes of free memory drives at once."""
    return max(1, min(_PER_CPU * cpus, available // _RUN_BYTES))


def _available_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
