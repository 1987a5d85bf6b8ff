"""Folders on the other machine's disk for the data of sites; they are gone when the agent ends."""

import shutil
from pathlib import Path

from weighbridge.hosts.agent import userlands


def folder_of(whose: str) -> Path:
    """Where they are, beside the userlands; ``whose`` is the run's id and the host, joined by a dash."""
    return userlands.folder().parent / "data" / whose


def make(whose: str, name: str) -> Path:
    """Make an empty one. Raises OSError."""
    folder = folder_of(whose) / name
    folder.mkdir(parents=True)
    return folder


def remove(whose: str, name: str) -> None:
    """Remove one, if it is there."""
    shutil.rmtree(folder_of(whose) / name, ignore_errors=True)
