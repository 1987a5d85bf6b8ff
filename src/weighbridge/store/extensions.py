"""Changes of the number of blocks of a started run, stored with the run."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, TypeAdapter

from weighbridge.errors import RunDirectoryError
from weighbridge.store.run import RunStore

if TYPE_CHECKING:
    from weighbridge.model.study import Repetitions


_KEY = "extensions"
_FINISHED_KEY = "finished"
_Count = Annotated[int, Field(ge=0, le=10**6, strict=True)]


@dataclass(frozen=True, slots=True)
class RunExtension:
    """One change of the number of blocks, from ``planned`` to ``blocks``, when ``after`` blocks had finished trials.

    For an adaptive run, ``planned`` is the number of finished blocks. ``at`` is in seconds since the epoch.
    """

    planned: _Count
    blocks: _Count
    after: _Count
    at: float


_EXTENSIONS = TypeAdapter(tuple[RunExtension, ...])


def with_effect(changes: Sequence[RunExtension], blocks: int) -> tuple[RunExtension, ...]:
    """Return the changes without the last ones that have added no block to the existing ``blocks``."""
    effective = [*changes]
    while effective and effective[-1].after >= blocks and effective[-1].blocks > blocks:
        effective.pop()
    return tuple(effective)


def looks_at_changes(changes: Iterable[RunExtension], least: int) -> frozenset[int]:
    """Return the numbers of blocks, from ``least`` on, after which the user changed the total."""
    return frozenset(change.after for change in changes if change.after >= least)


def unfinished(info: Mapping[str, str]) -> bool:
    """Return whether the run is going on or was stopped early; False for runs that did not record it."""
    return info.get(_FINISHED_KEY) == "no"


def came_to_its_end(info: Mapping[str, str]) -> bool:
    """Return whether the run recorded that it came to its end; False for runs that record nothing."""
    return info.get(_FINISHED_KEY) == "yes"


def note_begin(store: RunStore) -> None:
    """Record that the run is going on."""
    store.set_info(_FINISHED_KEY, "no")


def note_end(store: RunStore) -> None:
    """Record that the run came to its end: by its blocks, its precision, its time, or a gate's look."""
    store.set_info(_FINISHED_KEY, "yes")


def extensions(info: Mapping[str, str]) -> tuple[RunExtension, ...]:
    """Return the changes of a run in order, from its keys (``RunStore.info``). Raises RunDirectoryError."""
    try:
        return _EXTENSIONS.validate_json(info.get(_KEY, "[]"))
    except ValueError:
        raise RunDirectoryError("the run is damaged: the changes of its number of rounds cannot be read") from None


def apply_extensions(repetitions: "Repetitions", changes: tuple[RunExtension, ...]) -> "Repetitions":
    """Return the repetitions after the changes. An adaptive run keeps its target, without its time budget."""
    if not changes:
        return repetitions
    blocks = changes[-1].blocks
    if repetitions.blocks is not None:
        return repetitions.model_copy(update={"blocks": blocks})
    most = max(2, blocks)
    return repetitions.model_copy(
        update={"min": min(repetitions.min, most), "max": most, "budget": None, "within": None}
    )


def extend(store: RunStore, repetitions: "Repetitions", blocks: int) -> None:
    """Record the new total number of blocks, unless it is already the planned one.

    ``repetitions`` come from the study. Raises RunDirectoryError if the run already has more blocks.
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
