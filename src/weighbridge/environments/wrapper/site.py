"""A site whose launcher was started by a wrapper: what the wrapper does is read from the kernel."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property

from weighbridge.environments.wrapper.denials import Trials
from weighbridge.environments.wrapper.preset import Preset
from weighbridge.hosts.chroot import ChrootSite, StartedProgram
from weighbridge.hosts.first_process import launcher_process
from weighbridge.linux.process import environment_of
from weighbridge.model.command import Command
from weighbridge.model.facts import NOT_COVERED
from weighbridge.model.host import Group
from weighbridge.model.site import SiteRequest

_OWN = "/proc/self/"
_NAMES = """if [ -d "$1" ]; then find "$1" -name cgroup.procs -exec cat {} +; else
    cat "/proc/$1/task/$1/children"; echo "$1"
fi | tr ' ' '\\n' | while read -r pid; do [ "$pid" = "$2" ] || cat "/proc/$pid/comm"; done 2>/dev/null"""
"""Prints the names of the processes in a control group, or of a process and its children, except the launcher."""


class WrappedSite(ChrootSite):
    """A chroot that the launcher entered before it became the wrapper. Implements ``Site``.

    ``trials`` is set once the site has been tried.
    """

    def __init__(self, request: SiteRequest, started: StartedProgram) -> None:
        super().__init__(request, started, own_network=False)
        self.trials = Trials({})
        self._origin: Group | int = started.group or started.process.pid
        self._outermost = started.process.pid
        self._read_inside = self.read
        self.read = self._read

    @property
    def pid(self) -> int:
        """Return the host's number of the launcher in the wrapper, looked up at first use.

        If the host does not see it, return the number of the wrapper's first process.
        """
        return self._launcher_there or self._outermost

    @cached_property
    def _launcher_there(self) -> int | None:
        return launcher_process(self.host, self._origin, self._launcher.pid)

    def _read(self, path: str) -> bytes:
        """Return a file as the site sees it. If programs cannot read /proc, ask the host about the launcher."""
        try:
            return self._read_inside(path)
        except OSError:
            if not path.startswith(_OWN):
                raise
            return self._asked(path.removeprefix(_OWN))

    def _asked(self, name: str) -> bytes:
        if self._launcher_there is None:
            raise FileNotFoundError(2, "No such file or directory", f"{_OWN}{name}")
        path = f"/proc/{self.pid}/{name}"
        if name.startswith("ns/"):
            return self.host.run(Command(("readlink", path), 20)).stdout
        return self.host.read(path)

    def facts(self) -> Mapping[str, str]:
        """Return the facts of a chroot, the answers to the trials, the wrapper's processes and its variables."""
        return {
            **super().facts(),
            **{fact: value for fact, value in self.trials.facts.items() if value},
            "processes of the wrapper": self._processes(),
            **self._variables(),
        }

    def _processes(self) -> str:
        where = str(self._origin.procs[0].parent) if not isinstance(self._origin, int) else str(self._origin)
        printed = self.host.run(Command(("sh", "-c", _NAMES, "names", where, str(self.pid)), 20)).text
        return " ".join(sorted(printed.split())) or "none"

    def _variables(self) -> dict[str, str]:
        """Return the names of variables that the wrapper sets: programs get the same variables everywhere."""
        with suppress(OSError):
            entries = self.read("/proc/self/environ").decode(errors="replace").split("\0")
            inside = {each.partition("=")[0] for each in entries if each}
            here = self.host.run(Command(("env", "-0"), 20)).text.split("\0")
            added = inside - {each.partition("=")[0] for each in here} - {*environment_of(self._request.run.id)}
            return {"not passed on: variables of the wrapper": " ".join(sorted(added))} if added else {}
        return {}


def not_covered(preset: Preset) -> dict[str, str]:
    """Return the parts of the policy that a preset does not cover, as facts."""
    return {f"{NOT_COVERED}: {part}": instead for part, instead in preset.lacks.items()}
