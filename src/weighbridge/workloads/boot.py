"""boot: the time of a fresh site from its start to its first answer, and the time to close it."""

from collections.abc import Mapping
from statistics import geometric_mean
from typing import Annotated

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, Unparseable
from weighbridge.model.openings import Openings, read_opened
from weighbridge.model.options import Options
from weighbridge.model.quantity import Duration
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload

TIME_TO_READY = Metric("time_to_ready", "s", "lower")
TIME_TO_CLOSE = Metric("time_to_close", "s", "lower")
ANSWER_S = 60.0
"""The time limit of the first command."""
_EXPECTED_S = 0.5
"""A guess of the time of one site."""


class BootOptions(Options):
    """Options of the start of sites."""

    sites: Annotated[
        int,
        Field(ge=1, le=100, description="Smallest number of fresh sites per trial, each closed before the next"),
    ] = 1
    duration: Annotated[
        Duration,
        Field(
            ge=0,
            le=60,
            description="Start and close sites repeatedly for about this long; the trial's value is the geometric "
            "mean. With 0, a trial starts exactly 'sites' sites",
        ),
    ] = 1.0


class Boot(Workload):
    """Opens a site of the measured environment, runs ``true`` in it, and closes it.

    A trial opens as many sites as its duration allows, and the geometric mean of their times counts. Native starts
    take milliseconds and differ more from each other than an engine's, so they need the larger number. The first
    trial of each environment in a session sets the number, from a start that does not count. All its further trials
    keep it, because a number that depended on a trial's own times would make slow starts look slower. With a fixed
    number, a geometric mean estimates the same as a single start. A median does not, because the times are skewed.

    A trial begins with a start that does not count, because the first start after a pause is slower. If a start takes
    longer than the duration, the trial has no such start, because it would double the time of the trial.

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
        return Openings(options.sites, lasting_s=options.duration)

    def metrics(self, options: BootOptions) -> tuple[Metric, ...]:
        """Return the seconds until the first answer and of closing, as geometric means over the sites of a trial."""
        return TIME_TO_READY, TIME_TO_CLOSE

    def command(self, role: Role, options: BootOptions, at: Endpoint) -> Command:
        return Command(("true",), deadline_s=ANSWER_S)

    def expected_s(self, options: BootOptions) -> float:
        """Guess the time. The real one is known only after the environment has been measured.

        The start that does not count takes between almost no time and the duration of the trial.
        """
        return max(options.duration, min(_EXPECTED_S * options.sites, ANSWER_S / 2)) + _EXPECTED_S / 2

    def parse(self, options: BootOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Compute both means. Raises ProgramFailed or Unparseable."""
        openings = read_opened(completed["solo"]).openings
        closed = [each.close_s for each in openings if each.close_s]
        if not len(openings) == len(closed) >= options.sites:
            raise Unparseable(
                f"{len(openings)} sites were opened and {len(closed)} closed, but a trial needs {options.sites}"
            )
        ready = Measurement(TIME_TO_READY, geometric_mean(each.ready_s for each in openings))
        return TrialResult((ready, Measurement(TIME_TO_CLOSE, geometric_mean(closed))))


PLUGIN = Boot()
