"""Runs made through the real RunStore with synthetic numbers."""

import json
import math
import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import NormalDist

from pydantic import BaseModel

from weighbridge.model.decisions import LeftOut, left_out_text
from weighbridge.model.explained import DescribedMechanism, Explains
from weighbridge.model.flag import Flag
from weighbridge.model.level import NO_LEVEL, Level
from weighbridge.model.measurement import Measurement, Metric, Outcome
from weighbridge.model.study import Arm, Cell, Repetitions, Study, StudyFile
from weighbridge.model.trial import RoleRecord, Series, Trial, TrialRecord
from weighbridge.statistics import Histogram
from weighbridge.store.run import RunStore

CREATED = "1700000000.0"
"""When a run was begun whose date is read."""


class AnyOptions(BaseModel, extra="allow"):
    note: str = ""


@dataclass
class Workload:
    """name, level and its metrics: (metric, centre in the unit, relative noise)."""

    name: str
    metrics: list[tuple[Metric, float, float]]
    level: Level = NO_LEVEL


THROUGHPUT = Metric("throughput", "bit/s", "higher")
RETRANSMITS = Metric("retransmits", "segments", "lower")
JITTER = Metric("jitter", "s", "lower")
LOSS = Metric("loss", "%", "lower")
REQUESTS = Metric("requests", "requests/s", "higher")
LATENCY = Metric("p99 latency", "ms", "lower")
TCP = Workload("tcp", [(THROUGHPUT, 8.66e9, 0.01), (LATENCY, 0.4, 0.02)])


@dataclass
class Recipe:
    """A run to make. ``costs`` maps an environment to the factor on its values (throughput is divided by it)."""

    costs: dict[str, float]
    workloads: list[Workload] = field(default_factory=lambda: [TCP])
    blocks: int = 10
    aa: bool = True
    aa_factor: float = 1.0
    failing: dict[tuple[int, str], Outcome] = field(default_factory=dict)
    loads: dict[str, str] = field(default_factory=dict)
    """Workload -> the option that is its load."""
    breaking: dict[tuple[int, str, Level], str] = field(default_factory=dict)
    """Block, environment and level whose (first) trial broke -> what it said."""
    bends: dict[tuple[str, Level], float] = field(default_factory=dict)
    """Environment and level -> a further factor on its values."""
    study: str = "first-look"
    baseline: str = "native"
    question: str = "What does each Docker network cost on this machine?"
    message: str = "iperf3: error - unable to connect"
    output: bytes = b'{"end": {"sum": 1}}\n'
    outputs: bool = False
    """Whether the run has raw outputs: four files of each trial take as long as all the rest of it."""
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    samples: tuple[tuple[str, str, float], ...] = ()
    """Of each trial; times its environment's factor."""
    repetitions: Repetitions | None = None
    flags: dict[tuple[int, str], tuple[Flag, ...]] = field(default_factory=dict)
    slowed: dict[tuple[int, str], float] = field(default_factory=dict)
    again: tuple[int, ...] = ()
    """Blocks that are run a second time at the end, with every value half as large."""
    seed: int = 7
    ladder: list[str | list[str | None]] = field(default_factory=list)
    left_out: tuple[LeftOut, ...] = ()
    """Environments that could not be opened: arms of the study without a trial."""
    absent: set[tuple[str, str]] = field(default_factory=set)
    """Workload and environment that are not measured together."""
    notes: dict[str, str] = field(default_factory=dict)
    """Workload -> an option of it that changes what it does."""
    options: dict[str, dict[str, object]] = field(default_factory=dict)
    """Options of an environment, beside its note."""
    histograms: dict[str, float] = field(default_factory=dict)
    """Metrics that are kept as histograms: median in seconds."""
    series: bool = False
    """Whether every trial has readings over time."""
    hosts: tuple[str, ...] = ()
    """The client's and the server's."""

    explains: dict[str, Explains] = field(default_factory=dict)
    """What environments of `costs` are there to explain."""
    mechanisms: tuple[DescribedMechanism, ...] = ()

    def arms(self) -> list[Arm]:
        found = [Arm(name=self.baseline, kind="native", options=AnyOptions())]
        found += [
            Arm(
                name=name,
                kind="docker",
                options=AnyOptions(**self.options.get(name, {})),
                explains=self.explains.get(name),
            )
            for name in self.costs
        ]
        found += [
            Arm(
                name=each.environment,
                kind=each.kind,
                options=AnyOptions(),
                optional=True,
                explains=self.explains.get(each.environment),
            )
            for each in self.left_out
        ]
        if self.aa:
            again = f"{self.baseline}-again"
            found.append(Arm(name=again, kind="native", options=AnyOptions(), aa_of=self.baseline))
        return found

    def factor(self, environment: str) -> float:
        return {self.baseline: 1.0, f"{self.baseline}-again": self.aa_factor, **self.costs}[environment]


