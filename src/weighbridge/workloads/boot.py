"""boot: the time of a fresh site from its start to its first answer, and the time to close it."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Metric, Unparseable
from weighbridge.model.openings import PHASES, Openings, read_opened
from weighbridge.model.options import Options
from weighbridge.model.quantity import Duration, Size
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.workloads._start_times import mean_of, measured_percentiles, percentiles_of

TIME_TO_READY = Metric("time_to_ready", "s", "lower")
TIME_TO_CLOSE = Metric("time_to_close", "s", "lower")
START_AND_STOP = Metric("start_and_stop", "s", "lower")
OF_PHASES = {phase: Metric(f"time_to_{phase}", "s", "lower") for phase in PHASES}
ANSWER_S = 60.0
"""The time limit of the first command."""
_EXPECTED_S = 0.5
"""A guess of the time of one site."""


class BootOptions(Options):
    """Options of the start of sites."""

    sites: Annotated[
        int,
        Field(
            ge=1,
            le=1000,
            description="Smallest number of fresh sites per trial, each closed before the next. With 'duration: 0s', "
            "20 give a 95th percentile and 100 a 99th",
        ),
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
    cold: Annotated[
        bool, Field(description="Empty the page caches before each start, so that files are read from the disk")
    ] = False
    ports: Annotated[
        int, Field(ge=0, le=256, description="Ports that each site publishes, in containers on a bridge")
    ] = 0
    image_files: Annotated[
        Size,
        Field(
            ge=0,
            le=2**30,
            description="Size of additional files in the image of each site (Docker and Podman): random bytes in "
            "files of 1 MiB",
        ),
    ] = 0
    running: Annotated[int, Field(ge=0, le=200, description="Idle sites that are already open during the trial")] = 0


class Boot(Workload):
    """Opens a site of the measured environment, runs ``true`` in it, and closes it.

    A trial opens as many sites as its duration allows, and the geometric mean of their times counts. Native starts
    take milliseconds and differ more from each other than an engine's, so they need the larger number. The first
    trial of each environment in a session sets the number, from a start that does not count. All its further trials
    keep it, because a number that depended on a trial's own times would make slow starts look slower. With a fixed
    number, a geometric mean estimates the same as a single start. A median does not, because the times are skewed.

    A trial begins with a start that does not count, because the first start after a pause is slower. If a start takes
    longer than the duration, the trial has no such start, because it would double the time of the trial. A trial with
    a fixed number of sites has one from 20 sites on.

    With ``duration: 0s`` every environment starts the same number of sites. Only then a trial has percentiles:
    ``time_to_ready_p50`` and ``start_and_stop_p50`` from 2 sites on, ``_p95`` from 20 on, and ``_p99`` from 100 on.
    Percentiles of different numbers of starts cannot be compared.

    By default the start is warm. The run has opened a site of that environment before: the engine runs, the image or
    the disk is ready, the network exists and is joined, and the disk's data is in memory. With ``cold``, the page
    caches are emptied before each start, which is not timed. The start then reads the image or the disk, and the
    programs that open the site. Files that a running process has mapped stay in memory: parts of the engine, and of
    the launchers of other sites. A root filesystem in memory is never cold.

    The time includes everything that Weighbridge does for one site. Natively that is namespaces, mounts and a control
    group. With Docker it is create, attach, start and the attachment to the network through the engine's API. With a
    guest it is the complete start. The time ends when the result of ``true`` has come through the launcher, which is
    the first output of the site. It includes Weighbridge's own Python, whose CPU time in each opening is
    ``own_cpu_s`` in the raw output: about 5 ms natively and 11 ms with Docker, with the programs that set the site
    up. Closing ends when nothing of the site is left. ``start_and_stop`` is the sum of both times.

    Docker and Podman also give ``time_to_create`` and ``time_to_start``, Docker ``time_to_answer``. They are parts of
    ``time_to_ready``. Creation is the engine's call, with the preparation of the network and the storage. The start
    ends when the engine says that the container runs, with Podman when its first process answers.

    ``ports`` publishes free ports of the host on its loopback address. Nothing listens behind them. Docker on a
    bridge and Podman do that; all other sites have nothing to publish, so the option changes nothing there.
    ``running`` opens idle sites like the measured one before the trial. They do not count.

    ``image_files`` adds files to the image, in the folder ``/weighbridge-files``: pseudorandom bytes, the same in
    each run, which neither compress nor repeat. No program reads them. The images are made before the first trial and
    removed after the run. Only Docker and Podman have such images; every other environment is refused.
    """

    kind = "boot"
    summary = "time from the start of a new container, guest or chroot to its first answer, and time to close it"
    options = BootOptions
    packages = ("coreutils",)

    def openings(self, options: BootOptions) -> Openings:
        return Openings(
            options.sites,
            lasting_s=options.duration,
            running=options.running,
            ports=options.ports,
            image_files=options.image_files,
            cold=options.cold,
        )

    def metrics(self, options: BootOptions) -> tuple[Metric, ...]:
        """Return the seconds until the first answer and of closing, as geometric means over the sites of a trial.

        Percentiles follow if the number of sites is fixed.
        """
        fixed = options.sites if options.duration == 0 else 0
        percentiles = [percentiles_of(metric, fixed) for metric in (TIME_TO_READY, START_AND_STOP)]
        return (TIME_TO_READY, TIME_TO_CLOSE, START_AND_STOP, *OF_PHASES.values(), *percentiles[0], *percentiles[1])

    def command(self, role: Role, options: BootOptions, at: Endpoint) -> Command:
        return Command(("true",), deadline_s=ANSWER_S)

    def expected_s(self, options: BootOptions) -> float:
        """Guess the time. The real one is known only after the environment has been measured.

        The start that does not count takes between almost no time and the duration of the trial.
        """
        measured_s = max(options.duration, min(_EXPECTED_S * options.sites, ANSWER_S / 2))
        return measured_s + _EXPECTED_S * (options.running + 1 / 2)

    def parse(self, options: BootOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Compute the means and percentiles. Raises ProgramFailed or Unparseable."""
        openings = read_opened(completed["solo"]).openings
        ready = [each.ready_s for each in openings]
        closed = [each.close_s for each in openings if each.close_s]
        if not len(ready) == len(closed) >= options.sites:
            raise Unparseable(
                f"{len(ready)} sites were opened and {len(closed)} closed, but a trial needs {options.sites}"
            )
        both = [start + stop for start, stop in zip(ready, closed, strict=True)]
        measured = [mean_of(TIME_TO_READY, ready), mean_of(TIME_TO_CLOSE, closed), mean_of(START_AND_STOP, both)]
        for phase, metric in OF_PHASES.items():
            times = [seconds for each in openings if (seconds := each.phases.get(phase))]
            measured += [mean_of(metric, times)] if len(times) == len(openings) else []
        if options.duration == 0:
            measured += [*measured_percentiles(TIME_TO_READY, ready), *measured_percentiles(START_AND_STOP, both)]
        return TrialResult(tuple(measured))


PLUGIN = Boot()
