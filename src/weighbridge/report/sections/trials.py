"""The trials of a page, a group for each environment in each workload and level: what the numbers link to.

Most of a large page is here, and it is seen only after a click. Where it is large it is stored compressed, and the
page's script unpacks a group when it is opened. What is packed is the same markup, escaped by the same template.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weighbridge.analysis.results import Analysis
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.report.anchors import group
from weighbridge.report.page import PLAIN_CHARACTERS, fragment, packed
from weighbridge.report.sections.outputs import Process
from weighbridge.report.text.formatting import quantity


@dataclass(frozen=True, slots=True)
class TrialGroup:
    """The trials of one environment in one workload and level."""

    id: str
    label: str
    environment: str
    count: int
    trials: str
    """Their ids, by which the script finds the group of a trial."""
    packed: bool
    html: Any
    """Markup, or (packed) its gzip in base 64."""


def trial_groups(analysis: Analysis, processes: Mapping[int, Sequence[Process]]) -> list[TrialGroup]:
    """Return the groups that have trials, in the study's order."""
    units = {(m.label, m.metric): m.unit for m in analysis.metrics}
    places: dict[tuple[str, str], list[TrialRow]] = {}
    for trial in analysis.trials:
        places.setdefault((trial.label, trial.environment), []).append(trial)
    order = [(label, name) for label in analysis.labels for name in analysis.environments if (label, name) in places]
    texts = {
        place: fragment(
            "trials.html.j2", trials=[(trial, _values(trial, units)) for trial in places[place]], processes=processes
        )
        for place in order
    }
    large = sum(map(len, texts.values())) > PLAIN_CHARACTERS
    return [
        TrialGroup(
            group(analysis, *place), *place, len(places[place]), " ".join(str(trial.id) for trial in places[place]),
            large, packed(texts[place]) if large else texts[place],
        )
        for place in order
    ]  # fmt: skip


def _values(trial: TrialRow, units: Mapping[tuple[str, str], str]) -> str:
    return ", ".join(
        f"{metric} {quantity(value, units[trial.label, metric])}" for metric, value in trial.values.items()
    )
