"""The run directory that a person means, and the command that continues the run in it."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weighbridge.errors import Interrupted, RunDirectoryError, WeighbridgeError
from weighbridge.store.run import DATABASE, RunStore

_LISTED = 20


def run_directory(path: Path) -> Path:
    """The run at ``path``, which may name its database too. A folder of runs is told with what is in it."""
    if path.name == DATABASE and path.is_file():
        return path.parent
    if path.is_dir() and not (path / DATABASE).exists():
        inside = sorted(database.parent for database in path.glob(f"*/{DATABASE}"))
        if inside:
            rest = f" and {len(inside) - _LISTED} more" if len(inside) > _LISTED else ""
            names = ", ".join(str(run) for run in inside[-_LISTED:])
            raise RunDirectoryError(f"{path} is not a run, but contains runs; name one: {names}{rest}")
    return path


@contextmanager
def continuable(run: Path, *command: str) -> Iterator[None]:
    """Give a failure the exact command that continues ``run``, where it left a run with a trial to go on from.

    Without one there is nothing to continue: what was refused is run again as it was, or changed.
    """
    try:
        yield
    except (WeighbridgeError, Interrupted) as ended:
        if ended.continuable and _holds_a_trial(run):
            ended.continue_with = shlex.join(("weighbridge", *command))
        raise


def holds_a_run(directory: Path) -> bool:
    """Whether there is a run that can be continued, be it before its first trial."""
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
