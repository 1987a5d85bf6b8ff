"""The run directory that a person means."""

from pathlib import Path

from weighbridge.errors import RunDirectoryError
from weighbridge.store.run import DATABASE

_LISTED = 20


def run_directory(path: Path) -> Path:
    """The run at ``path``, which may name its database too. A folder of runs is told with what is in it."""
    if path.name == DATABASE and path.is_file():
        return path.parent
    if path.is_dir() and not (path / DATABASE).exists():
        inside = sorted(found.parent for found in path.glob(f"*/{DATABASE}"))
        if inside:
            more = f" and {len(inside) - _LISTED} more" if len(inside) > _LISTED else ""
            names = ", ".join(str(run) for run in inside[-_LISTED:])
            raise RunDirectoryError(f"{path} is not a run, but contains runs; name one: {names}{more}")
    return path
