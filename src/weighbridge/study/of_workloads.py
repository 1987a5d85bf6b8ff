"""The keys that every kind of workload has: its cables, its sites, its disks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from weighbridge import registry
from weighbridge.model.host import SPEEDS
from weighbridge.model.level import DISK_SPEED, SITES
from weighbridge.model.study import Arm, Cell, StudyFile
from weighbridge.study.mistakes import OF_EVERY_KIND
from weighbridge.study.source import StudyPlace, plain

MOST_SITES = 100
_MESSAGES = {
    "link": "link: a workload can set only 'none' (no rate limit on testbed cables); hosts set rates",
    SITES: f"sites: write a number of sites from 1 to {MOST_SITES}, or a list of numbers",
    DISK_SPEED: f"disk_speed: write {', '.join(SPEEDS)}, null (as the disk is), or a list of these",
}


def without(entry: Mapping[str, Any], kind: object) -> dict[str, Any]:
    """Return the options of an entry without the common keys, except those that its kind defines itself."""
    every = _keys(kind)
    return {key: value for key, value in entry.items() if key not in every}


def placed_on_sites(cell: Cell, entry: Mapping[str, Any]) -> list[Cell]:
    """Return the cell with its cables, at each listed number of sites and each listed disk speed."""
    link: Literal["none"] | None = "none" if entry.get("link") == "none" else None
    cells = [cell.model_copy(update={"link": link})]
    for factor, is_right in _SWEPT.items():
        if factor not in entry or factor not in _keys(cell.kind):
            continue
        setting = entry[factor]
        values = [value for value in (setting if isinstance(setting, list) else [setting]) if is_right(value)]
        cells = [
            _at_level(each, factor, value, swept=isinstance(setting, list)) for each in cells for value in values
        ]
    return cells


def _at_level(cell: Cell, factor: str, value: Any, *, swept: bool) -> Cell:
    level = cell.level.with_value(factor, "none" if value is None else str(value)) if swept else cell.level
    return cell.model_copy(update={factor: value, "level": level})


def wrong(data: Any, file: StudyFile) -> Iterator[tuple[StudyPlace, str]]:
    """Yield wrong values of the common keys, and common keys that differ between environments."""
    for name, entry in file.workloads.items():
        if entry.get("link", "none") != "none":
            yield ("workloads", name, "link"), _MESSAGES["link"]
        for factor, is_right in _SWEPT.items():
            if factor not in entry or factor not in _keys(entry.get("kind")):
                continue
            values = entry[factor] if isinstance(entry[factor], list) else [entry[factor]]
            if not values or not all(map(is_right, values)):
                yield ("workloads", name, factor), _MESSAGES[factor]
            elif len({*values}) < len(values):
                yield ("workloads", name, factor), f"{factor}: {plain(values, 60)} lists a level twice. Remove one"
    for name, environment in file.environments.items():
        own = environment.get("workloads")
        for workload, changed in own.items() if isinstance(own, Mapping) else ():
            for key in _keys(file.workloads.get(workload, {}).get("kind")):
                if isinstance(changed, Mapping) and key in changed:
                    problem = f"{key}: must be the same in every environment. Set it in the workload"
                    yield ("environments", name, "workloads", workload, key), problem


def contradictions(file: StudyFile, arms: Sequence[Arm], cells: Sequence[Cell]) -> Iterator[tuple[StudyPlace, str]]:
    """Yield the common keys that these hosts, environments and workloads do not support."""
    yield from _unsupported_sites(arms, cells)
    yield from _unsupported_disk_speeds(file, cells)
    yield from _unsupported_cold_starts(file, cells)


def _unsupported_sites(arms: Sequence[Arm], cells: Sequence[Cell]) -> Iterator[tuple[StudyPlace, str]]:
    """Yield workloads that cannot run in several sites at a time."""
    for cell in cells:
        if cell.sites == 1:
            continue
        workload, place = registry.workloads()[cell.kind], ("workloads", cell.workload, SITES)
        starts = workload.openings(cell.options) is not None or workload.enters(cell.options)
        if workload.roles(cell.options) != ("solo",) or starts:
            yield place, f"sites: {cell.kind} cannot run in several sites. Use another workload, or sites: 1"
            return
        if workload.in_phases:
            problem = "measures sites one after another, so a total has no meaning. Use sites: 1"
            yield place, f"sites: {cell.kind} {problem}"
            return
        for arm in arms:
            if workload.needs_data(cell.options) and not registry.environments()[arm.kind].shares_storage:
                yield place, f"sites: {arm.name} has a disk for each site, so sites cannot share it. Use sites: 1"
                return


def _keys(kind: object) -> tuple[str, ...]:
    """Return the keys common to all workloads, without those that this kind defines itself."""
    plugin = registry.workloads().get(kind) if isinstance(kind, str) else None
    own = plugin.options.model_fields if plugin is not None else {}
    return tuple(key for key in OF_EVERY_KIND["workloads"] if key not in own)


def _unsupported_disk_speeds(file: StudyFile, cells: Sequence[Cell]) -> Iterator[tuple[StudyPlace, str]]:
    """Yield disk speeds on hosts whose disks cannot be limited."""
    placed = (
        file.placement.server or next(iter(file.hosts)),
        *((file.placement.storage,) if file.placement.storage else ()),
    )
    fixed = [name for name in placed if name in file.hosts and not file.hosts[name].traits.slows_disk]
    for cell in cells:
        if cell.disk_speed is not None and fixed:
            place = "workloads", cell.workload, DISK_SPEED
            yield place, f"disk_speed: the disk of host {fixed[0]} cannot be limited. Use hosts of kind guest"
            return


def _unsupported_cold_starts(file: StudyFile, cells: Sequence[Cell]) -> Iterator[tuple[StudyPlace, str]]:
    """Yield workloads that start with an empty page cache on hosts that cannot empty it."""
    kinds, placed = registry.workloads(), file.placement.server or next(iter(file.hosts))
    if placed not in file.hosts or not file.hosts[placed].traits.managed:
        return
    for name in dict.fromkeys(cell.workload for cell in cells if kinds[cell.kind].cold(cell.options)):
        yield ("workloads", name), f"{name}: the page cache of host {placed} cannot be emptied. Use 'cold: false'"


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_SITES


def _is_speed(value: object) -> bool:
    return value is None or (isinstance(value, str) and value in SPEEDS)


_SWEPT: Mapping[str, Callable[[object], bool]] = {SITES: _is_number, DISK_SPEED: _is_speed}
"""The common keys that a list sweeps, with the check of each value."""
