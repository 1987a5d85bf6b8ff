"""The document of ``fleet plan --json``: its types, from which its JSON Schema is made."""

from typing import Literal

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

FleetTime = TypedDict("FleetTime", {"from": int, "to": int})
"""The expected whole seconds of a fleet with the fewest and with the most rounds."""


@with_config(ConfigDict(extra="forbid"))
class FleetPlanDocument(TypedDict):
    """The document of ``weighbridge fleet plan --json``.

    ``machines`` is null if a scheduler chooses them. ``waves`` has the names of the runs that go on at the same time.
    ``refusals`` is also empty if no machine was ``contacted``.
    """

    version: Literal[1]
    study: str
    question: str
    on: str
    machines: list[str] | None
    pairs: bool
    waves: list[list[str]]
    seconds: FleetTime
    repeats_outliers: bool
    contacted: bool
    refusals: list[str]
    notes: list[str]
