"""Keep a finished run for the documentation: python docs/keep_run.py RUN NAME [FOLDER] writes
docs/runs/NAME.sqlite.xz, or the archive in another folder.

The archive keeps the readings over time of the first round only, and no raw outputs. The working folder and the PATH
of the user who measured the run are replaced by usual values.
"""

import json
import lzma
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

FOLDER, PATH = "/home/me/project", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def keep(run: Path, name: str, folder: Path = Path(__file__).parent / "runs") -> Path:
    """Write the archive of a run and return its path."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "run.sqlite"
        with closing(sqlite3.connect(run / "run.sqlite")) as source, closing(sqlite3.connect(copy)) as database:
            source.backup(database)
            database.execute("delete from series where trial not in (select id from trial where block = 1)")
            ((document,),) = database.execute("select document from study")
            for userland in _userlands(json.loads(document)):
                _replace(database, userland.get("env", {}).get("PATH"), PATH)
                _replace(database, userland.get("folder"), FOLDER)
            database.commit()
            database.execute("vacuum")
        archive = folder / f"{name}.sqlite.xz"
        archive.write_bytes(lzma.compress(copy.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
    return archive


def _userlands(document: dict) -> list[dict]:
    return [each for key in ("userland", "client_userland") if (each := document["file"].get(key))]


def _replace(database: sqlite3.Connection, old: str | None, new: str) -> None:
    """Replace a text by another in all columns of all tables."""
    tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
    for table in tables if old else ():
        for _, column, kind, *_ in database.execute(f"pragma table_info({table})").fetchall():
            if kind.upper() in ("TEXT", ""):
                database.execute(
                    f"update {table} set {column} = replace({column}, ?, ?) where instr({column}, ?)",  # noqa: S608
                    (old, new, old),
                )


if __name__ == "__main__":
    print(keep(Path(sys.argv[1]), sys.argv[2], *map(Path, sys.argv[3:])))
