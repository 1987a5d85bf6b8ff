"""One power cut: a site's program writes records, its disk's host is killed, and what is there is read back."""

import gzip
import secrets
import time
from collections.abc import Callable
from contextlib import suppress

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.model.command import Command
from weighbridge.model.host import Host, Power
from weighbridge.model.power_cut import TOKEN, Promise, ReadBack, read_back
from weighbridge.model.site import DATA, Mount, Site
from weighbridge.runner.storage import mounted

PROGRAM = "weighbridge-powercut"
"""In the userland of the check: ``weighbridge/c/powercut``."""
BETWEEN_US = 2000
"""Microseconds between two records: so a check writes a few megabytes, and its acknowledgements are read in time."""
_FIRST_S, _LOOK_S, _FIND_S, _READ_S = 60.0, 0.05, 300.0, 300.0
_FIND = 'find "$1" -xdev -type f -name "$2" -print -quit'
_ABSENT = 3
_PACK = f'test -e "$1" || exit {_ABSENT}; exec gzip -c "$1"'


class Writer:
    """A program in a site that has records kept, and tells of each that was acknowledged in a file of the site."""

    def __init__(self, site: Site, command: Command, file: str, mark: bytes) -> None:
        """Start it. The file has one ``mark`` for each record."""
        self._site, self._file, self._mark = site, file, mark
        self._running = site.start(command)

    def acknowledged(self) -> int:
        """How many records were, so far. Raises Unavailable where it has ended."""
        if self._running.poll() is not None:
            raise Unavailable(f"the writer of records ended: {self._running.stop().last_words}")
        with suppress(FileNotFoundError):
            return self._site.read(self._file).count(self._mark)
        return 0

    def begin(self) -> None:
        """Wait for the first. Raises Unavailable where there is none in time."""
        deadline = time.monotonic() + _FIRST_S
        while not self.acknowledged():
            if time.monotonic() > deadline:
                raise Unavailable(f"the writer of records acknowledged none within {_FIRST_S:.0f} s")
            time.sleep(_LOOK_S)

    def until_cut(self, host: Host, power: Power, seconds: float, say: Callable[[str], None]) -> int:
        """Let it write for so many seconds, cut the power of the host, and give how many were acknowledged before."""
        say(f"writing records for {seconds:g} s")
        time.sleep(seconds)
        count = self.acknowledged()
        power.cut()
        say(f"the power of host {host.name} was cut after {count} acknowledged records; starting it again")
        return count


def cut_and_read_back(
    site: Site, mounts: list[Mount], promise: Promise, seconds: float, say: Callable[[str], None]
) -> tuple[Host, int, ReadBack]:
    """Write for so many seconds, cut the power, and give whose it was, how many records were acknowledged, the rest.

    ``mounts`` are those of the site's storage, whose server it is, where it has one. Acknowledged is what was seen to
    be before the cut: a few more may have been. Raises Unavailable where the power or the data cannot be reached.
    """
    host = host_of(site, mounts)
    power = power_of(host)
    token = secrets.token_hex(TOKEN // 2)
    name = f"weighbridge-powercut-{token}"
    seen = f"/run/{name}"
    site.thaw()
    writer = Writer(site, Command((PROGRAM, f"{DATA}/{name}", promise, token, seen, str(BETWEEN_US))), seen, b"+")
    writer.begin()
    file = None if in_memory(site) else file_on(host, power, name)
    count = writer.until_cut(host, power, seconds, say)
    with power.restored() as again:
        content = b"" if file is None else _content(again, file)
    return host, count, read_back(content, token, count)


def host_of(site: Site, mounts: list[Mount]) -> Host:
    """On whose disk the site's data are. Raises Unavailable where that is none that can be looked for."""
    servers = {host.name: host for mount in mounts for host in mount.servers}
    if len(servers) > 1:
        raise Unavailable(f"its data are on several hosts: {', '.join(servers)}")
    for host in servers.values():
        return host
    if site.layers != site.host.layers:
        raise Unavailable("its data are on a disk of a machine inside of its host, where they are not looked for")
    return site.host


def power_of(host: Host) -> Power:
    """Its power. Raises Unavailable where that cannot be cut."""
    if (power := host.capabilities.power) is None:
        raise Unavailable(f"its data are on host {host.name}, whose power cannot be cut: use a host of kind guest")
    return power


def in_memory(site: Site) -> bool:
    """Whether what a site has for its data is memory: no cut leaves any of it."""
    return mounted(site)[:1] in (("tmpfs",), ("ramfs",))


def file_on(host: Host, power: Power, name: str) -> str:
    """The path of the site's file on the host's data disk, by which it is found again. Raises Unavailable."""
    done = host.run(Command(("sh", "-c", _FIND, "find", power.data, name), _FIND_S))
    if not (path := done.text.strip()):
        raise Unavailable(f"its data are not found on the data disk of host {host.name}")
    return path


def _content(host: Host, file: str) -> bytes:
    """What the file holds; empty where it is not there any more. Raises EnvironmentLost where it cannot be read."""
    done = host.run(Command(("sh", "-c", _PACK, "pack", file), _READ_S))
    if done.returncode == _ABSENT:
        return b""
    if done.returncode != 0:
        raise EnvironmentLost(f"host {host.name}: what was written cannot be read: {done.last_words}")
    return gzip.decompress(done.stdout)
