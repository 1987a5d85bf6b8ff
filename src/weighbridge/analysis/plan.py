"""The design of a study's comparisons, and how often their costs are examined."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from weighbridge.errors import RunDirectoryError
from weighbridge.model.address import ArmId, CellId
from weighbridge.model.decisions import GateLook
from weighbridge.model.ladder import Rung
from weighbridge.model.stored_study import StoredArm, pairs_of_versions
from weighbridge.statistics import Looks, planned_looks
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.store.extensions import RunExtension, extensions, looks_at_changes, unfinished, with_effect
from weighbridge.store.run import METERS_HZ, RunStore

FASTEST_HZ = 10.0
"""The highest rate that a study can set for the meters (`weighbridge.model.study.Meters`)."""
_ABSENT = TypeAdapter(frozenset[ArmId])


@dataclass(frozen=True, slots=True)
class Comparisons:
    """The environments to compare, the precision to reach, and the number of interim looks."""

    baseline: str
    aa_arm: str | None
    environments: tuple[str, ...]
    equivalence: float | None
    target: float | None
    looks: Looks
    planned_blocks: int | None
    ladder: tuple[Rung, ...] = ()
    """Environments with the ones to which each adds one step, bases first; empty if the study has no ladder.

    Environments that are left out are included, so that the steps that add to them still have a base.
    """

    absent: frozenset[ArmId] = frozenset()
    """The environments that the study does not measure on a workload at a level."""

    pairs: Mapping[str, str] = field(default_factory=dict)
    """For each environment with the head, its environment with the base; only ``weigh --base`` makes such runs."""

    def against(self, environment: str) -> str:
        """Return the environment that another one is compared with: the baseline, or the base of a head.

        The baseline and each base are compared with nothing, so for them it is the environment itself.
        """
        unpaired = environment if environment in self.pairs.values() else self.baseline
        return self.pairs.get(environment, unpaired)

    def compared_on(self, cell: CellId) -> tuple[str, ...]:
        """Return the environments that are compared on a cell; the A/A arm is last."""
        return tuple(name for name in self.compared if ArmId(cell, name) not in self.absent)

    explaining: frozenset[str] = frozenset()
    """The environments that explain the cost of another one; they are not among the compared ones."""
    changes: tuple[RunExtension, ...] = ()
    """How the number of blocks was changed after the run had started."""
    changes_of_gates: frozenset[RunExtension] = frozenset()
    """The ``changes`` that gates asked for; their looks share an error of their own."""
    blocks: int = 0
    """The number of blocks so far."""
    unfinished: bool = False
    """Whether the run did not reach its end: it was stopped, or is still running."""

    @property
    def control_looks(self) -> Looks:
        """The looks at the A/A arm; further looks must not make its check less strict."""
        return Looks(self.looks.planned)

    @property
    def looks_beside_gates(self) -> Looks:
        """The looks at the run without looks of gates, which account for an unfinished run themselves."""
        changes = [each for each in self.changes if each not in self.changes_of_gates]
        return _looks(self.looks.planned, changes)

    @property
    def next_looks(self) -> Looks:
        """The looks at the run when it reaches its end, or when blocks are added to it.

        Anyone who adds blocks has seen the present costs.
        """
        if self.unfinished:
            return replace(self.looks, interim=False)
        seen = looks_at_changes(self.changes, MIN_BLOCKS_VERDICT)
        return Looks(self.looks.planned, len(seen | ({self.blocks} if self.blocks >= MIN_BLOCKS_VERDICT else set())))

    @property
    def compared(self) -> tuple[str, ...]:
        """The environments that are compared, in the study's order; the A/A arm is last."""
        return (*self.others, self.aa_arm) if self.aa_arm else self.others

    @property
    def others(self) -> tuple[str, ...]:
        """The compared environments without the A/A arm."""
        left = {self.baseline, self.aa_arm, *self.explaining, *self.pairs.values()}
        return tuple(name for name in self.environments if name not in left)


