"""systemd-nspawn: the userland in a system container, without a systemd that manages it."""

from contextlib import ExitStack
from typing import ClassVar

from weighbridge.hosts.system_container import LAUNCHER, Container, StartedContainer, SystemContainer, joined, remove
from weighbridge.launcher.within import within
from weighbridge.linux.process import RUN_VARIABLE, most_open_files
from weighbridge.model.command import Command
from weighbridge.model.site import DATA


class Nspawn(SystemContainer):
    """System containers of systemd-nspawn, registered nowhere: no systemd needs to run."""

    kind = "nspawn"
    summary = "a systemd-nspawn system container with network none, host, or a bridge created for the run"
    programs: ClassVar = ("systemd-nspawn", "ip", "nsenter")
    host_programs: ClassVar = programs
    version = ("systemd-nspawn", "--version")

    def started(self, container: Container, stack: ExitStack) -> StartedContainer:
        """Start a container in its control group, in every hierarchy: systemd-nspawn makes its own below that."""
        request = container.request
        host, run = request.host, request.run
        group = host.group(request.name)
        stack.callback(remove, [group])
        refused = group.limit(request.limits)
        launcher = joined(stack, container, within(host, run, group, *command(container), everywhere=True))
        launcher.run(Command(("chmod", "1777", "/run"), 20))  # as everywhere: programs of other users write there
        return StartedContainer(launcher, group, refused)


def command(container: Container) -> tuple[str, ...]:
    """Return the argument list (systemd-nspawn(1)). /tmp and /run are in memory by default."""
    binds = [f"--bind-ro={_escaped(container.launcher)}:{LAUNCHER}"]
    if container.data:
        binds.append(f"--bind={_escaped(container.data)}:{DATA}")
    return (
        "systemd-nspawn",
        "--quiet",
        "--register=no",
        "--keep-unit",
        "--console=pipe",
        "--link-journal=no",
        "--resolv-conf=off",
        "--timezone=off",
        "--settings=no",  # without the machine's own settings files
        f"--directory={container.root}",
        "--read-only",
        f"--machine={container.name}",
        f"--hostname={container.hostname}",
        f"--rlimit=NOFILE={most_open_files()}",
        f"--setenv={RUN_VARIABLE}={container.request.run.id}",
        *(("--private-network",) if container.own_network else ()),
        *binds,
        LAUNCHER,
    )


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:")


PLUGIN = Nspawn()
