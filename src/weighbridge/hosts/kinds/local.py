"""This machine itself."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

from weighbridge.linux.cleanup import OF_HOSTS
from weighbridge.linux.process import link_prefix
from weighbridge.model.host import THIS_MACHINE, Host, HostTraits, RunContext
from weighbridge.model.host_kind import HostKind, HostOptions


class LocalOptions(HostOptions):
    """This machine."""

    traits: ClassVar[HostTraits] = THIS_MACHINE
    kind: Literal["local"] = "local"

    @property
    def description(self) -> str:
        return "this machine"


class Local(HostKind):
    """This machine; with a cable to the switch if other hosts of the run are on it."""

    kind = "local"
    group = ""
    summary = "this machine itself"
    cleanup: ClassVar = OF_HOSTS
    options = LocalOptions

    @contextmanager
    def open(self, name: str, options: Any, run: RunContext, peers: Sequence[HostOptions]) -> Iterator[Host]:
        """Yield this machine, with a cable to the switch if other hosts of the run are on it."""
        from weighbridge.hosts.local import LocalHost
        from weighbridge.hosts.switch import Switch

        if not any(self._is_joined_to(peer) for peer in peers):
            yield LocalHost(run.id, name)
            return
        switch: Switch = run.share("switch", lambda: Switch.create(run))
        with switch.uplink(f"{link_prefix(run.id)}v1000") as address:
            yield LocalHost(run.id, name, address)

    @staticmethod
    def _is_joined_to(peer: HostOptions) -> bool:
        return not peer.traits.this_machine and peer.reaches(LocalOptions())


PLUGIN = Local()
