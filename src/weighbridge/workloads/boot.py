"""boot: how long a fresh site takes from its start to its first answer, and to be closed."""

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
"""How long the first command may take."""


class BootOptions(Options):
    """Options of the start of sites."""

    sites: Annotated[
        int, Field(ge=1, le=100, description="Fresh sites per trial, each closed before the next; the median counts")
    ] = 1


class Boot(Workload):
    """A site of the measured environment is opened, runs ``true``, and is closed.

    It is a warm start: the run has opened a site of that environment before, so the engine runs, the image is
    imported or the disk made, the network of that first site is there and is joined, and what is read of the disk is
    in memory. In the time is everything that our environment does for one site, as it does it: natively namespaces,
    mounts and a control group; with Docker create, attach and start through the engine's API and the attachment to
    the network; with a guest its whole start. It ends when the result of ``true`` has come through the launcher.
    Weighbridge's own Python is part of it: ``own_cpu_s`` of the raw output tells its CPU time in each opening, about
    5 ms natively and 11 ms with Docker, with that of the programs that set the site up and have ended. Closing ends
    when nothing of the site is left.
    """

    kind = "boot"
    summary = "time from the warm start of a new container, guest or chroot to its first answer, and time to close it"
    options = BootOptions
    packages = ("coreutils",)

    def openings(self, options: BootOptions) -> Openings:
        """One after another."""
        return Openings(options.sites)

    def metrics(self, options: BootOptions) -> tuple[Metric, ...]:
        """Seconds until the first answer, and of closing: medians over the sites of the trial."""
        return TIME_TO_READY, TIME_TO_CLOSE

    def command(self, role: Role, options: BootOptions, at: Endpoint) -> Command:
        """The first command of each site."""
        return Command(("true",), deadline_s=ANSWER_S)

    def expected_s(self, options: BootOptions) -> float:
        """Seconds; what an environment really takes is known once it has been seen."""
        return min(0.5 * options.sites, ANSWER_S / 2)

    def parse(self, options: BootOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Both medians. Raises ProgramFailed or Unparseable."""
        openings = read_opened(completed["solo"]).openings
        closed = [each.close_s for each in openings if each.close_s is not None]
        if not len(openings) == len(closed) == options.sites:
            raise Unparseable(f"{len(openings)} sites were opened and {len(closed)} closed, not {options.sites}")
        ready = Measurement(TIME_TO_READY, median(each.ready_s for each in openings))
        return TrialResult((ready, Measurement(TIME_TO_CLOSE, median(closed))))


PLUGIN = Boot()
