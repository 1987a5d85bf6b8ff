"""What a report costs: time and memory of `report --json` and of the page, and the page's size.

Give it finished runs. Each part is made in a fresh process, ``--times`` times (the best counts), beside the time that
the run's trials took: a report may take 2 % of its run, and the page of a run of at most 500 trials 1.5 s. With
``--large`` a large run is made first, by copying the blocks of the first of them until it has 10,200 trials, 76,500
measurements and 800,000 readings of meters; its goals are 2 s, 6 s, 512 MB and a page of 5 MB. Exits with 1 where one
is missed.

CPU seconds on two busy cores, measured in turn with charts by Altair and vl-convert, and with our own: the page of
`first-look` (360 trials) 9.8 to 10.1 and 3.1 to 3.3 (goal: 1.5 s, on a machine about twice as fast), the large run's
page 14.3 and 9.2 to 10.7 (goal: 6 s), its `--json` 5.3 and 4.8 (goal: 2 s), its memory 496 and 345 MB (goal: 512 MB).

A run of an older schema pays its upgrade, in memory, at each report; the large run is of the newest.

    .venv/bin/python benchmarks/report_time.py runs/THAT-RUN [--times 3] [--large] [--keep FOLDER]
"""

import argparse
import json
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from weighbridge.linux.process import run
from weighbridge.model.command import Command
from weighbridge.store.run import DATABASE, RunStore
from weighbridge.store.schema import VERSION

SHARE = 0.02
SMALL_TRIALS, SMALL_PAGE_S = 500, 1.5
TRIALS, MEASUREMENTS, READINGS = 10_200, 76_500, 800_000
GOALS = {"json_s": 2.0, "page_s": 6.0, "memory_mb": 512.0, "page_mb": 5.0}
"""Of the large run."""

_MADE = """
import json, resource, sys, time
from pathlib import Path
begun = time.perf_counter()
"""
_TOLD = """
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "wall_s": time.perf_counter() - begun, "cpu_s": used.ru_utime + used.ru_stime, "memory_mb": used.ru_maxrss / 1e3,
    "trials": len(analysis.trials), "comparisons": len(analysis.compared),
    "run_s": sum(trial.duration_s for trial in analysis.trials),
}))
"""
JSON = f"""{_MADE}
from weighbridge.analysis.analyse import analyse
from weighbridge.report.export.json import report_json
from weighbridge.store.run import RunStore
with RunStore(Path(sys.argv[1])) as store:
    analysis = analyse(store)
    Path(sys.argv[2]).write_text(json.dumps(report_json(store, analysis), indent=2))
{_TOLD}"""
PAGE = f"""{_MADE}
from weighbridge.analysis.analyse import analyse
from weighbridge.report.html import write_html
from weighbridge.store.run import RunStore
with RunStore(Path(sys.argv[1])) as store:
    analysis = analyse(store)
    write_html(store, Path(sys.argv[2]), analysis)
{_TOLD}"""


def once(program: str, folder: Path, result: Path) -> dict[str, Any]:
    """What one part of the report took, in a process of its own, and what it is about."""
    done = run(Command((sys.executable, "-c", program, str(folder), str(result)), deadline_s=600))
    if done.returncode != 0:
        raise SystemExit(f"no report can be made of {folder}: {done.last_words}")
    told: dict[str, Any] = json.loads(done.text)
    return told


