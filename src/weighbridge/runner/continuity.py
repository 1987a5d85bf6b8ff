"""A run is one machine and one set of programs: it is not continued elsewhere, or after an upgrade."""

from collections.abc import Mapping

from weighbridge.errors import RunDirectoryError
from weighbridge.model.idle import IDLE_CPUS, idle_code
from weighbridge.store.run import RunStore

LAUNCHER = "launcher"
"""The fact that tells which launcher started and timed what was measured: the digest of the built program."""
SAME = ("CPU", "architecture", "kernel", "cgroup version", "version of dockerd", "user", LAUNCHER, IDLE_CPUS)
"""Facts of the host without which numbers of two sessions are not comparable."""


def require_same(store: RunStore, host: Mapping[str, str], packages: Mapping[str, str]) -> None:
    """Raise RunDirectoryError that names what has changed since the run began; a new run passes."""
    first: dict[tuple[str, str], str] = {}
    for scope, key, value, _ in store.facts():
        first.setdefault((scope, key), idle_code(value) if key == IDLE_CPUS else value)
    changed = [
        f"{key} was {first['host', key]} and is {host.get(key, 'unknown')}"
        for key in SAME
        if ("host", key) in first and first["host", key] != host.get(key)
    ]
    was = {key: value for (scope, key), value in first.items() if scope == "userland packages"}
    different = sorted(name for name in {*was, *packages} if was.get(name) != packages.get(name)) if was else []
    if different:
        changed.append(f"the userland has other versions of {', '.join(different[:5])}")
    if changed:
        raise RunDirectoryError(
            f"{store.directory} was begun under other conditions: {'; '.join(changed)}. "
            "Their numbers must not be mixed: start a new run with another --out"
        )


def launcher_unknown(store: RunStore) -> bool:
    """Whether a run has been measured without a note of the launcher: it was begun before that was a fact."""
    noted = {key for scope, key, *_ in store.facts() if scope == "host"}
    return bool(noted) and LAUNCHER not in noted
