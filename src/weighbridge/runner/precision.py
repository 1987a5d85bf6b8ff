"""Implements the precision target: which comparisons are still open, and how the remaining time is shared."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weighbridge import registry
from weighbridge.model.address import ArmId, MetricId
from weighbridge.model.decisions import BlockSchedule, GateLook, block_schedules_text
from weighbridge.model.disturbance import Disturbance, disturbance_of
from weighbridge.model.explained import (
    NOTHING,
    PLACEBO,
    DescribedMechanism,
    Off,
    Weights,
    all_off,
    pair_costs,
    placebo_cost,
    single_cost,
)
from weighbridge.model.facts import HOST_DIFFERENCES
from weighbridge.model.measurement import Metric, Outcome, scale_of
from weighbridge.model.stored_study import is_weighed, pairs_of_versions
from weighbridge.model.study import MOST_BLOCKS, Cell, Repetitions, Study
from weighbridge.runner.estimate import TimeLeft
from weighbridge.statistics import (
    Contender,
    Contrast,
    Cost,
    Looks,
    allotted,
    blocks_to_target,
    decided,
    deciding_half_width,
    half_width_after,
    next_look,
    planned_looks,
    shared,
)
from weighbridge.statistics.precision import LATEST, OUT_OF_REACH, SOONEST
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.store.blocks import arm_values
from weighbridge.store.extensions import RunExtension, apply_extensions, extensions, looks_at_changes, unfinished
from weighbridge.store.reader import ALLOTMENTS
from weighbridge.store.run import RunStore, Value
from weighbridge.study.explained import ALL

FIRST_ESTIMATE = 3
"""The fewest blocks of a cost that is shown during a run: the interval of two blocks says nothing."""


@dataclass(frozen=True, slots=True)
class PrecisionStatus:
    """The precision of one comparison after an interim look. ``width`` is the relative half-width (0.02 is ±2%).

    ``expected`` has the smallest and largest half-width to expect at the run's end, if the target is surely out of
    reach; otherwise it is None.
    """

    cell: str
    environment: str
    width: float
    reached: bool
    predicted_blocks: int | None
    expected: tuple[float, float] | None = None
    blocks: int = 0
    target: float | None = None
    for_verdict: bool = False
    """Whether it reached the study's precision undecided; ``target`` is then the half-width that decides any cost."""
    needed_s: tuple[float, float] | None = None
    """The soonest and latest number of seconds until it probably reaches the target; None if unknown.

    The latest is infinite if the run can end before.
    """

    def with_time(self, done: int, looks: Sequence[int], block_s: float) -> "PrecisionStatus":
        """Return it with `needed_s`: a run of ``done`` blocks, of ``block_s`` each, ends only at one of ``looks``."""
        if self.reached or self.target is None or not math.isfinite(self.width):
            return self

        def seconds(spread: float) -> float:
            needed = blocks_to_target(self.width, self.blocks, self.target or 0.0, spread)
            wanted = done + max(1, (needed or self.blocks) - self.blocks)
            return next(((look - done) * block_s for look in looks if look >= wanted), math.inf)

        return replace(self, needed_s=(seconds(SOONEST), seconds(LATEST)))

    def after(self, later: int) -> tuple[float, float] | None:
        """Return ``expected`` at ``later`` blocks, if even a favourable forecast misses the target; else None."""
        if self.reached or self.target is None or not math.isfinite(self.width):
            return None
        if half_width_after(self.width, self.blocks, later, OUT_OF_REACH) <= self.target:
            return None
        least, most = (half_width_after(self.width, self.blocks, later, spread) for spread in (SOONEST, LATEST))
        return least, most


def needed_s(statuses: Sequence[PrecisionStatus]) -> tuple[float, float]:
    """Return the soonest and latest seconds until all targets are probably reached, from each slowest comparison."""
    of_cells: dict[str, tuple[float, float]] = {}
    for each in statuses:
        if each.needed_s is not None:
            soonest_s, latest_s = of_cells.get(each.cell, (0.0, 0.0))
            of_cells[each.cell] = max(soonest_s, each.needed_s[0]), max(latest_s, each.needed_s[1])
    return sum(each for each, _ in of_cells.values()), sum(each for _, each in of_cells.values())


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """An environment's cost so far in a workload's headline metric, and the ``target`` half-width, if any."""

    cell: str
    environment: str
    metric: Metric
    cost: Cost
    """The cost as the report shows it now: before the run's end, its interval is wider than at an interim look."""
    half_width: float
    """The half-width that the next look uses, as a fraction."""
    target: float | None

    @property
    def few(self) -> bool:
        """Whether it has too few blocks for a verdict; a reader would misread an interval that excludes 0 as one."""
        return self.cost.blocks < MIN_BLOCKS_VERDICT or not math.isfinite(self.cost.high)


