"""The contents of a kit: environments with their workloads and ports, and the skipped parts with the reasons."""

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
"""iperf3's own port, which published studies used. Each workload has two, for a possible data port."""


@dataclass(frozen=True, slots=True)
class KitCell:
    """A workload at a level in an environment; ``folder`` is its name among files."""

    folder: str
    cell: Cell
    workload: Workload
    options: Any
    ends: Mapping[Role, Endpoint]
    published: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Options that the source of a published study added to the program of a role."""

    @property
    def roles(self) -> tuple[Role, ...]:
        """Return its processes; the last one is measured."""
        return self.workload.roles(self.options)

    def command(self, role: Role) -> Command:
        """Return the command of a role, with the published options that it does not have yet."""
        command = self.workload.command(role, self.options, self.ends[role])
        return replace(command, argv=with_options(command.argv, self.published.get(role, ())))


def with_options(argv: tuple[str, ...], words: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments with more options, each with its values; existing options stay as they are."""
    arguments, is_new = list(argv), True
    for word in words:
        if word.startswith("-"):
            is_new = word not in argv
        if is_new:
            arguments.append(word)
    return tuple(arguments)


@dataclass(frozen=True, slots=True)
class KitEnvironment:
    """An environment; ``folder`` is its name among files, ``inside`` are its services in Docker Compose.

    ``solo`` is the service for a program without a counterpart. ``writes_layer``: its root is writable. ``data`` is
    the mount for servers' data in Docker Compose; empty if there is none.
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
    """A part of the study that the kit skips, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Contents:
    """A study, the environments of its kit, and the parts that the kit skips."""

    study: Study
    environments: tuple[KitEnvironment, ...]
    left_out: tuple[OmittedPart, ...]


def contents(study: Study) -> Contents:
    """Divide a study into the parts of a kit and the skipped ones.

    Raises StudyError if it has no environment that Docker Compose can make, or needs sidecars.
    """
    if study.file.companions:
        names = ", ".join(study.file.companions)
        raise StudyError(f"{study.file.study} needs supporting services, which a kit cannot contain: {names}")
    local_cells, other_cells = _local_cells(study)
    opening = [cell for cell in local_cells if registry.workloads()[cell.kind].openings(cell.options) is not None]
    entering = [cell for cell in local_cells if registry.workloads()[cell.kind].enters(cell.options)]
    cells = [cell for cell in local_cells if cell not in (*opening, *entering)]
    ports = _ports(study)
    environments: list[KitEnvironment] = []
    left_out = [OmittedPart(cell.label, f"its client is on the host {cell.client}") for cell in other_cells]
    left_out += [
        OmittedPart(cell.label, "its trials start new environments, and Weighbridge times that start")
        for cell in opening
    ]
    left_out += [
        OmittedPart(cell.label, "its program starts others in each environment from outside") for cell in entering
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
    """Return the cells with both roles on one machine, else those of one host's clients; and the others."""
    hosts = study.client_hosts
    client_host = study.server_host if study.server_host in hosts else hosts[0]
    local_cells = [cell for cell in study.cells if cell.client in ("", client_host)]
    return local_cells, [cell for cell in study.cells if cell not in local_cells]


def _port_key(cell: Cell, options: Any) -> tuple[str, int]:
    """Return a workload, and the only port on which its server can listen (0: any)."""
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
    mode = _storage_way(arm, chosen)
    data = {"volume": "data", "folder": "./data"}.get(mode, "") if by_hand.services else ""
    return KitEnvironment("", arm, by_hand, frozenset(by_hand.services), in_kit, solo, data, mode == "layer")


def _storage_way(arm: Arm, chosen: Iterable[tuple[Cell, Workload, Any]]) -> str:
    """Return how data get into its server's site; empty if no workload has any."""
    if not any(workload.needs_data(options) for _, workload, options in chosen):
        return ""
    environment = registry.environments()[arm.kind]
    named = arm.options.storage if environment.mounts else None
    kind = named.kind if named is not None else environment.storage
    modes = registry.storage()[kind].ways if kind else ()
    return next((mode for mode in modes if mode in environment.mounts), "")


def _reached(workload: Workload, options: Any, port: int) -> Iterator[PublishedPort]:
    listens = workload.fixed_port(options) or port
    for transport in workload.transports(options):
        for offset in (0, 1) if workload.has_data_port else (0,):
            yield PublishedPort(transport, port + offset, listens + offset)


def _endpoints(by_hand: ByHand, fixed: int | None, port: int) -> Mapping[Role, Endpoint]:
    server = Endpoint(by_hand.listen, by_hand.address, fixed or port, by_hand.client, by_hand.udp_payload)
    client = replace(server, port=port) if by_hand.published else server
    return {"server": server, "solo": server, "client": client}


class _Folders:
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

    cell_folders = _Folders()
    cells = tuple(replace(each, folder=cell_folders.name(each.cell.label)) for each in environment.cells)
    return replace(environment, folder=folders.name(environment.arm.name), cells=cells)
