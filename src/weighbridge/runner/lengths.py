"""Chooses how long trials last, from durations in an uncounted pilot block, and never from a difference."""

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
"""The number of the pilot block, whose trials have the length that the study says; no report counts it."""
QUOTA_PERIODS, THROTTLED = 100, 0.01
"""A trial works for at least 100 CPU quota periods if the limit throttles it for more than 1% of its time.

The first period's quota is unused when a trial starts, so a short trial would be throttled too little.
"""
ALIKE = 5.0
"""Pilot rates that differ by less than this factor give the same amount of work.

A trial's CPU time includes the program's start. If noise in the pilot led to different amounts, the start would be a
different share on each side in every block, and the same program would have a cost against itself: -38% (t = -19) for
netperf's client with 64 and 179 transactions. On a busy machine, the rates of two native sites differed by up to 3.3.
"""
_WORTH_IT = 0.8
"""A chosen length above this share of the requested length is not used."""


@dataclass(slots=True)
class Lengths:
    """The lengths of a run's trials. All are in the store, so a continued run uses the same lengths."""

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
        """The cells whose trials can be given a length."""
        return [cell for cell in self.study.cells if length_of(cell) is not None]

    @property
    def to_be_chosen(self) -> bool:
        """Whether the study has lengths chosen by a pilot, and none has been chosen yet."""
        chooses_lengths = self.study.file.repetitions.within is not None and bool(self.cells)
        return chooses_lengths and LENGTHS not in self.store.info()

    @property
    def unknown(self) -> list[str]:
        """The cells without a pilot trial in one of their environments; their trials keep their length."""
        lengths = ((cell, length) for cell in self.cells if (length := length_of(cell)) is not None)
        return [
            cell.label for cell, length in lengths if len(self._rates(cell, length)) < len(self.study.arms_of(cell))
        ]

    def choose(self) -> tuple[TrialLength, ...]:
        """Choose the lengths of trials from the pilot block, and store them; other trials keep their length."""
        self._read()
        lengths = [each for cell in self.study.cells if (each := self._length(cell)) is not None]
        self.store.set_info(LENGTHS, lengths_text(lengths))
        self._read()
        return tuple(lengths)

    def options(self, arm: Arm, cell: Cell) -> Any:
        """Return a workload's options in an environment. Raises RunDirectoryError if its pilot trial is missing."""
        options, length, chosen = self.study.options(arm, cell), length_of(cell), self._chosen.get(cell.id)
        if length is None or chosen is None:
            return options
        rate = self._rates(cell, length).get(arm.name)
        if rate is None:
            problem = f"the pilot of {cell.label} in {arm.name}, which set its trial length, is missing"
            raise RunDirectoryError(f"{self.store.directory} is damaged: {problem}")
        return length.lasting(options, chosen.chosen_s, rate)

    def _rates(self, cell: Cell, length: Length) -> dict[str, float]:
        """Return the work per second of each environment; similar rates become the same, because pilots are noisy."""
        rates: dict[str, float] = {}
        for arm in self.study.arms_of(cell):
            pilot = self._pilot.get(ArmId(cell.id, arm.name))
            if pilot is not None and (rate := length.per_second(pilot.values)) is not None:
                rates[arm.name] = rate
        same = {arm.name: arm.aa_of or arm.name for arm in self.study.arms if arm.name in rates}
        return alike_rates(rates, same)

    def trial_s(self, cell: Cell) -> float | None:
        """Return the seconds of a whole trial of the chosen length; None if its length is the requested one."""
        chosen = self._chosen.get(cell.id)
        return None if chosen is None else chosen.chosen_s + chosen.beside_s

    def _length(self, cell: Cell) -> TrialLength | None:
        """Return the length chosen for a cell; None for the requested length, or without a usable pilot trial."""
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
        """Return the shortest sound length in seconds under an environment's CPU quota; 0 if it throttles nothing."""
        held_back = pilot.throttled_s is None or pilot.throttled_s > THROTTLED * pilot.duration_s
        return QUOTA_PERIODS * self.study.resources_of(arm.name).quota_period_s if held_back else 0.0


def alike_rates(rates: Mapping[str, float], same: Mapping[str, str]) -> dict[str, float]:
    """Return one rate, the geometric mean, for all rates within a factor of `ALIKE` of the slowest, by name.

    ``same`` maps each arm to the arm with the same program: the A/A arm to the baseline.
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
    """Return the geometric mean of rates; exactly their value if they are equal."""
    return rates[0] if len({*rates}) == 1 else geometric_mean(rates)


def length_of(cell: Cell) -> Length | None:
    """Return how a cell's trials can be given a length; None if their options alone determine it."""
    return registry.workloads()[cell.kind].length(cell.options)
