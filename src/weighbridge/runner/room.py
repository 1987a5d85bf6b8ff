"""Checks that the data of a study's workloads fit on the storage of its environments."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage
from threading import Lock

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.linux.memory_room import MEMINFO, mib, room_in
from weighbridge.model.command import Command
from weighbridge.model.host_kind import HostOptions
from weighbridge.model.site import DATA, Site, SiteStorage
from weighbridge.model.storage import StorageOptions
from weighbridge.model.study import Arm, Study
from weighbridge.runner.storage import storage_options
from weighbridge.userland.build import cache_folder

_WRITE = "its workloads write"
_HELP = "make room, or use smaller files"
_FEWER = "use fewer files"
_AVAILABLE = "df", "--block-size=1", "--output=avail,iavail,itotal", DATA


@dataclass(frozen=True, slots=True)
class DiskWrites:
    """The approximate bytes and files that the workloads of an environment write."""

    size: int = 0
    files: int = 0


def written(study: Study, arm: Arm, *, sites: bool = True) -> DiskWrites:
    """Return what all sites of an environment, or one, write: for each workload, as much as its largest level."""
    size, files = Counter[str](), Counter[str]()
    for cell in study.cells:
        workload, options = registry.workloads()[cell.kind], study.options(arm, cell)
        if arm in study.arms_of(cell) and workload.needs_data(options):
            size |= {cell.workload: workload.room(options) * (cell.sites if sites else 1)}
            files |= {cell.workload: workload.inodes(options) * (cell.sites if sites else 1)}
    return DiskWrites(size.total(), files.total())


def lacking_room(study: Study) -> Mapping[str, str]:
    """Return why an environment's data do not fit, by its name, if that is known before a host is open."""
    reasons, local_size = {}, Counter[str]()
    for arm in study.arms:
        options, size = storage_options(arm), written(study, arm).size
        capacity = options.capacity if options is not None else None
        if capacity is not None and size > capacity:
            reasons[arm.name] = f"{_WRITE} about {mib(size)}, but its storage holds {mib(capacity)}: {_HELP}"
        elif options is not None and not options.on_host_disk:
            if reason := _lacking_memory(study, arm, options, size):
                reasons[arm.name] = reason
        elif not _data_host(study, options).traits.own_kernel:
            local_size[arm.name] = size
    if not reasons and (free := _free_here()) < local_size.total():
        most = max(local_size, key=lambda name: local_size[name])
        reason = f"together, the workloads of all environments write about {mib(local_size.total())}"
        reasons[most] = f"{reason}, but this machine's disk has {mib(free)} free at {cache_folder()}: {_HELP}"
    return reasons


def _lacking_memory(study: Study, arm: Arm, options: StorageOptions, size: int) -> str | None:
    """Return why the data of all sites of an environment do not fit in memory; None if they do."""
    limit, one = study.resources_of(arm.name).memory, written(study, arm, sites=False).size
    if limit is not None and one > limit:
        return f"{_WRITE} about {mib(one)} to memory, but their memory limit is {mib(limit)}: {_HELP}"
    if not _data_host(study, options).traits.own_kernel and size > (memory := _memory_here()):
        return f"{_WRITE} about {mib(size)} to memory, but this machine has {mib(memory)} free: {_HELP}"
    return None


def _data_host(study: Study, options: StorageOptions | None) -> HostOptions:
    """Return the host whose disk holds a storage's data: the host of its server if the study places one."""
    served = options is not None and registry.storage()[options.kind].served
    return study.file.hosts[next(iter(study.storage_hosts if served else ()), study.server_host)]


def _memory_here() -> int:
    return room_in(Path(MEMINFO).read_text()).available


def _free_here() -> int:
    cache = cache_folder()
    return disk_usage(next(folder for folder in (cache, *cache.parents) if folder.exists())).free


class DiskBudget:
    """The room that is reserved on the disks with the data of a run's sites."""

    def __init__(self) -> None:
        self._promised = defaultdict[str, DiskWrites](DiskWrites)
        self._claiming = Lock()

    def claim(self, site: Site, storage: SiteStorage, demand: DiskWrites) -> Callable[[], None]:
        """Reserve room for a site: sites whose storage has no size of its own share the disk of its host.

        Returns a function that releases it. Raises Unavailable if there is too little. Nothing is reserved in a site
        without df.
        """
        servers = [host.name for mount in storage.mounts for host in mount.servers]
        disk = site.name if storage.capacity is not None else next(iter(servers), site.host.name)
        if not demand.size or (free := _available(site)) is None:
            return lambda: None
        with self._claiming:
            self._promise(disk, site.title, demand, free)
        return lambda: self._give_back(disk, demand)

    def _promise(self, disk: str, title: str, demand: DiskWrites, free: DiskWrites) -> None:
        others = self._promised[disk]
        for text, needed, unused, promised, remedy in (
            (mib, demand.size, free.size, others.size, _HELP),
            ("{} files".format, demand.files, free.files, others.files, _FEWER),
        ):
            if unused - promised < needed:
                reserved = (
                    f", of which {text(promised)} are for other environments" if text(promised) != text(0) else ""
                )
                short = f"{_WRITE} about {text(needed)}, but its storage has {text(unused)} free{reserved}"
                raise Unavailable(f"{title}: {short}: {remedy}")
        self._promised[disk] = DiskWrites(others.size + demand.size, others.files + demand.files)

    def _give_back(self, disk: str, demand: DiskWrites) -> None:
        promised = self._promised[disk]
        self._promised[disk] = DiskWrites(promised.size - demand.size, promised.files - demand.files)


def _available(site: Site) -> DiskWrites | None:
    """Return the free bytes and files of a site's disk; without fixed inodes, as many files as bytes."""
    completed = site.run(Command(_AVAILABLE, 60))
    words = completed.text.split()[-3:] if completed.returncode == 0 else []
    if len(words) < 3 or not words[0].isdecimal():
        return None
    size, files, all_files = (int(word) if word.isdecimal() else 0 for word in words)
    return DiskWrites(size, files if all_files else size)
