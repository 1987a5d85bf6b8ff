"""Known weights read back: the true cost of each, the cost that was read, and what this machine can see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from weighbridge.analysis.analyse import analyse
from weighbridge.statistics import smallest_visible_cost
from weighbridge.store.run import RunStore

SPANS_S = (60.0, 600.0, 3600.0)
"""The times for which the smallest detectable cost is given, in seconds."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading for one weight: costs are fractions of the metric (0.05 is 5%), from ``blocks`` blocks."""

    what: str
    weight: str
    true: float
    read: float
    low: float
    high: float
    blocks: int

    @property
    def inside(self) -> bool:
        """Whether the true cost lies in the interval that was read."""
        return self.low <= self.true <= self.high


class ReadingRow(TypedDict):
    """An injected cost and its measurement; costs are fractions of the metric."""

    what: str
    weight: str
    true: float
    read: float
    low: float
    high: float
    blocks: int
    inside: bool


@with_config(ConfigDict(extra="forbid"))
class CalibrationDocument(TypedDict):
    """The document of ``weighbridge calibrate --json``; ``inside`` counts the true costs inside their intervals."""

    version: Literal[1]
    readings: list[ReadingRow]
    smallest_visible: dict[str, dict[str, float]]
    inside: int
    made: str


def calibration_readings(store: RunStore) -> list[Reading]:
    """Every weight of a calibration run, the A/A arm (0 %) first. The baseline and all weights must share a knob."""
    arms = {name: (options, aa_of) for name, _, options, aa_of in store.environments()}
    analysis = analyse(store)
    full = _knob(arms[analysis.baseline][0])
    readings = []
    for report in analysis.headlines:
        for row in report.comparisons:
            if row.cost is None or row.cost.percent is None:
                continue
            options, aa_of = arms[row.environment]
            true = 0.0 if aa_of else 1 - _knob(options) / full
            cost = row.cost.percent
            what = report.metric_id.label
            numbers = (cost.estimate / 100, cost.low / 100, cost.high / 100)
            readings.append(Reading(what, "A/A" if aa_of else row.environment, true, *numbers, row.blocks))
    return sorted(readings, key=lambda reading: reading.true)


def _knob(options: Mapping[str, object]) -> float:
    """Return the setting that a weight lowers: the share of CPU time, or the rate of the link."""
    value = options.get("rate") or options.get("cpu_share") or 1.0
    return float(cast(float, value))


def smallest_visible(readings: Sequence[Reading], spent_s: float, weights: int) -> dict[float, float]:
    """Per time span in seconds, the smallest cost that one comparison shows in it on this machine, as a fraction.

    From the median half-width of the readings; the width falls with the square root of the time spent on a
    comparison, which is ``spent_s`` for ``weights`` comparisons and the baseline.
    """
    widths = sorted((reading.high - reading.low) / 2 for reading in readings)
    if not widths or spent_s <= 0:
        return {}
    width, each_s = widths[len(widths) // 2], 2 * spent_s / (weights + 1)  # a comparison alone has two arms
    return {span: smallest_visible_cost(width, each_s, span) for span in SPANS_S}


def summary(stores: Sequence[RunStore], made: str) -> CalibrationDocument:
    """Return the document of a calibration, ``made`` at this time."""
    rows: list[ReadingRow] = []
    smallest: dict[str, dict[str, float]] = {}
    for store in stores:
        readings = calibration_readings(store)
        spent = sum(trial.duration_s for trial in store.trials())
        visible = smallest_visible(readings, spent, len(readings))
        rows += [
            {"what": each.what, "weight": each.weight, "true": each.true, "read": each.read, "low": each.low,
             "high": each.high, "blocks": each.blocks, "inside": each.inside}
            for each in readings
        ]  # fmt: skip
        if readings:
            smallest[readings[0].what] = {f"{span:.0f} s": cost for span, cost in visible.items()}
    inside = sum(row["inside"] for row in rows)
    return {"version": 1, "readings": rows, "smallest_visible": smallest, "inside": inside, "made": made}
