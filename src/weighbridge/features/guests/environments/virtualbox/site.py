"""A machine of VirtualBox on a host: its programs there, the machine's making and end, the launcher in it."""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.guests import serial, virtualbox, words
from weighbridge.features.guests.console import last_words
from weighbridge.features.guests.environments.virtualbox import output
from weighbridge.features.guests.environments.virtualbox.commands import DISKS, VirtualMachine, creation, removal
from weighbridge.launcher import build
from weighbridge.launcher.launch import Launcher
from weighbridge.launcher.within import within
from weighbridge.linux.process import environment_of
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import Group, Host, RunContext
from weighbridge.model.site import SiteRequest

READY_S = 180.0
"""The time limit from a machine's start to its launcher's greeting; under QEMU's emulation it takes 25 s."""
_ASKED_S, _POWER_OFF_S, _TOGETHER_S = 120.0, 30.0, 0.5
_TRIES, _NO_SERVICE = 3, b"Failed to create the VirtualBox object"
_LOWEST = (7, 1, 0)
"""The first version with an option for the architecture of a machine."""


class VirtualBox:
    """A VirtualBox of a site's own on its host: ``folder`` has all that it keeps, and its processes are in ``group``.

    So nothing of the user's machines is seen or touched, and all of it ends with the site.
    """

    def __init__(self, host: Host, run: RunContext, folder: Path, group: Group | None) -> None:
        """Find its programs. Raises Unavailable if there are none, or if they are too old."""
        numbers = run.share("numbers of VirtualBox machines", lambda: nullcontext(itertools.count()))
        identity = virtualbox.identity(run.id, next(numbers))
        self.host, self._run, self._group = host, run, group
        self.meeting = virtualbox.meeting(identity)
        self.programs = _programs_on(host)
        self._variables = {
            "VBOX_USER_HOME": str(folder / "home"),
            "VBOX_IPC_SOCKETID": identity,
            "LC_ALL": "C.UTF-8",
        }
        self.version = self._version()

    def _version(self) -> str:
        version_text = self.must("--version")
        try:
            version_number = output.version(version_text)
        except ValueError as error:
            raise Unavailable(f"host {self.host.name}: {error}") from error
        if version_number < _LOWEST:
            lowest = f"{_LOWEST[0]}.{_LOWEST[1]}"
            raise Unavailable(f"host {self.host.name} has VirtualBox {version_text.strip()}: upgrade it to {lowest}")
        return version_text.strip()

    def command(self, program: str, *words: str) -> Command:
        """One of its programs, in the site's control group, so that what it starts by itself is in there, too."""
        argv = within(self.host, self._run, self._group, f"{self.programs}/{program}", *words)
        return Command(argv, _ASKED_S, self._variables)

    def ask(self, *words: str) -> Completed:
        """Run VBoxManage."""
        return self.host.run(self.command("VBoxManage", "-q", *words))

    def must(self, *words: str) -> str:
        """Run VBoxManage and return its output. Raises Unavailable with its complaint.

        Its service ends where nobody asks it for five seconds, and one that is ending answers nobody.
        """
        completed = self.ask(*words)
        for _ in range(_TRIES):
            if completed.returncode == 0 or _NO_SERVICE not in completed.stderr:
                break
            completed = self.ask(*words)
        if completed.returncode != 0:
            what = output.complaint(completed.stderr) or completed.last_words
            raise Unavailable(f"host {self.host.name}: VBoxManage {words[0]}: {what}")
        return completed.text

    def state(self, name: str) -> str:
        """Return the state of a machine: "running", "poweroff", ..., or "not known" if VirtualBox prints none."""
        try:
            return output.state(self.must("showvminfo", name, "--machinereadable"))
        except (Unavailable, ValueError):
            return "not known"

    def close(self) -> None:
        """Remove the folder of its sockets; its processes end with the control group."""
        with suppress(EnvironmentLost, Unavailable):
            self.host.run(Command(("rm", "-rf", self.meeting), 20))


def _programs_on(host: Host) -> str:
    for folder in virtualbox.FOLDERS:
        if host.run(Command(("test", "-x", f"{folder}/VBoxManage"), 10)).returncode == 0:
            return folder
    raise Unavailable(f"VirtualBox is not installed on host {host.name}: install it")


@contextmanager
def machine_of(box: VirtualBox, machine: VirtualMachine) -> Iterator[None]:
    """Create a machine; at the end it is forgotten, which deletes no image. Raises Unavailable."""
    try:
        for each in creation(machine):
            box.must(*each)
        yield
    finally:
        with suppress(EnvironmentLost, Unavailable):
            box.ask(*removal(machine.name)[1])


@contextmanager
def launcher_in(
    box: VirtualBox, machine: VirtualMachine, request: SiteRequest, init_arguments: tuple[str, ...]
) -> Iterator[Launcher]:
    """Start a machine, give its first process ``init_arguments``, and yield its launcher; at the end switch it off.

    Raises Unavailable with the last state of the machine.
    """
    host, run = box.host, request.run
    hypervisor = host.start(box.command("VBoxHeadless", "--startvm", machine.name, "--vrde", "off"))
    carrier, stream = host.talk(Command((host.program(build.ensure(run.cache, run.say)), "--connect", machine.port)))

    def ended() -> str | None:
        if not hypervisor.wait(_TOGETHER_S):
            return None
        completed = hypervisor.stop()
        reason = output.complaint(completed.stderr) or _console(host, machine) or completed.last_words
        return f"VirtualBox ended its machine: {reason}"

    def why() -> str:
        return ended() or f"its machine does not answer, {how_far()}"

    def how_far() -> str:
        console_words = f"on its console: {_console(host, machine) or 'nothing'}"
        return f"but VirtualBox reports it as {box.state(machine.name)}; {console_words}"

    try:
        try:
            serial.tell(stream, init_arguments, READY_S, ended)
        except Unavailable as error:
            raise Unavailable(f"{request.title}: {error}{'' if ended() else f', {how_far()}'}") from error
        with Launcher(stream, request.title, why, environment_of(run.id), READY_S) as launcher:
            yield launcher
    finally:
        with suppress(EnvironmentLost, Unavailable):
            box.ask(*removal(machine.name)[0])
            hypervisor.wait(_POWER_OFF_S)
        hypervisor.stop()
        carrier.stop()


def _console(host: Host, machine: VirtualMachine) -> str:
    with suppress(OSError):
        return last_words(host.read(machine.console))
    return ""


def first_words(name: str, machine: VirtualMachine, modules: tuple[str, ...], open_files: int) -> tuple[str, ...]:
    """The arguments of the machine's first process."""
    disks = [device for device, _ in zip(DISKS, machine.disks, strict=False)]
    return words.words(name, modules, disks, machine.network, open_files)


def facts_of(box: VirtualBox, machine: VirtualMachine, refused: Mapping[str, str]) -> dict[str, str]:
    """The description of the machine."""
    return {
        "virtualbox": box.version,
        "virtual CPUs": str(machine.cpus),
        "memory": f"{machine.memory >> 20} MiB",
        "disk": "ide",
        **{f"not honoured: {limit}": why for limit, why in refused.items()},
    }
