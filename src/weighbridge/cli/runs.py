"""The run directory that the user names or gets, and the command that continues the run in it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weighbridge.errors import Interrupted, RunDirectoryError, WeighbridgeError
from weighbridge.store.run import DATABASE, RunStore

_LISTED = 20


def default_folder() -> Path:
    """Return the folder for runs of weigh. It is outside of the measured folder, which would grow during the run."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    return Path(base) / "weighbridge/runs"


def run_directory(path: Path) -> Path:
    """Return the run at ``path``: a directory, or a kept file. A directory can be named by its database.

    For a folder of runs, the error lists them.
    """
    if path.name == DATABASE and path.is_file():
        return path.parent
    if path.is_dir() and not (path / DATABASE).exists():
        inside = sorted(database.parent for database in path.glob(f"*/{DATABASE}"))
        if inside:
            rest = f" and {len(inside) - _LISTED} more" if len(inside) > _LISTED else ""
            names = ", ".join(str(run) for run in inside[-_LISTED:])
            raise RunDirectoryError(f"{path} is not a run but a folder of runs. Name one of them: {names}{rest}")
    return path


@contextmanager
def continuable(run: Path, *command: str) -> Iterator[None]:
    """Add the command that continues ``run`` to a failure, if the run has a finished trial.

    Without a finished trial there is nothing to continue.
    """
    try:
        yield
    except (WeighbridgeError, Interrupted) as ended:
        if ended.continuable and _holds_a_trial(run):
            ended.continue_with = ("weighbridge", *command)
        raise


def holds_a_run(directory: Path) -> bool:
    """Return whether the directory has a run that can be continued, even without a trial."""
    try:
        with RunStore(directory):
            return True
    except WeighbridgeError:
        return False


def _holds_a_trial(directory: Path) -> bool:
    try:
        with RunStore(directory) as store:
            return bool(store.finished())
    except WeighbridgeError:
        return False
