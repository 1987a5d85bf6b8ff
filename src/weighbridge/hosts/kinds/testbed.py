"""A host that is made on this machine for the length of the run, joined to the others by a switch of their own."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from weighbridge.hosts.options import TestbedOptions
from weighbridge.linux.cleanup import OF_HOSTS
from weighbridge.model.host import Host, RunContext
from weighbridge.model.host_kind import HostKind, HostOptions
from weighbridge.model.plugin import Readiness


class Testbed(HostKind):
    """Network, mount, UTS, IPC and PID namespaces of this machine."""

    __test__ = False  # no test, whatever its name begins with
    kind = "testbed"
    summary = (
        "a host simulated on this machine for the run: namespaces connected by a switch, with cables of a given rate"
    )
    cleanup: ClassVar = OF_HOSTS
    root_makes = "testbed hosts"
    options = TestbedOptions
    programs: ClassVar = ("nsenter", "ip", "ethtool")

    def ready(self, options: Any | None = None) -> Readiness:
        """Return whether there is a first process for its namespaces."""
        from weighbridge.hosts.testbed import init_program, no_init

        return Readiness(True) if init_program() else Readiness(False, *no_init())

    def open(
        self, name: str, options: Any, run: RunContext, peers: Sequence[HostOptions]
    ) -> AbstractContextManager[Host]:
        from weighbridge.hosts.testbed import testbed_host

        return testbed_host(name, options, run)


PLUGIN = Testbed()
