"""What a run notes in its state folder of what it is about to make elsewhere, so that `clean` finds it."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import TypeAdapter

from weighbridge.model.leavings import RunFolders
from weighbridge.model.names import RunId

Noted = TypeVar("Noted")


class Notes(Generic[Noted]):
    """A file of this name in each run's state folder: a list of such dataclasses, which are hashable."""

    def __init__(self, name: str, kind: type[Noted]) -> None:
        self.name = name
        self._documents: TypeAdapter[list[Noted]] = TypeAdapter(list[kind])  # type: ignore[valid-type]

    def read(self, state: Path) -> list[Noted]:
        """Return what a run has noted; none where that cannot be read."""
        with contextlib.suppress(OSError, ValueError):
            return self._documents.validate_json((state / self.name).read_bytes())
        return []

    def write(self, state: Path, items: Iterable[Noted]) -> None:
        """Note these in place of what was noted, each once, all or nothing; no file where there are none."""
        path, once = state / self.name, [*dict.fromkeys(items)]
        if not once:
            path.unlink(missing_ok=True)
            return
        unfinished = path.with_suffix(".new")
        unfinished.write_bytes(self._documents.dump_json(once))
        unfinished.replace(path)

    def of_runs(self, folders: RunFolders) -> Iterator[tuple[str, Noted]]:
        """Yield the id of each run that is asked about and has notes, with each of them."""
        for state in sorted(folders.states.iterdir()) if folders.states.is_dir() else ():
            if RunId.matches(state.name) and folders.only in ("", state.name):
                yield from ((state.name, each) for each in self.read(state))
