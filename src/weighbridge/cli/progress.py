"""Progress of a run: a live bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from weighbridge.cli.output import err
from weighbridge.model.measurement import Outcome
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.runner.estimate import clock
from weighbridge.runner.precision import Standing

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_LINE_EVERY_S = 15.0


class Shown:
    """Tells a person how a session goes on. Implements ``Progress`` of the session."""

    def __init__(self, bar: "Bar | None") -> None:
        self._bar = bar
        self._task = bar.add_task("starting", total=None, left="") if bar else None
        self._begun: float | None = None
        self._first = 0
        self._last_line = 0.0

    def say(self, text: str) -> None:
        """One line about what happens now."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=text)
        else:
            err().print(text, markup=False)

    def begins(self, trial: Trial, done: int, total: int) -> None:
        """Show what runs now, how far the session is and how long it still takes."""
        now = time.monotonic()
        if self._begun is None:
            self._begun, self._first = now, done
        left = ""
        if done > self._first:
            left = f", {clock((now - self._begun) / (done - self._first) * max(0, total - done))} left"
        text = f"block {trial.block}: {trial.workload} in {trial.environment}"
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=text, completed=done, total=total, left=left.removeprefix(", "))
        elif now - self._last_line > _LINE_EVERY_S or done == self._first:
            self._last_line = now
            err().print(f"{done} of {total} trials done{left}; {text}", markup=False)

    def ended(self, record: TrialRecord) -> None:
        """Tell of a trial that failed."""
        if record.outcome is not Outcome.OK:
            where = f"block {record.trial.block}, {record.trial.workload} in {record.trial.environment}"
            err().print(f"{where}: {record.outcome}: {record.message}", markup=False)

    def looked(self, blocks: int, standings: Sequence[Standing]) -> None:
        """Tell how precise each open comparison is."""
        for each in standings:
            more = f", about {each.predicted_blocks} blocks needed" if each.predicted_blocks else ""
            state = "reached" if each.reached else f"goes on{more}"
            width = f"±{each.width:.1%}" if each.width < 10 else "no width yet"  # also infinite
            err().print(f"after {blocks} blocks: {each.cell} in {each.environment} {width}, {state}", markup=False)


@contextmanager
def show() -> Iterator[Shown]:
    """The progress of one run, on standard error."""
    if not err().is_terminal:
        yield Shown(None)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"), TextColumn("{task.description}", markup=False),
    )  # fmt: skip
    with Progress(*columns, console=err(), transient=True) as bar:
        yield Shown(bar)
