"""burst: the time until the last of several fresh sites, which start at the same time, has answered."""

from collections.abc import Mapping
from statistics import median
from typing import Annotated

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Metric, Unparseable
from weighbridge.model.openings import Openings, read_opened
from weighbridge.model.options import Options
from weighbridge.model.quantity import Duration
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.workloads._start_times import mean_of

TIME_TO_LAST = Metric("time_to_last", "s", "lower")
TIME_TO_MEDIAN = Metric("time_to_median", "s", "lower")
ANSWER_S = 120.0
"""The time limit of the first command of a site."""
_EXPECTED_S = 0.25
"""A guess of the time that each site adds to a burst."""


class BurstOptions(Options):
    """Options of bursts."""

    at_once: Annotated[int, Field(ge=2, le=64, description="Sites that start at the same time; a list sweeps it")] = 8
    duration: Annotated[
        Duration,
        Field(
            ge=0,
            le=60,
            description="Repeat the burst for about this long; the trial's value is the geometric mean. With 0, a "
            "trial has one burst",
        ),
    ] = 1.0


class Burst(Workload):
    """Opens several sites of the measured environment at the same time, runs ``true`` in each, and closes them.

    ``time_to_last`` is the time from the beginning of the burst until every site has answered. ``time_to_median`` is
    the time until half of them have. If an engine starts one site after the other, the last time grows with the
    number of sites. The number of bursts in a trial is set like the number of sites of ``boot``. A trial begins with
    a burst that does not count. All sites of a burst close before the next burst. Closing is not measured.

    Weighbridge opens each site in a thread of its own. Python runs one thread at a time, so the CPU time of its own
    code adds up: ``own_cpu_s`` in the raw output is the share of one site, about 5 ms natively and 10 ms with Docker.
    Multiply it by the number of sites to get the part of ``time_to_last`` that a faster client could save at most.

    Podman's commands change common files, so its sites cannot start at the same time, and a study with it is refused.
    """

    kind = "burst"
    summary = "several new containers, guests or chroots that start at the same time, until all have answered"
    options = BurstOptions
    packages = ("coreutils",)

    def openings(self, options: BurstOptions) -> Openings:
        return Openings(lasting_s=options.duration, at_once=options.at_once)

    def metrics(self, options: BurstOptions) -> tuple[Metric, ...]:
        """Return the seconds until all sites, and until half of them, have answered."""
        return TIME_TO_LAST, TIME_TO_MEDIAN

    def command(self, role: Role, options: BurstOptions, at: Endpoint) -> Command:
        return Command(("true",), deadline_s=ANSWER_S)

    def expected_s(self, options: BurstOptions) -> float:
        """Guess the time. The real one is known only after the environment has been measured."""
        return 2 * max(options.duration, _EXPECTED_S * options.at_once)

    def parse(self, options: BurstOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Compute both means over the bursts. Raises ProgramFailed or Unparseable."""
        ready = [each.ready_s for each in read_opened(completed["solo"]).openings]
        if len(ready) % options.at_once:
            raise Unparseable(f"{len(ready)} sites were opened, but every burst has {options.at_once}")
        bursts = [ready[first : first + options.at_once] for first in range(0, len(ready), options.at_once)]
        last = mean_of(TIME_TO_LAST, [max(burst) for burst in bursts])
        return TrialResult((last, mean_of(TIME_TO_MEDIAN, [median(burst) for burst in bursts])))


PLUGIN = Burst()
