"""The analysis of a fleet, one study run on many machines or pairs: costs on all machines, and outliers.

    fleet = read_fleet(Path("fleet"))
    for metric in fleet.metrics:
        metric.fleet.typical, metric.fleet.prediction, metric.outlier_machines

Each run is analysed as for its own report, but only its primary metrics and its control. A run whose control failed
takes no part. `weighbridge.features.fleets.statistics` computes a cost over machines.

**Own values.** A cost is measured within blocks, so a machine that is equally slow natively and in an environment has
the same cost as its peers. The baseline's own values show which machine is slow. They differ between sessions, and
the comparison of a machine includes that spread.

An **outlier** of `statistics.fleet` must remain one among all metrics of the page: its p-value, after Holm's
correction over the machines, is multiplied by the number of metrics.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from statistics import fmean, median

from weighbridge.analysis.analyse import Depth, analyse
from weighbridge.analysis.bottleneck import shared_limit
from weighbridge.analysis.conditions import Isolation
from weighbridge.analysis.judgement import (
    TRUSTED,
)
from weighbridge.analysis.results import Analysis, Comparison, MetricReport, TrustReason
from weighbridge.errors import RunDirectoryError
from weighbridge.features.fleets.statistics import FleetCost, MachineEffect, PairEffect, RunCost, fleet_cost
from weighbridge.features.fleets.unit import Purpose, unit_of
from weighbridge.features.gate.compared_run import (
    Described,
    Part,
    SettingChange,
    comparable_facts,
    described_changes,
    machine_facts,
    path_facts,
)
from weighbridge.features.gate.past_runs import NotRead, read_places
from weighbridge.model.address import ArmId, MetricId
from weighbridge.model.disturbance import Disturbance
from weighbridge.model.host import MACHINE_ID, NODE
from weighbridge.model.measurement import scale_of
from weighbridge.statistics import Interval, Looks, Scale
from weighbridge.statistics.contrast import OF_TWO
from weighbridge.statistics.parametric import t_quantile
from weighbridge.statistics.sample_size import MIN_BLOCKS_INTERVAL, MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import ALPHA
from weighbridge.store.run import RunStore

FLEET = "fleet.json"
"""The file that makes a folder a fleet's."""
RUNS = "runs"
"""The folder in it with a run directory for each machine or pair."""
PEERS = 2
"""The fewest peers that a machine must differ from."""


Sides = tuple[Sequence[float], Sequence[float]]
"""The baseline's values and an environment's, from the same blocks."""


@dataclass(frozen=True, slots=True)
class FleetRun:
    """One run of the fleet with the data for its page. ``name`` is the name of its directory."""

    name: str
    machines: tuple[str, ...]
    """One machine, or the two of a pair: the client's and the server's."""
    nodes: tuple[tuple[str, str], ...]
    """The node of each machine (or its name in the fleet) and its machine id; "" if unknown."""
    purpose: Purpose
    study: str
    question: str
    baseline: str
    run_id: str
    created: float
    trust: TrustReason
    shifted: tuple[MetricReport, ...]
    """The metrics on which the control shows a cost."""
    disturbances: Mapping[str, Disturbance]
    """The disturbance in the trials of each environment."""
    blocks: int
    trials: int
    failed: int
    """How many of its ``trials`` gave no measurements."""
    unfinished: bool
    equivalence: float | None
    looks: Looks
    reports: Mapping[MetricId, MetricReport]
    """Its primary metrics, without their comparisons."""
    sides: Mapping[tuple[MetricId, str], Sides] = field(repr=False)
    """The values behind each cost, by primary metric and environment, including the control."""
    own_values: Mapping[MetricId, Sequence[float]] = field(repr=False)
    """The baseline's values of these, one a block."""
    aa_arm: str | None
    no_cost: Mapping[tuple[MetricId, str], "WhyNotCounted"]
    """Comparisons, by metric and environment, that can have no verdict in the run."""
    facts: tuple[Mapping[str, str], ...] = field(repr=False)
    """The facts of each machine."""
    environments: Mapping[str, Described] = field(repr=False)
    cells: Mapping[str, Described] = field(repr=False)
    isolation: Mapping[str, Isolation] = field(repr=False)

    @property
    def trusted(self) -> bool | None:
        """Whether the control holds; None if it cannot be checked."""
        return TRUSTED[self.trust]

    @property
    def disturbed(self) -> bool:
        """Whether others took CPU time in more than half of the baseline's trials."""
        return self.disturbances[self.baseline].heavy


