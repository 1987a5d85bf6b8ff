"""The types of ``plan --json``, of which its JSON Schema is made. docs/reference.md says what the keys mean."""

from typing import Any, Final, Literal

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

VERSION: Final = 1


class PlannedEnvironment(TypedDict):
    """One environment, and whether it can be opened here. What is not ready and ``optional`` is left out."""

    name: str
    kind: str
    aa_of: str | None
    optional: bool
    ready: bool
    why: str
    remedy: str
    caveat: str
    unverified: str


class PlannedHosts(TypedDict):
    """Where everything runs."""

    hosts: dict[str, dict[str, Any]]
    placement: dict[str, list[str]]
    inside: list[Literal["client", "server"]]


class PlannedWorkload(TypedDict):
    """One workload at one level; of a ``short`` one a pilot block chooses how long its trials are."""

    label: str
    kind: str
    level: dict[str, str]
    link: Literal["none"] | None
    short: bool


class PlannedTrial(TypedDict):
    """One trial, in the order in which they run."""

    block: int
    workload: str
    level: dict[str, str]
    environment: str


PlannedTime = TypedDict("PlannedTime", {"from": int, "to": int})
"""Whole seconds."""


class BroughtDocument(TypedDict):
    """What the study brings from outside."""

    what: str
    place: str
    value: str
    lines: list[str]


@with_config(ConfigDict(extra="forbid"))
class PlanDocument(TypedDict):
    """The document of ``weighbridge plan STUDY --json``."""

    version: Literal[1]
    study: str
    question: str
    baseline: str
    environments: list[PlannedEnvironment]
    refusals: list[str]
    hosts: PlannedHosts
    workloads: list[PlannedWorkload]
    packages: list[str]
    blocks: int
    most_blocks: int
    target: float | None
    budget_s: float | None
    within_s: float | None
    trials: list[PlannedTrial]
    seconds: PlannedTime
    seed: int
    brings: list[BroughtDocument]
    warnings: list[str]
