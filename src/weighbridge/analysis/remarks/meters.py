"""Remarks about what the meters can show."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weighbridge.analysis.conditions import (
    NO_HYPERVISOR,
)
from weighbridge.analysis.readings import ReadingRate
from weighbridge.analysis.remarks.rules import (
    AboutEnvironment,
    ArmValues,
    ComparisonInRun,
    about_comparison,
    about_values,
)
from weighbridge.analysis.resources import CPU_TIME
from weighbridge.analysis.results import Remark, RemarkPlace
from weighbridge.model.interrupt_time import InterruptTime
from weighbridge.model.measurement import SITES_CPU, is_difference_itself


@dataclass(frozen=True, slots=True)
class InterruptTimeApart(Remark):
    """A site's CPU time does not include interrupts, certainly (``sure``) or possibly."""

    code = "interrupt-time"
    sure: bool


@about_comparison(230)
def _interrupt_time_apart(comparison: ComparisonInRun) -> Iterator[Remark]:
    charged: InterruptTime = "charged to the interrupted task"
    apart: InterruptTime = "accounted apart"
    kinds = comparison.context.interrupts
    if comparison.report.metric.startswith(SITES_CPU) and not set(kinds) <= {charged}:
        yield InterruptTimeApart(apart in kinds)


@dataclass(frozen=True, slots=True)
class GuestTicks(AboutEnvironment):
    """CPU time is counted in ticks of ``host``, a guest on an emulator, which does not report steal time."""

    code = "guest-ticks"
    host: str


@about_comparison(240)
def _guest_ticks(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield sides on emulated hosts. A real machine counts the CPU time of an emulator's process correctly."""
    if comparison.report.metric.startswith(CPU_TIME):
        yield from dict.fromkeys(
            GuestTicks(name, site.host)
            for name in reversed(comparison.sides)
            for site in comparison.context.isolation.get(name, NO_HYPERVISOR).sites
            if any(layer.emulated for layer in site.of_host)
        )


@dataclass(frozen=True, slots=True)
class FewReadings(Remark):
    """The meters took ``readings`` per trial in the median at ``hz``; ``wanted_hz`` is enough, None if no rate is.

    ``chosen`` means that a pilot block chose the trial lengths, so that the user has nothing to change.
    """

    code = "readings"
    placement = RemarkPlace.METERS
    hz: float
    readings: int
    wanted_hz: int | None
    chosen: bool = False


@about_comparison(250)
def _few_readings(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield too few readings: short trials have few, because meters read a few times per second."""
    if is_difference_itself(comparison.report.metric):
        few = few_readings(comparison.context.readings, [trial.id for trial in comparison.trials if trial.ok])
        yield from [few] if few else []


def few_readings(rate: ReadingRate | None, trials: Sequence[int]) -> FewReadings | None:
    """Return a remark if the median of these trials has too few readings, with the rate that would be enough."""
    if rate is None or rate.enough(trials):
        return None
    return FewReadings(rate.hz, round(rate.median_s(trials) * rate.hz), rate.enough_hz(trials), rate.chosen)


MEMORY_PER_SITE = "memory_per_site"
"""The growth of the machine's total used memory per site; no site can use less than nothing."""


@dataclass(frozen=True, slots=True)
class Unresolved(AboutEnvironment):
    """In ``count`` of ``trials``, the machine's memory grew by zero or less, which hides the sites' memory."""

    code = "unresolved"
    count: int
    trials: int

    @property
    def unresolved_in(self) -> str:
        """The environment itself."""
        return self.environment


@about_values(40)
def _unresolved(values: ArmValues) -> Iterator[Remark]:
    impossible = sum(value <= 0 for value in values.values) if values.metric == MEMORY_PER_SITE else 0
    if impossible:
        yield Unresolved(values.environment, impossible, len(values.values))
