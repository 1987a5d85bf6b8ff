"""The progress of a run: a live bar on a terminal, otherwise a line from time to time."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column, Table
from rich.text import Text

from weighbridge.cli.declared import later
from weighbridge.cli.messages import ANSWER
from weighbridge.cli.output import err
from weighbridge.model.isolation import SiteLayers
from weighbridge.model.measurement import Outcome
from weighbridge.model.setup import SetupStep
from weighbridge.model.text import printable
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import (
    difference_interval,
    margin,
    percent_interval,
    plural,
    quantity,
    share_short,
)
from weighbridge.report.text.trust import disturbance_words, what_helps
from weighbridge.report.text.verdicts import cost_effect, metric_direction
from weighbridge.runner import preflight
from weighbridge.runner.estimate import Forecast, clock
from weighbridge.runner.precision import CostEstimate, OutOfReach, PrecisionStatus, needed_s
from weighbridge.runner.session import Progress as SessionProgress
from weighbridge.secret_values import redacted

_LINES_S = (0.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds after the first trial at which a line is due without a terminal; the last interval repeats."""
_QUIET_S = 10.0
"""Seconds of silence after which each step prints a line without a terminal: set-up can take minutes."""
_STEPS = 3
"""The number of steps of the set-up that are shown at the same time."""
_BARS = {100: 20, 70: 10}
"""The width of a bar by the minimum width of the terminal. Narrower terminals show no bar."""
_WITH_BAR = min(_BARS)
_REFRESHES = 4
"""Refreshes per second. Drawing uses CPU time of the measured machine."""


class RunDisplay(SessionProgress, Protocol):
    """The progress of a session as the user sees it, until it is closed."""

    def close(self) -> None:
        """Show nothing more, because the next output is a result."""


