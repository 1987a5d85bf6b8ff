"""What a workload reads from the outputs of one trial, all of it at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from weighbridge.model.flag import Flag
from weighbridge.model.measurement import Measurement
from weighbridge.model.options import Options


@dataclass(frozen=True, slots=True)
class Work:
    """An amount of work: gigabits, or thousands of transactions or objects."""

    amount: float
    unit: Literal["gbit", "1000_transactions", "1000_objects"]


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The measurements of a trial, the headline first, and what its outputs tell beside them.

    Most programs give measurements alone. The times are in seconds; each that is None has a default (`times`).
    """

    measurements: tuple[Measurement, ...]
    work: Work | None = None
    """All the work that the measured process did from its start to its end, for the cost of a unit of it.

    None where its rate, kept for ``work_s``, tells it: that of most programs does.
    """
    work_s: float | None = None
    """How long the measured process did its work at its rate, by its own clock: without its start and its end."""
    active_s: float | None = None
    """How long it was at its work, where it rests at times. It is the limit where it used its CPU in that time."""
    sending_s: float | None = None
    """How long data were on the network, a warm-up in the same process too. A cable is full that carried its rate."""
    histograms: Mapping[str, str] = field(default_factory=dict)
    """HDR histograms in nanoseconds by metric name, encoded as `weighbridge.statistics` reads them."""
    flags: tuple[Flag, ...] = ()
    """What a reader has to know of a trial that was parsed, such as that the program itself was the limit."""

    def times(self, options: Options, ran_s: float) -> "Times":
        """Return the seconds with their defaults.

        ``work_s`` is the option ``duration`` where there is one, and ``sending_s`` is ``work_s``; what is still not
        known is ``ran_s``: as long as the measured process ran.
        """
        duration = getattr(options, "duration", None)
        work = self.work_s or (float(duration) if isinstance(duration, int | float) else None)
        return Times(work or ran_s, self.active_s or ran_s, self.sending_s or work or ran_s)


@dataclass(frozen=True, slots=True)
class Times:
    """For how many seconds the measured process did its work, was active, and had data on the network."""

    work_s: float
    active_s: float
    sending_s: float
