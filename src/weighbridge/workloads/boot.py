"""boot: the time of a fresh site from its start to its first answer, and the time to close it."""

from collections.abc import Mapping
from statistics import median
from typing import Annotated

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, Unparseable
from weighbridge.model.openings import Openings, read_opened
from weighbridge.model.options import Options
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload

TIME_TO_READY = Metric("time_to_ready", "s", "lower")
TIME_TO_CLOSE = Metric("time_to_close", "s", "lower")
ANSWER_S = 60.0
"""The time limit of the first command."""


class BootOptions(Options):
    """Options of the start of sites."""

    sites: Annotated[
        int, Field(ge=1, le=100, description="Fresh sites per trial, each closed before the next; the median counts")
    ] = 1


class Boot(Workload):
    """Opens a site of the measured environment, runs ``true`` in it, and closes it.

    It is a warm start. The run has opened a site of that environment before: the engine runs, the image or the disk
    is ready, the network exists and is joined, and the disk's data is in memory.

    The time includes everything that Weighbridge does for one site. Natively that is namespaces, mounts and a control
    group. With Docker it is create, attach, start and the attachment to the network through the engine's API. With a
    guest it is the complete start. The time ends when the result of ``true`` has come through the launcher. It
    includes Weighbridge's own Python, whose CPU time in each opening is ``own_cpu_s`` in the raw output: about 5 ms
    natively and 11 ms with Docker, with the programs that set the site up. Closing ends when nothing of the site is
    left.
    """

    kind = "boot"
    summary = "time from the warm start of a new container, guest or chroot to its first answer, and time to close it"
    options = BootOptions
    packages = ("coreutils",)

    def openings(self, options: BootOptions) -> Openings:
        return Openings(options.sites)

    def metrics(self, options: BootOptions) -> tuple[Metric, ...]:
        """Return the seconds until the first answer and of closing, as medians over the sites of a trial."""
        return TIME_TO_READY, TIME_TO_CLOSE

    def command(self, role: Role, options: BootOptions, at: Endpoint) -> Command:
        return Command(("true",), deadline_s=ANSWER_S)

    def expected_s(self, options: BootOptions) -> float:
        """Guess the time. The real one is known only after the environment has been measured."""
        return min(0.5 * options.sites, ANSWER_S / 2)

    def parse(self, options: BootOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Compute both medians. Raises ProgramFailed or Unparseable."""
        openings = read_opened(completed["solo"]).openings
        closed = [each.close_s for each in openings if each.close_s is not None]
        if not len(openings) == len(closed) == options.sites:
            raise Unparseable(f"{len(openings)} sites were opened and {len(closed)} closed, not {options.sites}")
        ready = Measurement(TIME_TO_READY, median(each.ready_s for each in openings))
        return TrialResult((ready, Measurement(TIME_TO_CLOSE, median(closed))))


PLUGIN = Boot()
