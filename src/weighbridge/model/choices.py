"""Values that users choose from. No library is used here, because every ``--help`` imports this module."""

from enum import StrEnum
from typing import Literal

CpuIdle = Literal["halt", "poll", "auto"]
"""How idle CPUs wait. ``auto``: they poll if they belong to a virtual machine."""

ProgressFormat = Literal["auto", "json"]
"""How the progress of a run is shown: for people, or as events for programs."""


class Promise(StrEnum):
    """How a record is kept before it is acknowledged: synced, written with O_DSYNC, written, or committed."""

    FSYNC = "fsync"
    O_DSYNC = "O_DSYNC"
    WRITE = "write"
    COMMIT = "commit"
