"""Turns the checked study that a run keeps into the study that is continued."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from weighbridge import registry
from weighbridge.errors import RunDirectoryError
from weighbridge.model.host import SPEEDS
from weighbridge.model.options import STORED, ArmName, Name, Options
from weighbridge.model.plugin import Plugin
from weighbridge.model.stored_study import StoredArm, StoredCell, StoredStudy, study_json
from weighbridge.model.study import Arm, Cell, Resources, Study, StudyFile
from weighbridge.model.userland_source import own_userland_key
from weighbridge.model.validation import problem_of
from weighbridge.study.contradictions import contradictions
from weighbridge.study.source import plain
from weighbridge.study.validated import option_models

M = TypeVar("M", bound=BaseModel)


class _Unusable(Exception):
    """The stored study cannot be continued. The message says why."""


def thaw(stored: StoredStudy, text: str, directory: Path) -> Study:
    """Return the study of a run from its stored, checked form. ``text`` is its YAML.

    Raises RunDirectoryError if it is damaged or does not fit the present plug-ins.
    """
    try:
        file = _validated(StudyFile, stored.file.model_dump(exclude_unset=True), "the study file")
        kinds = {cell.workload: cell.kind for cell in stored.cells}
        study = Study(
            text=text,
            file=file,
            arms=tuple(_arm(arm, kinds) for arm in stored.arms),
            cells=tuple(_cell(cell) for cell in stored.cells),
            mechanisms=stored.mechanisms,
        )
        if problem := next(_problems(study), None):
            raise _Unusable(problem)
    except _Unusable as why:
        raise RunDirectoryError(f"the run in {directory} cannot be continued: {plain(why, 500)}") from None
    return study


def first_difference(stored: Study, named: Study) -> str | None:
    """Return the first key of the study file whose meaning differs between two studies, or None."""
    ours, theirs = (json.loads(study_json(study)) for study in (stored, named))
    for what, part, name in (("environments", "arms", "name"), ("workloads", "cells", "workload")):
        for one, other in zip(ours[part], theirs[part], strict=False):
            if one != other:
                return f"{what}.{one[name]}"
        if len(ours[part]) != len(theirs[part]):
            return what
    keys = {**ours["file"], **theirs["file"]}
    return next((key for key in keys if ours["file"].get(key) != theirs["file"].get(key)), None)


def _problems(study: Study) -> Iterator[str]:
    names = [arm.name for arm in study.arms]
    for kind, each in (*((ArmName, name) for name in names), *((Name, cell.workload) for cell in study.cells)):
        if not _fits(kind, each):  # they become names of folders, control groups and containers
            yield f"{each!r} is not a name that a study can have"
    if unknown := {cell.disk_speed for cell in study.cells} - {None, *SPEEDS}:
        yield f"there is no disk speed {min(map(str, unknown))!r}"
    if study.file.baseline not in names:
        yield f"its baseline '{study.file.baseline}' is not one of its environments"
    elif lost := {cell.client for cell in study.cells} - {"", *study.file.hosts}:
        yield f"there is no host '{min(lost)}'"
    elif wrong := [arm.name for arm in study.arms if arm.aa_of is not None and not _is_again(arm, study.baseline)]:
        yield f"its control '{wrong[0]}' differs from its baseline '{study.file.baseline}'"
    else:
        arms = [arm for arm in study.arms if arm.aa_of is None]
        yield from (sentence for _, sentence in contradictions(study.file, arms, list(study.cells)))


def _fits(kind: Any, name: str) -> bool:
    try:
        TypeAdapter(kind).validate_python(name)
    except ValidationError:
        return False
    return True


def _is_again(arm: Arm, baseline: Arm) -> bool:
    """Return whether an A/A arm is the baseline under another name."""
    return arm == baseline.model_copy(update={"name": arm.name, "aa_of": baseline.name})


def _arm(arm: StoredArm, kinds: Mapping[str, str]) -> Arm:
    own = {
        each.cell: _options(
            registry.workloads(), kinds.get(each.workload, ""), each.options, f"{arm.name}: {each.workload}"
        )
        for each in arm.workloads
    }
    options = _options(registry.environments(), arm.kind, arm.options, arm.name)
    return Arm(
        name=arm.name, kind=arm.kind, options=options, aa_of=arm.aa_of, userland=_source(arm), workloads=own,
        clients=arm.clients, optional=arm.optional, shm_size=arm.shm_size, sysctls=arm.sysctls,
        explains=arm.explains,
        resources=None if arm.resources is None else _validated(Resources, arm.resources, f"{arm.name}: resources"),
    )  # fmt: skip


def _source(arm: StoredArm) -> Any:
    if arm.userland is None:
        return None
    kind = str(arm.userland.get("kind"))
    return _options(registry.userlands(), kind, arm.userland, own_userland_key(arm.name))


def _cell(cell: StoredCell) -> Cell:
    options = _options(registry.workloads(), cell.kind, cell.options, cell.workload)
    return Cell(**{**dict(cell), "options": options})


def _options(plugins: Mapping[str, Plugin], kind: str, values: Mapping[str, Any], what: str) -> Options:
    if kind not in plugins:
        raise _Unusable(f"{what}: unknown kind '{kind}'. Known kinds: {', '.join(plugins)}")
    return _validated(plugins[kind].options, values, what)


def _validated(model: type[M], values: Mapping[str, Any], what: str) -> M:
    try:
        return model.model_validate(values, context={**option_models(), STORED: True})
    except ValidationError as error:
        raise _Unusable(f"{what}: {problem_of(error)}") from None
