"""The context of a run, which every comparison needs to be judged."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import Any, TypeVar

from weighbridge.analysis.conditions import Fact, Isolation
from weighbridge.analysis.overload import Breakage
from weighbridge.analysis.part_cost import PartCost
from weighbridge.analysis.paths import Paths
from weighbridge.analysis.plan import Comparisons
from weighbridge.analysis.readings import ReadingRate
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import ArmId, CellId, grouped, grouped_by_arm
from weighbridge.model.flag import Flag
from weighbridge.model.stored_study import StoredFile
from weighbridge.statistics.verdicts import failing
from weighbridge.store.pace import pause_s

Data = TypeVar("Data")


@dataclass(frozen=True, slots=True)
class Context:
    """Data about the whole run."""

    plan: Comparisons
    trials: Sequence[TrialRow]
    cells: Sequence[CellId]
    """Every workload and level of the study."""
    facts: Sequence[Fact]
    """All facts of the run."""
    study: StoredFile | None
    """The study that is stored with the run."""
    sizes: Mapping[str, str]
    """Packet sizes by "ENVIRONMENT/WORKLOAD LABEL", see `weighbridge.analysis.conditions.packet_sizes`."""
    durability: Mapping[str, str]
    """Durability by "ENVIRONMENT/WORKLOAD LABEL", see `weighbridge.analysis.conditions.durabilities`."""
    readings: ReadingRate | None
    """How often the meters read; None if no trial has readings."""
    interrupts: Collection[str]
    """The `InterruptTime` of each host, if the run recorded it."""
    limits: Mapping[ArmId, Sequence[Flag | None]]
    """The bottleneck of each good trial."""
    broken: Mapping[ArmId, Breakage]
    """The arms with trials that broke under their load."""
    paths: Paths
    isolation: Mapping[str, Isolation]
    """The hypervisors of the environments that run in any."""
    shifted: Collection[bool] = ()
    """For each metric whose control shows a cost although there is none, whether it is a primary metric."""
    starts: Mapping[str, PartCost] = field(default_factory=dict)
    """The cost of starting a command in each environment, if the run measured it against the baseline."""
    against: str | None = None
    """The environment that replaces the baseline in further comparisons; None in comparisons with the baseline."""
    results: dict[Hashable, Any] = field(default_factory=dict)
    """The results of `once`."""

    @property
    def baseline(self) -> str:
        """The environment that others are compared with."""
        return self.plan.baseline if self.against is None else self.against

    def unproven(self, *, headline: bool) -> bool:
        """Return whether this session proves no cost of a primary metric, or of another metric.

        A primary metric is unproven if the control shows a cost in a primary metric. Another metric is unproven if
        the control shows a cost in any metric.
        """
        return any(self.shifted) or (bool(self.shifted) and not headline)

    @property
    def tolerance(self) -> float | None:
        """The disagreement of means that is too small to report (a fraction)."""
        return self.plan.target or self.plan.equivalence

    def durabilities(self, one: str, other: str, label: str) -> tuple[str, str]:
        """Return the durability of a workload in two environments; "" if it is not recorded."""
        return self.durability.get(f"{one}/{label}", ""), self.durability.get(f"{other}/{label}", "")

    def keep_alike(self, one: str, other: str, label: str) -> bool:
        """Return whether two environments have the same durability or, if it is unknown, the same storage."""
        mine, its = self.durabilities(one, other, label)
        same = one == other or self._storage(one) == self._storage(other) is not None
        return mine == its and (mine != "unknown" or same)

    def _storage(self, environment: str) -> Any:
        """Return an environment's storage in the study; None if unknown."""
        name = self.plan.baseline if environment == self.plan.aa_arm else environment
        written = self.study.environments.get(name) if self.study is not None else None
        return (written.model_extra or {}).get("storage") if written is not None else None

    def with_against(self, environment: str) -> "Context":
        """Return the same context with another environment in place of the baseline."""
        return replace(self, against=environment)

    @property
    def of_study(self) -> bool:
        """Whether the study asks for the comparisons: with the baseline, or of a head with its base."""
        return self.against is None or self.against in self.plan.pairs.values()

    def of(self, against: str) -> "Context":
        """Return the context of a comparison with an environment, which can be the baseline."""
        return self if against == self.plan.baseline else self.with_against(against)

    def once(self, key: Hashable, work_out: Callable[[], Data]) -> Data:
        """Return the result of the first call of `work_out` for this key, because an arm is in many comparisons."""
        if key not in self.results:
            self.results[key] = work_out()
        result: Data = self.results[key]
        return result

    def of_cell(self, cell: CellId) -> Sequence[TrialRow]:
        """Return the trials of a workload at a level."""
        trials = self.once("trials by cell", lambda: grouped(self.trials, lambda trial: trial.cell))
        return trials.get(cell, ())

    def of_arm(self, arm: ArmId) -> Sequence[TrialRow]:
        """Return an environment's trials of a workload at a level."""
        return self.once("trials by arm", lambda: grouped_by_arm(self.trials)).get(arm, ())

    def block_s(self, cell: CellId) -> float:
        """Return the seconds that one block of a workload takes, including pauses between trials.

        Each environment counts with its mean because additional blocks also have slow trials; medians were a third
        too short.
        """

        def mean_s() -> float:
            pause = self.once("pause_s", lambda: pause_s(self.trials))
            arms = grouped(self.of_cell(cell), lambda trial: trial.environment)
            return sum(mean(trial.duration_s for trial in trials) + pause for trials in arms.values())

        return self.once(("block_s", cell), mean_s)

    def failing(self) -> set[ArmId]:
        """Return each arm that broke or failed too often, so that its values are a selection."""
        arms = grouped_by_arm(each for each in self.trials if not each.broke)
        failed = {arm for arm, trials in arms.items() if failing([trial.ok for trial in trials])}
        return failed | set(self.broken)
