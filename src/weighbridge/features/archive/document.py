"""The JSON document of registry list."""

from dataclasses import dataclass
from typing import Literal

from weighbridge.model.document import Documented


@dataclass(frozen=True, kw_only=True)
class RegistryRun(Documented):
    """A run of a registry, in the words of its index."""

    run: str
    file: str
    """The path of the kept file in the registry."""
    machine: str
    study: str
    question: str
    created: str
    answer: str


@dataclass(frozen=True, kw_only=True)
class RegistrySkipped(Documented):
    """A file of a registry that was skipped, and why."""

    file: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class RegistryDocument(Documented):
    """The document of ``weighbridge registry list --json``."""

    version: Literal[1] = 1
    runs: tuple[RegistryRun, ...]
    skipped: tuple[RegistrySkipped, ...]