def plan_of(store: RunStore) -> Comparisons:
    """Return the design of a run's comparisons. Raises RunDirectoryError if the store cannot be read."""
    info, arms = store.info(), store.environments()
    repetitions = json.loads(info.get("repetitions", "{}"))
    target = repetitions.get("target")
    blocks = max((trial.block for trial in store.trials()), default=0)
    changes = with_effect(extensions(info), blocks)
    fixed = repetitions.get("blocks")
    try:
        looks = len(planned_looks(int(repetitions["min"]), int(repetitions["max"]))) if target else 1
    except (KeyError, TypeError, ValueError):
        raise RunDirectoryError(f"{store.directory} is damaged: its repetitions cannot be read") from None
    asked = _looks(looks, changes)
    left_out = {each.environment for each in store.left_out()}
    every = tuple(name for name, *_ in arms)
    aa_arm = next((name for name, _, _, aa_of in arms if aa_of is not None), None)
    pairs = pairs_of_versions(info.get("study", ""), {*every, *left_out} - {aa_arm})
    left_out |= {head for head, base in pairs.items() if base in left_out}  # without its base it has no comparison
    names = tuple(name for name in every if name not in left_out)
    return Comparisons(
        baseline=info.get("baseline", ""),
        aa_arm=aa_arm,
        environments=names,
        equivalence=float(info["equivalence"]) if "equivalence" in info else None,
        target=target,
        absent=_ABSENT.validate_json(info.get("absent", "[]")),
        # older studies of two versions have one, whose steps are the pairs and the cost of the isolation itself
        ladder=() if pairs else tuple(rung for rung in store.ladder() if rung.name in every),
        pairs=pairs,
        looks=replace(asked, interim=asked.interim or unfinished(info)),
        planned_blocks=changes[-1].blocks if changes and fixed else fixed,
        explaining=frozenset(arm.name for arm in _arms(store) if arm.explains is not None),
        changes=changes,
        changes_of_gates=frozenset(_of_gates(changes, store.gate_looks())),
        blocks=blocks,
        unfinished=unfinished(info),
    )


def _arms(store: RunStore) -> Sequence[StoredArm]:
    stored = store.study()
    return () if stored is None else stored.arms


def _looks(planned: int, changes: Sequence[RunExtension]) -> Looks:
    """Return the looks at a run with these changes; if the last one cut it short, its end can be at any block."""
    cut = _shortened(changes)
    counted = changes[:-1] if cut else changes
    return Looks(planned, len(looks_at_changes(counted, MIN_BLOCKS_VERDICT)), interim=cut)


def _shortened(changes: Sequence[RunExtension]) -> bool:
    return bool(changes) and changes[-1].blocks < changes[-1].planned and changes[-1].after >= MIN_BLOCKS_VERDICT


def _of_gates(changes: Sequence[RunExtension], looks: Sequence[GateLook]) -> Iterator[RunExtension]:
    """Yield the changes that gates made: blocks up to a next look, and fewer if that look was never reached."""
    wanted = {(each.blocks, each.until) for each in looks}
    until = {each.until for each in looks}
    for change in changes:
        if (change.after, change.blocks) in wanted or (change.planned in until and change.blocks == change.after):
            yield change


KIND = "kind"
"""The setting of a `StepChange` between two kinds of environments."""


@dataclass(frozen=True, slots=True)
class StepChange:
    """A setting that differs between two environments, with its value in each."""

    setting: str
    before: object
    now: object


def changes(store: RunStore, previous: str, environment: str) -> tuple[StepChange, ...]:
    """Return the settings that differ between an environment and the one to which it adds a step.

    If their kinds differ, only the kinds are returned because most settings have no counterpart.
    """
    arms = {name: (kind, options) for name, kind, options, _ in store.environments()}
    (kind_before, before), (kind, now) = arms[previous], arms[environment]
    if kind_before != kind:
        return (StepChange(KIND, kind_before, kind),)
    return differing(before, now)


def differing(before: Mapping[str, object], now: Mapping[str, object]) -> tuple[StepChange, ...]:
    """Return the differing options of two environments of one kind."""
    return tuple(_differing("", before, now))


def _differing(setting: str, before: object, now: object) -> Iterator[StepChange]:
    """Yield the differences inside a setting, with the path of words to it; for different kinds, only the kinds."""
    if not (isinstance(before, Mapping) and isinstance(now, Mapping)):
        if before != now:
            yield StepChange(setting, before, now)
    elif before.get("kind") != now.get("kind"):
        yield StepChange(setting, before.get("kind"), now.get("kind"))
    else:
        for key in (*now, *(key for key in before if key not in now)):
            yield from _differing(f"{setting} {key}".strip(), before.get(key), now.get(key))


def meters_hz(store: RunStore) -> float:
    """Return how often the meters read per second; for an older run, the rate in its study, or 1."""
    hz = store.info().get(METERS_HZ) or store.study_file().meters.hz
    try:
        rate_hz = float(hz)
    except ValueError:
        return 1.0
    return rate_hz if 0 < rate_hz <= FASTEST_HZ else 1.0
