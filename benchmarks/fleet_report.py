"""What the report of a fleet costs: time, memory and size of its page, and time of its JSON, from 10 to 200 machines.

    python benchmarks/fleet_report.py [--machines 10 50 200] [--blocks 20] [--pairs] [--keep FOLDER]

The runs are made up: one is written through the store, the others are copies of its file with a machine of their own
and values that vary. Two shapes have 20 metrics: 20 workloads with a metric each, whose 20 costs and 20 own values
all have a chart and a table (1,200 trials a run), and 4 workloads with five. Each command runs in a process of its
own. Goals of 200 machines: page 20 s and 6 MB, JSON 5 s. Exits with 1 where one is missed.

CPU seconds of page and JSON on two cores that were busy: 20 workloads, 10 machines 1.4 and 1.0; 50 2.3 and 1.8; 200
6.8 and 5.7 (2.3 MB), of them 11 to 16 ms a run for reading; 4 workloads, 200 machines 2.7 and 2.2 (1.5 MB).
"""

import argparse
import json
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from weighbridge.linux.process import run
from weighbridge.model.command import Command
from weighbridge.model.measurement import Measurement, Metric, Outcome
from weighbridge.model.study import Study
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.store.run import DATABASE, RunStore
from weighbridge.study.loader import check
from weighbridge.study.source import parse

SHAPES = ((20, 1), (4, 5))
"""Workloads, and metrics of each."""
LARGEST = 200
GOALS = {"page_s": 20.0, "page_mb": 6.0, "json_s": 5.0}
"""Of so many machines."""
ENVIRONMENTS = ("native", "bridge", "native-again")
PARTNERS = 4
ODD = 0.25
"""By what the last machine's costs are larger."""
MEASURED = """
import resource, sys
from weighbridge.cli.app import main
sys.argv = ["weighbridge", *sys.argv[1:]]
try:
    main()
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3, file=sys.stderr)
"""


def study(workloads: int, *, pairs: bool) -> Study:
    """A study of so many workloads, on one host or with client and server on two."""
    lines = "\n".join(f"  w{number}: {{kind: iperf3, duration: 10s}}" for number in range(workloads))
    hosts = "{a: {kind: testbed}, b: {kind: testbed}}" if pairs else "{local: {kind: local}}"
    placement, publish = ("placement: {client: a, server: b}", ", publish: true") if pairs else ("", "")
    return check(
        parse(
            f"study: fleet\nquestion: What does the bridge cost?\nhosts: {hosts}\n{placement}\nbaseline: native\n"
            f"environments:\n  native: {{kind: native}}\n  bridge: {{kind: docker, network: bridge{publish}}}\n"
            f"workloads:\n{lines}\nrepetitions: {{blocks: 20}}\nequivalence: 3%\n",
            "fleet.yaml",
        )
    )


def make_run(folder: Path, made: Study, metrics: int, blocks: int) -> None:
    """Write one run: each trial has its metrics; the copies vary by 3 % more."""
    chance, at = random.Random(7), 1_700_000_000.0
    of = [Metric("throughput", "bit/s", "higher")] + [Metric(f"latency_{n}", "s", "lower") for n in range(1, metrics)]
    with RunStore(folder, writable=True) as store:
        store.begin(made, {"run_id": "c0ffee000001", "version": "0"})
        for block in range(1, blocks + 1):
            for cell in made.cells:
                for environment in (arm.name for arm in made.arms):
                    at += 10
                    cost = 1.2 if environment == "bridge" else 1.0
                    measured = tuple(
                        Measurement(
                            each, chance.lognormvariate(0, 0.01) * (8e9 / cost if each is of[0] else 1e-3 * cost)
                        )
                        for each in of
                    )
                    trial = Trial(block, 0, cell.workload, cell.level, environment)
                    store.save(TrialRecord(trial, Outcome.OK, at, 10.0, 10.0, "", measured, ()))


