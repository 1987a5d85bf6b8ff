"""What a report costs: CPU time and memory of `report --json` and of `report` with its page, and the page's size.

Give it finished runs. Each command runs in a fresh process, ``--times`` times. The smallest CPU time (user and
system, imports included) counts. A run of at most 500 trials may take 0.5 s for ``--json`` and 0.8 s for the page.
With ``--large``, two larger runs are made first, by copying the blocks of the first run that is given. One is as a
first look of five minutes: 1,476 trials, with goals of 1 s and 2 s. The other has 10,200 trials, 76,500 measurements
and 800,000 readings of meters. Its goals are 2 s, 4 s, 512 MB and a page of 1 MB compressed. Exits with 1 if a goal
is missed.

CPU seconds of the version before and of this one, in turn, on two cores with a load of 17 to 23. Everything took
about twice as long as on quiet cores: `--json` of 18 trials 2.37 and 1.36; of the first look `--json` 3.12 and 3.07,
the page 5.5 and 5.0. The goals for quiet cores have not been checked yet.

A run of an older schema is upgraded in memory at each report; the made runs are of the newest.

    .venv/bin/python benchmarks/report_time.py runs/THAT-RUN [--times 3] [--large] [--keep FOLDER]
"""

import argparse
import gzip
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

SMALL_TRIALS = 500
SMALL_GOALS = {"json_cpu_s": 0.5, "page_cpu_s": 0.8}
FIRST_LOOK_TRIALS = 1_476
FIRST_LOOK_GOALS = {"json_cpu_s": 1.0, "page_cpu_s": 2.0}
TRIALS, MEASUREMENTS, READINGS = 10_200, 76_500, 800_000
GOALS = {"json_cpu_s": 2.0, "page_cpu_s": 4.0, "memory_mb": 512.0, "packed_page_mb": 1.0}
"""The goals of the run with 10,200 trials."""

_PROGRAM = """
import contextlib, gc, json, resource, sys
from weighbridge.cli.app import main
folder, result = sys.argv[1:3]
sys.argv = ["weighbridge", "report", folder, *(["--json"] if result == "-" else ["--html", result])]
with open("/dev/null", "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.suppress(SystemExit):
    main()
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"cpu_s": used.ru_utime + used.ru_stime, "memory_mb": used.ru_maxrss / 1e3}))
"""
_CONTENT = """
import json, sys
from pathlib import Path
from weighbridge.analysis.analyse import analyse
from weighbridge.store.run import RunStore
with RunStore(Path(sys.argv[1])) as store:
    analysis = analyse(store)
comparisons = sum(len(report.comparisons) for report in analysis.metrics)
seconds = sum(trial.duration_s for trial in analysis.trials)
print(json.dumps({"trials": len(analysis.trials), "comparisons": comparisons, "run_s": seconds}))
"""


def once(program: str, *arguments: str | Path) -> dict[str, Any]:
    """Return the figures that a program prints in a process of its own."""
    done = run(Command((sys.executable, "-c", program, *map(str, arguments)), deadline_s=600))
    if done.returncode != 0:
        raise SystemExit(f"no report can be made of {arguments[0]}: {done.last_words}")
    figures: dict[str, Any] = json.loads(done.text)
    return figures


