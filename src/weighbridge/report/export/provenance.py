"""The origin of a run's numbers as JSON: date, kernel, engines, programs, hosts and network paths."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from weighbridge.analysis.run_result import Provenance, RootFilesystem, Versions
from weighbridge.model.facts import HOST_DIFFERENCES
from weighbridge.model.userland import is_userland_scope, measured_packages_scope, packages_scope
from weighbridge.store.run import RunStore

PATH = "path"
"""The scope of facts about network paths: environment (and client's place) -> JSON."""
_HOST, _VERSION = "host ", "version of "


def provenance(store: RunStore) -> Provenance:
    """Return ``date``, ``kernel``, ``engine``, ``versions``, ``hosts`` and ``paths`` of ``report --json``.

    A fact that a run did not record is null or an empty object; older runs have no paths. If a run was continued, its
    latest facts count. Raises RunDirectoryError if the store cannot be read.
    """
    info = store.info()
    by_scope: dict[str, dict[str, str]] = {}
    for scope, key, value, _ in store.facts():
        by_scope.setdefault(scope, {})[key] = value
    host = by_scope.get("host", {})
    return Provenance(
        date=date_of(info.get("created")),
        kernel=host.get("kernel"),
        engine=_engines(store, by_scope.items()),
        versions=Versions(
            weighbridge=info.get("version"),
            host={key.removeprefix(_VERSION): host[key] for key in host if key.startswith(_VERSION)},
            root_filesystems={
                scope: _root_filesystem(scope, by_scope) for scope in by_scope if is_userland_scope(scope)
            },
        ),
        hosts={
            scope.removeprefix(_HOST): facts
            for scope, facts in by_scope.items()
            if scope.startswith(_HOST) and scope != HOST_DIFFERENCES
        },
        paths={key: _parsed(value) for key, value in by_scope.get(PATH, {}).items()},
    )


def _root_filesystem(scope: str, by_scope: Mapping[str, Mapping[str, str]]) -> RootFilesystem:
    return RootFilesystem(
        digest=by_scope[scope].get("digest") or None,
        packages=len(by_scope.get(packages_scope(scope), {})),
        measured=by_scope.get(measured_packages_scope(scope), {}),
    )


def date_of(created: str | float | None) -> str | None:
    """Return an instant in seconds since the epoch as ISO 8601 in UTC, to the second; None if it is none."""
    try:
        return utc(float(created or ""))
    except (ValueError, OverflowError, OSError):
        return None


def utc(instant: float) -> str:
    """Return an instant in seconds since the epoch as ISO 8601 in UTC, to the second. Raises ValueError, OSError."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _engines(store: RunStore, facts: Iterable[tuple[str, dict[str, str]]]) -> dict[str, str]:
    """Return the engine of each environment that has one, with its versions on all hosts."""
    kinds = {name: kind for name, kind, *_ in store.environments()}
    engines_by_environment: dict[str, dict[str, None]] = {}
    for scope, site in facts:
        name = scope.partition("/")[0]
        engine = kinds.get(name, "")
        if engine in site:  # a site says the version of its engine under the engine's own name
            engines_by_environment.setdefault(name, {})[f"{engine} {site[engine]}"] = None
    return {name: ", ".join(engines) for name, engines in engines_by_environment.items()}


def _parsed(text: str) -> Any:
    """Return the parsed JSON, or the text itself if it is not JSON. NaN and infinity become null."""
    try:
        return json.loads(text, parse_constant=lambda _: None)
    except ValueError:
        return text
