"""Page caches before a trial: nobody pays for what another one wrote, and cold workloads read nothing from them."""

from collections.abc import Iterable
from contextlib import suppress

from weighbridge.errors import EnvironmentLost
from weighbridge.linux.process import run as run_here
from weighbridge.model.command import Command
from weighbridge.model.host import Host
from weighbridge.model.measurement import ServerNotReady
from weighbridge.model.site import Site

_WRITE = "sync"
_DROP = "sync && echo 3 > /proc/sys/vm/drop_caches"
"""Dirty pages are not dropped (Documentation/admin-guide/sysctl/vm.rst), so they are written first."""
_DROP_S = 300.0


def settle_page_caches(
    sites: Iterable[Site], servers: Iterable[Host] = (), others: Iterable[Host] = (), *, empty: bool
) -> None:
    """Write what is dirty, and where asked for ``empty`` the caches: of everything that may hold the sites' data.

    ``others``: hosts of other environments, on which earlier trials have written: what these left is written, too.

    Sites with a kernel of their own, hosts, storage servers, and this machine where one of these is a guest of ours,
    whose disks are files here. The inner ones come first, as they are written to the outer ones. A testbed host has
    this machine's. Raises ServerNotReady where that is not allowed.
    """
    command = Command(("sh", "-c", _DROP if empty else _WRITE), _DROP_S)
    hosts: dict[str, Host] = {}
    for site in sites:
        hosts.setdefault(site.host.machine, site.host)
        if site.layers != site.host.layers:
            _require(f"in {site.name}", site.run(command).returncode, "", empty=empty)
    outer = [*hosts.values(), *servers]
    for host in outer:
        done = host.run(command)
        _require(f"of host {host.name}", done.returncode, done.last_words, empty=empty)
    beside = {host.machine: host for host in others if host.machine not in {each.machine for each in outer}}
    for host in beside.values():
        with suppress(EnvironmentLost):  # the trial is not its own
            host.run(Command(("sh", "-c", _WRITE), _DROP_S))
    if any(host.capabilities.hypervisor is not None for host in (*outer, *beside.values())):
        done = run_here(command)
        _require("of this machine", done.returncode, done.last_words, empty=empty)


def _require(where: str, code: int, said: str, *, empty: bool) -> None:
    if code != 0:
        what, remedy = ("emptied", ": run as root, or use 'cold: false'") if empty else ("written", "")
        raise ServerNotReady(f"the page cache {where} cannot be {what} ({said or f'exit code {code}'}){remedy}")
