"""Progress of a run: a live bar on a terminal, plain lines elsewhere."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from weighbridge.cli.output import err
from weighbridge.model.isolation import SiteLayers
from weighbridge.model.level import cell_label
from weighbridge.model.measurement import Outcome
from weighbridge.model.text import printable
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.report.text.formatting import plural
from weighbridge.runner.estimate import clock
from weighbridge.runner.precision import Estimate, OutOfReach, Standing

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.progress import Progress as Bar
    from rich.table import Table

_LINE_EVERY_S = 15.0
_ESTIMATES = 4
"""Costs that have a line each where there is no terminal."""
_BAR, _WITH_BAR = 20, 70
"""Characters of a bar, and of a terminal that has room for it."""
_REFRESHES = 4
"""A second: drawing takes CPU time of the machine that is measured."""


class Shown:
    """Tells a person how a session goes on. Implements ``Progress`` of the session."""

    def __init__(self, bar: "Bar | None") -> None:
        self._bar = bar
        self._task = bar.add_task("starting", total=None, count="", left="") if bar else None
        self._live: Live | None = None
        self._begun = False
        self._ended = 0
        self._total = 0
        self._last_line = 0.0
        self._last_estimate = -_LINE_EVERY_S
        self._told_of_time = False
        self._estimates: Sequence[Estimate] = ()

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
        sentence = f"after {blocks} blocks: {reached} of {plural(len(standings), 'open comparison')} at the target"
        if not widest.reached:
            width = f"±{widest.width:.1%}" if widest.width < 10 else "no interval yet"  # also infinite
            prediction = f", about {widest.predicted_blocks} blocks needed" if widest.predicted_blocks else ""
            sentence += f"; widest: {widest.cell} in {widest.environment}, {width}{prediction}"
        err().print(sentence, markup=False)
        late: dict[str, list[float]] = {}
        for each in standings:
            if each.expected is not None:
                late.setdefault(each.cell, []).append(each.expected)
        if late and not self._told_of_time:
            self._told_of_time = True
            expectations = ", ".join(f"{cell} {_span(widths)}" for cell, widths in late.items())
            err().print(f"not every workload will reach the target in time; expect {expectations}", markup=False)

    def others_noticed(self, out_of_reach: OutOfReach) -> None:
        """Tell that others take so much that the precision asked for is out of reach, and what would help."""
        from weighbridge.report.text.trust import disturbance_words, what_helps

        took = disturbance_words(out_of_reach.disturbance, out_of_reach.baseline)
        number = f"{len(out_of_reach.expected)} of {plural(out_of_reach.comparisons, 'comparison')}"
        helps = what_helps(out_of_reach.disturbance, polled=out_of_reach.polled, beside=out_of_reach.beside)
        err().print(
            f"after {out_of_reach.blocks} blocks: {took}; {number} will miss ±{100 * out_of_reach.target:g}%, "
            f"expect {_span(out_of_reach.expected)}. {helps}",
            markup=False,
        )

    def time_known(self, trial_s: float, blocks: int, left_s: float) -> None:
        """Tell how long a run of the program takes, and by when there is a first verdict."""
        from weighbridge.report.text.formatting import quantity
        from weighbridge.runner.preflight import can_decide

        for_ = f"a first verdict ({blocks} blocks)" if can_decide(blocks) else plural(blocks, "block")
        err().print(f"one run takes {quantity(trial_s, 's')}: about {clock(left_s)} for {for_}", markup=False)

    def costs_estimated(self, blocks: int, estimates: Sequence[Estimate]) -> None:
        """Show what costs are so far: in place on a terminal, now and then as a line elsewhere."""
        self._estimates = estimates
        now = time.monotonic()
        if self._bar is None and now - self._last_estimate >= _LINE_EVERY_S:
            self._last_estimate = now
            for each in estimates[:_ESTIMATES]:
                err().print(f"{each.cell} in {each.environment} costs {_cost(each)}", markup=False)

    def attach(self, live: "Live") -> None:
        """Be shown by ``live`` until `close`."""
        self._live = live

    def rendered(self) -> "RenderableType":
        """Return what is shown now: how far the run is, and a line for each cost so far."""
        from rich.console import Group

        bar = self._bar.get_renderable() if self._bar is not None else ""
        return Group(bar, estimates_table(self._estimates, err().width, err().height - 4)) if self._estimates else bar

    def close(self) -> None:
        """Take the bar away: what is printed next is a result."""
        if self._live is not None:
            self._live.stop()

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


def estimates_table(estimates: Sequence[Estimate], width: int, height: int) -> "Table":
    """Return a line for each cost so far, as many as ``height`` has room for; the least precise come first then.

    A bar is full when the interval is as narrow as it is to become.
    """
    from rich.table import Table
    from rich.text import Text

    lines = max(2, height)
    shown = sorted(estimates, key=_reached)[: lines - 1] if len(estimates) > lines else estimates
    several = len({each.cell for each in estimates}) > 1
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, overflow="ellipsis")
    for each in shown:
        name = f"{each.environment}, {each.cell}" if several else each.environment
        enough = not each.few
        cost = _cost(each).partition(" after")[0] if width < _WITH_BAR and enough else _cost(each)
        cells = [Text(printable(name)), Text(cost, no_wrap=True)]
        if each.target is not None and width >= _WITH_BAR:
            share = min(1.0, each.target / max(each.cost.half_width, 1e-9))
            share = 0.0 if each.few else share
            full = int(_BAR * share)
            style = "green" if share == 1.0 else "yellow"
            cells.append(Text("━" * full, style).append("─" * (_BAR - full), "bright_black"))
        if each.target is not None:
            words = _width(each) if width >= _WITH_BAR else _width(each).partition(" of ")[0]
            cells.append(Text(words, "green" if _reached(each) else ""))
        table.add_row(*cells)
    if len(shown) < len(estimates):
        table.add_row(Text(f"and {len(estimates) - len(shown)} more", "dim"))
    return table


def _reached(estimate: Estimate) -> bool:
    return not estimate.few and estimate.target is not None and estimate.cost.half_width <= estimate.target


def _width(estimate: Estimate) -> str:
    """``±4.5% of ±2%``."""
    half_width = math.inf if estimate.few else estimate.cost.half_width
    width = f"±{half_width:.1%}" if half_width < 10 else "no interval yet"
    return width if estimate.target is None else f"{width} of ±{100 * estimate.target:g}%"


def _cost(estimate: Estimate) -> str:
    """``1.2 % [-3.1, 5.6] after 9 blocks``, positive is worse; without an interval where there is no verdict yet."""
    from weighbridge.report.text.formatting import difference_interval, percent_interval

    cost = estimate.cost
    ratio, worsening = cost.scale == "ratio", cost.worsening
    sentence = percent_interval(worsening) if ratio else difference_interval(worsening, estimate.unit)
    if estimate.few:  # an interval that excludes 0 would be taken for a verdict
        sentence = sentence.partition(" [")[0]
    return f"{sentence} after {plural(cost.blocks, 'block')}"


@contextmanager
def show() -> Iterator[Shown]:
    """The progress of one run, on standard error."""
    if not err().is_terminal:
        yield Shown(None)
        return
    from rich.live import Live
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")  # what is said is shortened before any number is
    columns = (
        BarColumn(bar_width=10), TextColumn("{task.fields[count]}"), TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"), TextColumn("{task.description}", markup=False, table_column=rest),
    )  # fmt: skip
    shown = Shown(Progress(*columns, console=err(), expand=True))
    live = Live(get_renderable=shown.rendered, console=err(), transient=True, refresh_per_second=_REFRESHES)
    with live:
        shown.attach(live)
        yield shown