class Shown:
    """Shows the progress of a session to the user. Implements `RunDisplay`."""

    def __init__(self, bar: Bar | None) -> None:
        self._bar = bar
        self._task = bar.add_task("starting", total=None, count="", left="") if bar else None
        self._live: Live | None = None
        self._ended = 0
        self._total = 0
        self._measuring = False
        self._began: float | None = None
        self._due_s = 0.0
        self._line_at = time.monotonic()
        self._estimates: Sequence[CostEstimate] = ()
        self._statuses: Sequence[PrecisionStatus] = ()
        self._looked_at = 0.0
        self._has_time_limit = False
        self._last_look = 0
        """Rounds at the last interim look. A continued run passes its earlier looks again, which print nothing."""

    def _line(self, text: str) -> None:
        """Print a line that stays."""
        self._line_at = time.monotonic()
        err().print(redacted(text), markup=False)

    def say(self, text: str) -> None:
        """Show one line about the current step."""
        self._statuses = ()  # the forecast was for trials that have ended, or were disturbed
        if self._bar is not None and self._task is not None:
            if self._ended and not self._measuring:  # the run can end before its last planned trial
                self._total = self._ended
                self._advance()
            self._bar.update(self._task, description=redacted(text), left="")
        else:
            self._line(text)

    def waits(self, steps: Sequence[SetupStep]) -> None:
        """Show the steps of the set-up. Without a terminal, print them only after a time of silence."""
        if self._bar is not None or time.monotonic() - self._line_at >= _QUIET_S:
            self.say(setup_words(steps))

    def layers_known(self, layers: Mapping[str, tuple[SiteLayers, ...]]) -> None:
        """Ignore the hypervisors: the live screen does not show them."""

    def trial_started(self, trial: Trial, finished: int, total: int, left: Forecast) -> None:
        """Show the current trial, the progress of the session and the remaining time.

        Repeated rounds can add trials to the planned ones. Then the current trial counts as the last one.
        """
        total = max(total, finished + 1)
        self._ended, self._total, self._measuring = finished, total, True
        self._has_time_limit = left.ends_by != "blocks"
        text = f"{_round(trial)}: {_where(trial)}"
        if self._bar is not None and self._task is not None:
            self._advance()
            self._bar.update(self._task, description=text, left=_left(left))
        else:
            every = left.ends_by == "blocks" and not left.at_most  # otherwise the run can end earlier
            of = f" of {total}" if every else ""
            self._line_if_due(", ".join(filter(None, [f"{finished}{of} trials done", _left(left)])), text)

    def _line_if_due(self, done: str, text: str) -> None:
        """Print a line if one is due: the progress, and the costs so far or else the current trial."""
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
        return prospect(self._statuses, time.monotonic() - self._looked_at, has_time_limit=self._has_time_limit)

    def trial_finished(self, record: TrialRecord) -> None:
        """Count a trial, and print a line if it failed or was overloaded."""
        self._ended += 1
        self._measuring = False
        self._advance()
        if record.outcome is not Outcome.OK:
            self._line(trial_problem(record))

    def precision_checked(self, blocks: int, statuses: Sequence[PrecisionStatus]) -> None:
        """Store the forecasts. Print a line if every cost is precise enough, decided or not."""
        self._statuses, self._looked_at = statuses, time.monotonic()
        targets = [each.target for each in statuses if each.target is not None]
        new, self._last_look = self._total > 0 and blocks > self._last_look, max(blocks, self._last_look)
        if not (new and targets):
            return
        if all(each.reached and each.width <= max(targets) for each in statuses):
            line = f"every interval has reached {_half_width_text(max(targets))}"
        elif all(each.reached or each.for_verdict for each in statuses):
            needed = min(each.target or 0.0 for each in statuses if not each.reached)
            further = f"continuing to {_half_width_text(needed)}, where every cost can be decided"
            line = f"target reached but undecided, {further}"
        else:
            return
        self._line(f"after {plural(blocks, 'round')}: {line}")

    def interference_noticed(self, out_of_reach: OutOfReach) -> None:
        """Print that other programs put the target out of reach, and what would help.

        The expected width is in `prospect`, which the next interim looks correct.
        """
        self._line(interference_text(out_of_reach))

    def time_known(self, trial_s: float, left: Forecast) -> None:
        """Print the duration of one run of the program, including start and readings, and the time of the verdict."""
        self._line(f"one run takes {quantity(trial_s, 's')} in total: {verdict_time(left)}")

    def costs_estimated(self, blocks: int, estimates: Sequence[CostEstimate]) -> None:
        """Store the costs so far, which the screen or the next line shows."""
        self._estimates = estimates

    def attach(self, live: Live) -> None:
        """Show this progress with ``live`` until `close`."""
        self._live = live

    def rendered(self) -> RenderableType:
        """Return the screen: the progress of the run, and one line per cost so far.

        It leaves room for the ``^C`` that a terminal prints; otherwise the bar would stay above it.
        """
        return Constrain(self._rendered(), max(1, err().width - len("^C") - 1))

    def _rendered(self) -> RenderableType:
        bar = self._bar.get_renderable() if self._bar is not None else ""
        if not self._estimates:
            return bar
        table = estimates_table(self._estimates, err().width, err().height - 5)
        expected = self._prospect()
        return Group(bar, table, Text(expected, "dim", no_wrap=True)) if expected else Group(bar, table)

    def close(self) -> None:
        """Remove the bar, because the next output is a result."""
        if self._live is not None:
            self._live.stop()

    def _advance(self) -> None:
        if self._bar is not None and self._task is not None:
            total = max(self._total, self._ended)
            self._bar.update(self._task, completed=self._ended, total=total, count=f"{self._ended}/{total}")


def trial_problem(record: TrialRecord) -> str:
    """Return how a trial failed: ``round 3, redis in bridge: overloaded: ...``."""
    where = f"{_round(record.trial)}, {_where(record.trial)}"
    how = "overloaded" if record.outcome is Outcome.BROKE else str(record.outcome)
    return f"{where}: {how}: {record.message}"


def interference_text(out_of_reach: OutOfReach) -> str:
    """Return how other programs put the target out of reach, and what would help."""
    took = disturbance_words(out_of_reach.disturbance, out_of_reach.baseline)
    missed, every = len(out_of_reach.expected), out_of_reach.comparisons
    number = "the cost" if every == 1 else f"{missed} of {every} costs"
    helps = what_helps(
        out_of_reach.disturbance, polled=out_of_reach.polled, beside=out_of_reach.other_run,
        on_nodes=out_of_reach.on_nodes, weighed=out_of_reach.weighed,
    )  # fmt: skip
    misses = f"{number} will probably miss {margin(out_of_reach.target)}"
    return f"after {out_of_reach.blocks} rounds: {took}; {misses}. {helps}"


