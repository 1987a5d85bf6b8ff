"""Keep a finished run for the documentation: python docs/keep_run.py RUN NAME writes docs/runs/NAME.sqlite.xz.

`weighbridge registry add` makes the same file: see `weighbridge.features.archive.kept_file`.
"""

import sys
from pathlib import Path

from weighbridge.features.archive.kept_file import ENDING, kept_file
from weighbridge.store.run import RunStore


def keep(run: Path, name: str) -> Path:
    """Write the archive of a run and return its path."""
    archive = Path(__file__).parent / "runs" / f"{name}{ENDING}"
    with RunStore(run) as store:
        archive.write_bytes(kept_file(store).data)
    return archive


if __name__ == "__main__":
    print(keep(Path(sys.argv[1]), sys.argv[2]))
