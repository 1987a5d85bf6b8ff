"""The JSON documents of the commands about this machine, studies and files.

The JSON Schema and docs/reference/json.md are generated from these dataclasses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from weighbridge.model.document import Documented, SuggestedStep


@dataclass(frozen=True, kw_only=True)
class VersionDocument(Documented):
    """The document of ``weighbridge --version --json``."""

    version: Literal[1] = 1
    weighbridge: str
    launcher: str
    """The digest of the launcher, which runs store, and its origin."""


@dataclass(frozen=True, kw_only=True)
class FilesDocument(Documented):
    """The document of the commands that write files: init, export, kit, and ``--save`` of weigh and explain."""

    version: Literal[1] = 1
    files: tuple[str, ...]
    """The files or the folder that the command wrote."""
    next_steps: tuple[SuggestedStep, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PushedDocument(Documented):
    """The document of ``weighbridge userland push --json``."""

    version: Literal[1] = 1
    images: tuple[str, ...]
    """The names of the images in the registry."""


@dataclass(frozen=True, kw_only=True)
class SkillDocument(Documented):
    """The document of ``weighbridge skill --json``."""

    version: Literal[1] = 1
    text: str
    """The text of SKILL.md."""


@dataclass(frozen=True, kw_only=True)
class ListedStudy(Documented):
    """A bundled study."""

    study: str
    question: str
    profiles: tuple[str, ...]
    environments: tuple[str, ...]
    workloads: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class StudiesDocument(Documented):
    """The document of ``weighbridge studies --json``."""

    version: Literal[1] = 1
    studies: tuple[ListedStudy, ...]


@dataclass(frozen=True, kw_only=True)
class LeftoverRow(Documented):
    """A resource that a killed run left."""

    run: str
    """The id of the run, or the end of it after an ellipsis; empty if it belongs to no run."""
    kind: str
    name: str


@dataclass(frozen=True, kw_only=True)
class IgnoredFolder(Documented):
    """A state folder that Weighbridge ignores, because it does not trust it."""

    path: str
    fault: str
    """The reason: "owner", "kind" or "unreadable"."""


@dataclass(frozen=True, kw_only=True)
class CleanDocument(Documented):
    """The document of ``weighbridge clean --json``."""

    version: Literal[1] = 1
    leftovers: tuple[LeftoverRow, ...]
    """The leftovers that were not removed."""
    removed: tuple[LeftoverRow, ...]
    active: Mapping[str, str]
    """The active runs, with the reason why they count as active."""
    ignored: tuple[IgnoredFolder, ...]
    failures: tuple[str, ...]
    """A sentence for each step that failed."""


@dataclass(frozen=True, kw_only=True)
class ReadinessRow(Documented):
    """A plug-in or a part of the machine, and whether it is ready."""

    name: str
    ready: bool
    detail: str
    """Why it is not ready, or how it is ready."""
    remedy: str
    """How to make it ready."""
    caveat: str
    """A limitation, although it is ready."""
    unverified: str
    """The part that was never tested on real hardware."""
    group: str
    """The group on the screen of doctor."""


@dataclass(frozen=True, kw_only=True)
class DoctorDocument(Documented):
    """The document of ``weighbridge doctor --json``; with ``--cluster`` only ``cluster`` has rows."""

    version: Literal[1] = 1
    program_in: tuple[str, ...] = ()
    """The environments with which weigh compares a native program by default."""
    server_in: tuple[str, ...] = ()
    """The environments with which weigh compares a native server by default."""
    environments: tuple[ReadinessRow, ...] = ()
    storage: tuple[ReadinessRow, ...] = ()
    hosts: tuple[ReadinessRow, ...] = ()
    userlands: tuple[ReadinessRow, ...] = ()
    """The sources of root filesystems."""
    workloads: tuple[ReadinessRow, ...] = ()
    machine: tuple[ReadinessRow, ...] = ()
    cluster: tuple[ReadinessRow, ...] = ()
    next_steps: tuple[SuggestedStep, ...] = ()
    """One command for each group that adds missing parts. It installs something: ask the user before."""