def setup_words(steps: Sequence[SetupStep]) -> str:
    """Return the steps of the set-up: ``starting host db (2 of 9); importing the image on web``."""
    more = [f"{len(steps) - _STEPS} more"] if len(steps) > _STEPS else []
    return "; ".join([*map(_setup_step, steps[:_STEPS]), *more])


def _setup_step(step: SetupStep) -> str:
    if step.kind == "services":
        return f"creating Services ({step.number:,} of {step.total:,})"
    if step.kind == "image":
        return f"importing the image on {step.name}"
    noun = {"host": "host ", "engine": "the engine on ", "site": ""}[step.kind]
    number = f" ({step.number} of {step.total})" if step.number else ""
    clients = f" for clients on {step.clients}" if step.clients else ""
    return f"starting {noun}{step.name}{clients}{number}"


def _left(left: Forecast) -> str:
    """Return the remaining time, for example ``at most 18 s left``; empty while it is unknown."""
    if left.last_s == math.inf:
        return ""
    if left.ends_by == "block":
        return f"last round, {clock(left.last_s)} left"
    return f"{'at most ' if left.at_most else ''}{clock(left.last_s)} left"


def verdict_time(left: Forecast) -> str:
    """Return when a run ends at the earliest and at the latest, and after how many rounds."""
    first = f"{clock(left.first_s)} ({plural(left.first_blocks, 'round')})"
    last = f"{clock(left.last_s)} ({plural(left.last_blocks, 'round')})"
    if left.ends_by != "blocks":
        last = f"{clock(left.last_s)} (time limit"
        last += ")" if left.at_most else f", about {plural(left.last_blocks, 'round')})"
    if not preflight.can_decide(left.last_blocks):
        return f"the measurement ends in about {last}, with too few rounds for a verdict"
    if left.at_most:
        return f"the measurement ends in {first} at the earliest, {last} at the latest"
    return f"expect a verdict in about {last}"


def prospect(statuses: Sequence[PrecisionStatus], since_s: float = 0.0, *, has_time_limit: bool = False) -> str:
    """Return when costs will be precise enough, or how precise they will be at the end; empty if that is unknown.

    It uses the last interim look, ``since_s`` seconds ago: ``±2% expected in 12 to 40 s``, ``±2% might not be
    reached``, or ``the time limit allows only about ±13% to ±27%, not ±2%`` if that is almost certain. For costs that
    are precise enough but undecided it forecasts ``a verdict``.
    """
    open_ = [each for each in statuses if not each.reached]
    target = next((each.target for each in open_ if not each.for_verdict), None)
    if not any(each.target for each in open_):
        return ""
    aim = "a verdict" if target is None else margin(target)
    forecasts = [(each.expected, each.target) for each in open_ if each.expected is not None]
    if late := [width for width, wanted in forecasts if not wanted or share_short(width[0]) != share_short(wanted)]:
        ends = share_short(min(low for low, _ in late)), share_short(max(high for _, high in late))
        of = f" in {len(late)} of {len(statuses)} comparisons" if len(late) < len(statuses) else ""
        limit = "the time limit allows" if has_time_limit else "the planned rounds allow"
        missed = "too wide for a verdict" if target is None else f"not {aim}"
        return f"{limit} only about {' to '.join(dict.fromkeys(ends))}{of}, {missed}"
    if any(each.needed_s is None for each in open_):
        return ""
    soonest_s, latest_s = (each - since_s for each in needed_s(open_))
    if latest_s == math.inf:
        return f"{aim} might not be reached"
    return f"{aim} expected {_when(round(soonest_s), round(latest_s))}"


def _half_width_text(half_width: float) -> str:
    """Return a half-width with two significant digits: ``±2%``, ``±1.6%``."""
    return f"±{100 * half_width:.2g}%"


