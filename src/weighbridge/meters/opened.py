"""The meters of a session: one for each host, started at its first use and ended with the session."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from weighbridge.meters.kernel import KernelMeter
from weighbridge.meters.meter import Meter
from weighbridge.meters.polling import PolledMeter
from weighbridge.meters.sampled import SampledMeter
from weighbridge.meters.sysstat import SysstatMeter
from weighbridge.model.host import HERE, Host
from weighbridge.model.study import Meters


class OpenMeters:
    """The started meters."""

    def __init__(self, options: Meters, hz: float, stack: ExitStack, *, polled: bool = False) -> None:
        self._options, self._hz, self._stack, self._polled = options, hz, stack, polled
        self._meters: dict[str, Meter] = {}

    def of(self, hosts: Iterable[Host]) -> dict[str, Meter]:
        """Return the meter of each of these hosts by name, or none with ``source: off``.

        Raises Unavailable if the study requests sysstat and it is missing. If the kernel's files of a host cannot be
        read, its trials only get a flag.
        """
        metered_hosts = list(hosts) if self._options.source != "off" else []
        for host in metered_hosts:
            if host.name not in self._meters:
                meter = self._meter(host)
                self._stack.callback(meter.close)
                self._meters[host.name] = PolledMeter(meter) if self._polled and host.machine == HERE else meter
        return {host.name: self._meters[host.name] for host in metered_hosts}

    def _meter(self, host: Host) -> KernelMeter | SampledMeter | SysstatMeter:
        if self._options.source != "kernel":
            return SysstatMeter(host, self._hz)
        if (sampler := host.capabilities.sampler) is not None:
            return SampledMeter(host.name, sampler, self._hz)
        return KernelMeter(host, self._hz)


@contextmanager
def meters(options: Meters, hz: float, *, polled: bool = False) -> Iterator[OpenMeters]:
    """Yield the meters of a session by the study's settings, with ``hz`` readings a second.

    ``polled`` says that idle CPUs of this machine poll (`weighbridge.meters.polling`).
    """
    with ExitStack() as stack:
        yield OpenMeters(options, hz, stack, polled=polled)