def _study(recipe: Recipe) -> Study:
    hosts: dict[str, object] = {}
    if recipe.hosts:
        client, server = recipe.hosts
        hosts = {"hosts": {name: {"kind": "ssh"} for name in recipe.hosts}}
        hosts["placement"] = {"client": client, "server": server}
    file = StudyFile.model_construct(
        study=recipe.study,
        question=recipe.question,
        baseline=recipe.baseline,
        repetitions=recipe.repetitions or Repetitions(blocks=max(recipe.blocks, 1)),
        equivalence=0.03,
        seed=1,
        **hosts,
    )
    cells = [
        Cell(workload=w.name, kind="made-up", level=w.level, options=AnyOptions(note=recipe.notes.get(w.name, "")))
        for w in recipe.workloads
    ]
    return Study(
        text=f"study: {recipe.study}\n",
        file=file,
        arms=tuple(recipe.arms()),
        cells=tuple(cells),
        mechanisms=recipe.mechanisms,
    )


def _info(recipe: Recipe) -> dict[str, str]:
    ladder = {"ladder": json.dumps(recipe.ladder)} if recipe.ladder else {}
    left_out = {"left_out": left_out_text(recipe.left_out)} if recipe.left_out else {}
    return {**ladder, **left_out, **({"loads": json.dumps(recipe.loads)} if recipe.loads else {})}


SPREAD = tuple(math.exp(NormalDist(0, 0.4).inv_cdf((at + 0.5) / 200)) for at in range(200))
"""Of a histogram's values around their median."""


def _histogram(chance: random.Random, middle_s: float) -> str:
    histogram = Histogram(1, 60_000_000_000, 3)
    median = 1e9 * middle_s * chance.lognormvariate(0, 0.01)
    for part in SPREAD:
        histogram.record(min(int(median * part), histogram.highest), 10)
    return histogram.encode()


def _series(chance: random.Random, factor: float) -> tuple[Series, ...]:
    at = tuple(0.5 * step for step in range(60))
    levels = {
        "cpu_user_share": 0.6, "cpu_system_share": 0.3, "cpu_steal_share": 0.0, "cpu_idle_share": 1.1,
        "memory_used_bytes": 4e8, "eth0_receive_bytes_per_s": 1.1e9, "lo_receive_bytes_per_s": 10.0,
        "eth0_transmit_bytes_per_s": 2e7, "psi_cpu_share": 0.1,
    }  # fmt: skip
    return tuple(
        Series(place, name, at, tuple(level * factor * chance.uniform(0.8, 1.2) for _ in at))
        for place in ("host a", "host b", "server")
        for name, level in levels.items()
    )


_MADE: OrderedDict[str, dict[Path, bytes]] = OrderedDict()
"""The files of the last runs that were made, by recipe."""


def made_once(directory: Path, recipe: object, make: Callable[[], None]) -> RunStore:
    """Make a run in a folder, open for reading; if one of the recipe was made before, copy it."""
    if files := _MADE.get(key := repr(recipe)):
        for path, content in files.items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_bytes(content)
    else:
        make()
        paths = [path for path in directory.rglob("*") if path.is_file()]
        _MADE[key] = {path.relative_to(directory): path.read_bytes() for path in paths}
    _MADE.move_to_end(key)
    while len(_MADE) > 20:
        _MADE.popitem(last=False)
    return RunStore(directory)


def make_run(directory: Path, recipe: Recipe) -> RunStore:
    """Write a whole run and give it, open for reading."""
    return made_once(directory, recipe, lambda: _make(directory, recipe))


def _make(directory: Path, recipe: Recipe) -> None:
    chance, clock = random.Random(recipe.seed), 1_700_000_000.0
    with RunStore(directory, writable=True) as store:
        store.begin(
            _study(recipe), {"run_id": "20240101abcd", "version": "0.1.0", "networked": "[]", **_info(recipe)}
        )
        for scope, facts in {"host": {"cpu model": "Imaginary 3000"}, **recipe.facts}.items():
            store.add_facts(scope, facts)
        for block in range(1, recipe.blocks + 1):
            for workload in recipe.workloads:
                left_out = {each.environment for each in recipe.left_out}
                arms = [arm.name for arm in recipe.arms() if (workload.name, arm.name) not in recipe.absent]
                arms = [name for name in arms if name not in left_out]
                chance.shuffle(arms)
                shared = chance.gauss(0, 0.03)
                for environment in arms:
                    clock += 2.0
                    store.save(
                        _record(recipe, workload, block, environment, clock=clock, shared=shared, chance=chance)
                    )
        for block in recipe.again:
            for workload in recipe.workloads:
                for arm in recipe.arms():
                    clock += 2.0
                    once = replace(recipe, breaking={})
                    record = _record(once, workload, block, arm.name, clock=clock, shared=-0.5, chance=chance)
                    store.save(replace(record, trial=replace(record.trial, attempt=1)))


