"""A run's notes in its state folder about objects that it makes elsewhere, by which `clean` finds them."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import TypeAdapter

from weighbridge.model.cleanup import RunFolders
from weighbridge.model.names import RunId

Noted = TypeVar("Noted")


class Notes(Generic[Noted]):
    """A file of this name in each run's state folder, with a list of hashable dataclasses."""

    def __init__(self, name: str, kind: type[Noted]) -> None:
        self.name = name
        self._documents: TypeAdapter[list[Noted]] = TypeAdapter(list[kind])  # type: ignore[valid-type]

    def read(self, state: Path) -> list[Noted]:
        """Return a run's notes; empty if they are unreadable."""
        with contextlib.suppress(OSError, ValueError):
            return self._documents.validate_json((state / self.name).read_bytes())
        return []

    def write(self, state: Path, items: Iterable[Noted]) -> None:
        """Replace the notes atomically with these, without duplicates; remove the file if there are none."""
        path, once = state / self.name, [*dict.fromkeys(items)]
        if not once:
            path.unlink(missing_ok=True)
            return
        unfinished = path.with_suffix(".new")
        unfinished.write_bytes(self._documents.dump_json(once))
        unfinished.replace(path)

    def of_runs(self, folders: RunFolders) -> Iterator[tuple[str, Noted]]:
        """Yield the id of each requested run with notes, with each of its notes."""
        for state in sorted(folders.states.iterdir()) if folders.states.is_dir() else ():
            if RunId.matches(state.name) and folders.only in ("", state.name):
                yield from ((state.name, each) for each in self.read(state))
