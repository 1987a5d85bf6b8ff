"""What of a study a kit has: its environments with their workloads and ports; and what it leaves out, and why."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from weighbridge import registry
from weighbridge.errors import StudyError
from weighbridge.model.by_hand import ByHand, ByHandRequest
from weighbridge.model.command import Command, PublishedPort
from weighbridge.model.study import Arm, Cell, Role, Study
from weighbridge.model.workload import Endpoint, Workload

FIRST_PORT = 5201
"""iperf3's own, which published studies used. Each workload has two: its data may have a port of its own."""


@dataclass(frozen=True, slots=True)
class KitCell:
    """A workload at a level in an environment; ``folder`` is its name among files."""

    folder: str
    cell: Cell
    workload: Workload
    options: Any
    ends: Mapping[Role, Endpoint]
    published: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The words that the source of a published study gave the program of a role beside its name."""

    @property
    def roles(self) -> tuple[Role, ...]:
        """Its processes; the last one is measured."""
        return self.workload.roles(self.options)

    def command(self, role: Role) -> Command:
        """Return the command of a role, with the published options that it does not have yet."""
        command = self.workload.command(role, self.options, self.ends[role])
        return replace(command, argv=with_options(command.argv, self.published.get(role, ())))


def with_options(argv: tuple[str, ...], words: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments with more options, each with its values; an option that they have stays as it is."""
    arguments, is_new = list(argv), True
    for word in words:
        if word.startswith("-"):
            is_new = word not in argv
        if is_new:
            arguments.append(word)
    return tuple(arguments)


@dataclass(frozen=True, slots=True)
class KitEnvironment:
    """An environment; ``folder`` is its name among files, ``inside`` the services of Docker Compose that it has.

    ``solo`` is the service in which a program without a counterpart runs. ``writes_layer``: its root is written to.
    ``data``: what servers keep their data on, as Docker Compose mounts it; empty where they keep none.
    """

    folder: str
    arm: Arm
    by_hand: ByHand
    inside: frozenset[str]
    cells: tuple[KitCell, ...]
    solo: str
    data: str = ""
    writes_layer: bool = False


@dataclass(frozen=True, slots=True)
class OmittedPart:
    """A part of the study that the kit leaves out, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Contents:
    """A study, the environments of its kit, and the parts that the kit leaves out."""

    study: Study
    environments: tuple[KitEnvironment, ...]
    left_out: tuple[OmittedPart, ...]


def contents(study: Study) -> Contents:
    """Sort a study into what is run by hand and what is not.

    Raises StudyError where it has no container environment that Docker Compose can make, or needs companions.
    """
    if study.file.companions:
        names = ", ".join(study.file.companions)
        raise StudyError(f"{study.file.study} needs supporting services, which a kit cannot contain: {names}")
    local_cells, other_cells = _local_cells(study)
    opening = [cell for cell in local_cells if registry.workloads()[cell.kind].openings(cell.options) is not None]
    cells = [cell for cell in local_cells if cell not in opening]
    ports = _ports(study)
    environments: list[KitEnvironment] = []
    left_out = [OmittedPart(cell.label, f"its client is on the host {cell.client}") for cell in other_cells]
    left_out += [
        OmittedPart(cell.label, "its trials start new environments, and Weighbridge times that start")
        for cell in opening
    ]
    folders = _Folders()
    for number, arm in enumerate(study.arms, 1):
        if arm.aa_of:
            left_out.append(
                OmittedPart(arm.name, f"{arm.aa_of} a second time: useful only in rounds with random order")
            )
            continue
        if arm.explains is not None:
            left_out.append(OmittedPart(arm.name, f"it explains the cost of {arm.explains.environment}"))
            continue
        if arm.userland is not None:
            left_out.append(OmittedPart(arm.name, "it has its own root filesystem, but a kit has only one image"))
            continue
        kit_environment = _environment(
            study, arm, [cell for cell in cells if arm in study.arms_of(cell)], ports, number
        )
        if kit_environment.by_hand.cannot:
            left_out.append(OmittedPart(arm.name, kit_environment.by_hand.cannot))
        elif not kit_environment.cells:
            left_out.append(OmittedPart(arm.name, "none of its workloads is in the kit"))
        else:
            environments.append(_named(kit_environment, folders))
    if not any(environment.by_hand.services for environment in environments):
        names = ", ".join(study.file.environments)
        raise StudyError(f"Docker Compose cannot create any environment of {study.file.study}: {names}")
    return Contents(study, tuple(environments), tuple(left_out))


def _local_cells(study: Study) -> tuple[list[Cell], list[Cell]]:
    """The cells with both roles on one machine, else those of one host's clients; and the others."""
    hosts = study.client_hosts
    client_host = study.server_host if study.server_host in hosts else hosts[0]
    local_cells = [cell for cell in study.cells if cell.client in ("", client_host)]
    return local_cells, [cell for cell in study.cells if cell not in local_cells]