def _record(recipe, workload, block, environment, *, clock, shared, chance) -> TrialRecord:
    outcome, message = recipe.failing.get((block, environment), Outcome.OK), recipe.message
    if (said := recipe.breaking.get((block, environment, workload.level))) is not None:
        outcome, message = Outcome.BROKE, said
    measurements = []
    for metric, centre, noise in workload.metrics:
        factor = recipe.factor(environment) * recipe.slowed.get((block, environment), 1.0)
        factor *= recipe.bends.get((environment, workload.level), 1.0)
        factor = 1 / factor if metric.better == "higher" else factor
        value = max(0.0, centre * factor * (1 + shared + chance.gauss(0, noise)))
        measurements.append(Measurement(metric, value))
    roles = (
        RoleRecord("server", ("iperf3", "-s", "-p", "5201"), 0, 1.2, b"", b""),
        RoleRecord("client", ("iperf3", "-c", "10.0.0.1", "--json"), 0, 1.0, recipe.output, b""),
    )
    return TrialRecord(
        trial=Trial(block, 0, workload.name, Level(workload.level), environment),
        outcome=outcome,
        started_at=clock,
        duration_s=30.0 if recipe.series else 1.2,
        measured_s=1.0,
        message="" if outcome is Outcome.OK else message,
        measurements=tuple(measurements) if outcome is Outcome.OK else (),
        roles=roles if recipe.outputs else (),
        samples=tuple((site, name, value * recipe.factor(environment)) for site, name, value in recipe.samples),
        flags=recipe.flags.get((block, environment), ()),
        series=_series(chance, recipe.factor(environment)) if recipe.series else (),
        histograms={
            metric: _histogram(chance, middle * recipe.factor(environment))
            for metric, middle in recipe.histograms.items()
        },
    )


TOO_MANY = "too many connections"
RISING = {50: 21_000, 200: 48_000, 500: 61_000, 1000: 60_000, 2000: 52_000, 5000: 41_000}
"""Connections -> requests/s: the peak is at 500, and hardly higher than 1 000."""
ERRORS = (Metric("errors_connect", "count", "lower"), Metric("errors_timeout", "count", "lower"))
P99 = Metric("latency_p99", "ms", "lower")
TRANSFER = Metric("transfer", "MB/s", "higher")


def rising_load(name: str = "web", factors: Level = (), **changes: object) -> dict[str, object]:
    """A recipe's parts: native, host, bridge and the A/A arm over six loads, with a peak, errors and a break.

    The bridge has errors from 1 000 connections on, bends at 2 000, broke there in three of ten blocks and always at
    5 000; everything breaks but the host and native at 5 000.
    """

    def level(load: int) -> Level:
        return tuple(sorted((("connections", str(load)), *factors)))

    workloads = [
        Workload(
            name,
            [(REQUESTS, rate, 0.02), (P99, 1000 * load / rate, 0.05), (TRANSFER, rate / 1000, 0.02),
             (ERRORS[0], max(0, load - 1000) / 50, 0.3), (ERRORS[1], 0.0, 0.0)],
            level(load),
        )
        for load, rate in RISING.items()
    ]  # fmt: skip
    breaking = {(block, "bridge", level(5000)): TOO_MANY for block in range(1, 11)}
    breaking |= {(block, "bridge", level(2000)): TOO_MANY for block in (2, 5, 9)}
    bends = {("bridge", level(2000)): 1.4, ("bridge", level(1000)): 1.15}
    return {
        "costs": {"host": 1.02, "bridge": 1.25}, "workloads": workloads, "loads": {name: "connections"},
        "breaking": breaking, "bends": bends, **changes,
    }  # fmt: skip


def two_versions(**changes: object) -> dict[str, object]:
    """A recipe's parts: a run of `weigh --base` with a ladder, as the first ones have it.

    The head is 5% slower in docker alone, where everything is 30% slower than natively.
    """
    ladder = [["base", None], ["head", "base"], ["base-docker", "base"], ["head-docker", "base-docker"]]
    return {
        "costs": {"head": 1.0, "base-docker": 1.3, "head-docker": 1.3 * 1.05}, "baseline": "base",
        "study": "weigh-prog", "question": "How much slower is './prog' at head 6f7a8b than at base 1a2b3c?",
        "workloads": [Workload("tcp", [(THROUGHPUT, 8.66e9, 0.01)])], "blocks": 30, "ladder": ladder, **changes,
    }  # fmt: skip