class WhyNotCounted(StrEnum):
    """The reason why a run does not count in a metric over the fleet."""

    UNTRUSTED = "untrusted"
    ALONE = "alone"
    """It is a control."""
    FEW = "few-blocks"
    """It has fewer blocks than any verdict needs."""
    HIDDEN = "hidden"
    """Both sides met the same limit."""
    NO_PATH = "no-path"
    """A path of the two sides is not known."""
    UNIT = "other-unit"
    """It measured in another unit."""
    NO_VALUE = "no-value"
    """It has no complete block."""


class WhyLeftOut(StrEnum):
    """Why a directory of the folder is none of the fleet's runs."""

    NO_RUN = "no-run"
    UNREADABLE = "unreadable"
    OTHER_STUDY = "other-study"
    OTHER_BASELINE = "other-baseline"
    OTHER_SIZE = "other-size"
    """The run has a pair and the others have single machines, or the other way round."""
    OTHER_SETTING = "other-setting"
    COPY = "copy"
    """The folder has the run itself, or another kept file of it."""


@dataclass(frozen=True, slots=True)
class LeftOutRun:
    """A directory without a run of the fleet.

    ``detail`` is the problem with it, its study, its baseline, or the run that it is a copy of; "" for other reasons.
    """

    name: str
    reason: WhyLeftOut
    detail: str = ""
    setting: SettingChange | None = None
    """In what its study differs."""


@dataclass(frozen=True, slots=True)
class RunEffect:
    """The mean effect of one run's blocks on a metric; positive is worse. None with fewer than two blocks."""

    run: FleetRun
    blocks: int
    effect: Interval | None
    """The effect with Student's t 95% interval, from this run's blocks alone."""
    standard_error: float
    reason: WhyNotCounted | None
    """The reason why the run is not counted; None if it is."""


