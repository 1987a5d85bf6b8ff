"""A driver on this machine: a process that goes on alone, for machines that are reached from here."""

from typing import Any

from weighbridge.errors import Unavailable
from weighbridge.linux.detached import detach, parsed
from weighbridge.model.machine_provider import DriverState, MachineProvider, Submission


class DrivenHere(MachineProvider):
    """Every run is a process of this machine, whose hosts are the fleet's machines; so is the driver."""

    def submit(self, options: Any, submission: Submission) -> str:
        """Start the driver on this machine, in a session of its own."""
        return str(detach(submission.argv, submission.folder / "drive.log"))

    def state(self, options: Any, job: str) -> DriverState:
        """Say whether the driver's process runs."""
        process = parsed(job)
        if process is None or not process.is_here:
            return DriverState("unknown", "its process is on another machine, or was before this machine's last boot")
        word = f"process {process.pid} on this machine"
        return DriverState("running", word) if process.is_alive else DriverState("ended", word)

    def cancel(self, options: Any, job: str) -> None:
        """Send SIGTERM to the driver."""
        process = parsed(job)
        if process is None or not process.is_here:
            return
        try:
            process.end()
        except PermissionError:
            raise Unavailable(f"process {process.pid} is another user's: ask that user to cancel the fleet") from None
