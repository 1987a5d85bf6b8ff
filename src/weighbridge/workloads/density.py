"""density: opens idle sites until memory is used up or starts become slow, and measures the memory of each."""

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
    """Opens sites like the measured one, leaves them idle, and closes them in reverse. Each start is warm, as with
    boot.

    ``memory_per_site`` is the slope of the least-squares line through the machine's used memory against the number of
    open sites, from zero on. Used memory is total memory minus MemAvailable (proc(5)). It includes every process that
    works for a site, such as the engine's, and all memory that a guest has touched. It does not include cache that
    the kernel can reclaim: shared pages of programs in containers cost nothing, and a guest's own cache does. It
    covers the complete machine, so another program's memory changes it. Xen's domains use Xen's own memory, which
    counts for them and can be exhausted.

    ``memory_in_group`` is the mean charge of the sites' own control groups, without an engine's processes. No site is
    opened if less than a tenth of the memory, or less than 1 GiB, would stay available.

    ``start_slowdown`` is the median time to ready of the last k sites divided by that of the first k. For n sites, k
    = min(3, n // 2). ``sites`` is the number of open sites if memory or slow starts ended the trial. If the option
    ended it, more would have fit. Their number is unknown, so there is no figure that could be called equivalent.
    """

    kind = "density"
    summary = "idle instances (containers, guests), opened one after another: memory, start time, how many fit"
    options = DensityOptions
    packages = ("coreutils",)

    def openings(self, options: DensityOptions) -> Openings:
        return Openings(options.sites, together=True, settle_s=options.settle, slow=options.slow)

    def metrics(self, options: DensityOptions) -> tuple[Metric, ...]:
        """Return the memory of a site in MiB, that of its control group, the slowdown of starts, and the sites that
        fit."""
        return MEMORY_PER_SITE, MEMORY_IN_GROUP, START_SLOWDOWN, SITES

    def command(self, role: Role, options: DensityOptions, at: Endpoint) -> Command:
        return Command(("true",), deadline_s=60.0 + 2 * self.expected_s(options))

    def expected_s(self, options: DensityOptions) -> float:
        """Guess the time. The real one is known only after the environment has been measured."""
        return options.sites * (options.settle + _EXPECTED_S)

    def parse(self, options: DensityOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the openings. Raises ProgramFailed or Unparseable.

        ``memory_in_group`` is absent if sites have no control group, and ``sites`` if all of them were opened.
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
    """Return the slope in bytes of the least-squares line of used memory against open sites. Raises Unparseable."""
    levels = [opened.available_bytes, *(each.available_bytes for each in opened.openings)]
    readable = [level for level in levels if level is not None]
    if len(readable) != len(levels):
        raise Unparseable("the memory of the machine could not be read")
    return -linear_regression(range(len(readable)), readable).slope


PLUGIN = Density()