@dataclass(frozen=True, slots=True)
class FleetMetric:
    """One environment's cost on one primary metric over the fleet; or the baseline's own value (`is_own_value`)."""

    report: MetricReport
    """The report of the first run that has the metric, with its names, unit and direction."""
    environment: str
    is_own_value: bool
    scale: Scale
    """The scale of the effects: logarithms of ratios or own values, or differences or values in the unit."""
    runs: tuple[RunEffect, ...]
    """Every run that was to measure it."""
    fleet: FleetCost | None
    """Over the runs that are counted; None of fewer than two machines."""
    family: int = 1
    """How many metrics are judged together with this one."""

    @property
    def counted(self) -> tuple[RunEffect, ...]:
        """The runs that take part."""
        return tuple(each for each in self.runs if each.reason is None)

    @property
    def outlier_machines(self) -> tuple[MachineEffect, ...]:
        """The machines that are outliers in this metric, the worst first."""
        machines = self.fleet.machines if self.fleet is not None else ()
        return tuple(sorted((each for each in machines if self.is_outlier(each)), key=lambda each: -each.estimate))

    @property
    def outlier_pairs(self) -> tuple[PairEffect, ...]:
        """The pairs that are outliers in this metric beyond what their machines are, the worst first."""
        pairs = self.fleet.pairs if self.fleet is not None else ()
        return tuple(sorted((each for each in pairs if self.is_outlier(each)), key=lambda each: -each.estimate))

    @property
    def positions(self) -> tuple["Position", ...]:
        """The position of each machine, the best first: its own cost or value, or for pairs with a typical partner.

        Machines that cannot be separated from their partners are left out.
        """
        if self.fleet is None:
            return ()
        effects = {each.machine: each for each in self.fleet.machines}
        typical = self.fleet.typical.estimate
        own: dict[str, list[Interval]] = {}
        for each in self.counted:
            if len(each.run.machines) == 1 and each.effect is not None:
                own.setdefault(each.run.machines[0], []).append(each.effect)
        places = []
        for name in dict.fromkeys((*own, *effects)):
            at = fmean(each.estimate for each in own[name]) if name in own else typical + effects[name].estimate
            mine = effects.get(name)
            if mine is not None:
                away = at - mine.estimate
                interval = Interval(at, mine.interval.low + away, mine.interval.high + away)
            else:  # too few machines to compare one with the others
                interval = own[name][0] if len(own[name]) == 1 else Interval(at, at, at)
            places.append(Position(name, interval, mine, mine is not None and self.is_outlier(mine)))
        return tuple(sorted(places, key=lambda each: each.at.estimate))

    def is_outlier(self, effect: MachineEffect | PairEffect) -> bool:
        """Return whether a machine or pair is also an outlier among all the metrics of its family (Bonferroni)."""
        p_value = effect.adjusted_p if effect.adjusted_p is not None and self.family > 1 else 0.0
        return effect.outlier and p_value * self.family <= ALPHA


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a machine in a metric, on the scale of the effects, with its simultaneous interval."""

    machine: str
    at: Interval
    effect: MachineEffect | None
    """None if there are too few machines to compare one with the others."""
    outlier: bool


@dataclass(frozen=True, slots=True)
class UnlikeFact:
    """A fact of a machine that differs from the value of more than half of the others."""

    fact: str
    value: str
    usual: str
    """The value that most others have; "" if they have none."""
    peers: int
    """The number of others that have it, out of ``total``."""
    total: int


@dataclass(frozen=True, slots=True)
class SharedFact:
    """A fact that is not the same on all machines: each value with its machines, the most frequent first."""

    fact: str
    machines: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class FleetResult:
    """The runs of one study on many machines, and what each metric comes to over them."""

    folder: Path
    study: str
    question: str
    baseline: str
    size: int
    """1 of single machines, 2 of pairs."""
    margin: float
    """The size of a distance that matters (a fraction)."""
    machines: Mapping[str, Mapping[str, str]]
    """Every machine of its runs with its facts, by name."""
    runs: tuple[FleetRun, ...]
    metrics: tuple[FleetMetric, ...]
    """The costs on primary metrics, then the baseline's own values."""
    left_out: tuple[LeftOutRun, ...]

    @property
    def costs(self) -> tuple[FleetMetric, ...]:
        """The costs on primary metrics."""
        return tuple(each for each in self.metrics if not each.is_own_value)

    @property
    def own_values(self) -> tuple[FleetMetric, ...]:
        """The baseline's own values."""
        return tuple(each for each in self.metrics if each.is_own_value)

    @property
    def untrusted(self) -> tuple[FleetRun, ...]:
        """The runs whose control shows a cost: they take no part."""
        return tuple(each for each in self.runs if each.trusted is False)

    @property
    def outlier_machines(self) -> tuple[str, ...]:
        """The machines that are outliers in some metric."""
        return tuple(dict.fromkeys(each.machine for metric in self.metrics for each in metric.outlier_machines))

    @property
    def outlier_pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs that are outliers in some metric."""
        return tuple(dict.fromkeys(each.machines for metric in self.metrics for each in metric.outlier_pairs))

    def unlike_peers(self, machine: str) -> tuple[UnlikeFact, ...]:
        """Return the facts that make a machine different from more than half of the others, at least `PEERS`."""
        unlike = []
        others = [facts for name, facts in self.machines.items() if name != machine]
        mine = self.machines[machine]
        for fact, value in mine.items():
            (usual, count), *_ = Counter(facts.get(fact, "") for facts in others).most_common(1) or [("", 0)]
            if count >= PEERS and 2 * count > len(others) and value != usual:
                unlike.append(UnlikeFact(fact, value, usual, count, len(others)))
        return tuple(unlike)

    @property
    def differing_facts(self) -> tuple[SharedFact, ...]:
        """The facts that differ between machines, if more than half of the machines share a value."""
        shared = []
        for fact in dict.fromkeys(key for facts in self.machines.values() for key in facts):
            by_value: dict[str, list[str]] = {}
            for name, facts in self.machines.items():
                by_value.setdefault(facts.get(fact, ""), []).append(name)
            ordered = sorted(by_value.items(), key=lambda each: -len(each[1]))
            if len(ordered) > 1 and 2 * len(ordered[0][1]) > len(self.machines):
                shared.append(SharedFact(fact, {value: tuple(names) for value, names in ordered}))
        return tuple(shared)


def read_fleet(
    folder: Path, *, margin: float | None = None, progress: Callable[[int, int, str], None] = lambda *_: None
) -> FleetResult:
    """Read the runs of a fleet, or of any folder with runs of one study.

    ``progress`` is called with the number of each run from 1, how many there are, and its name.

    Runs of another study than most are left out, and so are unreadable directories. ``margin`` is a fraction; by
    default it is the study's, or 3%. Raises RunDirectoryError if the folder has two fleets or no readable run, and
    OSError if it cannot be listed.
    """
    read, left_out = _read(folder, progress)
    if not read:
        raise RunDirectoryError(f"{folder} has no readable run: name a fleet's folder, or one with run directories")
    kept = _of_one_study(read, left_out)
    runs = _named(kept)
    first = runs[0]
    margin = margin if margin is not None else _usual_margin(runs)
    costs = [_cost(runs, key, name, margin) for key, name in _comparisons(runs)]
    own = [_own_value(runs, key, margin) for key in dict.fromkeys(key for run in runs for key in run.reports)]
    return FleetResult(
        folder=folder, study=first.study, question=first.question, baseline=first.baseline, size=len(first.machines),
        margin=margin, machines=_machines(runs), runs=tuple(runs), metrics=_judged([*costs, *own]),
        left_out=tuple(left_out),
    )  # fmt: skip


# -- reading ------------------------------------------------------------------------------------


def _read(folder: Path, progress: Callable[[int, int, str], None]) -> tuple[list[FleetRun], list[LeftOutRun]]:
    """Return every readable run, with its machines still named by node and id, and the directories left out."""
    fleets = [] if (folder / FLEET).exists() else sorted(each.parent for each in folder.glob(f"*/{FLEET}"))
    if len(fleets) > 1:
        names = ", ".join(str(each) for each in fleets)
        raise RunDirectoryError(f"{folder} has {len(fleets)} fleets: name one of {names}")
    root = next((each / RUNS for each in (folder, *fleets) if (each / FLEET).exists()), folder)
    if not root.is_dir():
        return [], []
    own = folder.resolve().name
    runs, places = read_places(
        root, own, lambda store, name: _read_run(store, name, in_fleet=root != folder), progress
    )
    return runs, [LeftOutRun(each.name, *_why_not_read(each)) for each in places]


def _why_not_read(place: NotRead) -> tuple[WhyLeftOut, str]:
    if place.copy_of:
        return WhyLeftOut.COPY, place.copy_of
    return (WhyLeftOut.UNREADABLE, place.why) if place.why else (WhyLeftOut.NO_RUN, "")


def _read_run(store: RunStore, name: str, *, in_fleet: bool) -> FleetRun:
    """Read a run of a fleet, whose machines have the names that its list or scheduler gives them, or of a folder."""
    analysis = analyse(store, Depth.VALUES)
    info, facts, headlines = store.info(), store.facts(), analysis.headlines
    purpose, units = unit_of(Path(name).name)
    own_facts = machine_facts(facts, _hosts(store))
    nodes = [(each.get(NODE, ""), each.get(MACHINE_ID, "")) for each in own_facts]
    if in_fleet and len(units) == len(nodes):
        nodes = [(unit, machine_id) for unit, (_, machine_id) in zip(units, nodes, strict=True)]
    if not all(node for node, _ in nodes):  # of before machines were named
        nodes = [(unit, "") for unit in units]
    by_node = dict(zip(nodes, [*own_facts, *({} for _ in nodes)], strict=False))
    along = {**path_facts(analysis.paths), **({"Weighbridge": info["version"]} if info.get("version") else {})}
    rows = [(report, row) for report in headlines for row in report.comparisons if row.aa or row.value is not None]
    whys = {
        (report.metric_id, row.environment): _no_cost(report, row, analysis) for report, row in rows if not row.aa
    }
    sides = {
        (report.metric_id, row.environment): (
            [each.baseline for each in row.pairs],
            [each.value for each in row.pairs],
        )
        for report, row in rows
    }
    return FleetRun(
        name=name,
        machines=(),
        nodes=tuple(by_node),
        purpose=purpose,
        study=analysis.study,
        question=analysis.question,
        baseline=analysis.baseline,
        run_id=analysis.run_id,
        created=float(info.get("created", 0.0)),
        trust=analysis.trust.reason,
        shifted=analysis.trust.shifted,
        disturbances={
            each: analysis.disturbance_in(each) for each in analysis.environments if each != analysis.aa_arm
        },
        blocks=max((len(mine[0]) for mine in sides.values()), default=0),
        trials=len(analysis.trials),
        failed=len(analysis.failed),
        unfinished=analysis.unfinished,
        equivalence=analysis.equivalence,
        looks=analysis.looks,
        reports={each.metric_id: replace(each, comparisons=()) for each in headlines},
        sides=sides,
        own_values={each.metric_id: each.baseline_values for each in headlines},
        aa_arm=analysis.aa_arm,
        no_cost={each: why for each, why in whys.items() if why is not None},
        facts=tuple({**comparable_facts(each), **along} for each in by_node.values()),
        environments={
            each: Described(kind, options) for each, kind, options, aa_of in store.environments() if aa_of is None
        },
        cells={cell.id.label: Described(cell.kind, cell.options) for cell in store.cells()},
        isolation=analysis.isolation,
    )


def _no_cost(report: MetricReport, row: Comparison, analysis: Analysis) -> WhyNotCounted | None:
    """Return why a comparison can have no verdict in its own run."""
    sides = row.against, row.environment
    if analysis.paths.missing(report.cell, *sides):
        return WhyNotCounted.NO_PATH
    one, other = (analysis.limits.get(ArmId(report.cell, name), ()) for name in sides)
    return WhyNotCounted.HIDDEN if shared_limit(one, other, report.unit) is not None else None


# -- machines -------------------------------------------------------------------------------------


def _hosts(store: RunStore) -> tuple[str, ...]:
    """Return the names of the hosts of clients and of the server. Raises RunDirectoryError for more than two."""
    file = store.study_file()
    hosts = [*file.hosts] or [""]
    client = file.placement.client or hosts[0]
    clients = client if isinstance(client, list) else [client]
    names = tuple(dict.fromkeys([*clients, file.placement.server or hosts[0]]))
    if len(names) > 2:
        raise RunDirectoryError(f"{store.directory} is of {len(names)} hosts: a fleet is of one or of pairs")
    return names


# -- one study, and machines by name ------------------------------------------------------------


def _of_one_study(runs: Sequence[FleetRun], left_out: list[LeftOutRun]) -> list[FleetRun]:
    """Return the runs of the most frequent study, on as many machines; the others are added to ``left_out``."""
    (most,) = Counter((run.study, run.baseline, len(run.nodes)) for run in runs).most_common(1)
    study, baseline, size = most[0]
    mine = [run for run in runs if (run.study, run.baseline, len(run.nodes)) == most[0]]
    usual = Counter(map(_settings, mine)).most_common(1)[0][0]
    first = next(run for run in mine if _settings(run) == usual)
    kept: list[FleetRun] = []
    for run in sorted(runs, key=lambda each: (each.purpose is not Purpose.TOGETHER, _in_order(each.name))):
        if run.study != study:
            left_out.append(LeftOutRun(run.name, WhyLeftOut.OTHER_STUDY, run.study))
        elif run.baseline != baseline:
            left_out.append(LeftOutRun(run.name, WhyLeftOut.OTHER_BASELINE, run.baseline))
        elif len(run.nodes) != size:
            left_out.append(LeftOutRun(run.name, WhyLeftOut.OTHER_SIZE))
        elif (setting := other_setting(first, run)) is not None:
            left_out.append(LeftOutRun(run.name, WhyLeftOut.OTHER_SETTING, setting=setting))
        else:
            kept.append(run)
    return kept


def _settings(run: FleetRun) -> str:
    """Return the common properties of two runs of one study as text."""
    return repr([sorted((name, repr(each)) for name, each in part.items()) for part in (run.environments, run.cells)])


def other_setting(first: FleetRun, run: FleetRun) -> SettingChange | None:
    """Return a difference between a run's study and the first one's; None if none changes the measurement."""
    for what, one, other in (
        ("environments", first.environments, run.environments),
        ("workloads", first.cells, run.cells),
    ):
        if one.keys() != other.keys():
            return SettingChange(Part.STUDY, "", what, tuple(one), tuple(other))
    changes = (
        *described_changes(Part.ENVIRONMENT, first.environments, run.environments),
        *described_changes(Part.WORKLOAD, first.cells, run.cells),
    )
    return next(iter(changes), None)


def _named(runs: Sequence[FleetRun]) -> list[FleetRun]:
    """Return the runs with their machines' names: the node, with the machine's id where two have one name."""
    ids: dict[str, dict[str, None]] = {}
    for node, machine_id in (each for run in runs for each in run.nodes):
        ids.setdefault(node, {})[machine_id] = None

    def name(node: str, machine_id: str) -> str:
        return node if len(ids[node]) == 1 else f"{node} ({machine_id or 'no id'})"

    return [replace(run, machines=tuple(name(*each) for each in run.nodes)) for run in runs]


def _machines(runs: Iterable[FleetRun]) -> dict[str, Mapping[str, str]]:
    """Return the facts of each machine: those that all of its runs agree on."""
    facts: dict[str, dict[str, str]] = {}
    for run in runs:
        for machine, mine in zip(run.machines, run.facts, strict=True):
            before = facts.setdefault(machine, dict(mine))
            for key in [key for key, value in before.items() if mine.get(key) != value]:
                del before[key]
    return dict(sorted(facts.items(), key=lambda each: _in_order(each[0])))


def _in_order(name: str) -> tuple[tuple[int, str], ...]:
    """Return a key that puts n2 before n10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name))


