"""Checks durability: each environment of a study writes to its storage until the power is cut.

A site's program writes records, or a database's clients commit them. The host of its disk is killed, and the
remaining records are read back.
"""

import gzip
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from weighbridge import registry
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.durability.records import TOKEN, ReadBack, read_back, read_committed
from weighbridge.model.choices import Promise
from weighbridge.model.command import Command
from weighbridge.model.decisions import LeftOut
from weighbridge.model.host import Host, HostTraits, Power, RunContext
from weighbridge.model.measurement import TrialFailure
from weighbridge.model.names import RunId, SafeName
from weighbridge.model.power_cut import ACKNOWLEDGED, Ledger, PowerCut
from weighbridge.model.site import DATA, Mount, Site, SiteRequest, SiteStorage
from weighbridge.model.study import Arm, Cell, Placement, Role, Study
from weighbridge.model.userland import Userland, UserlandSpec
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.runner import clean, run_lock
from weighbridge.runner.planned import left_out_line
from weighbridge.runner.preflight import hosts_readiness, require_userland
from weighbridge.runner.programs import Programs, put_files
from weighbridge.runner.signals import shield
from weighbridge.runner.sites import limits_of, open_hosts, site_name
from weighbridge.runner.stage import Stage
from weighbridge.runner.storage import durability_of, mounted, require_in_force, site_storage, storage_durability
from weighbridge.userland.build import cache_folder, ensure

PROGRAM = "weighbridge-powercut"
"""In the userland of the check: ``userland/projects/powercut``."""
BETWEEN_US = 2000
"""Microseconds between two records: so a check writes a few megabytes, and its acknowledgements are read in time."""
_FIRST_S, _LOOK_S, _FIND_S, _READ_S = 60.0, 0.05, 300.0, 300.0
_FIND = 'find "$1" -xdev -type f -name "$2" -print -quit'
_ABSENT = 3
_PACK = f'test -e "$1" || exit {_ABSENT}; exec gzip -c "$1"'


class Writer:
    """A program in a site that writes records, and logs each acknowledged one in a file of the site."""

    def __init__(self, site: Site, command: Command, file: str, mark: bytes) -> None:
        """Start it. The file has one ``mark`` for each record."""
        self._site, self._file, self._mark = site, file, mark
        self._running = site.start(command)

    def acknowledged(self) -> int:
        """Return the number of records acknowledged so far. Raises Unavailable if the writer has ended."""
        if self._running.poll() is not None:
            raise Unavailable(f"the program that writes the records exited: {self._running.stop().last_words}")
        with suppress(FileNotFoundError):
            return self._site.read(self._file).count(self._mark)
        return 0

    def begin(self) -> None:
        """Wait for the first acknowledged record. Raises Unavailable if none comes in time."""
        deadline = time.monotonic() + _FIRST_S
        while not self.acknowledged():
            if time.monotonic() > deadline:
                raise Unavailable(f"the program that writes the records acknowledged none within {_FIRST_S:.0f} s")
            time.sleep(_LOOK_S)

    def until_cut(self, host: Host, power: Power, seconds: float, say: Callable[[str], None]) -> int:
        """Let it write for ``seconds``, cut the power of the host, and return the number of acknowledged records."""
        say(f"writing records for {seconds:g} s")
        time.sleep(seconds)
        count = self.acknowledged()
        power.cut()
        say(f"cut the power of host {host.name} after {count} acknowledged records, and restarting it")
        return count


