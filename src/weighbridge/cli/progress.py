"""Progress of a run: a live bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from weighbridge.cli.output import err, plural
from weighbridge.model.isolation import SiteLayers
from weighbridge.model.level import cell_label
from weighbridge.model.measurement import Outcome
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.runner.estimate import clock
from weighbridge.runner.precision import OutOfReach, Standing

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_LINE_EVERY_S = 15.0


class Shown:
    """Tells a person how a session goes on. Implements ``Progress`` of the session."""

    def __init__(self, bar: "Bar | None") -> None:
        self._bar = bar
        self._task = bar.add_task("starting", total=None, count="", left="") if bar else None
        self._begun = False
        self._ended = 0
        self._total = 0
        self._last_line = 0.0
        self._told_of_time = False

    def say(self, text: str) -> None:
        """One line about what happens now."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=text, left="")
        else:
            err().print(text, markup=False)

    def layers_known(self, layers: Mapping[str, tuple[SiteLayers, ...]]) -> None:
        """No figure is shown here that hypervisors would have to stand beside."""

    def trial_started(self, trial: Trial, finished: int, total: int, left_s: float, *, at_most: bool = False) -> None:
        """Show what runs now, how far the session is and how long it still takes, or may take.

        Repeated blocks may make more trials than were planned: then this one is the last that is known of.
        """
        total = max(total, finished + 1)
        now = time.monotonic()
        first, self._begun = not self._begun, True
        self._ended, self._total = finished, total
        left = f"{'at most ' if at_most else ''}{clock(left_s)} left"
        done = f"{finished} of {total} trials done{' up to the next look' if at_most else ''}"
        text = f"{_block(trial)}: {_where(trial)}"
        if self._bar is not None and self._task is not None:
            self._advance()
            self._bar.update(self._task, description=text, left=left)
        elif now - self._last_line > _LINE_EVERY_S or first:
            self._last_line = now
            err().print(f"{done}, {left}; {text}", markup=False)

    def trial_finished(self, record: TrialRecord) -> None:
        """Count a trial, and tell of one that failed, or broke under its load."""
        self._ended += 1
        self._advance()
        if record.outcome is not Outcome.OK:
            where = f"{_block(record.trial)}, {_where(record.trial)}"
            how = "broke under its load" if record.outcome is Outcome.BROKE else str(record.outcome)
            err().print(f"{where}: {how}: {record.message}", markup=False)

    def precision_checked(self, blocks: int, standings: Sequence[Standing]) -> None:
        """Tell how many comparisons are precise enough, and how far the widest of the others is."""
        if not standings:
            return
        reached, widest = sum(each.reached for each in standings), max(standings, key=lambda each: each.width)
        sentence = f"after {blocks} blocks: {reached} of {plural(len(standings), 'open comparison')} precise enough"
        if not widest.reached:
            width = f"±{widest.width:.1%}" if widest.width < 10 else "no width yet"  # also infinite
            prediction = f", about {widest.predicted_blocks} blocks needed" if widest.predicted_blocks else ""
            sentence += f"; the widest: {widest.cell} in {widest.environment}, {width}{prediction}"
        err().print(sentence, markup=False)
        late: dict[str, list[float]] = {}
        for each in standings:
            if each.expected is not None:
                late.setdefault(each.cell, []).append(each.expected)
        if late and not self._told_of_time:
            self._told_of_time = True
            expectations = ", ".join(f"{cell} {_span(widths)}" for cell, widths in late.items())
            err().print(f"the time is not enough for the target everywhere; expect {expectations}", markup=False)

    def others_noticed(self, out_of_reach: OutOfReach) -> None:
        """Tell that others take so much that the precision asked for is out of reach, and what would help."""
        from weighbridge.report.text.trust import disturbance_words, what_helps

        took = disturbance_words(out_of_reach.disturbance, out_of_reach.baseline)
        number = f"{len(out_of_reach.expected)} of {plural(out_of_reach.comparisons, 'comparison')}"
        helps = what_helps(out_of_reach.disturbance, polled=out_of_reach.polled, beside=out_of_reach.beside)
        err().print(
            f"after {out_of_reach.blocks} blocks: {took}: ±{100 * out_of_reach.target:g}% is out of reach in "
            f"{number}, expect {_span(out_of_reach.expected)}. {helps}",
            markup=False,
        )

    def close(self) -> None:
        """Take the bar away: what is printed next is a result."""
        if self._bar is not None:
            self._bar.stop()

    def _advance(self) -> None:
        if self._bar is not None and self._task is not None:
            total = max(self._total, self._ended)
            self._bar.update(self._task, completed=self._ended, total=total, count=f"{self._ended}/{total}")


def _span(widths: Sequence[float]) -> str:
    """Half-widths: ``±3.1% to ±4.0%``."""
    low, high = f"±{min(widths):.1%}", f"±{max(widths):.1%}"
    return low if low == high else f"{low} to {high}"


def _block(trial: Trial) -> str:
    return f"block {trial.block}" if trial.block else "pilot"


def _where(trial: Trial) -> str:
    """``redis (clients=50) in bridge``."""
    return f"{cell_label(trial.workload, trial.level)} in {trial.environment}"


@contextmanager
def show() -> Iterator[Shown]:
    """The progress of one run, on standard error."""
    if not err().is_terminal:
        yield Shown(None)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")  # what is said is shortened before any number is
    columns = (
        BarColumn(bar_width=10), TextColumn("{task.fields[count]}"), TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"), TextColumn("{task.description}", markup=False, table_column=rest),
    )  # fmt: skip
    with Progress(*columns, console=err(), transient=True, expand=True) as bar:
        yield Shown(bar)