# -- metrics ------------------------------------------------------------------------------------


def _comparisons(runs: Sequence[FleetRun]) -> list[tuple[MetricId, str]]:
    """Return every primary metric and environment that some run compares with the baseline, in the study's order."""
    return list(dict.fromkeys(each for run in runs for each in run.sides if each[1] != run.aa_arm))


def as_differences(fleet: FleetResult, metric: FleetMetric) -> FleetMetric:
    """Return a metric of a fleet with its effects as differences in its unit."""
    report = metric.report
    key = report.metric_id
    if metric.is_own_value:
        again = _own_value(fleet.runs, key, fleet.margin, "difference")
    else:
        again = _cost(fleet.runs, key, metric.environment, fleet.margin, "difference")
    return replace(again, family=metric.family)


def _cost(
    runs: Sequence[FleetRun], key: MetricId, environment: str, margin: float, on: Scale | None = None
) -> FleetMetric:
    first = next(run.reports[key] for run in runs if key in run.reports)
    sides = [run.sides.get((key, environment), ((), ())) if _same_unit(run, key, first) else ((), ()) for run in runs]
    scale = on or common_scale(first, sides)
    effects = []
    for run, both in zip(runs, sides, strict=True):
        values = [_worse(first) * each for each in OF_TWO.effects(both, scale)]
        effects.append(_effect(run, key, first, values, run.no_cost.get((key, environment))))
    return _over_fleet(FleetMetric(first, environment, False, scale, tuple(effects), None), runs, margin)


