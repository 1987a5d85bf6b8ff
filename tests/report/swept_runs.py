"""A run over a rising load with readings as the meters write them, made through the real RunStore."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.level import Level
from weighbridge.model.measurement import Measurement, Metric, Outcome
from weighbridge.model.study import Arm, Cell, Repetitions, Study, StudyFile
from weighbridge.model.trial import PROMETHEUS, RoleRecord, Series, Trial, TrialRecord
from weighbridge.store.run import RunStore

from .made_up_runs import REQUESTS, AnyOptions, made_once

LEVELS = (50, 100, 200, 400)
CPU_COST = {"native": 1.0, "host": 1.03, "bridge": 1.25, "native-again": 1.0}
P99 = Metric("latency_p99", "ms", "lower")


@dataclass
class Sweep:
    """A run to make. ``workloads``: (name, factor that is its load)."""

    workloads: Sequence[tuple[str, str]] = (("nginx", "connections"), ("redis", "clients"))
    levels: Sequence[int] = LEVELS
    blocks: int = 3
    trial_s: float = 4.0
    hz: float = 1.0
    prometheus: bool = True
    broke: tuple[str, int] = ("bridge", 400)
    """Where the server breaks: environment and level."""
    environments: Sequence[str] = ("native", "host", "bridge", "native-again")
    missing: set[tuple[int, str, int]] = field(default_factory=set)
    """Block, environment and level that were never run."""
    slow_block: int = 0
    disks: bool = False
    """Whether the meters read the disks of each site."""
    hosts: bool = False
    """Whether the study names hosts, of which each environment has its own variant."""


def make_sweep(directory: Path, sweep: Sweep) -> RunStore:
    """Write a whole run and give it, open for reading."""
    return made_once(directory, sweep, lambda: _make(directory, sweep))


def _make(directory: Path, sweep: Sweep) -> None:
    chance, clock = random.Random(5), 1_700_000_000.0
    with RunStore(directory, writable=True) as store:
        store.begin(_study(sweep), {"run_id": "20240101abcd", "version": "0.1.0", "networked": "[]"})
        store.add_facts("host", {"cpu model": "Imaginary 3000"})
        for block in range(1, sweep.blocks + 1):
            cells = [(workload, level) for workload in sweep.workloads for level in sweep.levels]
            chance.shuffle(cells)
            for (workload, load), level in cells:
                for environment in chance.sample(list(sweep.environments), len(sweep.environments)):
                    if (block, environment, level) in sweep.missing:
                        continue
                    clock += sweep.trial_s + 0.3
                    trial = Trial(block, 0, workload, Level([(load, str(level))]), environment)
                    store.save(_record(sweep, trial, level, clock, chance))


def _study(sweep: Sweep) -> Study:
    hosts = {"hosts": {"a": {"kind": "testbed"}, "b": {"kind": "testbed"}}} if sweep.hosts else {}
    file = StudyFile.model_construct(
        study="native-vs-container-apps", question="How do nginx and Redis behave as load rises?", baseline="native",
        repetitions=Repetitions(blocks=sweep.blocks), equivalence=0.03, seed=1, **hosts,
    )  # fmt: skip
    again = "native-again"
    arms = tuple(
        Arm(name=name, kind="native", options=AnyOptions(), aa_of="native" if name == again else None)
        for name in sweep.environments
    )
    cells = tuple(
        Cell(workload=workload, kind="made-up", level=((load, str(level)),), options=AnyOptions())
        for workload, load in sweep.workloads
        for level in sweep.levels
    )
    return Study(text="study: native-vs-container-apps\n", file=file, arms=arms, cells=cells)


def _record(sweep: Sweep, trial: Trial, level: int, clock: float, chance: random.Random) -> TrialRecord:
    environment = trial.environment
    cost = CPU_COST.get(environment, 1.1) * chance.uniform(0.97, 1.03) * (3 if trial.block == sweep.slow_block else 1)
    load = level / (level + 120)
    broke = (environment, level) == sweep.broke
    saturated = level >= 400 and environment != "bridge"
    values = (Measurement(REQUESTS, 30_000 * load / cost), Measurement(P99, 0.4 * cost * (1 + level / 100)))
    record = TrialRecord(
        trial=trial, outcome=Outcome.BROKE if broke else Outcome.OK, started_at=clock, duration_s=sweep.trial_s,
        measured_s=sweep.trial_s - 0.7, measured_from_s=0.5, message="too many connections" if broke else "",
        measurements=() if broke else values,
        roles=(RoleRecord("server", ("nginx", "-c", "/run/nginx.conf"), 0, 4.0, b"", b"ready\n"),
               RoleRecord("client", ("wrk", f"-c{level}", "http://10.0.0.1/"), 0, 3.2, b"Requests/sec: 1\n", b"")),
        flags=(Flag(FlagCode.GENERATOR_SATURATED),) if saturated else (),
        series=tuple(_series(sweep, environment, load, cost, chance)),
    )  # fmt: skip
    return replace(record, series=(*record.series, *_prometheus(sweep, load))) if sweep.prometheus else record


def _series(sweep: Sweep, environment: str, load: float, cost: float, chance: random.Random):
    at = [0.002, *(n / sweep.hz for n in range(1, math.ceil(sweep.trial_s * sweep.hz)))]
    at.append(sweep.trial_s - 0.1)

    def rate(place, name, value):
        values = (max(0.0, value * chance.uniform(0.85, 1.1)) for _ in at[1:])
        return Series(place, name, tuple(at[1:]), tuple(values))

    def stays(place, name, value):
        return Series(place, name, tuple(at), tuple(value * (0.6 if n == 0 else 1.0) for n, _ in enumerate(at)))

    host = f"host a-{environment}" if sweep.hosts else "host local"
    server_cpu, client_cpu, network = 0.95 * load * cost, 0.8 * load, 2.4e7 * load / cost
    for role, cpu, memory in (("server", server_cpu, 2.1e7), ("client", client_cpu, 4e6)):
        yield rate(role, "cpu_share", cpu)
        yield rate(role, "throttled_share", 0.0)
        yield stays(role, "memory_bytes", memory * 2.5)
        yield stays(role, "memory_anonymous_bytes", memory * (0.4 + load))
        yield stays(role, "memory_shared_bytes", 1e6)
        if environment == "bridge" and role == "server":
            yield rate(role, "eth0_receive_bytes_per_s", network / 5)
            yield rate(role, "eth0_transmit_bytes_per_s", network)
        if sweep.disks:
            yield rate(role, "disk_read_bytes_per_s", 0.0)
            yield rate(role, "disk_written_bytes_per_s", 2e6 * load if role == "server" else 0.0)
    busy = server_cpu + client_cpu
    kinds = {"user": 0.5, "nice": 0.0, "system": 0.4, "irq": 0.0, "softirq": 0.1, "iowait": 0.02, "steal": 0.01}
    for kind, part in kinds.items():
        yield rate(host, f"cpu_{kind}_share", busy * part)
    yield rate(host, "cpu_idle_share", max(0.0, 2 - busy))
    yield stays(host, "memory_used_bytes", 6.1e8)
    yield stays(host, "memory_committed_bytes", 1.9e9)
    for interface, part in (("lo", 1.2), ("eth0", 0.01)):
        yield rate(host, f"{interface}_receive_bytes_per_s", part * network)
        yield rate(host, f"{interface}_transmit_bytes_per_s", part * network)
    yield rate(host, "disk_vda_read_bytes_per_s", 3e4)
    yield rate(host, "disk_vda_written_bytes_per_s", 5e6 * load)
    yield rate(host, "disk_vda_writes_per_s", 80.0)


def _prometheus(sweep: Sweep, load: float):
    at = tuple(float(n) for n in range(math.floor(sweep.trial_s)))
    yield Series(PROMETHEUS, 'accepted{instance="127.0.0.1:9113"} 1/s', at, tuple(9000 * load for _ in at))
    yield Series(PROMETHEUS, "node_memory B", at, tuple(4.1e8 for _ in at))
