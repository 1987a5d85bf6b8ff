"""The checked study as a run stores it: data with all defaults, and quantities in their base units.

Readers of a run use this form, and parse no YAML: they need neither the plug-ins that the study names, nor the
machine where it was checked. To continue the run, `weighbridge.study.frozen` converts it into a study.
"""

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from weighbridge.model.address import HasCell
from weighbridge.model.explained import DescribedMechanism, Explains
from weighbridge.model.level import Level
from weighbridge.model.secret import SecretName, secrets_in

if TYPE_CHECKING:
    from weighbridge.model.study import Arm, Cell, Study


VERSION = 1
WEIGHED = "weigh"
"""The beginning of the name of a study that ``weigh`` made from a command line."""

BASE, HEAD = "base", "head"
"""The environments of the two versions of ``weigh --base``. Their names have the same length."""

ENTRY = "entry"
"""The workload of such a study that starts a trivial command in each sandbox."""


def is_weighed(study: str) -> bool:
    """Return whether ``weigh`` made the study of this name."""
    return study == WEIGHED or study.startswith(f"{WEIGHED}-")


def pairs_of_versions(study: str, environments: Collection[str]) -> Mapping[str, str]:
    """Return for each environment with the head its environment with the base, if ``weigh --base`` made the study.

    ``environments`` are the study's environments without the control. Any other study has no pairs.
    """
    heads = {name: name.replace(HEAD, BASE, 1) for name in environments if name.split("-")[0] == HEAD}
    paired = HEAD in heads and {*heads, *heads.values()} == {*environments}
    return heads if paired and is_weighed(study) else {}


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Written(BaseModel):
    """Parts of a study file: parts that are read without its plug-ins are fields, the others are kept as they are."""

    model_config = ConfigDict(frozen=True, extra="allow")


class StoredEnvironment(_Written):
    """An environment as in the study file; ``workloads`` has the options of workloads in this environment alone."""

    workloads: dict[str, dict[str, Any]] | None = None


class StoredMeters(_Written):
    """The rate of readings of the meters."""

    hz: float | Literal["auto"] = "auto"


class StoredPlacement(_Written):
    """The hosts of clients and servers; None if the study does not name them."""

    client: str | list[str] | None = None
    server: str | None = None


class StoredFile(_Written):
    """The top level of a study file, without its profiles."""

    study: str = ""
    hosts: dict[str, dict[str, Any]] = {}
    placement: StoredPlacement = StoredPlacement()
    environments: dict[str, StoredEnvironment] = {}
    workloads: dict[str, dict[str, Any]] = {}
    meters: StoredMeters = StoredMeters()


class StoredOwnOptions(HasCell, _Stored):
    """The options of a workload at a level in one environment only."""

    workload: str
    level: Level
    options: dict[str, Any]


class StoredArm(_Stored):
    """`weighbridge.model.study.Arm`, with its options as data."""

    name: str
    kind: str
    options: dict[str, Any]
    aa_of: str | None
    clients: tuple[str, ...] | None
    workloads: tuple[StoredOwnOptions, ...]
    userland: dict[str, Any] | None = None
    optional: bool = False
    resources: dict[str, Any] | None = None
    shm_size: int | None = None
    sysctls: dict[str, str] = {}
    explains: Explains | None = None


class StoredCell(_Stored):
    """`weighbridge.model.study.Cell`, with its options as data."""

    workload: str
    kind: str
    level: Level
    options: dict[str, Any]
    client: str
    link: Literal["none"] | None
    sites: int = 1
    disk_speed: str | None = None


class StoredStudy(_Stored):
    """A checked study without its text."""

    version: Literal[1]
    file: StoredFile
    arms: tuple[StoredArm, ...]
    cells: tuple[StoredCell, ...]
    mechanisms: tuple[DescribedMechanism, ...] = ()


def study_json(study: "Study") -> str:
    """Return the study as a run stores it."""
    file = study.file.model_dump(mode="json", exclude={"profiles", "compose"}, warnings=False)
    arms, cells = [_arm(arm) for arm in study.arms], [_cell(cell) for cell in study.cells]
    stored = {"version": VERSION, "file": file, "arms": arms, "cells": cells}
    if study.mechanisms:
        stored["mechanisms"] = [each.model_dump() for each in study.mechanisms]
    return json.dumps(stored, separators=(",", ":"))


def secrets_of(study: "Study") -> tuple[SecretName, ...]:
    """Return the names of the secrets whose values a study needs."""
    return secrets_in(study_json(study))


def _arm(arm: "Arm") -> dict[str, Any]:
    own = [
        {"workload": cell.workload, "level": cell.level, "options": _data(options)}
        for cell, options in arm.workloads.items()
    ]
    same = {"name", "kind", "aa_of", "clients", "optional"}
    same |= {key for key in ("userland", "resources", "shm_size", "sysctls", "explains") if getattr(arm, key)}
    return {**arm.model_dump(include=same, mode="json"), "options": _data(arm.options), "workloads": own}


def _cell(cell: "Cell") -> dict[str, Any]:
    return {**cell.model_dump(exclude={"options"}), "options": _data(cell.options)}


def _data(options: BaseModel) -> dict[str, Any]:
    return options.model_dump(mode="json")
