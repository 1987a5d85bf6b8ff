"""Valid runs and fleets, which mutations change: made by the commands themselves, once."""

import json
import lzma
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from weighbridge.features.fleets.folder import Fleet, FleetFolder, UnitRecord
from weighbridge.features.fleets.rounds import FleetUnit
from weighbridge.store.run import RunStore

from .mutations import make_loose

STUDY = """\
study: {name}
question: Does it run?
resources: {{cpus: 1, memory: 64MiB}}
baseline: native
aa: true
environments:
  native: {{kind: native}}
  netns: {{kind: netns}}
workloads:
  own: {{kind: command, run: 'true'}}
repetitions: {{blocks: 8}}
userland: {{kind: host}}
seed: 3
"""
HOST = "userland: {kind: host}\n"
"""Not on machines that ssh reaches."""
_MACHINES = ("m1", "m2", "m3")
_MEASURED = ("m1", "m2")
_ROOT = Path(__file__).parents[2]
_KEPT = {
    "explained": "docs/runs/why-first-look.sqlite.xz",
    "published": "tests/report/finished_runs/docker-networks.sqlite.xz",
}
"""Bases that are runs kept with the project: one that explains a cost, and one of a study with published figures."""
_RAW = 8
"""Raw outputs that a base keeps: each case copies its base."""
_ARM_S = {"native": 1.0e-3, "native-again": 1.0e-3, "netns": 1.5e-3}
Command = Callable[..., int]
"""Runs the words of a command, and returns its exit code."""


def make_bases(folder: Path, command: Command) -> dict[str, Path]:
    """Make the valid runs and the fleet below a folder; return them by name.

    ``study`` lacks its last block, ``old`` is the same as a run of schema version 4, ``weigh`` is one of `weigh`,
    ``other`` is a finished run that is never changed. ``fleet`` has three machines, of which one has no run, and
    ``driven`` has two with finished runs. ``explained`` and ``published`` are kept with the project.
    """
    folder.mkdir(parents=True)
    file = folder / "study.yaml"
    file.write_text(STUDY.format(name="tiny"))
    (folder / "hosts.txt").write_text("".join(f"{name}.invalid\n" for name in _MACHINES))
    bases = {name: folder / name for name in ("study", "old", "weigh", "other", "fleet", "driven")}
    _must(command("run", str(file), "--out", str(bases["other"]), "--yes"), "run")
    _thin(bases["other"])
    shutil.copytree(bases["other"], bases["study"])
    _unfinish(bases["study"])
    shutil.copytree(bases["study"], bases["old"])
    with closing(sqlite3.connect(bases["old"] / "run.sqlite", isolation_level=None)) as database:
        database.execute("DROP TABLE study")
        database.execute("PRAGMA user_version=4")
    words = ("--in", "netns", "--blocks", "6", "--cleanup", "true", "--env", "A=b")
    _must(command("weigh", "--out", str(bases["weigh"]), *words, "--", "/usr/bin/true"), "weigh")
    _thin(bases["weigh"])
    _unfinish(bases["weigh"])
    _make_fleet(bases["fleet"], bases["other"], _MACHINES)
    _make_fleet(bases["driven"], bases["other"], _MEASURED)
    for name, kept in _KEPT.items():
        bases[name] = folder / name
        bases[name].mkdir()
        (bases[name] / "run.sqlite").write_bytes(lzma.decompress((_ROOT / kept).read_bytes()))
        with RunStore(bases[name], writable=True):
            pass  # brings it up to the present version
    for name in ("study", "old", "weigh", *_KEPT):
        make_loose(bases[name] / "run.sqlite")
        (bases[name] / "report.html").unlink(missing_ok=True)
    for fleet in ("fleet", "driven"):
        for database_file in bases[fleet].rglob("run.sqlite"):
            make_loose(database_file)
    return bases


def _must(code: int, what: str) -> None:
    if code != 0:
        raise RuntimeError(f"'{what}' ended with code {code}: no base can be made")


def _thin(run: Path) -> None:
    """Make the run small, and its costs certain, whatever this machine is doing."""
    with closing(sqlite3.connect(run / "run.sqlite", isolation_level=None)) as database:
        database.execute("DELETE FROM fact WHERE scope = 'host' AND key LIKE 'sysctl%' AND rowid % 20")
        for arm, seconds in _ARM_S.items():
            database.execute(
                "UPDATE measurement SET value = ? * (1 + 0.01 * (trial % 7)) WHERE unit = 's'"
                " AND trial IN (SELECT id FROM trial WHERE environment = ?)",
                (seconds, arm),
            )
        database.execute("UPDATE trial SET flags = '[]'")
        database.execute("VACUUM")
    (run / "report.html").unlink(missing_ok=True)
    for raw in sorted((run / "raw").iterdir())[_RAW:]:
        raw.unlink()


def _unfinish(run: Path) -> None:
    """Take the last trial away: what continues the run then measures."""
    with closing(sqlite3.connect(run / "run.sqlite", isolation_level=None)) as database:
        (last,) = database.execute("SELECT max(id) FROM trial").fetchone()
        for table in ("measurement", "process", "sample", "series", "histogram"):
            database.execute(f"DELETE FROM {table} WHERE trial = ?", (last,))
        database.execute("DELETE FROM trial WHERE id = ?", (last,))
        database.execute("DELETE FROM run WHERE key = 'finished'")


def _make_fleet(path: Path, run: Path, machines: tuple[str, ...]) -> None:
    folder = FleetFolder(path)
    listed = tuple({"destination": f"root@{name}", "address": "127.0.0.1"} for name in machines)
    study = STUDY.format(name="tiny").replace(HOST, "")
    fleet = Fleet(
        name="tiny", study=study, pairs=False, machines=machines, seed=3, cwd=str(path),
        on={"kind": "hosts", "file": f"{path}/hosts.txt", "listed": listed}, created=time.time(),
        jobs=("99999 1 00000000-0000-0000-0000-000000000000 pid:[1] here:0123",), rehearsal=True, beside_others=True,
    )  # fmt: skip
    folder.create(fleet)
    for number, name in enumerate(_MEASURED, 1):
        unit = FleetUnit((name,))
        shutil.copytree(run, folder.run(unit))
        with closing(sqlite3.connect(folder.run(unit) / "run.sqlite", isolation_level=None)) as database:
            database.execute("UPDATE run SET value = ? WHERE key = 'run_id'", (f"{number:012x}",))
            database.execute("UPDATE measurement SET value = value * ?", (1 + number / 100,))
        folder.note(unit, UnitRecord(round=1, began=1.0, ended=2.0, code=0))
        folder.log(unit).write_text("weighbridge: done\n")
        folder.study(unit).write_text(STUDY.format(name="tiny"))
    folder.note_machines(machines)
    folder.driver_log.write_text("driven\n")
    (path / "hosts.txt").write_text(json.dumps(listed))
