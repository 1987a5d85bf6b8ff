"""LXC: the userland in a system container, with the default restrictions of Debian's LXC."""

import contextlib
from contextlib import ExitStack, nullcontext
from pathlib import Path, PurePosixPath
from typing import ClassVar

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.hosts.system_container import LAUNCHER, Container, StartedContainer, SystemContainer, joined, remove
from weighbridge.launcher.within import within
from weighbridge.linux.cgroup_files import TOP
from weighbridge.linux.lxc_locks import LxcLocks, lock_folder
from weighbridge.linux.process import environment_of, mounted_by
from weighbridge.model.command import Command
from weighbridge.model.host import Group, Host
from weighbridge.model.names import SafeName
from weighbridge.model.site import DATA

COMMON = "/usr/share/lxc/config/common.conf"
"""The common settings of Debian's containers: dropped capabilities, devices, the filter of system calls."""
SHM_SIZE = 64 * 2**20
"""The default size of /dev/shm in bytes, as in Docker and Podman. LXC itself mounts none."""


class Lxc(SystemContainer):
    """System containers of LXC, without its daemon or its bridge."""

    kind = "lxc"
    summary = "an LXC system container with network none, host, or a bridge created for the run"
    cleanup: ClassVar = (LxcLocks(),)
    programs: ClassVar = ("lxc-start", "ip", "nsenter")
    host_programs: ClassVar = programs
    version = ("lxc-start", "--version")
    takes: ClassVar = frozenset({"shm_size"})

    def started(self, container: Container, stack: ExitStack) -> StartedContainer:
        """Start a container in a control group that LXC makes, and limit that before anything runs in it.

        LXC does not use a control group that already exists.
        """
        request = container.request
        host, run = request.host, request.run
        base = run.share(f"base of LXC's groups {host.name}", lambda: nullcontext(_base(host, run.id)))
        monitor = host.group(f"{request.name}-monitor")
        groups: list[Group] = [monitor]
        stack.callback(remove, groups)
        folder = stack.enter_context(host.data_folder(run, SafeName(f"{request.name}-lxc")))
        stack.callback(_remove_lock, host, folder)
        config = configuration(container, monitor.procs[0].parent)
        defined = [word for key, value in config for word in ("-s", f"{key}={value}")]
        argv = ("lxc-start", "-F", "-P", str(folder), "-n", container.name, "-f", "/dev/null", *defined)
        launcher = joined(stack, container, within(host, run, monitor, *argv, "--", LAUNCHER))
        group = host.group(f"{base}{request.name}")
        groups.append(group)
        return StartedContainer(launcher, group, group.limit(request.limits))


def _base(host: Host, run_id: str) -> str:
    return below(host.run(Command(("cat", "/proc/1/cgroup"), 10)).text, run_id)


def below(proc_cgroup: str, run_id: str) -> str:
    """Return the control group below which LXC makes a run's own, by the text of /proc/1/cgroup: "", or "NAME/...".

    They are below the group of a machine's first process. Raises Unavailable if that group is not part of this run.
    """
    groups = {names: path for _, names, path in (line.split(":", 2) for line in proc_cgroup.splitlines())}
    named = (path for names, path in groups.items() if "cpu" in names.split(","))
    group = next(named, groups.get("", "/")).strip("/")
    if group in ("", "init.scope"):  # systemd's own, which LXC passes over
        return ""
    ours = f"{TOP}/{run_id}/"
    if not f"{group}/".startswith(ours):
        raise Unavailable(
            f"LXC creates its control groups below the group of the machine's first process, /{group}, and not in "
            "the group of the run"
        )
    return f"{group.removeprefix(ours)}/{ours}"


def configuration(container: Container, monitor: Path) -> list[tuple[str, str]]:
    """LXC's settings (lxc.container.conf(5)). ``monitor`` is the control group of LXC's own process.

    The container's group is next to it and has the name of the site.
    """
    request = container.request
    beside = PurePosixPath(*monitor.parts[monitor.parts.index(TOP) :])
    memory = mounted_by(request.run.id)
    entries = [
        f"{memory} tmp tmpfs mode=1777 0 0",
        f"{memory} run tmpfs mode=1777 0 0",
        f"{memory} dev/shm tmpfs nosuid,nodev,noexec,mode=1777,size={request.shm_size or SHM_SIZE},create=dir 0 0",
        f"{_in_fstab(container.launcher)} {LAUNCHER.lstrip('/')} none bind,ro,create=file 0 0",
    ]
    if container.data:
        entries.append(f"{_in_fstab(container.data)} {DATA.lstrip('/')} none bind 0 0")
    return [
        ("lxc.include", COMMON),
        ("lxc.rootfs.path", f"dir:{container.root}"),
        ("lxc.rootfs.options", "ro"),
        ("lxc.console.path", "none"),  # its streams are ours
        ("lxc.tty.max", "0"),
        ("lxc.uts.name", container.hostname),
        ("lxc.net.0.type", "empty" if container.own_network else "none"),
        ("lxc.cgroup.dir.container", str(beside.parent / request.name)),
        ("lxc.cgroup.dir.monitor", str(beside / "lxc")),
        ("lxc.cgroup.dir.monitor.pivot", str(beside / "end")),
        *(("lxc.environment", f"{name}={value}") for name, value in environment_of(request.run.id).items()),
        *(("lxc.mount.entry", entry) for entry in entries),
    ]


def _remove_lock(host: Host, folder: Path) -> None:
    """Remove the folders that LXC leaves of its lock."""
    with contextlib.suppress(EnvironmentLost, Unavailable):
        host.run(Command(("rmdir", "-p", "--ignore-fail-on-non-empty", str(lock_folder(folder))), 10))


def _in_fstab(path: str) -> str:
    """Return a path as fstab(5) writes it."""
    return path.replace("\\", "\\134").replace(" ", "\\040")


PLUGIN = Lxc()