@dataclass(frozen=True, slots=True)
class OutOfReach:
    """The finding that background load keeps a run from reaching its precision.

    ``expected`` has the smallest and largest half-width at the run's end for each of its ``comparisons`` that stays
    wider than the ``target`` (or, without a target, than the equivalence margin). All are fractions.
    """

    disturbance: Disturbance
    """The background load in the trials of the ``baseline`` so far."""
    baseline: str
    blocks: int
    target: float
    expected: tuple[tuple[float, float], ...]
    comparisons: int
    other_run: bool
    """Whether another Weighbridge run is part of the load."""
    polled: bool = False
    on_nodes: bool = False
    """Whether its sites are pods on nodes of a cluster."""
    weighed: bool = False


@dataclass(frozen=True, slots=True)
class TargetComparison:
    """A comparison that the target is about: an environment, or a part of its cost (named after its arm)."""

    name: str
    contrast: Contrast
    part: bool = False
    """Whether it is a part of a cost (`weighbridge.model.explained`); parts are a family of their own."""


def comparisons_of(study: Study, cell: Cell) -> list[TargetComparison]:
    """Return the comparisons of a cell: environments, the A/A arm if it is alone, and parts of costs.

    In a study of two versions, each head is compared with its own base only.

    The interactions of all mechanisms together are left out: a contrast of that many arms is half as precise, and
    would multiply the length of a run by four.
    """
    arms, baseline = study.arms_of(cell), study.file.baseline
    alone = not any(each.declared and each.name != baseline for each in study.arms)
    bases = pairs_of_versions(study.file.study, [arm.name for arm in study.arms if arm.declared])
    compared = [
        TargetComparison(arm.name, Contrast.between(arm.name, bases.get(arm.name, baseline)))
        for arm in arms
        if arm.name != baseline and arm.explains is None and (alone or arm.aa_of is None)
        if not bases or arm.name in bases
    ]
    present = {arm.name for arm in arms}
    for environment in dict.fromkeys(each.environment for each in study.mechanisms):
        mechanisms = [each for each in study.mechanisms if each.environment == environment]
        by_off = {off: arm for off, arm in study.arms_by_off(environment).items() if arm in present}
        if NOTHING in by_off:
            compared += _parts(environment, mechanisms, by_off, baseline)
    return compared


def _parts(
    environment: str, mechanisms: Sequence[DescribedMechanism], by_off: Mapping[Off, str], baseline: str
) -> Iterator[TargetComparison]:
    """Yield the parts of an environment's cost, the rest with all mechanisms switched off, and the placebo."""

    def part(name: str, weights: Weights) -> TargetComparison:
        arms = tuple(by_off[off] for off in weights)
        return TargetComparison(f"{environment}-{name}", Contrast(arms, tuple(weights.values())), part=True)

    for each in mechanisms:
        if weights := single_cost(each, by_off):
            yield part(f"without-{each.kind}", weights)
    for one, other, weights in pair_costs(mechanisms, by_off):
        yield part(f"{one.kind}-with-{other.kind}", weights)
    if (every := all_off(mechanisms, by_off)) is not None:
        yield TargetComparison(f"{environment}-{ALL}", Contrast.between(by_off[every], baseline), part=True)
    if weights := placebo_cost(by_off):
        yield part(PLACEBO, weights)


