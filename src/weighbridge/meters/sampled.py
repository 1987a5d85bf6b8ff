"""The meter of a host without Python: the launchers of the host and of each site read their own files."""

import time
from collections.abc import Mapping

from weighbridge.errors import EnvironmentLost
from weighbridge.meters.meter import NO_SAMPLERS, MeterFailed, MeterReadings, Samplers
from weighbridge.meters.readings import Readings
from weighbridge.meters.scopes import Order
from weighbridge.meters.series import series
from weighbridge.model.sampling import Sampler
from weighbridge.model.trial import Series


class SampledMeter:
    """Reads ``hz`` times a second while a trial runs. Implements ``Meter``."""

    def __init__(self, host: str, sampler: Sampler, hz: float) -> None:
        self._host, self._sampler, self._hz = host, sampler, hz
        self._begun: list[tuple[Sampler, Order, float]] = []

    def begin(self, sites: Mapping[str, Mapping[str, str]], samplers: Samplers = NO_SAMPLERS) -> None:
        """Begin to read the files of the host, and of the sites that have their own sampler."""
        self._begun = []
        orders = [(self._sampler, Order.of({}, self._host))]
        orders += [(sampler, Order.of({role: sites[role]})) for role, sampler in samplers.items()]
        for sampler, order in orders:
            begun = time.monotonic()
            try:
                sampler.begin_sampling(self._hz, order.sampled)
            except (EnvironmentLost, OSError) as error:
                raise MeterFailed(str(error)) from error
            self._begun.append((sampler, order, begun))

    def end(self, since: float) -> MeterReadings:
        """Return every series of the host and its sites, and the CPU time of reading them."""
        begun, self._begun = self._begun, []
        if not begun:
            raise MeterFailed("it was not started")
        every: list[Series] = []
        cpu_s = 0.0
        for sampler, order, at in begun:
            try:
                taken = sampler.end_sampling()
            except (EnvironmentLost, OSError, ValueError) as error:
                raise MeterFailed(str(error)) from error
            texts = dict(zip(order.files, taken.texts, strict=True))
            every += series(Readings(tuple(taken.at), texts, taken.ticks, taken.page, taken.cpu_s), at - since)
            cpu_s += taken.cpu_s
        return MeterReadings(tuple(every), cpu_s)

    def close(self) -> None:
        """Do nothing, because launchers end with their sites."""