def make_fleet(folder: Path, shape: tuple[int, int], machines: int, blocks: int, *, pairs: bool) -> None:
    """Write the run directories of a fleet."""
    made = study(shape[0], pairs=pairs)
    make_run(folder / "first", made, shape[1], blocks)
    (folder / "fleet" / "runs").mkdir(parents=True)
    (folder / "fleet" / "fleet.json").write_text("{}")
    names = [f"n{number}" for number in range(1, machines + 1)]
    if pairs:
        steps = range(1, PARTNERS // 2 + 1)
        units: list[Sequence[str]] = [
            (name, names[(at + step) % machines]) for step in steps for at, name in enumerate(names)
        ]
    else:
        units = [(name,) for name in names]
    chance = random.Random(11)
    for unit in units:
        place = folder / "fleet" / "runs" / "--".join(unit)
        place.mkdir()
        shutil.copy(folder / "first" / DATABASE, place / DATABASE)
        scopes = [("host",)] if len(unit) == 1 else [("host a",), ("host b",)]
        with closing(sqlite3.connect(place / DATABASE, isolation_level=None)) as file:
            file.execute("BEGIN")
            file.execute("UPDATE measurement SET value = value * (1 + (abs(random()) % 2001 - 1000) / 3e4)")
            factor = chance.lognormvariate(0, 0.01) * (1 - ODD if names[-1] in unit else 1)
            bridge = "SELECT id FROM trial WHERE environment = 'bridge'"
            file.execute(f"UPDATE measurement SET value = value * ? WHERE trial IN ({bridge})", (factor,))
            for (scope,), name in zip(scopes, unit, strict=True):
                facts = {"node": name, "machine id": name, "kernel": "6.1", "firmware": "1" if name == "n3" else "2"}
                file.executemany(
                    "INSERT INTO fact VALUES (?, ?, ?, 0.0)", [(scope, key, value) for key, value in facts.items()]
                )
            file.execute("COMMIT")


def timed(*argv: str) -> tuple[dict[str, float], str]:
    """The seconds that a command takes, of them of CPU, its memory in MB, and what it prints."""
    begun = time.perf_counter()
    done = run(Command((sys.executable, "-c", MEASURED, *argv), deadline_s=1200))
    if done.returncode:
        raise SystemExit(f"no report can be made: {done.last_words}")
    cpu_s, memory_mb = map(float, done.stderr.split()[-2:])
    return {"wall_s": time.perf_counter() - begun, "cpu_s": cpu_s, "memory_mb": memory_mb}, done.text


def measure(folder: Path) -> dict[str, float]:
    """What the page and the JSON of a fleet cost."""
    page = folder / "fleet.html"
    made, _ = timed("fleet", "report", str(folder), "--out", str(page))
    told, text = timed("fleet", "report", str(folder), "--json")
    return {
        "page_s": made["wall_s"], "page_cpu_s": made["cpu_s"], "page_mb": page.stat().st_size / 1e6,
        "memory_mb": made["memory_mb"], "json_s": told["wall_s"], "json_cpu_s": told["cpu_s"],
        "json_mb": len(text) / 1e6, "odd": len(json.loads(text)["odd_machines"]),
    }  # fmt: skip


def line(figures: dict[str, float]) -> str:
    """The figures of one fleet as people read them."""
    return (
        f"page {figures['page_s']:.1f} s ({figures['page_cpu_s']:.1f} s of CPU), {figures['page_mb']:.1f} MB, "
        f"{figures['memory_mb']:.0f} MB of memory; JSON {figures['json_s']:.1f} s ({figures['json_cpu_s']:.1f} s of "
        f"CPU), {figures['json_mb']:.1f} MB; odd: {figures['odd']:.0f}"
    )


def main() -> int:
    """Print a line for each fleet, and whether the largest reaches its goals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--machines", nargs="+", type=int, default=[10, 50, LARGEST])
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--pairs", action="store_true", help=f"pairs, each machine with {PARTNERS} partners")
    parser.add_argument("--keep", type=Path, help="where the fleets are made; used again where they are there")
    given, reached = parser.parse_args(), True
    with tempfile.TemporaryDirectory() as elsewhere:
        for shape in SHAPES:
            for machines in given.machines:
                kind = "pairs" if given.pairs else "single"
                folder = (given.keep or Path(elsewhere)) / f"{kind}-{shape[0]}x{shape[1]}-{machines}-{given.blocks}"
                if not folder.exists():
                    make_fleet(folder, shape, machines, given.blocks, pairs=given.pairs)
                figures = measure(folder / "fleet")
                what = f"{shape[0]} workloads x {shape[1]} metrics x {given.blocks} blocks"
                print(f"{machines} machines ({kind}), {what}: {line(figures)}", flush=True)
                for key, goal in GOALS.items() if machines >= LARGEST else ():
                    reached &= (good := figures[key] <= goal)
                    print(f"{key} {figures[key]:.1f}, goal {goal:.0f}: {'reached' if good else 'missed'}")
    return int(not reached)


if __name__ == "__main__":
    sys.exit(main())
