"""Folders on the other machine's disk for the data of sites; they are gone when the agent ends."""

import contextlib
import shutil
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.hosts.agent import userlands


def _base(whose: str) -> Path:
    """Where they are, beside the userlands; ``whose`` is the run's id and the host, joined by a dash."""
    return userlands.folder().parent / "data" / whose


def make(whose: str, name: str) -> Path:
    """Make an empty one. Raises OSError."""
    folder = _base(whose) / name
    folder.mkdir(parents=True)
    return folder


def remove(whose: str, name: str) -> None:
    """Remove one, if it is there."""
    shutil.rmtree(_base(whose) / name, ignore_errors=True)


def remove_all(whose: str) -> None:
    """Remove every one of a run on a host."""
    with contextlib.suppress(Unavailable):  # without a folder nothing was made
        shutil.rmtree(_base(whose), ignore_errors=True)
        with contextlib.suppress(OSError):
            _base(whose).parent.rmdir()
