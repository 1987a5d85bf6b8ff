"""In what the hosts of a run differ: kept as facts, worded by the report."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

SCOPE = "host differences"
"""Scope of the facts: what differs -> a `HostDifference` as JSON; of older runs a sentence."""


class HostDifference(BaseModel):
    """One difference: of a ``fact`` with its value on each host, of a host's clock, or that hosts share CPUs."""

    model_config = ConfigDict(frozen=True)
    kind: Literal["fact", "clock", "shared-cpus"]
    fact: str = ""
    values: tuple[tuple[str, str], ...] = ()
    """Host and value."""
    host: str = ""
    ahead_s: float = 0.0
    """By how many seconds the clock of ``host`` is ahead of this machine's."""
