"""A run whose number of blocks was changed after it had begun: each change is kept with the run."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import Field, TypeAdapter

from weighbridge.errors import RunDirectoryError
from weighbridge.model.study import Repetitions
from weighbridge.store.run import RunStore

_KEY = "extensions"
_FINISHED_KEY = "finished"
_Count = Annotated[int, Field(ge=0, le=10**6, strict=True)]


@dataclass(frozen=True, slots=True)
class RunExtension:
    """One change of the number of blocks, from ``planned`` to ``blocks``, when ``after`` blocks had finished trials.

    ``planned`` of an adaptive run is where it stood. ``at`` is in seconds since the epoch.
    """

    planned: _Count
    blocks: _Count
    after: _Count
    at: float


_EXTENSIONS = TypeAdapter(tuple[RunExtension, ...])


def with_effect(changes: Sequence[RunExtension], blocks: int) -> tuple[RunExtension, ...]:
    """Return the changes without the last ones that added no block to the ``blocks`` that there are."""
    effective = [*changes]
    while effective and effective[-1].after >= blocks and effective[-1].blocks > blocks:
        effective.pop()
    return tuple(effective)


def looks_at_changes(changes: Iterable[RunExtension], least: int) -> frozenset[int]:
    """After how many blocks somebody asked for more, or fewer: at least so many, enough for a verdict to look at."""
    return frozenset(change.after for change in changes if change.after >= least)


def unfinished(info: Mapping[str, str]) -> bool:
    """Whether the run is going on, or was ended before it came to its end; False of runs that did not note it."""
    return info.get(_FINISHED_KEY) == "no"


def came_to_its_end(info: Mapping[str, str]) -> bool:
    """Whether the run noted that it came to its end; False of runs that note nothing."""
    return info.get(_FINISHED_KEY) == "yes"


def note_begin(store: RunStore) -> None:
    """Record that the run goes on now."""
    store.set_info(_FINISHED_KEY, "no")


def note_end(store: RunStore) -> None:
    """Record that the run came to its end: that of its blocks, its precision, its time, or a gate's look."""
    store.set_info(_FINISHED_KEY, "yes")


def extensions(info: Mapping[str, str]) -> tuple[RunExtension, ...]:
    """The changes of a run, the first one first, from its keys (``RunStore.info``). RunDirectoryError: unreadable."""
    try:
        return _EXTENSIONS.validate_json(info.get(_KEY, "[]"))
    except ValueError:
        raise RunDirectoryError("the run is damaged: the changes of its number of rounds cannot be read") from None


def apply_extensions(repetitions: Repetitions, changes: tuple[RunExtension, ...]) -> Repetitions:
    """The repetitions after the changes. An adaptive run keeps its target, without its budget of time."""
    if not changes:
        return repetitions
    blocks = changes[-1].blocks
    if repetitions.blocks is not None:
        return repetitions.model_copy(update={"blocks": blocks})
    most = max(2, blocks)
    return repetitions.model_copy(
        update={"min": min(repetitions.min, most), "max": most, "budget": None, "within": None}
    )


def extend(store: RunStore, repetitions: Repetitions, blocks: int) -> None:
    """Record that the run is to have so many blocks; nothing where these are its own.

    ``repetitions`` are those of its study. RunDirectoryError where it already has more.
    """
    before = extensions(store.info())
    now = apply_extensions(repetitions, before)
    finished_blocks = max((trial.block for trial in store.finished()), default=0)
    planned = now.blocks or finished_blocks
    if blocks < finished_blocks:
        raise RunDirectoryError(
            f"{store.directory} already has {finished_blocks} rounds; --rounds is the total, so it must be at least "
            f"{finished_blocks}"
        )
    if blocks != planned:
        change = RunExtension(planned, blocks, finished_blocks, time.time())
        store.set_info(_KEY, json.dumps([asdict(each) for each in (*before, change)]))
