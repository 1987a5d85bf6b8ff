"""What every workload of a study may say, whatever its kind: its cables' rate limit, in how many sites it runs."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from weighbridge import registry
from weighbridge.model.study import SITES, Arm, Cell, StudyFile
from weighbridge.study.mistakes import OF_EVERY_KIND
from weighbridge.study.source import Place, plain

MOST_SITES = 100
_TOLD = {
    "link": "link: of a workload it is 'none' (no rate limit on testbed cables); the rate is the host's",
    SITES: f"sites: in how many sites of each environment it runs at a time: 1 to {MOST_SITES}, or a list of that",
}


def without(entry: Mapping[str, Any], kind: object) -> dict[str, Any]:
    """The options of an entry that are of its kind, which may have one of such a name itself."""
    every = _keys(kind)
    return {key: value for key, value in entry.items() if key not in every}


def placed_on_sites(cell: Cell, entry: Mapping[str, Any]) -> list[Cell]:
    """The cell with its cables, at each number of sites that its entry lists."""
    link: Literal["none"] | None = "none" if entry.get("link") == "none" else None
    asked = entry.get(SITES, 1) if SITES in _keys(cell.kind) else 1
    cell = cell.model_copy(update={"link": link})
    if not isinstance(asked, list):
        return [cell.model_copy(update={SITES: asked})] if _is_number(asked) else [cell]
    levels = [(number, tuple(sorted((*cell.level, (SITES, str(number)))))) for number in asked if _is_number(number)]
    return [cell.model_copy(update={SITES: number, "level": level}) for number, level in levels]


def wrong(data: Any, file: StudyFile) -> Iterator[tuple[Place, str]]:
    """What workloads say that cannot be, or that is of one environment only."""
    for name, entry in file.workloads.items():
        asked = entry.get(SITES, 1) if SITES in _keys(entry.get("kind")) else 1
        numbers = asked if isinstance(asked, list) else [asked]
        if entry.get("link", "none") != "none":
            yield ("workloads", name, "link"), _TOLD["link"]
        if not numbers or not all(map(_is_number, numbers)):
            yield ("workloads", name, SITES), _TOLD[SITES]
        elif len({*numbers}) < len(numbers):
            yield ("workloads", name, SITES), f"sites: {plain(numbers, 60)} lists a number twice"
    for name, environment in file.environments.items():
        own = environment.get("workloads")
        for workload, changed in own.items() if isinstance(own, Mapping) else ():
            for key in _keys(file.workloads.get(workload, {}).get("kind")):
                if isinstance(changed, Mapping) and key in changed:
                    told = f"{key}: it is the workload's own, the same in every environment"
                    yield ("environments", name, "workloads", workload, key), told


def crowded(arms: Iterable[Arm], cells: Iterable[Cell]) -> Iterator[tuple[Place, str]]:
    """Workloads that cannot run in several sites at a time."""
    for cell in cells:
        if cell.sites == 1:
            continue
        workload, place = registry.workloads()[cell.kind], ("workloads", cell.workload, SITES)
        if workload.roles(cell.options) != ("solo",) or workload.openings(cell.options) is not None:
            yield place, f"sites: {cell.kind} does not run alone in a site; take a workload that does, or 1"
            return
        for arm in arms:
            if workload.needs_data(cell.options) and not registry.environments()[arm.kind].shares_storage:
                yield place, f"sites: {arm.name} cannot have several sites on one storage: its disk is of one guest"
                return


def _keys(kind: object) -> tuple[str, ...]:
    """What an entry of a kind may say that is of every kind."""
    plugin = registry.workloads().get(kind) if isinstance(kind, str) else None
    own = plugin.options.model_fields if plugin is not None else {}
    return tuple(key for key in OF_EVERY_KIND["workloads"] if key not in own)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_SITES
