"""Noise of a machine: how much two runs of a program differ, the time for a precision, and causes.

The run has one native environment and its A/A arm. ``variation`` is the standard deviation of the log ratios of the
two within blocks. Blocks have to average it out; it contains only those changes of the machine that happen within a
block. `weighbridge.statistics.precision` derives the effort of a comparison whose runs are equally noisy.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median, stdev

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.remarks.flags import FlaggedTrials, flagged_trials
from weighbridge.analysis.results import Analysis
from weighbridge.model.facts import InterruptRate
from weighbridge.model.flag import FlagCode
from weighbridge.statistics import LOOKS, blocks_needed, looks_share, planned_looks, visible_effect
from weighbridge.statistics.precision import MOST_BLOCKS
from weighbridge.statistics.verdicts import ALPHA
from weighbridge.store.blocks import arm_values
from weighbridge.store.run import RunStore

TARGETS = (0.05, 0.02, 0.01)
"""Relative half-widths for which the required time is shown."""
SPAN_S = 600.0
"""Seconds of the trials that the smallest cost of a machine is about: ten minutes."""
ARMS = 3
"""Trials of a round: the baseline, its control, and the environment with the cost."""
RESOURCES: Mapping[str, str] = {
    "cpu": "CPU", "memory": "memory", "tcp": "network", "latency": "network", "disk": "disk",
}  # fmt: skip
"""The resource that each workload of the bundled study ``noise`` depends on."""
_OF_THE_MACHINE = (
    FlagCode.STEAL, FlagCode.OTHER_WORK, FlagCode.MEMORY_PRESSURE, FlagCode.IO_PRESSURE, FlagCode.CLOCKS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WorkloadNoise:
    """The noise of one workload; ``variation`` is a fraction (0.02 is 2%), ``trial_s`` is the seconds of a trial."""

    workload: str
    kind: str
    variation: float
    pairs: int
    trial_s: float

    def blocks(self, target: float) -> int:
        """Return the blocks that a comparison needs for this half-width, at least up to the first look."""
        return blocks_needed(self.variation, target)

    def seconds(self, target: float) -> float:
        """Return the seconds that the trials of two environments take for this half-width."""
        return 2 * self.trial_s * self.blocks(target)

    @property
    def smallest_cost(self) -> float:
        """The smallest cost of one environment that a run of `SPAN_S` seconds can detect: 0.02 is 2%.

        It is exp(d) - 1. Four of five runs call a log ratio of d *different*: d = `visible_effect` (s / sqrt(n),
        n rounds, level 5% x 0.7), s = ``variation``, n = 600 / (3 t) rounds, t = ``trial_s``. The 0.7
        is the share of one of several planned looks (`looks_share`). The spread s is known from ``pairs`` rounds
        only, so its upper 80% limit is used. n is at most 1,000; below 10, the cost is unknown (infinite).
        """
        rounds = min(MOST_BLOCKS, int(SPAN_S / (ARMS * self.trial_s)))
        if rounds < LOOKS[0]:
            return math.inf
        level = ALPHA * looks_share(len(planned_looks(LOOKS[0], rounds)))
        effect = visible_effect(self.variation / math.sqrt(rounds), rounds, level, known_from=self.pairs)
        return math.expm1(min(effect, 700.0))


@dataclass(frozen=True, slots=True)
class MachineNoise:
    """The noise of each workload, the number of disturbed trials by cause, and facts of the machine.

    ``interrupts`` are frequent device interrupts; the run's own writes and packets cause some of them.
    """

    rows: tuple[WorkloadNoise, ...]
    disturbed: tuple[FlaggedTrials, ...]
    facts: Mapping[str, str]
    interrupts: tuple[InterruptRate, ...] = ()

    @property
    def smallest_costs(self) -> dict[str, float]:
        """The smallest cost that ten minutes can detect, by resource; the noisiest workload of a resource counts.

        The cost is infinite if ten minutes are too short for it, or if a resource was not measured.
        """
        measured = {RESOURCES.get(row.workload) for row in self.rows}
        costs = {name: math.inf for name in RESOURCES.values() if name not in measured}
        for row in self.rows:
            resource = RESOURCES.get(row.workload, row.kind)
            costs[resource] = max(costs.get(resource, 0.0), row.smallest_cost)
        return costs


def machine_noise(store: RunStore) -> MachineNoise:
    """Return the noise of a run with an A/A arm. Raises RunDirectoryError if the store is damaged."""
    analysis = analyse(store)
    kinds = {cell.workload: cell.kind for cell in store.cells()}
    rows = [
        WorkloadNoise(
            report.workload, kinds[report.workload], stdev(ratios), len(ratios), _trial_s(analysis, report.workload)
        )
        for report in analysis.headlines
        if len(ratios := _log_ratios(store, report.workload, report.metric, analysis)) > 1
    ]
    flagged = flagged_trials("", analysis.trials)
    mine = tuple(each for each in flagged if each.flag.code in _OF_THE_MACHINE)
    facts = {name: value for scope, name, value, _ in store.facts() if scope == "host"}
    return MachineNoise(tuple(rows), mine, facts)


def _log_ratios(store: RunStore, workload: str, metric: str, analysis: Analysis) -> Sequence[float]:
    values = [each for each in store.values() if (each.workload, each.metric) == (workload, metric)]
    sides = zip(*arm_values(values, (analysis.baseline, analysis.aa_arm or "")), strict=True)
    return [math.log(other / first) for first, other in sides if first > 0 and other > 0]


def _trial_s(analysis: Analysis, workload: str) -> float:
    """Return the seconds of a trial, including the pause before the next one.

    The pause is a median because a step of the clock looks like a very long or negative pause.
    """
    between_s = [later.started_at - each.started_at - each.duration_s for each, later in pairwise(analysis.trials)]
    mine_s = [each.duration_s for each in analysis.trials if each.workload == workload]
    return fmean(mine_s) + max(0.0, median(between_s or [0.0]))
