"""What a study asks of its environments."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weighbridge.model.host import THIS_MACHINE, HostTraits
from weighbridge.model.study import Resources


@dataclass(frozen=True, slots=True)
class Needs:
    """What a study asks of each of its environments.

    ``network``: a workload needs one. ``server_calls_client``: its server also connects to its client. ``apart``: the
    roles are on two hosts. ``hosts``: what those hosts are, by kind. ``inside``: the roles in the environment.
    ``fixed_port``: the only port that some server of it can have, in every environment; None where there is none.
    ``own_hosts``: what the hosts of those are; None: all of ``hosts``. ``resources``: the limits of every site.
    ``of_this_machine``: its programs are this machine's own, in whose root folder they are started.
    """

    network: bool = False
    server_calls_client: bool = False
    apart: bool = False
    hosts: Mapping[str, HostTraits] = field(default_factory=lambda: {"local": THIS_MACHINE})
    inside: frozenset[str] = frozenset({"server"})
    own_hosts: Mapping[str, HostTraits] | None = None
    resources: Resources = field(default_factory=Resources)
    fixed_port: int | None = None
    of_this_machine: bool = False

    @property
    def holding(self) -> Mapping[str, HostTraits]:
        """What the hosts are, by kind, that have sites of the environment."""
        return self.hosts if self.own_hosts is None else self.own_hosts
