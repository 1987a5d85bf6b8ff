"""Whether what a study's workloads write has room where the storage of its environments puts it."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from shutil import disk_usage

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.linux.memory_room import mib
from weighbridge.model.command import Command
from weighbridge.model.host_options import HostOptions
from weighbridge.model.mount import SiteStorage
from weighbridge.model.site import DATA, Site
from weighbridge.model.storage import StorageOptions
from weighbridge.model.study import Arm, Cell, Study
from weighbridge.runner.storage import storage_options
from weighbridge.userland.build import cache_folder

_WRITE = "its workloads write"
_HELP = "make that larger, or the files of its workloads smaller"
_AVAILABLE = "df", "--block-size=1", "--output=avail", DATA


def written(study: Study, arm: Arm) -> int:
    """About how many bytes the workloads of an environment write: they keep them until its sites are closed.

    Of the levels of a workload the largest counts, as most of them have the same files.
    """
    largest: dict[str, int] = {}
    for cell in study.cells:
        if arm in study.arms_of(cell):
            largest[cell.workload] = max(largest.get(cell.workload, 0), _written(study, arm, cell))
    return sum(largest.values())


def _written(study: Study, arm: Arm, cell: Cell) -> int:
    workload, options = registry.workloads()[cell.kind], study.options(arm, cell)
    return workload.room(options) * cell.sites if workload.needs_data(options) else 0


def lacking_room(study: Study) -> Mapping[str, str]:
    """Why the data of an environment have no room, by its name, as far as that is known before a host is open."""
    found, here = {}, Counter[str]()
    for arm in study.arms:
        options, asked = storage_options(arm), written(study, arm)
        capacity = options.capacity if options is not None else None
        if capacity is not None and asked > capacity:
            found[arm.name] = f"{_WRITE} about {mib(asked)}, and its storage holds {mib(capacity)}: {_HELP}"
        elif options is not None and not options.on_host_disk and asked > (memory := _memory(study)):
            found[arm.name] = (
                f"{_WRITE} about {mib(asked)} to memory, of which its sites may have {mib(memory)}: {_HELP}"
            )
        elif (options is None or options.on_host_disk) and not _data_host(study, options).traits.own_kernel:
            here[arm.name] = asked
    if not found and (free := _free_here()) < here.total():
        most = max(here, key=lambda name: here[name])
        told = f"the workloads of all environments write about {mib(here.total())}"
        found[most] = f"{told}, and this machine's disk has {mib(free)} free at {cache_folder()}: {_HELP}"
    return found


def _memory(study: Study) -> int:
    """Bytes of memory that all sites of an environment may have: what is written to memory is charged to them."""
    limit = study.file.resources.memory
    return sys.maxsize if limit is None else limit * max(cell.sites for cell in study.cells)


def _data_host(study: Study, options: StorageOptions | None) -> HostOptions:
    """The host whose disk has what is written to a storage: that of a placed server, else that of the sites."""
    served = options is not None and registry.storage()[options.kind].served
    return study.file.hosts[next(iter(study.storage_hosts if served else ()), study.server_host)]


def _free_here() -> int:
    there = cache_folder()
    return disk_usage(next(folder for folder in (there, *there.parents) if folder.exists())).free


class Room:
    """What was promised of the disks on which the sites of a run have their data."""

    def __init__(self) -> None:
        self._promised = Counter[str]()

    def claim(self, site: Site, storage: SiteStorage, asked: int) -> Callable[[], None]:
        """Take ``asked`` bytes for a site: sites whose storage has no size of its own share the disk of its host.

        What is returned gives them back. Raises Unavailable where they are not there. A site without df takes them
        unseen.
        """
        servers = [host.name for mount in storage.mounts for host in mount.servers]
        disk = site.name if storage.capacity is not None else next(iter(servers), site.host.name)
        if not asked or (free := _available(site)) is None:
            return lambda: None
        if free - self._promised[disk] < asked:
            taken = (
                f", of which {mib(self._promised[disk])} are for other environments" if self._promised[disk] else ""
            )
            raise Unavailable(
                f"{site.name}: {_WRITE} about {mib(asked)}, and its storage has {mib(free)} free{taken}: {_HELP}"
            )
        self._promised.update({disk: asked})
        return lambda: self._promised.subtract({disk: asked})


def _available(site: Site) -> int | None:
    done = site.run(Command(_AVAILABLE, 60))
    told: Iterable[str] = done.text.split()[1:2] if done.returncode == 0 else ()
    return next((int(word) for word in told if word.isdecimal()), None)