def make_large(run_of: Path, folder: Path) -> Path:
    """Copy the blocks of a run until there are as many trials, measurements and readings as the goals are about.

    Each trial keeps its first measurements and series, so many that their numbers come near.
    """
    with RunStore(run_of) as store:
        trials, values = len(store.trials()), len(store.values())
        readings = sum(len(series.values) for _, series in store.series())
        blocks = max(trial.block for trial in store.finished())
    folder.mkdir(parents=True)
    for name in (DATABASE, f"{DATABASE}-wal"):
        if (run_of / name).exists():
            shutil.copy(run_of / name, folder / name)
    RunStore(folder, writable=True).close()  # upgraded once, and not at each report
    with closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as file:
        file.execute("BEGIN")
        (last,) = file.execute("SELECT max(id) FROM trial").fetchone()
        copies = -(-TRIALS // trials)
        for copy in range(1, copies):
            _copy_blocks(file, copy * last, copy * blocks, last)
        file.execute("DELETE FROM trial WHERE id NOT IN (SELECT id FROM trial ORDER BY block, id LIMIT ?)", (TRIALS,))
        for table in ("measurement", "series", "process", "sample", "histogram"):
            file.execute(f"DELETE FROM {table} WHERE trial NOT IN (SELECT id FROM trial)")
        _thin(file, "measurement", MEASUREMENTS / (values * TRIALS / trials))
        _thin(file, "series", READINGS / (readings * TRIALS / trials))
        file.execute("COMMIT")
        file.execute("VACUUM")
    return folder


def _copy_blocks(file: sqlite3.Connection, further: int, blocks: int, last: int) -> None:
    """Add every trial once more, as later blocks; its measurements differ a little."""
    file.execute(
        "INSERT INTO trial SELECT id + ?1, block + ?2, attempt, workload, level, environment, outcome, message,"
        " started_at + ?2 * 60.0, duration_s, measured_s, flags, measured_from_s FROM trial WHERE id <= ?3",
        (further, blocks, last),
    )  # fmt: skip
    file.execute(
        "INSERT INTO measurement SELECT trial + ?1, metric, unit, better, value * (1 + (abs(random()) % 100) / 1e5)"
        " FROM measurement WHERE trial <= ?2", (further, last),
    )  # fmt: skip
    for table, columns in (
        ("process", "role, argv, returncode, duration_s, stdout, stderr"),
        ("sample", "site, name, value"),
        ("series", "place, name, at_s, vals"),
        ("histogram", "metric, encoded"),
    ):
        query = f"INSERT INTO {table} SELECT trial + ?1, {columns} FROM {table} WHERE trial <= ?2"
        file.execute(query, (further, last))


def _thin(file: sqlite3.Connection, table: str, share: float) -> None:
    """Keep the first so many of each trial's rows; all where there are too few."""
    (rows,) = file.execute(f"SELECT count(*) FROM {table}").fetchone()
    ranks = f"SELECT rowid AS row, row_number() OVER (PARTITION BY trial ORDER BY rowid) AS place FROM {table}"
    counts = file.execute(f"SELECT place, count(*) FROM ({ranks}) GROUP BY place ORDER BY place").fetchall()
    kept = most = 0
    for place, count in counts:
        if kept < share * rows:
            kept, most = kept + count, place
    file.execute(f"DELETE FROM {table} WHERE rowid IN (SELECT row FROM ({ranks}) WHERE place > ?)", (most,))


def measure(folder: Path, times: int) -> dict[str, float]:
    """The best of several times of each part of a run's report."""
    with tempfile.TemporaryDirectory() as results:
        page = Path(results) / "report.html"
        told = [once(JSON, folder, Path(results) / "report.json") for _ in range(times)]
        pages = [once(PAGE, folder, page) for _ in range(times)]
        size = page.stat().st_size
    best = {key: min(each[key] for each in told) for key in ("wall_s", "cpu_s")}
    page_best = {key: min(each[key] for each in pages) for key in ("wall_s", "cpu_s", "memory_mb")}
    return {
        "trials": told[0]["trials"], "comparisons": told[0]["comparisons"], "run_s": told[0]["run_s"],
        "json_s": best["wall_s"], "json_cpu_s": best["cpu_s"],
        "page_s": page_best["wall_s"], "page_cpu_s": page_best["cpu_s"],
        "memory_mb": page_best["memory_mb"], "page_mb": size / 1e6,
    }  # fmt: skip


def line(name: str, figures: dict[str, float]) -> str:
    """One run's figures as people read them."""
    return (
        f"{name}: {figures['trials']} trials of {figures['run_s']:.0f} s, {figures['comparisons']} comparisons: "
        f"--json {figures['json_s']:.1f} s ({figures['json_cpu_s']:.1f} s of CPU), "
        f"page {figures['page_s']:.1f} s ({figures['page_cpu_s']:.1f} s of CPU), "
        f"{figures['memory_mb']:.0f} MB of memory, page of {figures['page_mb']:.1f} MB"
    )


def schema_version(run_of: Path) -> int:
    """The schema in which a run is stored."""
    with closing(sqlite3.connect(f"file:{run_of / DATABASE}?mode=ro", uri=True)) as file:
        (version,) = file.execute("PRAGMA user_version").fetchone()
    return int(version)


def reaches(name: str, figures: Mapping[str, float], goals: Mapping[str, float]) -> bool:
    """Whether a run's figures reach all of these goals; prints it for each."""
    for key, goal in goals.items():
        print(f"{name}: {key} {figures[key]:.1f}, goal {goal:.1f}: {'reached' if figures[key] <= goal else 'missed'}")
    return all(figures[key] <= goal for key, goal in goals.items())


def main() -> int:
    """Time each run's report and print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="make the large run of the first one, and time it too")
    parser.add_argument("--keep", type=Path, help="where the large run is made; used again where it is there")
    given, reached = parser.parse_args(), []
    for each_run in given.runs:
        if (version := schema_version(each_run)) < VERSION:
            print(f"{each_run.name}: of schema {version}, which each report upgrades in memory to {VERSION}")
        figures = measure(each_run, given.times)
        print(line(each_run.name, figures), flush=True)
        goals = {"page_s": SHARE * figures["run_s"]}
        if figures["trials"] <= SMALL_TRIALS:
            goals["page_s"] = min(SMALL_PAGE_S, goals["page_s"])
        reached += [reaches(each_run.name, figures, goals)]
    if given.large:
        with tempfile.TemporaryDirectory() as elsewhere:
            folder: Path = given.keep or Path(elsewhere) / "large"
            figures = measure(folder if folder.exists() else make_large(given.runs[0], folder), given.times)
        print(line("large run", figures))
        reached += [reaches("large run", figures, GOALS)]
    return int(not all(reached))


if __name__ == "__main__":
    sys.exit(main())
