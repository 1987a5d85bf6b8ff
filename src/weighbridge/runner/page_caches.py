"""Page caches emptied before a trial: what was read or written before must not be what makes it fast."""

from collections.abc import Iterable

from weighbridge.model.command import Command
from weighbridge.model.measurement import ServerNotReady
from weighbridge.model.site import Host, Site

_DROP = "sync && echo 3 > /proc/sys/vm/drop_caches"
"""Dirty pages are not dropped (Documentation/admin-guide/sysctl/vm.rst), so they are written first."""
_DROP_S = 300.0


def drop_page_caches(sites: Iterable[Site], servers: Iterable[Host] = ()) -> None:
    """Write what is dirty and empty the caches: of sites with a kernel of their own, of hosts, of storage servers.

    The inner ones come first, as they are written to the outer ones. A testbed host has this machine's. Raises
    ServerNotReady where that is not allowed.
    """
    command = Command(("sh", "-c", _DROP), _DROP_S)
    hosts: dict[str, Host] = {}
    for site in sites:
        hosts.setdefault(site.host.machine, site.host)
        if site.layers != site.host.layers:
            _require(f"in {site.name}", site.run(command).returncode, "")
    for host in (*hosts.values(), *servers):
        done = host.run(command)
        _require(f"of host {host.name}", done.returncode, done.last_words)


def _require(where: str, code: int, said: str) -> None:
    if code != 0:
        why = said or f"exit code {code}"
        raise ServerNotReady(f"the page cache {where} cannot be emptied ({why}): run as root, or use 'cold: false'")
