"""The types of ``gate --json``; docs/reference.md says what the keys mean."""

from typing import Final, Literal

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from weighbridge.analysis.gate import Reason
from weighbridge.analysis.gate_answer import Answer
from weighbridge.report.export.document import Within, Worsening

VERSION: Final = 1
"""Of the document."""


class GateFinding(Within, Worsening):
    """What one budget comes to in one comparison, or the margin in one change."""

    about: Literal["cost", "change"]
    budget: str
    environment: str
    workload: str
    metric: str
    outcome: Literal["passed", "failed", "undecided"]
    reason: Reason
    blocks: int


class GateLookRow(TypedDict):
    """A look that the gate took before: blocks, and what it spent of the error that all looks may spend."""

    blocks: int
    share: float


@with_config(ConfigDict(extra="forbid"))
class GateDocument(TypedDict):
    """The document of ``weighbridge gate RUN --json``."""

    version: Literal[1]
    study: str
    run: str
    against: str | None
    answer: Answer
    findings: list[GateFinding]
    looks: int
    share: float
    earlier_looks: list[GateLookRow]