@dataclass(slots=True)
class Precision:
    """The comparisons of a run that are still in its schedule.

    The target is about the headline metric of each workload (its first). The baseline and its A/A arm stay in a
    workload's blocks as long as any environment does. A comparison that reached the target leaves for good, and an
    arm rests when no comparison needs it. Large costs are therefore settled first, and the remaining time goes to the
    open ones.

    A comparison that reached the target undecided gets a narrower target, at which every cost is decided. This only
    happens if the study's target is narrower than its equivalence margin; otherwise the study does not ask for
    equivalence.

    Everything is computed from the store, so a continued run comes to the same schedule.
    """

    study: Study
    store: RunStore
    repetitions: Repetitions = field(init=False)
    """The study's repetitions, with the changes that were made during the run."""
    _left: set[ArmId] = field(default_factory=set)
    _for_verdict: set[ArmId] = field(default_factory=set)
    """The comparisons that reached the study's target at a look but were undecided."""
    _changes: tuple[RunExtension, ...] = field(init=False)
    _gate_looks: tuple[GateLook, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._changes = extensions(self.store.info())
        self._gate_looks = self.store.gate_looks()
        self.repetitions = apply_extensions(self.study.file.repetitions, self._changes)

    @property
    def looks(self) -> tuple[int, ...]:
        """The numbers of blocks after which there is a look: planned ones, and those at which more were requested."""
        repetitions = self.study.file.repetitions
        fixed = repetitions.blocks
        planned = (fixed,) if fixed is not None else planned_looks(repetitions.min, repetitions.max)
        if not self._changes:
            return planned
        before = (look for look in planned if look < self._changes[0].after)
        return (*before, *sorted({*self._changed_at, self._changes[-1].blocks}))

    def _looks_until(self, blocks: int) -> Looks:
        """Return the number of looks at the costs, as the report counts them (`weighbridge.analysis.plan`).

        Only unplanned looks before ``blocks`` count, so that a continued run decides the same at the same block.
        """
        repetitions = self.study.file.repetitions
        planned = 1 if repetitions.blocks is not None else len(planned_looks(repetitions.min, repetitions.max))
        seen = looks_at_changes(self._changes, MIN_BLOCKS_VERDICT)
        return Looks(planned, sum(each < blocks for each in seen))

    @property
    def _changed_at(self) -> frozenset[int]:
        """The numbers of blocks after which there was a result to look at before the number was changed."""
        return looks_at_changes(self._changes, 1)

    def arms_of(self, cell: Cell) -> list[str]:
        """Return the environments that the next block measures for a cell; none if all reached the target."""
        compared, open_ = comparisons_of(self.study, cell), self._open(cell)
        if compared and not open_:  # with nothing to compare, the baseline alone is measured
            return []
        needed = {arm for each in open_ for arm in each.contrast.arms}
        control = {arm.name for arm in self.study.arms if self.study.file.baseline in (arm.name, arm.aa_of)}
        return [arm.name for arm in self.study.arms_of(cell) if arm.name in needed | control]

    def _open(self, cell: Cell) -> list[TargetComparison]:
        return [each for each in comparisons_of(self.study, cell) if ArmId(cell.id, each.name) not in self._left]

    def look(self, blocks: int) -> list[PrecisionStatus]:
        """Look after ``blocks`` blocks: comparisons leave, or return for an extension. Return open ones."""
        target = self.repetitions.target
        if target is None:
            self._come_back(blocks)
            return []
        statuses = []
        values = [value for value in self.store.values() if value.block <= blocks]
        for cell in self.study.cells:
            for each in self._open(cell):
                statuses.append(self._status(cell, each, blocks, self._cost(cell, each, values, blocks)))
                if statuses[-1].reached:
                    self._left.add(ArmId(cell.id, each.name))
        self._come_back(blocks)
        return statuses

    def estimates(self) -> list[CostEstimate]:
        """Return the cost of each comparison so far, if it has at least `FIRST_ESTIMATE` blocks."""
        values, estimates = self.store.values(), []
        goes_on = unfinished(self.store.info())
        for cell in self.study.cells:
            metric = registry.workloads()[cell.kind].metrics(cell.options)[0]
            for each in comparisons_of(self.study, cell):
                cost = None if each.part else self._cost(cell, each, values, MOST_BLOCKS)
                if cost is not None and cost.blocks >= FIRST_ESTIMATE:
                    shown = self._cost(cell, each, values, MOST_BLOCKS, interim=True) if goes_on else None
                    width, target = cost.half_width, self._target(cell, each, MOST_BLOCKS)
                    estimates.append(CostEstimate(cell.label, each.name, metric, shown or cost, width, target))
        return estimates

    def out_of_reach(self, blocks: int, last: int) -> OutOfReach | None:
        """Return what background load makes unreachable in ``last`` blocks, if that is known after ``blocks``."""
        file = self.study.file
        target = self.repetitions.target or file.equivalence
        arms = {arm.name for arm in self.study.arms if file.baseline in (arm.name, arm.aa_of)}
        mine = [row for row in self.store.trials() if row.environment in arms and row.outcome is Outcome.OK]
        disturbance = disturbance_of(row.flags for row in mine)
        if target is None or not disturbance.heavy or blocks < MIN_BLOCKS_VERDICT:
            return None
        values = self.store.values()
        costs = [self._cost(cell, each, values, blocks) for cell in self.study.cells for each in self._open(cell)]
        widths = [
            PrecisionStatus("", "", each.half_width, False, None, blocks=each.blocks, target=target).after(last)
            for each in costs
            if each is not None and each.blocks >= MIN_BLOCKS_VERDICT and each.scale == "ratio"
        ]
        wide = tuple(width for width in widths if width is not None)
        other_run = any(scope == HOST_DIFFERENCES and key.startswith("run ") for scope, key, *_ in self.store.facts())
        on_nodes = any(host.traits.managed for host in file.hosts.values())
        told = OutOfReach(
            disturbance, file.baseline, blocks, target, wide, len(widths), other_run, on_nodes=on_nodes,
            weighed=is_weighed(file.study),
        )  # fmt: skip
        return told if wide else None

    def _come_back(self, blocks: int) -> None:
        """Let comparisons return if more blocks were requested at this look: all, or those that a gate needs."""
        if blocks in self._changed_at:
            self._left.clear()
        for gate_look in (each for each in self._gate_looks if each.blocks == blocks and each.until):
            every = (
                ArmId(cell.id, one.name) for cell in self.study.cells for one in comparisons_of(self.study, cell)
            )
            self._left = {arm for arm in every if not gate_look.goes_on(arm)}

    def _status(self, cell: Cell, compared: TargetComparison, blocks: int, cost: Cost | None) -> PrecisionStatus:
        arm = ArmId(cell.id, compared.name)
        if cost is not None and self._undecided(cost, compared, blocks):
            self._for_verdict.add(arm)
        target, for_verdict = self._target(cell, compared, blocks), arm in self._for_verdict
        if cost is None or target is None:  # more blocks do not help if it breaks under the load every time
            broke = self._broke(cell, compared)
            return PrecisionStatus(cell.label, compared.name, float("inf"), broke, None, target=target)
        fewest, most = self.repetitions.min, self.repetitions.max
        decision = next_look(blocks, [cost], target, minimum=fewest, maximum=most)
        return PrecisionStatus(
            cell.label, compared.name, cost.half_width, decision.reached[0], decision.predicted_blocks,
            blocks=cost.blocks, target=target, for_verdict=for_verdict,
        )  # fmt: skip

    def _undecided(self, cost: Cost, compared: TargetComparison, blocks: int) -> bool:
        """Return whether a cost reached the study's target but is neither different nor equivalent."""
        target, margin = self.repetitions.target, self.study.file.equivalence
        if target is None or not cost.half_width <= target < margin:
            return False
        return not decided(cost, self._family(compared), self._looks_until(blocks))

    def _target(self, cell: Cell, compared: TargetComparison, blocks: int) -> float | None:
        """Return the target half-width of a comparison, as a fraction; None if the study has no target."""
        target, margin = self.repetitions.target, self.study.file.equivalence
        if target is None or ArmId(cell.id, compared.name) not in self._for_verdict:
            return target
        return min(target, deciding_half_width(margin, self._family(compared), self._looks_until(blocks)))

    def _family(self, compared: TargetComparison) -> int:
        """Return the number of headline costs, or of parts of costs, which the report corrects together."""
        every = (each for cell in self.study.cells for each in comparisons_of(self.study, cell))
        return sum(each.part == compared.part for each in every)

    def _broke(self, cell: Cell, compared: TargetComparison) -> bool:
        sides = {ArmId(cell.id, side) for side in compared.contrast.arms}
        return any(row.outcome is Outcome.BROKE and row.arm in sides for row in self.store.trials())

    def _cost(
        self, cell: Cell, compared: TargetComparison, values: Sequence[Value], blocks: int, *, interim: bool = False
    ) -> Cost | None:
        """Return the cost so far in a workload's first metric; None if no block has all arms of the comparison."""
        metric = registry.workloads()[cell.kind].metrics(cell.options)[0]
        metric_id = MetricId(cell.id, metric.name)
        mine = [value for value in values if value.metric_id == metric_id]
        sides = arm_values(mine, compared.contrast.arms)
        if not sides[0]:
            return None
        looks = replace(self._looks_until(blocks), interim=interim)
        return compared.contrast.cost(
            sides, better=metric.better, equivalence=self.study.file.equivalence, looks=looks,
            scale=scale_of(metric.name, metric.unit),
        )  # fmt: skip


@dataclass(slots=True)
class BlockSchedules:
    """How many blocks each workload takes part in up to the next look; it depends only on widths and times."""

    study: Study
    store: RunStore
    _block_schedules: tuple[BlockSchedule, ...] = ()

    def __post_init__(self) -> None:
        self._block_schedules = self.store.block_schedules()

    def includes(self, cell: Cell, block: int) -> bool:
        """Return whether a workload at a level takes part in a block."""
        mine = (each for each in self._block_schedules if each.cell == cell.id)
        return all(each.includes(block) for each in mine if each.after < block <= each.until)

    def decide(
        self,
        looks: tuple[int, int],
        statuses: Sequence[PrecisionStatus],
        arms: Callable[[Cell], Collection[str]],
        time: TimeLeft,
        left_s: float,
    ) -> list[PrecisionStatus]:
        """Share the time between two looks among cells, once. Return the statuses with the expected widths."""
        open_: list[tuple[Cell, list[PrecisionStatus]]] = []
        for cell in self.study.cells:
            measured = {*arms(cell)}
            names = {
                each.name for each in comparisons_of(self.study, cell) if measured.issuperset(each.contrast.arms)
            }
            wide = [each for each in statuses if each.cell == cell.label and each.environment in names]
            open_ += [(cell, wide)] if (wide := [each for each in wide if not each.reached]) else []
        contenders = [self._contender(cell, wide, time) for cell, wide in open_]
        further = allotted(contenders, left_s, self.study.file.repetitions.max)
        after, until = looks
        if not any(each.after == after for each in self._block_schedules):
            parts = shared(further, contenders, until - after)
            rows = (
                BlockSchedule(after=after, until=until, workload=cell.workload, level=cell.level, blocks=blocks)
                for (cell, _), blocks in zip(open_, parts, strict=True)
            )
            self._block_schedules = (*self._block_schedules, *rows)
            self.store.set_info(ALLOTMENTS, block_schedules_text(self._block_schedules))
        expected = {
            (cell.label, each.environment): each.after(contender.blocks + extra)
            for (cell, wide), contender, extra in zip(open_, contenders, further, strict=True)
            for each in wide
        }
        return [replace(each, expected=expected.get((each.cell, each.environment))) for each in statuses]

    def _contender(self, cell: Cell, statuses: Sequence[PrecisionStatus], time: TimeLeft) -> Contender:
        """Return the needs of a cell; each arm's seconds count for the last comparison that needs the arm."""
        baseline, arms = self.study.file.baseline, self.study.arms_of(cell)
        seconds = {arm.name: time.left_s(Counter({ArmId(cell.id, arm.name): 1})) for arm in arms}
        contrasts = {each.name: each.contrast for each in comparisons_of(self.study, cell)}
        needed = [math.inf if each.predicted_blocks is None else each.predicted_blocks for each in statuses]
        own_s = [0.0] * len(statuses)
        compared = {arm for each in statuses for arm in contrasts[each.environment].arms} - {baseline}
        left = set(compared)
        for place in sorted(range(len(statuses)), key=lambda place: -needed[place]):
            mine = left & {*contrasts[statuses[place].environment].arms}
            own_s[place] = sum(seconds[arm] for arm in mine)
            left -= mine
        control = {arm.name for arm in arms if baseline in (arm.name, arm.aa_of)} - compared
        return Contender(
            blocks=max(each.blocks for each in statuses),
            needed=tuple(needed),
            trial_s=tuple(own_s),
            base_s=sum(seconds[arm] for arm in control),
        )
