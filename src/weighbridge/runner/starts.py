"""What starting a process takes in a site, which is no part of what the process does."""

from statistics import median

from weighbridge.meters.machines import Idle, Read, read_here
from weighbridge.model.command import Command
from weighbridge.model.site import Site
from weighbridge.runner.machine_use import MachineUse, reader_of

STARTS = 5
"""How many processes that do nothing are started in a site, to know what a start takes."""


def start_cpu_s(site: Site, idle: Idle | None, here: Read = read_here) -> tuple[float, float]:
    """CPU seconds of starting a process: in a site the median of a few that do nothing, of its machine the mean.

    The machine's are those beyond its idle level and what this process uses; 0 where that level is not known.
    ``here`` reads the files of this machine.
    """
    machine, costs = site.host.machine, []
    whole = MachineUse({machine: reader_of(site.host, here)} if idle else {}, {})
    whole.begin()
    for _ in range(STARTS):
        before = site.meters().get("cpu_s", 0.0)
        site.run(Command(("true",)))
        costs.append(max(0.0, site.meters().get("cpu_s", 0.0) - before))
    whole.end()
    beyond_s = whole.beyond_s({machine: idle}) if idle else None
    return median(costs), max(0.0, beyond_s or 0.0) / STARTS
