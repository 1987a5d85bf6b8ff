"""A gate's looks, kept with the run before anybody hears what they came to."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weighbridge.analysis.gate_spending import Spending, look_of
from weighbridge.cli.output import err
from weighbridge.model.decisions import Comparison, gate_looks_text
from weighbridge.store.reader import GATE_LOOKS
from weighbridge.store.run import DATABASE, RunStore


@contextmanager
def opened_to_look(run: Path) -> Iterator[tuple[RunStore, bool]]:
    """Open a run that is judged, and tell whether its looks can be kept with it.

    Raises RunDirectoryError where it is no run, or one that is being written to: that has not come to a look yet.
    """
    with RunStore(run):
        pass  # what is no run is told, and not made one
    keeps = os.access(run, os.W_OK) and os.access(run / DATABASE, os.W_OK)
    with RunStore(run, writable=True) if keeps else RunStore(run) as store:
        yield store, keeps


def keep_look(store: RunStore, spending: Spending, still_open: tuple[Comparison, ...], until: int | None) -> None:
    """Keep the present look with the run; ``until``: how many blocks it asks for.

    Of one that was kept before, only what it asks for is new.
    """
    look = look_of(store, spending, still_open).model_copy(update={"until": until})
    store.set_info(GATE_LOOKS, gate_looks_text((*spending.earlier, look)))


def keep_first_look(store: RunStore, spending: Spending, still_open: tuple[Comparison, ...], *, keeps: bool) -> None:
    """Keep a new look with the run; nothing where it is the last one again. Tells where that cannot be done."""
    if spending.now is None:
        return
    if keeps:
        keep_look(store, spending, still_open, None)
    else:
        told = f"{store.directory} cannot be written to: this look is not kept with the run. A gate of a longer copy"
        err().print(f"note: {told} would not know of it, and could err more often", markup=False)
