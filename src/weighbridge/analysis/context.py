"""What is known of a run as a whole, beside which each comparison is judged."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import Any, TypeVar

from weighbridge.analysis.conditions import Fact, Isolation
from weighbridge.analysis.overload import Breakage
from weighbridge.analysis.paths import Paths
from weighbridge.analysis.plan import Comparisons
from weighbridge.analysis.readings import ReadingRate
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import ArmId, CellId, grouped
from weighbridge.model.flag import Flag
from weighbridge.model.stored_study import StoredFile
from weighbridge.statistics.verdicts import failing
from weighbridge.store.pace import pause_s

Data = TypeVar("Data")


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of the run as a whole."""

    plan: Comparisons
    trials: Sequence[TrialRow]
    cells: Sequence[CellId]
    """Every workload and level of the study."""
    facts: Sequence[Fact]
    """All of the run's."""
    study: StoredFile | None
    """The study as the run keeps it."""
    sizes: Mapping[str, str]
    """Packet sizes by "ENVIRONMENT/WORKLOAD LABEL", see `weighbridge.analysis.conditions.packet_sizes`."""
    durability: Mapping[str, str]
    """By "ENVIRONMENT/WORKLOAD LABEL", see `weighbridge.analysis.conditions.durabilities`."""
    readings: ReadingRate | None
    """How often the meters read; None where no trial has readings."""
    interrupts: Collection[str]
    """`InterruptTime` of each of the run's hosts, as far as the run has it."""
    limits: Mapping[ArmId, Sequence[Flag | None]]
    """The bottleneck of each good trial."""
    broken: Mapping[ArmId, Breakage]
    """Where trials broke under their load."""
    paths: Paths
    isolation: Mapping[str, Isolation]
    """The hypervisors of the environments that are in some."""
    shifted: Collection[bool] = ()
    """Of each metric in which the A/A arm shows a cost where there is none, whether it is a headline."""
    against: str | None = None
    """What stands in the baseline's place in comparisons beside those with the baseline; None in these."""
    results: dict[Hashable, Any] = field(default_factory=dict)
    """What `once` has given."""

    @property
    def baseline(self) -> str:
        """The environment that others are compared with."""
        return self.plan.baseline if self.against is None else self.against

    def unproven(self, *, headline: bool) -> bool:
        """Whether no cost of a headline, or of another metric, is proven in this session.

        That is so where the A/A arm shows a cost in a headline; of another metric where it does so in any.
        """
        return any(self.shifted) or (bool(self.shifted) and not headline)

    @property
    def tolerance(self) -> float | None:
        """The disagreement of means that is no news, as a fraction."""
        return self.plan.target or self.plan.equivalence

    def durabilities(self, one: str, other: str, label: str) -> tuple[str, str]:
        """Return what two environments keep of a workload's data; "" where it is not recorded."""
        return self.durability.get(f"{one}/{label}", ""), self.durability.get(f"{other}/{label}", "")

    def keep_alike(self, one: str, other: str, label: str) -> bool:
        """Whether two environments keep alike what they acknowledged; where that is unknown, on the same storage."""
        mine, its = self.durabilities(one, other, label)
        same = one == other or self._storage(one) == self._storage(other) is not None
        return mine == its and (mine != "unknown" or same)

    def _storage(self, environment: str) -> Any:
        """What the study says of an environment's storage; None where that is not known."""
        name = self.plan.baseline if environment == self.plan.aa_arm else environment
        written = self.study.environments.get(name) if self.study is not None else None
        return (written.model_extra or {}).get("storage") if written is not None else None

    def with_against(self, environment: str) -> "Context":
        """Return the same with another environment in the baseline's place."""
        return replace(self, against=environment)

    def once(self, key: Hashable, work_out: Callable[[], Data]) -> Data:
        """Return what `work_out` gave when it was first called for this key: an arm is in many comparisons."""
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
        return self.once("trials by arm", lambda: grouped(self.trials, lambda trial: trial.arm)).get(arm, ())

    def block_s(self, cell: CellId) -> float:
        """Return how long one block of a workload takes, in seconds, with the pauses between its trials.

        Of each environment it is the mean, as more blocks have slow trials too: medians were a third too short.
        """

        def mean_s() -> float:
            pause = self.once("pause_s", lambda: pause_s(self.trials))
            arms = grouped(self.of_cell(cell), lambda trial: trial.environment)
            return sum(mean(trial.duration_s for trial in trials) + pause for trials in arms.values())

        return self.once(("block_s", cell), mean_s)

    def failing(self) -> set[ArmId]:
        """Return each arm that broke or failed too often, so that its values are a selection."""
        arms = grouped((each for each in self.trials if not each.broke), lambda trial: trial.arm)
        failed = {arm for arm, trials in arms.items() if failing([trial.ok for trial in trials])}
        return failed | set(self.broken)