def common_scale(report: MetricReport, sides: Iterable[Sides]) -> Scale:
    """Return the common scale for the costs of all runs: ratios if every value is positive."""
    positive = all(value > 0 for both in sides for side in both for value in side)
    return scale_of(report.metric, report.unit) or ("ratio" if positive else "difference")


def _own_value(runs: Sequence[FleetRun], key: MetricId, margin: float, on: Scale | None = None) -> FleetMetric:
    first = next(run.reports[key] for run in runs if key in run.reports)
    values = [run.own_values.get(key, ()) if _same_unit(run, key, first) else () for run in runs]
    positive = min((value for mine in values for value in mine), default=0.0) > 0
    scale: Scale = on or scale_of(first.metric, first.unit) or ("ratio" if positive else "difference")
    effects = []
    for run, own in zip(runs, values, strict=True):
        logs = [math.log(each) for each in own] if scale == "ratio" else own
        effects.append(_effect(run, key, first, [_worse(first) * each for each in logs], None))
    return _over_fleet(FleetMetric(first, runs[0].baseline, True, scale, tuple(effects), None), runs, margin)


def _worse(report: MetricReport) -> float:
    """Return the sign that makes a worse effect positive."""
    return -1.0 if report.better == "higher" else 1.0


def _same_unit(run: FleetRun, key: MetricId, first: MetricReport) -> bool:
    report = run.reports.get(key)
    return report is not None and (report.unit, report.better) == (first.unit, first.better)