def make_run(run_of: Path, folder: Path, most: int, *, thinned: bool) -> Path:
    """Copy the blocks of a run until there are ``most`` trials.

    If ``thinned``, each trial keeps only its first measurements and series: about as many as the large run needs.
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
        copies = -(-most // trials)
        for copy in range(1, copies):
            _copy_blocks(file, copy * last, copy * blocks, last)
        file.execute(
            "DELETE FROM trial WHERE block > 0"
            " AND id NOT IN (SELECT id FROM trial WHERE block > 0 ORDER BY block, id LIMIT ?)",
            (most,),
        )
        for table in ("measurement", "series", "process", "sample", "histogram"):
            file.execute(f"DELETE FROM {table} WHERE trial NOT IN (SELECT id FROM trial)")
        if thinned:
            _thin(file, "measurement", MEASUREMENTS / (values * most / trials))
            _thin(file, "series", READINGS / (readings * most / trials))
        file.execute("COMMIT")
        file.execute("VACUUM")
    return folder


def _copy_blocks(file: sqlite3.Connection, further: int, blocks: int, last: int) -> None:
    """Add every trial but the pilot's once more, as later blocks; its measurements differ a little."""
    file.execute(
        "INSERT INTO trial SELECT id + ?1, block + ?2, attempt, workload, level, environment, outcome, message,"
        " started_at + ?2 * 60.0, duration_s, measured_s, flags, measured_from_s FROM trial"
        " WHERE id <= ?3 AND block > 0",
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
    """Return the smallest figures of several times of each command, and the size of the page."""
    with tempfile.TemporaryDirectory() as results:
        page = Path(results) / "report.html"
        texts = [once(_PROGRAM, folder, "-") for _ in range(times)]
        pages = [once(_PROGRAM, folder, page) for _ in range(times)]
        content = page.read_bytes()
    return {
        **once(_CONTENT, folder),
        "json_cpu_s": min(each["cpu_s"] for each in texts), "page_cpu_s": min(each["cpu_s"] for each in pages),
        "memory_mb": min(each["memory_mb"] for each in pages), "page_mb": len(content) / 1e6,
        "packed_page_mb": len(gzip.compress(content)) / 1e6,
    }  # fmt: skip


def line(name: str, figures: dict[str, float]) -> str:
    """Return one run's figures as people read them."""
    return (
        f"{name}: {figures['trials']} trials of {figures['run_s']:.0f} s, {figures['comparisons']} comparisons: "
        f"--json {figures['json_cpu_s']:.2f} s, page {figures['page_cpu_s']:.2f} s of CPU, "
        f"{figures['memory_mb']:.0f} MB of memory, page of {figures['page_mb']:.1f} MB, "
        f"{figures['packed_page_mb']:.2f} MB compressed"
    )


def schema_version(run_of: Path) -> int:
    """The schema in which a run is stored."""
    with closing(sqlite3.connect(f"file:{run_of / DATABASE}?mode=ro", uri=True)) as file:
        (version,) = file.execute("PRAGMA user_version").fetchone()
    return int(version)


def reaches(name: str, figures: Mapping[str, float], goals: Mapping[str, float]) -> bool:
    """Whether a run's figures reach all of these goals; prints it for each."""
    for key, goal in goals.items():
        print(f"{name}: {key} {figures[key]:.2f}, goal {goal:.1f}: {'reached' if figures[key] <= goal else 'missed'}")
    return all(figures[key] <= goal for key, goal in goals.items())


def main() -> int:
    """Time each run's report and print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="make two larger runs of the first run, and time them")
    parser.add_argument("--keep", type=Path, help="the folder of the larger runs, which are reused")
    given, reached = parser.parse_args(), []
    for each_run in given.runs:
        if (version := schema_version(each_run)) < VERSION:
            print(f"{each_run.name}: of schema {version}, which each report upgrades in memory to {VERSION}")
        figures = measure(each_run, given.times)
        print(line(each_run.name, figures), flush=True)
        if figures["trials"] <= SMALL_TRIALS:
            reached.append(reaches(each_run.name, figures, SMALL_GOALS))
    made = (("first look", FIRST_LOOK_TRIALS, FIRST_LOOK_GOALS), ("large run", TRIALS, GOALS)) if given.large else ()
    with tempfile.TemporaryDirectory() as elsewhere:
        for name, most, goals in made:
            folder = (given.keep or Path(elsewhere)) / name.replace(" ", "-")
            if not folder.exists():
                make_run(given.runs[0], folder, most, thinned=most == TRIALS)
            figures = measure(folder, given.times)
            print(line(name, figures), flush=True)
            reached.append(reaches(name, figures, goals))
    return int(not all(reached))


if __name__ == "__main__":
    sys.exit(main())
