"""Keep a finished run for the documentation: python docs/keep_run.py RUN NAME [FOLDER] writes
docs/runs/NAME.sqlite.xz, or the archive in another folder.

`weighbridge registry add` makes the same file: see `weighbridge.features.archive.kept_file`.
"""

import sys
from pathlib import Path

from weighbridge.features.archive.kept_file import kept_file
from weighbridge.store.run import RunStore
from weighbridge.store.unpacking import ENDING


def keep(run: Path, name: str, folder: Path = Path(__file__).parent / "runs") -> Path:
    """Write the archive of a run and return its path."""
    archive = folder / f"{name}{ENDING}"
    with RunStore(run) as store:
        archive.write_bytes(kept_file(store).data)
    return archive


if __name__ == "__main__":
    print(keep(Path(sys.argv[1]), sys.argv[2], *map(Path, sys.argv[3:])))