def _when(soonest_s: int, latest_s: int) -> str:
    """Return ``in 12 to 40 s``, ``in 40 s to 3 min``, ``within 40 s`` or ``in about 12 s``."""
    if latest_s <= 0:
        return "any moment"
    soonest, latest = clock(soonest_s), clock(latest_s)
    if soonest_s <= 0:
        return f"within {latest}"
    if soonest == latest:
        return f"in about {latest}"
    number, _, unit = soonest.partition(" ")
    return f"in {number if unit == latest.partition(' ')[2] else soonest} to {latest}"


def _costs_so_far(estimates: Sequence[CostEstimate], expected: str) -> str:
    """Return the least precise cost so far with the ``expected`` time, and how many costs are precise enough.

    The text is empty before the first cost.
    """
    if not estimates:
        return ""
    widest = max(estimates, key=_half_width)
    parts = [f"{widest.cell} in {widest.environment}: {_cost(widest)}"]
    if widest.target is not None:
        parts.append(expected or f"target {margin(widest.target)}")
    if len(estimates) > 1:
        parts[0] = f"widest interval, {parts[0]}"
    if len(estimates) > 1 and widest.target is not None:
        parts.insert(0, f"{sum(map(_reached, estimates))} of {len(estimates)} costs precise enough")
    return "; ".join(parts)


def _round(trial: Trial) -> str:
    return f"round {trial.block}" if trial.block else "pilot"


def _where(trial: Trial) -> str:
    """Return ``redis (clients=50) in bridge``."""
    return f"{trial.label} in {display_name(trial.environment)}"


def estimates_table(estimates: Sequence[CostEstimate], width: int, height: int) -> Table:
    """Return one line per cost so far. If ``height`` has no room for all, the least precise costs come first.

    A bar is full when the interval has reached its target.
    """
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


def _reached(estimate: CostEstimate) -> bool:
    return estimate.target is not None and _half_width(estimate) <= estimate.target


def _half_width(estimate: CostEstimate) -> float:
    """Return the half-width for the next interim look; infinite if there are too few rounds for one."""
    return math.inf if estimate.few else estimate.half_width


def _cost(estimate: CostEstimate) -> str:
    """Return ``4.5% [2.0, 7.1] slower after 12 rounds``, or ``cost -0.4% [-1.9, 1.0]`` if the direction is open.

    A positive cost is worse. With fewer than ten rounds the verdict is exploratory and can change, so the cost has no
    word for its direction. Before the first verdict the interval is left out: if it excluded 0, it would look like a
    verdict.
    """
    cost, penalty, metric = estimate.cost, estimate.cost.penalty, estimate.metric
    after = f"after {plural(cost.blocks, 'round')}"
    if not (estimate.few or cost.exploratory) and (penalty.low > 0 or penalty.high < 0):
        word = metric_direction(metric, worse=penalty.estimate >= 0)
        effect = cost_effect(cost, metric.unit, word)
        return f"{effect.amount} {effect.relation} {after}"
    ratio = cost.scale == "ratio"
    amount = percent_interval(penalty) if ratio else difference_interval(penalty, metric.unit)
    return f"cost {amount.partition(' [')[0] if estimate.few else amount} {after}"


@contextmanager
def reading_runs() -> Iterator[Callable[[int, int, str], None]]:
    """Yield a function that shows on a terminal which run is read: its number, how many there are, its name."""
    if not err().is_terminal:
        yield lambda *_: None
        return
    with err().status("reading runs") as status:
        yield lambda number, total, name: status.update(
            Text(f"reading run {number:,} of {total:,}: {printable(name)}")
        )


@contextmanager
def show(directory: Path | None = None) -> Iterator[RunDisplay]:
    """Show the progress of one run on standard error. Events name its ``directory``."""
    if ANSWER.events:
        yield later("weighbridge.cli.event_progress:event_progress")(directory)
        return
    if not err().is_terminal:
        yield Shown(None)
        return

    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")  # shortens the description before any number
    columns = (
        BarColumn(bar_width=10), TextColumn("{task.fields[count]}"), TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"), TextColumn("{task.description}", markup=False, table_column=rest),
    )  # fmt: skip
    shown = Shown(Progress(*columns, console=err(), expand=True))
    live = Live(get_renderable=shown.rendered, console=err(), transient=True, refresh_per_second=_REFRESHES)
    with live:
        shown.attach(live)
        yield shown
