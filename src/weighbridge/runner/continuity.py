"""Checks that a run continues on the same machine with the same programs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from weighbridge.errors import RunDirectoryError
from weighbridge.model.facts import IDLE_CPUS, idle_code, layers_of
from weighbridge.model.isolation import SCOPE, SiteLayers, by_environment
from weighbridge.model.text import one_line
from weighbridge.runner.userlands import PROGRAMS
from weighbridge.store.run import RunStore

LAUNCHER = "launcher"
"""The fact with the digest of the launcher, which starts and times the measured programs."""
SUPPORTING_SERVICES = "companions"
SAME = ("CPU", "architecture", "kernel", "cgroup version", "version of dockerd", "user", LAUNCHER, IDLE_CPUS)
"""The facts of the host that must not change during a run, because they change its results."""


def require_same(
    store: RunStore,
    host: Mapping[str, str],
    userlands: Mapping[str, Mapping[str, str]],
    programs: Mapping[str, str],
) -> None:
    """Raise RunDirectoryError that names what has changed since the run began; a new run passes.

    ``userlands`` has the known facts by scope (`weighbridge.runner.userlands.userland_facts`). ``programs`` has the
    measured programs; early versions of Weighbridge did not store them.
    """
    first = _first(store)
    was = {key: idle_code(value) if key == IDLE_CPUS else value for key, value in first["host"].items()}
    changed = [
        f"{key} was {one_line(was[key], 60)}, now {host.get(key, 'unknown')}"
        for key in SAME
        if key in was and was[key] != host.get(key)
    ]
    for scope, now in userlands.items():
        if scope.endswith("packages") and (different := _different(first[scope], now)):
            changed.append(
                f"the {scope.removesuffix(' packages').replace('userland', 'root filesystem')} has "
                "different versions of "
                f"{', '.join(different[:5])}"
            )
    began = first[PROGRAMS]
    if rebuilt := [name for name, value in began.items() if programs.get(name, value) != value]:
        changed.append(f"{', '.join(rebuilt[:5])} has changed")
    if missing := [name for name in began if name not in programs]:
        changed.append(f"{', '.join(missing[:5])} is missing")
    _refuse(store, changed)


def require_same_layers(store: RunStore, layers: Mapping[str, str]) -> None:
    """Raise RunDirectoryError if a site is in other hypervisors than before, such as TCG instead of KVM."""
    first = _first(store)[SCOPE]
    changed = []
    for place in dict.fromkeys((*first, *layers)) if store.finished() else ():
        was, now = (_names(each.get(place)) for each in (first, layers))
        if was != now:
            changed.append(f"{place} ran under {was} and now runs under {now}")
    _refuse(store, changed)


def require_same_supporting_services(store: RunStore, images: Mapping[str, str]) -> None:
    """Raise RunDirectoryError if the image or files of a supporting service have changed since the run began."""
    other = _different(_first(store)[SUPPORTING_SERVICES], images)
    _refuse(store, [f"supporting service {name} has changed" for name in other[:5]])


def _first(store: RunStore) -> Mapping[str, dict[str, str]]:
    """Return the first value of each fact in a run, by scope; an unknown scope is empty."""
    facts: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for scope, key, value, _ in store.facts():
        facts[scope].setdefault(key, value)
    return facts


def _different(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the keys whose values differ, or none if no earlier value is known."""
    return sorted(key for key in {*was, *now} if was.get(key) != now.get(key)) if was else []


def layers_of_run(store: RunStore, environments: Sequence[str]) -> dict[str, tuple[SiteLayers, ...]]:
    """Return the stored hypervisors of each environment that has any. Raises RunDirectoryError if damaged."""
    try:
        sites = [(key, layers_of(value)) for scope, key, value, _ in store.facts() if scope == SCOPE]
    except ValueError:
        raise RunDirectoryError(f"{store.directory} is damaged: its record of hypervisors cannot be read") from None
    return by_environment(sites, environments)


def _names(stored: str | None) -> str:
    return ", then ".join(layer.name for layer in layers_of(stored).layers) if stored else "no hypervisor"


_SHOWN, _LONGEST = 8, 150
"""The most changes that one message names, and the most characters of each, because a run directory is untrusted."""


def _refuse(store: RunStore, changed: Sequence[str]) -> None:
    if changed:
        shown = [one_line(each, _LONGEST) for each in changed[:_SHOWN]]
        more = [f"{len(changed) - _SHOWN} more"] if len(changed) > _SHOWN else []
        raise RunDirectoryError(
            f"the conditions of {store.directory} have changed: {'; '.join([*shown, *more])}. "
            "Start a new run with another --out"
        )


def launcher_unknown(store: RunStore) -> bool:
    """Return whether a run has trials but no fact about the launcher, which early versions did not store."""
    noted = {key for scope, key, *_ in store.facts() if scope == "host"}
    return bool(noted) and LAUNCHER not in noted