def _port_key(cell: Cell, options: Any) -> tuple[str, int]:
    """A workload, and the only port on which its server can listen (0: on any)."""
    return cell.workload, registry.workloads()[cell.kind].fixed_port(options) or 0


def _ports(study: Study) -> Mapping[tuple[str, int], int]:
    keys = dict.fromkeys(_port_key(cell, cell.options) for cell in study.cells)
    return {key: FIRST_PORT + 2 * number for number, key in enumerate(keys)}


def _environment(
    study: Study, arm: Arm, cells: Iterable[Cell], ports: Mapping[tuple[str, int], int], number: int
) -> KitEnvironment:
    plugin, inside = registry.environments()[arm.kind], frozenset[str](study.file.inside)
    chosen = [(cell, registry.workloads()[cell.kind], study.options(arm, cell)) for cell in cells]
    reached = tuple(
        dict.fromkeys(
            port
            for cell, workload, options in chosen
            for port in _reached(workload, options, ports[_port_key(cell, options)])
        )
    )
    network = bool(reached)
    solo = "server" if "server" in inside or not network else "client"
    by_hand = plugin.by_hand(arm.options, ByHandRequest(number, reached, inside if network else {solo}, network))  # type: ignore[arg-type]
    in_kit = tuple(
        KitCell(
            "",
            cell,
            workload,
            options,
            _endpoints(by_hand, workload.fixed_port(options), ports[_port_key(cell, options)]),
        )
        for cell, workload, options in chosen
    )
    way = _storage_way(arm, chosen)
    data = {"volume": "data", "folder": "./data"}.get(way, "") if by_hand.services else ""
    return KitEnvironment("", arm, by_hand, frozenset(by_hand.services), in_kit, solo, data, way == "layer")


def _storage_way(arm: Arm, chosen: Iterable[tuple[Cell, Workload, Any]]) -> str:
    """How data get into its server's site; empty where no workload keeps any."""
    if not any(workload.needs_data(options) for _, workload, options in chosen):
        return ""
    environment = registry.environments()[arm.kind]
    named = arm.options.storage if environment.mounts else None
    kind = named.kind if named is not None else environment.storage
    ways = registry.storage()[kind].ways if kind else ()
    return next((way for way in ways if way in environment.mounts), "")


def _reached(workload: Workload, options: Any, port: int) -> Iterator[PublishedPort]:
    listens = workload.fixed_port(options) or port
    for transport in workload.transports(options):
        for each in (0, 1) if workload.has_data_port else (0,):
            yield PublishedPort(transport, port + each, listens + each)


def _endpoints(by_hand: ByHand, fixed: int | None, port: int) -> Mapping[Role, Endpoint]:
    server = Endpoint(by_hand.listen, by_hand.address, fixed or port, by_hand.client, by_hand.udp_payload)
    client = replace(server, port=port) if by_hand.published else server
    return {"server": server, "solo": server, "client": client}


class _Folders:
    """Names for files: letters, digits and hyphens, each given once."""

    def __init__(self) -> None:
        self._taken_names: set[str] = set()

    def name(self, text: str) -> str:
        plain = re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "x"
        folder, number = plain, 1
        while folder in self._taken_names:
            number += 1
            folder = f"{plain}-{number}"
        self._taken_names.add(folder)
        return folder


def _named(environment: KitEnvironment, folders: _Folders) -> KitEnvironment:
    from dataclasses import replace

    own = _Folders()
    cells = tuple(replace(each, folder=own.name(each.cell.label)) for each in environment.cells)
    return replace(environment, folder=folders.name(environment.arm.name), cells=cells)