def _effect(
    run: FleetRun, key: MetricId, first: MetricReport, values: Sequence[float], why: WhyNotCounted | None
) -> RunEffect:
    """Return the effect of a run on a metric, and whether it is counted."""
    effect, error, blocks = None, math.inf, len(values)
    if blocks >= MIN_BLOCKS_INTERVAL:
        mean = math.fsum(values) / blocks
        error = math.sqrt(math.fsum((each - mean) ** 2 for each in values) / (blocks - 1) / blocks)
        half = t_quantile(blocks - 1, 0.95) * error
        effect = Interval(mean, mean - half, mean + half)
    if key in run.reports and not _same_unit(run, key, first):
        why = WhyNotCounted.UNIT
    elif not values:
        why = why or WhyNotCounted.NO_VALUE
    elif len(values) < MIN_BLOCKS_VERDICT:
        why = WhyNotCounted.FEW
    elif run.trusted is False:
        why = WhyNotCounted.UNTRUSTED
    elif run.purpose is Purpose.ALONE:
        why = WhyNotCounted.ALONE
    return RunEffect(run, len(values), effect, error, why)


def _over_fleet(metric: FleetMetric, runs: Sequence[FleetRun], margin: float) -> FleetMetric:
    """Return the metric with its cost over the counted runs."""
    measured = [
        RunCost(each.run.machines, each.effect.estimate, each.standard_error, each.blocks)
        for each in metric.counted
        if each.effect is not None
    ]
    return replace(metric, fleet=fleet_cost(measured, margin=on_scale(metric, runs, margin)) if measured else None)


def _usual_margin(runs: Sequence[FleetRun]) -> float:
    """Return the margin of most runs, of several such the smallest: one run's own is not the fleet's."""
    counts = Counter(each.equivalence for each in runs if each.equivalence is not None)
    return min(counts, key=lambda margin: (-counts[margin], margin), default=0.03)


def on_scale(metric: FleetMetric, runs: Sequence[FleetRun], margin: float) -> float:
    """Return a margin on the scale of the effects: of differences that share of the baseline's typical value."""
    if metric.scale == "ratio":
        return math.log1p(margin)
    own_values = (run.own_values.get(metric.report.metric_id) for run in runs)
    levels = [abs(median(values)) for values in own_values if values]
    return margin * median(levels) if levels else 0.0


def _judged(metrics: Sequence[FleetMetric]) -> tuple[FleetMetric, ...]:
    """Return the metrics, each with the number of metrics that are judged together."""
    family = sum(each.fleet is not None for each in metrics)
    return tuple(replace(each, family=max(1, family)) for each in metrics)
