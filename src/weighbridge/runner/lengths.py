"""How long trials are made: chosen once, from a pilot block that is not counted, by what each takes beside its work.

It is decided on times alone, never on a difference that was seen (`weighbridge.model.decisions.chosen_length`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import geometric_mean, mean
from typing import Any

from weighbridge import registry
from weighbridge.errors import RunDirectoryError
from weighbridge.model.address import ArmId, CellId
from weighbridge.model.decisions import TrialLength, chosen_length, lengths_text
from weighbridge.model.study import Arm, Cell, Study
from weighbridge.model.workload import Length
from weighbridge.store.reader import LENGTHS
from weighbridge.store.rows import PilotTrial
from weighbridge.store.run import RunStore

PILOT = 0
"""The number of the pilot block: trials as the study has them, which no report counts."""
QUOTA_PERIODS, THROTTLED = 100, 0.01
"""For how many periods of its limit of CPU time a trial works at least that is held back for this share of its time.

It finds the quota of a whole period unused.
"""
ALIKE = 5.0
"""Rates of a pilot that differ by less than this factor give one amount of work.

A trial's CPU time has the program's start in it. Of two amounts that noise of the pilot told apart it would be
another share on each side, in every block, and so a cost of the same against the same: -38 % (t = -19) of netperf's
client with 64 and 179 transactions. Beside work for all CPUs the rates of two native sites differed by up to 3.3.
"""
_WORTH_IT = 0.8
"""A length that is not below this share of what was asked for changes nothing."""


@dataclass(slots=True)
class Lengths:
    """The lengths of a run's trials. All of it is in the store, so that a continued run goes on with the same."""

    study: Study
    store: RunStore
    _chosen: dict[CellId, TrialLength] = field(default_factory=dict)
    _pilot: dict[ArmId, PilotTrial] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._read()

    def _read(self) -> None:
        self._chosen = {each.cell: each for each in self.store.lengths()}
        self._pilot = {each.arm: each for each in self.store.pilot()}

    @property
    def cells(self) -> list[Cell]:
        """The workloads and levels whose trials can be given a length."""
        return [cell for cell in self.study.cells if length_of(cell) is not None]

    @property
    def to_be_chosen(self) -> bool:
        """Whether the study has lengths chosen by a pilot, and none has been chosen yet."""
        chooses_lengths = self.study.file.repetitions.within is not None and bool(self.cells)
        return chooses_lengths and LENGTHS not in self.store.info()

    @property
    def unknown(self) -> list[str]:
        """The workloads and levels of which an environment has no pilot trial: their trials stay as they are."""
        lengths = ((cell, length) for cell in self.cells if (length := length_of(cell)) is not None)
        return [
            cell.label for cell, length in lengths if len(self._rates(cell, length)) < len(self.study.arms_of(cell))
        ]

    def choose(self) -> tuple[TrialLength, ...]:
        """Choose the lengths of trials by the pilot block, and store them; the others stay as asked for."""
        self._read()
        lengths = [each for cell in self.study.cells if (each := self._length(cell)) is not None]
        self.store.set_info(LENGTHS, lengths_text(lengths))
        self._read()
        return tuple(lengths)

    def options(self, arm: Arm, cell: Cell) -> Any:
        """The options with which a workload is run in an environment. RunDirectoryError: its pilot is not there."""
        options, length, chosen = self.study.options(arm, cell), length_of(cell), self._chosen.get(cell.id)
        if length is None or chosen is None:
            return options
        rate = self._rates(cell, length).get(arm.name)
        if rate is None:
            problem = f"the pilot of {cell.label} in {arm.name}, which set its trial length, is missing"
            raise RunDirectoryError(f"{self.store.directory} is damaged: {problem}")
        return length.lasting(options, chosen.chosen_s, rate)

    def _rates(self, cell: Cell, length: Length) -> dict[str, float]:
        """The amount per second for each environment with a pilot trial; the same for those that are nearly as fast.

        One pilot trial is as noisy as any other, and an amount that it makes 30 % larger would be so in every block.
        """
        rates: dict[str, float] = {}
        for arm in self.study.arms_of(cell):
            pilot = self._pilot.get(ArmId(cell.id, arm.name))
            if pilot is not None and (rate := length.per_second(pilot.values)) is not None:
                rates[arm.name] = rate
        same = {arm.name: arm.aa_of or arm.name for arm in self.study.arms if arm.name in rates}
        return alike_rates(rates, same)

    def trial_s(self, cell: Cell) -> float | None:
        """Seconds that a whole trial of the chosen length takes; None where its length is as asked for."""
        chosen = self._chosen.get(cell.id)
        return None if chosen is None else chosen.chosen_s + chosen.beside_s

    def _length(self, cell: Cell) -> TrialLength | None:
        """The length chosen for a cell's trials; None: as asked for, or an environment has no usable pilot trial."""
        length = length_of(cell)
        if length is None:
            return None
        asked_seconds, trial_seconds, warm_up, shortest = [], [], [], []
        rates = self._rates(cell, length)
        for arm in self.study.arms_of(cell):
            pilot = self._pilot.get(ArmId(cell.id, arm.name))
            own = None if pilot is None else length.per_second(pilot.values)
            if pilot is None or own is None:
                return None
            rate = min(own, rates[arm.name])
            asked_seconds.append(length.lasted_s(self.study.options(arm, cell), own))
            trial_seconds.append(pilot.duration_s)
            warm_up.append(pilot.warm_up_s if length.shortens_warm_up else 0.0)
            shortest_s = max(length.shortest_s, self._for_quota(arm, pilot))
            shortest += [length.fewest * length.step / rate, shortest_s * own / rates[arm.name]]
        asked_s = mean(asked_seconds)
        share = mean(warm_up) / asked_s
        beside_s = max(0.0, mean(trial_seconds) - (1 + share) * asked_s)
        chosen_s = chosen_length(asked_s, max(shortest), beside_s, share)
        chosen_s = length.rounded(chosen_s, max(shortest), min(rates.values()))
        if chosen_s > _WORTH_IT * asked_s:
            return None
        return TrialLength(
            workload=cell.workload,
            level=cell.level,
            asked_s=asked_s,
            chosen_s=chosen_s,
            beside_s=beside_s + share * chosen_s,
        )

    def _for_quota(self, arm: Arm, pilot: PilotTrial) -> float:
        """The shortest sound length, in seconds, under an environment's CPU quota; 0 where that throttles nothing."""
        held_back = pilot.throttled_s is None or pilot.throttled_s > THROTTLED * pilot.duration_s
        return QUOTA_PERIODS * self.study.resources_of(arm.name).quota_period_s if held_back else 0.0


def alike_rates(rates: Mapping[str, float], same: Mapping[str, str]) -> dict[str, float]:
    """Return one rate for all that lie within `ALIKE` of the slowest of them, their geometric mean, by name.

    ``same``: whose program each is; the A/A arm's is the baseline's, whatever the pilot found of it.
    """
    of_each = {name: _mean([rates[each] for each in rates if same[each] == same[name]]) for name in rates}
    groups: list[list[str]] = []
    for name in sorted(of_each, key=lambda each: of_each[each]):
        if not groups or of_each[name] > ALIKE * of_each[groups[-1][0]]:
            groups.append([])
        groups[-1].append(name)
    means = [(group, _mean([of_each[name] for name in group])) for group in groups]
    return {name: mean for group, mean in means for name in group}


def _mean(rates: list[float]) -> float:
    """The geometric mean of rates; of equal ones exactly their value."""
    return rates[0] if len({*rates}) == 1 else geometric_mean(rates)


def length_of(cell: Cell) -> Length | None:
    """How trials of a workload at a level are given a length; None where they last as its options say."""
    return registry.workloads()[cell.kind].length(cell.options)
