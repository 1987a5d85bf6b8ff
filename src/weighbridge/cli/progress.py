"""Progress of a run: a live bar on a terminal; elsewhere a line now and then."""

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
from weighbridge.report.text.formatting import SPACE, plural
from weighbridge.runner.estimate import Forecast, clock
from weighbridge.runner.precision import Estimate, OutOfReach, Standing, needed_s
from weighbridge.secret_values import redacted

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.progress import Progress as Bar
    from rich.table import Table

_LINES_S = (0.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds after the first trial at which a line is due where there is no terminal; the last ones time and again."""
_QUIET_S = 10.0
"""Seconds without a line after which each step is one, where there is no terminal: opening sites may take minutes."""
_BARS = {100: 20, 70: 10}
"""Characters of a bar by those that a terminal has at least; a narrower one has none."""
_WITH_BAR = min(_BARS)
_REFRESHES = 4
"""A second: drawing takes CPU time of the machine that is measured."""


class Shown:
    """Tells a person how a session goes on. Implements ``Progress`` of the session."""

    def __init__(self, bar: "Bar | None") -> None:
        self._bar = bar
        self._task = bar.add_task("starting", total=None, count="", left="") if bar else None
        self._live: Live | None = None
        self._ended = 0
        self._total = 0
        self._began: float | None = None
        self._due_s = 0.0
        self._line_at = time.monotonic()
        self._estimates: Sequence[Estimate] = ()
        self._standings: Sequence[Standing] = ()
        self._looked_at = 0.0
        self._last_look = 0
        """Blocks of the last look: a run that goes on comes to its earlier ones again, of which nothing is said."""

    def _line(self, text: str) -> None:
        """A line that stays."""
        self._line_at = time.monotonic()
        err().print(redacted(text), markup=False)

    def say(self, text: str) -> None:
        """One line about what happens now."""
        self._standings = ()  # what is expected is of the trials, which have ended, or were disturbed
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=redacted(text), left="")
        else:
            self._line(text)

    def step(self, text: str) -> None:
        """What is done now: a line only after a while without any, where there is no terminal."""
        if self._bar is not None or time.monotonic() - self._line_at >= _QUIET_S:
            self.say(text)

    def layers_known(self, layers: Mapping[str, tuple[SiteLayers, ...]]) -> None:
        """No figure is shown here that hypervisors would have to stand beside."""

    def trial_started(self, trial: Trial, finished: int, total: int, left: Forecast) -> None:
        """Show what runs now, how far the session is and how long it still takes, or may take.

        Repeated blocks may make more trials than were planned: then this one is the last that is known of.
        """
        total = max(total, finished + 1)
        self._ended, self._total = finished, total
        text = f"{_block(trial)}: {_where(trial)}"
        if self._bar is not None and self._task is not None:
            self._advance()
            self._bar.update(self._task, description=text, left=_left(left))
        else:
            every = left.ends_by == "blocks" and not left.at_most  # else the end may come before
            of = f" of {total}" if every else ""
            self._line_if_due(", ".join(filter(None, [f"{finished}{of} trials done", _left(left)])), text)

    def _line_if_due(self, done: str, text: str) -> None:
        """Print a line where one is due: how far the run is, and costs so far, else what runs now."""
        now = time.monotonic()
        if self._began is None:
            self._began = now
        elapsed_s = now - self._began
        if elapsed_s < self._due_s:
            return
        self._due_s = next((each for each in _LINES_S if each > elapsed_s), elapsed_s + _LINES_S[-1])
        so_far = _costs_so_far(self._estimates, self._prospect())
        self._line(f"{f'{clock(elapsed_s)}: ' if elapsed_s >= 1 else ''}{done}; {so_far or text}")

    def _prospect(self) -> str:
        return prospect(self._standings, time.monotonic() - self._looked_at)

    def trial_finished(self, record: TrialRecord) -> None:
        """Count a trial, and tell of one that failed, or broke under its load."""
        self._ended += 1
        self._advance()
        if record.outcome is not Outcome.OK:
            where = f"{_block(record.trial)}, {_where(record.trial)}"
            how = "broke under its load" if record.outcome is Outcome.BROKE else str(record.outcome)
            self._line(f"{where}: {how}: {record.message}")

    def precision_checked(self, blocks: int, standings: Sequence[Standing]) -> None:
        """Keep what is to be expected; tell what is precise enough but undecided, and where all is precise enough."""
        self._standings, self._looked_at = standings, time.monotonic()
        targets = [each.target for each in standings if each.target is not None]
        new, self._last_look = self._total > 0 and blocks > self._last_look, max(blocks, self._last_look)
        if not (new and targets):
            return
        if all(each.reached and each.width <= max(targets) for each in standings):
            line = f"every interval is within {_half_width_text(max(targets))}"
        elif all(each.reached or each.for_verdict for each in standings):
            needed = min(each.target or 0.0 for each in standings if not each.reached)
            line = f"precise enough, but undecided: measuring on to {_half_width_text(needed)}, which decides"
        else:
            return
        self._line(f"after {plural(blocks, 'block')} {line}")

    def others_noticed(self, out_of_reach: OutOfReach) -> None:
        """Tell that others take so much that the precision asked for is out of reach, and what would help.

        How wide intervals will be `prospect` says, which the next looks correct.
        """
        from weighbridge.report.text.formatting import margin
        from weighbridge.report.text.trust import disturbance_words, what_helps

        took = disturbance_words(out_of_reach.disturbance, out_of_reach.baseline)
        missed, every = len(out_of_reach.expected), out_of_reach.comparisons
        number = "the cost" if every == 1 else f"{missed} of {every} costs"
        helps = what_helps(
            out_of_reach.disturbance, polled=out_of_reach.polled, beside=out_of_reach.beside,
            on_nodes=out_of_reach.on_nodes,
        )  # fmt: skip
        misses = f"{number} will likely miss {margin(out_of_reach.target)}"
        self._line(f"after {out_of_reach.blocks} blocks: {took}; {misses}. {helps}")

    def time_known(self, trial_s: float, left: Forecast) -> None:
        """Tell how long a run of the program takes, with its start and its readings, and when there is a verdict."""
        from weighbridge.report.text.formatting import quantity

        self._line(f"a run takes {quantity(trial_s, 's')} in all: {verdict_time(left)}")

    def costs_estimated(self, blocks: int, estimates: Sequence[Estimate]) -> None:
        """Show what costs are so far: in place on a terminal, in the next line elsewhere."""
        self._estimates = estimates

    def attach(self, live: "Live") -> None:
        """Be shown by ``live`` until `close`."""
        self._live = live

    def rendered(self) -> "RenderableType":
        """Return what is shown now: how far the run is, and a line for each cost so far.

        Beside it is room for the ``^C`` that a terminal writes: on a line of its own the bar would stay above it.
        """
        from rich.constrain import Constrain

        return Constrain(self._rendered(), max(1, err().width - len("^C") - 1))

    def _rendered(self) -> "RenderableType":
        from rich.console import Group
        from rich.text import Text

        bar = self._bar.get_renderable() if self._bar is not None else ""
        if not self._estimates:
            return bar
        table = estimates_table(self._estimates, err().width, err().height - 5)
        expected = self._prospect()
        return Group(bar, table, Text(expected, "dim", no_wrap=True)) if expected else Group(bar, table)

    def close(self) -> None:
        """Take the bar away: what is printed next is a result."""
        if self._live is not None:
            self._live.stop()

    def _advance(self) -> None:
        if self._bar is not None and self._task is not None:
            total = max(self._total, self._ended)
            self._bar.update(self._task, completed=self._ended, total=total, count=f"{self._ended}/{total}")


def _left(left: Forecast) -> str:
    """How long a run still takes: ``at most 18 s left``; empty while that is not known."""
    if left.last_s == math.inf:
        return ""
    if left.ends_by == "block":
        return f"last block, {clock(left.last_s)} left"
    return f"{'at most ' if left.at_most else ''}{clock(left.last_s)} left"


def verdict_time(left: Forecast) -> str:
    """Say when a run ends at the latest, where it may end before also when that is, and of how many blocks it is."""
    from weighbridge.runner.preflight import can_decide

    first = f"{clock(left.first_s)} ({plural(left.first_blocks, 'block')})"
    last = f"{clock(left.last_s)} ({plural(left.last_blocks, 'block')})"
    if left.ends_by != "blocks":
        last = f"{clock(left.last_s)} (time limit"
        last += ")" if left.at_most else f", about {plural(left.last_blocks, 'block')})"
    if not can_decide(left.last_blocks):
        return f"it ends in about {last}, too few blocks for a verdict"
    if left.at_most:
        return f"it ends in {first} at the earliest, {last} at the latest"
    return f"a verdict in about {last}"


def prospect(standings: Sequence[Standing], since_s: float = 0.0) -> str:
    """Say when costs will be precise enough, or how precise they will be at the end; empty where nobody knows.

    By the last look, ``since_s`` seconds ago: ``±2 % expected in 12 to 40 s``, ``±2 % may not be reached``, and where
    that is all but sure ``±2 % out of reach: expect ±2.4 to ±3.1 %``. Of costs that are precise enough and undecided
    it is ``a verdict`` that is expected.
    """
    from weighbridge.report.text.formatting import margin, share

    open_ = [each for each in standings if not each.reached]
    target = next((each.target for each in open_ if not each.for_verdict), None)
    if not any(each.target for each in open_):
        return ""
    aim = "a verdict" if target is None else margin(target)
    wide = [each for each in open_ if each.expected is not None and share(each.expected[0]) != share(each.target)]
    if late := [each.expected for each in wide if each.expected is not None]:
        ends = share(min(low for low, _ in late)), share(max(high for _, high in late))
        of = f" in {len(late)} of {len(standings)} comparisons" if len(late) < len(standings) else ""
        return f"{aim} out of reach{of}: expect {' to '.join(dict.fromkeys(ends))}"
    if any(each.needed_s is None for each in open_):
        return ""
    soonest_s, latest_s = (each - since_s for each in needed_s(open_))
    if latest_s == math.inf:
        return f"{aim} may not be reached"
    return f"{aim} expected {_when(round(soonest_s), round(latest_s))}"


def _half_width_text(half_width: float) -> str:
    """A half-width in two figures: ``±2 %``, ``±1.6 %``."""
    return f"±{100 * half_width:.2g}{SPACE}%"


def _when(soonest_s: int, latest_s: int) -> str:
    """``in 12 to 40 s``, ``in 40 s to 3 min``, ``within 40 s``, ``in about 12 s``."""
    if latest_s <= 0:
        return "any moment"
    soonest, latest = clock(soonest_s), clock(latest_s)
    if soonest_s <= 0:
        return f"within {latest}"
    if soonest == latest:
        return f"in about {latest}"
    number, _, unit = soonest.partition(" ")
    return f"in {number if unit == latest.partition(' ')[2] else soonest} to {latest}"


def _costs_so_far(estimates: Sequence[Estimate], expected: str) -> str:
    """The least precise cost so far with what is ``expected``, of several how many are precise enough.

    Empty where there is none.
    """
    from weighbridge.report.text.formatting import margin

    if not estimates:
        return ""
    widest = max(estimates, key=_half_width)
    parts = [f"{widest.cell} in {widest.environment}: {_cost(widest)}"]
    if widest.target is not None:
        parts.append(expected or f"target {margin(widest.target)}")
    if len(estimates) > 1:
        parts[0] = f"widest {parts[0]}"
    if len(estimates) > 1 and widest.target is not None:
        parts.insert(0, f"{sum(map(_reached, estimates))} of {len(estimates)} costs precise enough")
    return "; ".join(parts)


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
    bar = next((characters for least, characters in _BARS.items() if width >= least), 0)
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, overflow="ellipsis")
    for each in shown:
        name = f"{each.environment}, {each.cell}" if several else each.environment
        enough = not each.few
        cost = _cost(each).partition(" after")[0] if width < _WITH_BAR and enough else _cost(each)
        cells = [Text(printable(name)), Text(cost, no_wrap=True)]
        if each.target is not None and bar:
            share = min(1.0, each.target / max(_half_width(each), 1e-9))
            full = int(bar * share)
            style = "green" if share == 1.0 else "yellow"
            cells.append(Text("━" * full, style).append("─" * (bar - full), "bright_black"))
        table.add_row(*cells)
    if len(shown) < len(estimates):
        table.add_row(Text(f"and {len(estimates) - len(shown)} more", "dim"))
    return table


def _reached(estimate: Estimate) -> bool:
    return estimate.target is not None and _half_width(estimate) <= estimate.target


def _half_width(estimate: Estimate) -> float:
    """What the next look goes by; infinite where it has too few blocks for one."""
    return math.inf if estimate.few else estimate.half_width


def _cost(estimate: Estimate) -> str:
    """``4.5 % [2.0, 7.1] slower after 12 blocks``; with both signs ``cost -0.4 % [-1.9, 1.0]``, positive is worse.

    A verdict of fewer than ten blocks is exploratory, and may be withdrawn: its cost has no word for its direction.
    Without an interval where there is no verdict yet: one that excludes 0 would be taken for it.
    """
    from weighbridge.report.text.formatting import difference_interval, percent_interval
    from weighbridge.report.text.verdicts import cost_effect, metric_direction

    cost, worsening, metric = estimate.cost, estimate.cost.worsening, estimate.metric
    after = f"after {plural(cost.blocks, 'block')}"
    if not (estimate.few or cost.exploratory) and (worsening.low > 0 or worsening.high < 0):
        word = metric_direction(metric, worse=worsening.estimate >= 0)
        effect = cost_effect(cost, metric.unit, word)
        return f"{effect.amount} {effect.relation} {after}"
    ratio = cost.scale == "ratio"
    amount = percent_interval(worsening) if ratio else difference_interval(worsening, metric.unit)
    return f"cost {amount.partition(' [')[0] if estimate.few else amount} {after}"


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
