"""density: idle sites, one after another, until memory or their start degrades; the memory of each."""

from collections.abc import Mapping
from statistics import linear_regression
from typing import Annotated

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed, Unparseable
from weighbridge.model.openings import Opened, Openings, read_opened, start_slowdown
from weighbridge.model.options import Options
from weighbridge.model.quantity import Duration
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload

MEMORY_PER_SITE = Metric("memory_per_site", "MiB", "lower")
MEMORY_IN_GROUP = Metric("memory_in_group", "MiB", "lower")
START_SLOWDOWN = Metric("start_slowdown", "x", "lower")
SITES = Metric("sites", "count", "higher")
_MIB = 2**20
_EXPECTED_S = 0.5


class DensityOptions(Options):
    """Options of many idle sites."""

    sites: Annotated[
        int, Field(ge=2, le=500, description="Largest number of sites that are open at the same time")
    ] = 8
    settle: Annotated[
        Duration, Field(ge=0, le=60, description="How long an instance is idle before Weighbridge reads its memory")
    ] = 0.5
    slow: Annotated[
        float,
        Field(gt=1, le=1000, description="Stop after three starts in a row that take this many times the first ones"),
    ] = 10.0


class Density(Workload):
    """Sites like the measured one are opened and left idle, then closed in reverse. Each start is warm, as boot's.

    ``memory_per_site`` is the slope of the least-squares line through the growth of the machine's used memory
    against the number of open sites, from none on: used is what MemAvailable (proc(5)) lacks. That counts whoever
    works for a site, the engine's processes too, and all memory that a guest has touched, but not cache that the
    kernel gives back: the pages of programs that containers share are no cost, a guest's own cache is. All of the
    machine is seen: another program's memory, too. Domains of Xen get none of a machine's memory, but Xen's own: that
    counts for them, and may be used up. ``memory_in_group`` is the mean of what the sites' own control
    groups are charged with, without an engine's processes. No site is opened once less than a tenth of the memory,
    or than 1 GiB, would stay available.

    ``start_slowdown`` is the median time to ready of the last k sites over that of the first k, k = min(3, n // 2) of
    n sites. ``sites`` is how many were reached where memory or slow starts stopped the trial. Where the option did,
    more would have fit, nobody knows how many: there is no such figure then, and nothing to call equivalent.
    """

    kind = "density"
    summary = "idle instances (containers, guests), opened one after another: memory, start time, how many fit"
    options = DensityOptions
    packages = ("coreutils",)

    def openings(self, options: DensityOptions) -> Openings:
        """All open together."""
        return Openings(options.sites, together=True, settle_s=options.settle, slow=options.slow)

    def metrics(self, options: DensityOptions) -> tuple[Metric, ...]:
        """Memory of a site in MiB, of its control group, how its start slows down, how many sites fit."""
        return MEMORY_PER_SITE, MEMORY_IN_GROUP, START_SLOWDOWN, SITES

    def command(self, role: Role, options: DensityOptions, at: Endpoint) -> Command:
        """The first command of each site."""
        return Command(("true",), deadline_s=60.0 + 2 * self.expected_s(options))

    def expected_s(self, options: DensityOptions) -> float:
        """Seconds; what an environment really takes is known once it has been seen."""
        return options.sites * (options.settle + _EXPECTED_S)

    def parse(self, options: DensityOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """What the openings show. Raises ProgramFailed, Unparseable.

        There is no ``memory_in_group`` where sites have no group, no ``sites`` where all of them were opened.
        """
        opened = read_opened(completed["solo"])
        if len(opened.openings) != options.sites and not opened.stopped:
            raise Unparseable(f"{len(opened.openings)} sites were opened, not {options.sites}")
        if len(opened.openings) < 2:
            raise ProgramFailed("one site used up the memory: close other programs, or use a larger machine")
        charged = [each.group_bytes / _MIB for each in opened.openings if each.group_bytes is not None]
        measured = [Measurement(MEMORY_PER_SITE, memory_per_site(opened) / _MIB)]
        if len(charged) == len(opened.openings):
            measured.append(Measurement(MEMORY_IN_GROUP, sum(charged) / len(charged)))
        measured.append(Measurement(START_SLOWDOWN, start_slowdown([each.ready_s for each in opened.openings])))
        if opened.stopped:
            measured.append(Measurement(SITES, len(opened.openings)))
        return TrialResult(tuple(measured))


def memory_per_site(opened: Opened) -> float:
    """Bytes: the slope of the least-squares line through used memory against open sites. Raises Unparseable."""
    levels = [opened.available_bytes, *(each.available_bytes for each in opened.openings)]
    readable = [level for level in levels if level is not None]
    if len(readable) != len(levels):
        raise Unparseable("the memory of the machine could not be read")
    return -linear_regression(range(len(readable)), readable).slope


PLUGIN = Density()
