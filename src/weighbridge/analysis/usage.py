"""Resource use over the time of a trial: CPU by kind, memory and network of every place, by environment.

Readings are averaged in steps of time (a second, or longer for long trials). At each step, charts show the median
over an environment's trials with a band from the smallest to the largest. Nothing here is compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from weighbridge.analysis.metered import CPU, IN, MEMORY, OUT, UNITS, quantity_of
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.trial import Series
from weighbridge.store.run import RunStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Steps = NDArray[np.float64]
    """A trial's value at each step of time; nan if there is none."""

MOST_STEPS, FEWEST_STEPS = 60, 10
POINTS = 16_000
"""The most points in the whole page; with many workloads and environments the steps become longer."""

PANELS = 36
"""Panels of one workload, about: two hosts and two sites, each with CPU by kind, memory and network."""

IDLE = 0.01
"""CPU time below this many CPUs is not drawn."""

MEMORY_KINDS = ("", "used", "committed")
"""The kinds of memory that are drawn."""


@dataclass(frozen=True, slots=True)
class Point:
    """One step of time: seconds since the trial's start; the median over the trials, the smallest and the largest."""

    at_s: float
    middle: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class UsagePanel:
    """One quantity of one place over time. ``curves`` are by environment."""

    place: str
    quantity: str
    unit: str
    curves: Mapping[str, tuple[Point, ...]]

    @property
    def most(self) -> float:
        """The largest median."""
        return max((point.middle for curve in self.curves.values() for point in curve), default=0.0)


@dataclass(frozen=True, slots=True)
class UsagePanels:
    """The panels of one cell; ``idle`` names kinds of CPU time that were close to zero everywhere."""

    panels: tuple[UsagePanel, ...]
    idle: tuple[str, ...]


def usage(store: RunStore, analysis: Analysis) -> dict[str, UsagePanels]:
    """Return the panels of each workload label; empty if the run has no readings over time."""
    by_label = {}
    labels = {label: [t for t in analysis.trials_of.get(label, ()) if t.ok] for label in analysis.labels}
    for label, trials in labels.items():
        of_label = _of_one(store, trials, analysis.environments, len(labels))
        if of_label.panels:
            by_label[label] = of_label
    return by_label


def _of_one(store: RunStore, trials: Sequence[TrialRow], environments: Sequence[str], cells: int) -> UsagePanels:
    import numpy as np

    longest = max((trial.duration_s for trial in trials), default=0.0)
    curves = max(1, cells * len(environments) * PANELS)
    steps = min(MOST_STEPS, max(FEWEST_STEPS, POINTS // curves))
    step_s = max(1.0, math.ceil(longest / steps))
    by_panel: dict[tuple[str, str, str], dict[str, list[Steps]]] = {}
    read_of = store.series_by_trial()
    with np.errstate(invalid="ignore"):  # a step without a reading is nan
        for trial in trials:
            for panel, read in _of_a_trial(read_of.get(trial.id, ()), step_s).items():
                by_panel.setdefault(panel, {}).setdefault(trial.environment, []).append(read)
    panels = []
    for (place, what, unit), by_environment in by_panel.items():
        drawn = {name: _points(by_environment[name], step_s) for name in environments if name in by_environment}
        panels.append(UsagePanel(place, what, unit, drawn))
    idle = [panel for panel in panels if panel.unit == "CPUs" and panel.most < IDLE]
    busy = sorted((panel for panel in panels if panel not in idle), key=lambda panel: (panel.place, _rank(panel)))
    return UsagePanels(tuple(busy), tuple(f"{panel.place} {panel.quantity}" for panel in idle))


def _rank(panel: UsagePanel) -> int:
    return ["CPUs", "B", "B/s"].index(panel.unit)


def _of_a_trial(read: Iterable[Series], step_s: float) -> dict[tuple[str, str, str], Steps]:
    """Return a trial's panels; for several interfaces, the busier one at each step."""
    panels: dict[tuple[str, str, str], Steps] = {}
    steps_of: dict[tuple[float, ...], tuple[NDArray[np.intp], NDArray[np.intp]]] = {}  # most were read together
    for series in read:
        about = _about(series.name)
        if about is not None:
            if series.at_s not in steps_of:
                steps_of[series.at_s] = _steps(series.at_s, step_s)
            key, steps = (series.place, *about), _average_steps(*steps_of[series.at_s], series.values)
            panels[key] = _busier(panels[key], steps) if key in panels else steps
    return panels


@cache  # a run has few names of series, and each trial has all of them
def _about(name: str) -> tuple[str, str] | None:
    """Return the name of a series in the page and its unit; None for a series that is not drawn."""
    what, part = quantity_of(name) or ("", "")
    if (what == CPU and part != "idle") or (what == MEMORY and part in MEMORY_KINDS):
        return (f"{what}, {part.replace('_', ' ')}" if part else what), UNITS[what]
    return (what, UNITS[what]) if what in (IN, OUT) else None


def _steps(at_s: Sequence[float], step_s: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the step of each reading, and the number of readings per step."""
    import numpy as np

    steps = (np.asarray(at_s, float).clip(0) / step_s).astype(np.intp)
    return steps, np.bincount(steps)


def _average_steps(steps: NDArray[np.intp], counts: NDArray[np.intp], values: Sequence[float]) -> Steps:
    import numpy as np

    return np.asarray(np.bincount(steps, np.asarray(values, float)) / counts)


def _busier(first: Steps, second: Steps) -> Steps:
    """Return the larger value at each step; steps that only one of them has are kept."""
    import numpy as np

    if first.size < second.size:
        first, second = second, first
    larger = first.copy()
    larger[: second.size] = np.fmax(first[: second.size], second)
    return larger


def _points(trials: Sequence[Steps], step_s: float) -> tuple[Point, ...]:
    """Return the steps that at least half of the trials reached; later steps would only show the slowest trial."""
    import numpy as np

    table = np.full((len(trials), max(each.size for each in trials)), np.nan)
    for row, each in zip(table, trials, strict=True):
        row[: each.size] = each
    reached = np.flatnonzero(2 * np.count_nonzero(~np.isnan(table), axis=0) >= len(trials))
    ordered = np.sort(table[:, reached], axis=0)  # nan comes last; numpy's own nanmedian is ten times slower
    counts, columns = np.count_nonzero(~np.isnan(ordered), axis=0), np.arange(reached.size)
    middle = ordered[(counts - 1) // 2, columns] / 2 + ordered[counts // 2, columns] / 2
    rows = np.column_stack((reached * step_s, middle, ordered[0], ordered[counts - 1, columns]))
    return tuple(Point(*row) for row in rows.tolist())