def cut_and_read_back(
    site: Site, mounts: list[Mount], promise: Promise, seconds: float, say: Callable[[str], None]
) -> tuple[Host, int, ReadBack]:
    """Write for ``seconds``, cut the power, and return the power, the number of acknowledged records and the rest.

    ``mounts`` belong to the site's storage, including its server if it has one. Only records that were seen before
    the cut count as acknowledged. Raises Unavailable if the power or the data cannot be reached.
    """
    host = host_of(site, mounts)
    power = power_of(host)
    token = secrets.token_hex(TOKEN // 2)
    name = f"weighbridge-powercut-{token}"
    ack_file = f"/run/{name}"
    site.thaw()
    writer = Writer(
        site, Command((PROGRAM, f"{DATA}/{name}", promise, token, ack_file, str(BETWEEN_US))), ack_file, b"+"
    )
    writer.begin()
    file = None if in_memory(site) else file_on(host, power, name)
    count = writer.until_cut(host, power, seconds, say)
    with power.restored() as again:
        content = b"" if file is None else _content(again, file)
    return host, count, read_back(content, token, count)


def host_of(site: Site, mounts: list[Mount]) -> Host:
    """Return the host with the disk of a site's data. Raises Unavailable if the data cannot be checked."""
    servers = {host.name: host for mount in mounts for host in mount.servers}
    if len(servers) > 1:
        raise Unavailable(f"its data is on several hosts ({', '.join(servers)}): put it on one host")
    for host in servers.values():
        return host
    if site.layers != site.host.layers:
        raise Unavailable("its data is on a virtual disk inside its host, and Weighbridge cannot check such a disk")
    return site.host


def power_of(host: Host) -> Power:
    """Return the power of a host. Raises Unavailable if it cannot be cut."""
    if (power := host.capabilities.power) is None:
        raise Unavailable(
            f"its data is on host {host.name}, which Weighbridge cannot power off: use a host of kind guest"
        )
    return power


def in_memory(site: Site) -> bool:
    """Return whether what a site has for its data is memory: no cut leaves any of it."""
    return mounted(site)[:1] in (("tmpfs",), ("ramfs",))


def file_on(host: Host, power: Power, name: str) -> str:
    """Return the path of the site's file on the host's data disk, to find it again. Raises Unavailable."""
    completed = host.run(Command(("sh", "-c", _FIND, "find", power.data, name), _FIND_S))
    if not (path := completed.text.strip()):
        raise Unavailable(f"its data was not found on the data disk of host {host.name}")
    return path


def _content(host: Host, file: str) -> bytes:
    """Return the content of a file; empty if the file is gone. Raises EnvironmentLost if it cannot be read."""
    completed = host.run(Command(("sh", "-c", _PACK, "pack", file), _READ_S))
    if completed.returncode == _ABSENT:
        return b""
    if completed.returncode != 0:
        raise EnvironmentLost(f"host {host.name}: the written data cannot be read: {completed.last_words}")
    return gzip.decompress(completed.stdout)


_RECOVER_S, _AGAIN_S = 120.0, 0.5
_ERROR = re.compile(r"\b(?:PANIC|FATAL|ERROR)\b(?![^\n]*starting up)[^\n]*")
_LOOPBACK = Endpoint("127.0.0.1", "127.0.0.1", 0, "127.0.0.1")


@dataclass(frozen=True, slots=True)
class CheckedServer:
    """A workload's server that is checked, and the clients that commit to it."""

    workload: Workload
    options: Any
    at: Endpoint
    ledger: Ledger

    @classmethod
    def of(cls, kind: str, options: Any, host: Host) -> "CheckedServer":
        """Return the server of a workload whose commits can be counted, on a free port of the host."""
        workload, at = registry.workloads()[kind], replace(_LOOPBACK, port=host.free_ports(()))
        ledger = workload.ledger(options, at)
        assert ledger is not None
        return cls(workload, options, at, ledger)

    def programs(self, site: Site) -> Programs:
        """Return its programs in a site, before any of them runs."""
        return Programs(self.workload, self.options, Stage({"server": site}, {"server": self.at}))

    def begin(self, site: Site) -> None:
        """Make its data, as before a trial, and start it. Raises TrialFailure."""
        programs = self.programs(site)
        programs.prepare()
        programs.serve(self.workload.command("server", self.options, self.at), site)

    def recover(self, site: Site, programs: Programs) -> None:
        """Start it on the data that are there. Raises TrialFailure."""
        files = self.workload.files("server", self.options, self.at)
        put_files(site, files, {path: self.workload.file_mode(self.options, path) for path in files})
        command = self.workload.command("server", self.options, self.at)
        programs.serve(command, site, ready_s=_RECOVER_S)


def commits(cell: Cell) -> bool:
    """Return whether a workload has a server whose commits can be counted."""
    return registry.workloads()[cell.kind].ledger(cell.options, _LOOPBACK) is not None


def cut_and_recover(
    site: Site, request: SiteRequest, server: CheckedServer, seconds: float, study: Study
) -> tuple[Host, int, ReadBack, str]:
    """Commit for ``seconds``, cut the power, start the server again, and count.

    Returns the power, the number of acknowledged commits, the surviving commits, and an error of the server or "".
    The server is started again natively on that host, on the folder of its storage. Raises Unavailable if the power
    or the data cannot be reached, or if nothing was committed.
    """
    assert request.storage is not None
    host = host_of(site, request.storage.mounts)
    power = power_of(host)
    marker = f"weighbridge-powercut-{secrets.token_hex(8)}"
    site.thaw()
    try:
        server.begin(site)
        marked = site.run(Command(("touch", f"{DATA}/{marker}")))
    except TrialFailure as why:
        raise Unavailable(f"{server.workload.kind}: {why}") from why
    if marked.returncode != 0:
        raise Unavailable(f"nothing can be written to {DATA}: {marked.last_words}")
    folder = None if in_memory(site) else PurePosixPath(file_on(host, power, marker)).parent
    writer = Writer(site, server.ledger.write, ACKNOWLEDGED, b"\n")
    writer.begin()
    count = writer.until_cut(host, power, seconds, request.run.say)
    if folder is None:
        return host, count, read_committed("", count), ""
    with power.restored() as again:
        of_host = study.file.hosts.get(host.name, study.file.hosts[study.server_host])  # a dedicated one is as that
        printed, failure = _read_back(replace(request, host=again), str(folder), server, of_host.own_traits)
    return host, count, read_committed(printed, count), failure


def _read_back(request: SiteRequest, folder: str, server: CheckedServer, traits: HostTraits) -> tuple[str, str]:
    """Return the client's output for the data in a folder of the host, and why it printed nothing."""
    native, options = registry.bare_host(traits)
    storage = SiteStorage("directory", lambda _: nullcontext(Mount("folder", folder)))
    with native.open(options, replace(request, name=SafeName("1-recovered"), storage=storage)) as site:
        site.thaw()
        programs = server.programs(site)
        try:
            server.recover(site, programs)
            return _query(site, server, programs)
        except TrialFailure as why:
            return "", _first_error(programs) or str(why)
        finally:
            programs.stop_server(quietly=True)


def _query(site: Site, server: CheckedServer, programs: Programs) -> tuple[str, str]:
    """Return the client's output and its error. A server can refuse the client until it has recovered."""
    deadline = time.monotonic() + _RECOVER_S
    while (completed := site.run(server.ledger.read)).returncode != 0 and time.monotonic() < deadline:
        if programs.server is None or programs.server.poll() is not None:
            programs.stop_server(quietly=True)
            return "", _first_error(programs) or completed.last_words
        time.sleep(_AGAIN_S)
    return completed.text, "" if completed.returncode == 0 else completed.last_words


def _first_error(programs: Programs) -> str:
    """Return the first error that a server printed; its last line is often a hint."""
    server = programs.completed.get("server")
    error = _ERROR.search(server.stderr.decode(errors="replace")) if server is not None else None
    return error[0].strip()[:300] if error else ""


USERLAND = UserlandSpec.of(c=("powercut",))
_ROLE: Role = "server"
"""The role whose site has the data, even if a workload has no counterpart."""


@dataclass(slots=True)
class CheckedPowerCuts:
    """The checked power cuts, and the environments that could not be checked, each with the reason."""

    checked: list[PowerCut] = field(default_factory=list)
    unchecked: list[LeftOut] = field(default_factory=list)


def checkable(study: Study) -> Study:
    """Return the study on hosts whose disks lose unflushed data, if their power can be cut.

    Clients run on the server's host, so no other host is opened. Raises Unavailable if no power can be cut, or if no
    such host is available.
    """
    placed = {study.server_host, *study.storage_hosts}
    volatile = {name: study.file.hosts[name].with_volatile_cache() for name in placed}
    if not any(volatile.values()):
        names = ", ".join(sorted(placed))
        raise Unavailable(
            f"Weighbridge cannot power off host {names}, because it is this machine or is shared: put the server or "
            "the storage on a host of kind guest"
        )
    hosts = {name: volatile.get(name) or options for name, options in study.file.hosts.items()}
    placement = Placement(server=study.server_host, client=study.server_host, storage=study.file.placement.storage)
    file = study.file.model_copy(update={"hosts": hosts, "placement": placement})
    checkable_study = study.model_copy(update={"file": file})
    lacking = {name: state for name, state in hosts_readiness(checkable_study).items() if not state.ready}
    if lacking:
        raise Unavailable("; ".join(f"host {name}: {why.detail}: {why.remedy}" for name, why in lacking.items()))
    return checkable_study


def check_durability(
    study: Study,
    promises: Sequence[Promise],
    seconds: float,
    say: Callable[[str], None],
    keep: Callable[[PowerCut], None],
) -> CheckedPowerCuts:
    """Cut the power once for each environment and promise, on its own hosts; ``seconds`` is the time of writing.

    Each check takes minutes, so ``keep`` is called with each result. Raises Unavailable if nothing can be checked.
    """
    checkable_study, run_id, cache = checkable(study), RunId.new(), cache_folder()
    durability, needed = CheckedPowerCuts(), userland_of_checks(checkable_study, promises)
    sources = {arm.name: arm.userland or study.file.userland for arm in checkable_study.arms if arm.declared}
    for source in sources.values():
        require_userland(needed, source)
    with run_lock.claim(run_id, cache) as folder:
        try:
            userlands = {name: ensure(needed, cache, say, source) for name, source in sources.items()}
            for arm in (arm for arm in checkable_study.arms if arm.declared):
                for promise, cell in checks(checkable_study, arm, promises):
                    what = f"{promise}" + (f" of {cell.workload}" if cell else "")
                    say(f"{arm.name}: {what}")
                    run = RunContext(run_id, folder, cache, ExitStack(), say)
                    try:
                        cut = _one(checkable_study, arm, promise, cell, seconds, run, userlands[arm.name])
                    except (Unavailable, EnvironmentLost) as error:
                        durability.unchecked.append(
                            LeftOut(environment=arm.name, kind=arm.kind, why=f"{what}: {error}")
                        )
                        continue
                    durability.checked.append(cut)
                    keep(cut)
        finally:
            with shield():
                for failure in clean.sweep_and_forget(run_id):
                    say(f"{failure} ('weighbridge clean' tries again)")
    if not durability.checked:
        raise Unavailable("no environment could be checked: " + "; ".join(map(left_out_line, durability.unchecked)))
    return durability


def checks(study: Study, arm: Arm, promises: Iterable[Promise]) -> Iterator[tuple[Promise, Cell | None]]:
    """Yield each promise to check in an environment; of commits, with each workload's server at its first level."""
    for promise in promises:
        if promise is not Promise.COMMIT:
            yield promise, None
            continue
        cells = {cell.workload: cell for cell in reversed(study.cells) if arm in study.arms_of(cell)}
        for cell in reversed(cells.values()):
            if commits(cell):
                yield promise, cell


def userland_of_checks(study: Study, promises: Iterable[Promise]) -> UserlandSpec:
    """Return the writer of records, and the servers whose commits are counted."""
    kinds = registry.workloads()
    cells = study.cells if Promise.COMMIT in promises else ()
    servers = [kinds[cell.kind].userland(cell.options) for cell in cells if commits(cell)]
    return UserlandSpec.union([USERLAND, *servers])


def _one(
    study: Study, arm: Arm, promise: Promise, cell: Cell | None, seconds: float, run: RunContext, userland: Userland
) -> PowerCut:
    """Run one check. Errors of closing a site on a killed host are expected and ignored."""
    power_cut: PowerCut | None = None
    try:
        with run.stack:
            power_cut = _checked(study, arm, promise, cell, seconds, run, userland)
    except (Unavailable, EnvironmentLost):
        if power_cut is None:
            raise
    assert power_cut is not None
    return power_cut


def _checked(
    study: Study, arm: Arm, promise: Promise, cell: Cell | None, seconds: float, run: RunContext, userland: Userland
) -> PowerCut:
    hosts = open_hosts(study, run)
    host, environment = hosts[study.server_host], registry.environments()[arm.kind]
    storage = site_storage(environment, arm.options, study, _ROLE, hosts)
    if storage is None:
        raise Unavailable("it has no storage: add 'storage:', or use a workload that stores data")
    request = SiteRequest(
        run, host, site_name(0, arm.name, _ROLE), _ROLE, userland,
        limits_of(study.resources_of(arm.name), _ROLE, host),
        environment=arm.name, storage=storage, shm_size=arm.shm_size, sysctls=arm.sysctls,
    )  # fmt: skip
    site = run.stack.enter_context(environment.open(arm.options, request))
    require_in_force(storage.mounts, site)
    failure = ""
    if cell is None:
        cut, acknowledged, back = cut_and_read_back(site, storage.mounts, promise, seconds, run.say)
    else:
        server = CheckedServer.of(cell.kind, study.options(arm, cell), site.host)
        cut, acknowledged, back, failure = cut_and_recover(site, request, server, seconds, study)
    return PowerCut(
        environment=arm.name,
        promise=promise,
        storage=storage.kind,
        claimed=(durability_of(study, arm, cell) if cell else None) or storage_durability(arm),
        host=cut.name,
        acknowledged=acknowledged,
        found=back.found,
        lost=back.lost,
        first_lost=back.first_lost,
        torn=back.torn,
        displaced=back.displaced,
        workload=cell.workload if cell else "",
        failure=failure,
    )
