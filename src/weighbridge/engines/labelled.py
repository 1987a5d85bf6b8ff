"""Finds the objects of runs in a Docker engine by their label, through its HTTP interface (API of Docker 20.10).

The agent of an ssh host has this module too, where Docker's SDK is not.
"""

import contextlib
import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from urllib.parse import quote

from weighbridge.engines import engine_socket
from weighbridge.errors import Unavailable
from weighbridge.model.cleanup import Cleanup, Leftover, OrphanedRun, RunFolders
from weighbridge.model.names import RunId

LABEL = "weighbridge.run"
"""Its value is the run's id."""
Ask = Callable[[str, str], Any]
"""A function that returns an engine's answer to a method and a path, or None. Raises OSError if it refuses."""
_KINDS = (  # an object, its list, the list's name in the answer, and how to name and remove one
    ("container", "/containers/json?all=1&filters=", "", "Id", "/containers/{}?force=1&v=1"),
    ("network", "/networks?filters=", "", "Id", "/networks/{}"),
    ("volume", "/volumes?filters=", "Volumes", "Name", "/volumes/{}?force=1"),
    ("image", "/images/json?filters=", "", "Id", "/images/{}?force=1"),
)


def labelled(ask: Ask) -> Iterator[Leftover]:
    """Everything with our label, each with its run. Raises OSError."""
    for kind, listing, within, _, _ in _KINDS:
        for each in _listed(ask, listing, within, LABEL):
            yield Leftover((each.get("Labels") or {}).get(LABEL, ""), kind, _name(each))


def remove_labelled(ask: Ask, run_id: RunId) -> None:
    """Remove every container, network, volume and image of a run. Raises OSError if some of it stays."""
    failures: list[str] = []
    for kind, listing, within, key, removal in _KINDS:
        try:
            refused = _remove_all(ask, _listed(ask, listing, within, f"{LABEL}={run_id}"), key, removal)
            left = _listed(ask, listing, within, f"{LABEL}={run_id}") if refused else []
        except OSError as error:  # continue with the others
            failures.append(str(error))
        else:
            failures += [f"{kind} {_name(each)}: {refused[each[key]]}" for each in left if each[key] in refused]
    if failures:
        raise OSError("; ".join(failures))


def _remove_all(ask: Ask, things: Iterable[Mapping[str, Any]], key: str, removal: str) -> dict[str, OSError]:
    """Remove each of these things; return the refusals, by key, for those that might remain."""
    refused = {}
    for each in things:
        try:
            ask("DELETE", removal.format(quote(each[key])))
        except OSError as error:
            refused[each[key]] = error
    return refused


def _listed(ask: Ask, listing: str, within: str, label: str) -> list[dict[str, Any]]:
    answer = ask("GET", listing + quote(json.dumps({"label": [label]})))
    return (answer[within] if within else answer) or []


def _name(thing: Mapping[str, Any]) -> str:
    return str((thing.get("Names") or [thing.get("Name") or thing["Id"]])[0]).lstrip("/")


class EngineContents(Cleanup):
    """The objects of a run in the engine at this machine's socket."""

    label = "leftovers in the Docker engine"
    portable = True

    def _engine(self) -> AbstractContextManager[Ask | None]:
        with contextlib.suppress(Unavailable, OSError):
            return nullcontext(functools.partial(engine_socket.ask, engine_socket.find()))
        return nullcontext()

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        with self._engine() as ask:
            yield from labelled(ask) if ask else ()

    def end(self, run: OrphanedRun) -> None:
        """Remove all of it, containers first: the engine ends what is in them, frozen or not."""
        with self._engine() as ask:
            if ask:
                remove_labelled(ask, run.id)
