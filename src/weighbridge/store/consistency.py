"""Checks that the rows of a run belong together."""

import json
from collections.abc import Mapping
from typing import Any

from weighbridge.errors import RunDirectoryError
from weighbridge.model.ladder import rungs_written
from weighbridge.model.stored_study import StoredStudy
from weighbridge.model.text import one_line
from weighbridge.store.run import RunStore

_LONGEST = 200
"""The largest number of characters of a message, which can quote stored values."""


def require_consistent(store: RunStore) -> None:
    """Raise RunDirectoryError if a row refers to something that the run does not have: the file is damaged."""
    environments = {name for name, *_ in store.environments()}
    cells = {(cell.workload, cell.level) for cell in store.cells()}
    baseline = store.info().get("baseline", "")
    if baseline not in environments:
        raise _damage_error(store, f"the baseline '{baseline}' is not one of its environments")
    for name, _, _, aa_of in store.environments():
        if aa_of not in (None, baseline) or aa_of == name:
            raise _damage_error(store, f"the control repeats '{aa_of}', which is not the baseline")
    for trial in store.trials():
        if trial.environment not in environments:
            raise _damage_error(store, f"trial {trial.id} belongs to an unknown environment '{trial.environment}'")
        if (trial.workload, trial.level) not in cells:
            raise _damage_error(
                store, f"trial {trial.id} belongs to an unknown workload '{trial.workload}' {trial.level.text}"
            )


def require_same_study(store: RunStore, study: StoredStudy) -> None:
    """Raise RunDirectoryError if the stored study differs from the run's tables and keys."""
    arms = [(arm.name, arm.kind, arm.aa_of) for arm in study.arms]
    cells = [(cell.workload, cell.level, cell.kind) for cell in study.cells]
    environments, workloads = store.environments(), store.cells()
    if arms != [(name, kind, aa_of) for name, kind, _, aa_of in environments]:
        raise _damage_error(store, "the environments of its study differ from the environments of its tables")
    if cells != [(row.workload, row.level, row.kind) for row in workloads]:
        raise _damage_error(store, "the workloads of its study differ from the workloads of its tables")
    pairs = [(arm.name, arm.options, row[2]) for arm, row in zip(study.arms, environments, strict=True)]
    pairs += [(cell.workload, cell.options, row.options) for cell, row in zip(study.cells, workloads, strict=True)]
    for name, ours, theirs in pairs:
        if wrong := _contradiction(ours, theirs):
            raise _damage_error(store, f"'{wrong}' of '{name}' is stored twice with different values")
    if wrong := _contradiction(study.file.model_extra or {}, _keys(store)):
        raise _damage_error(store, f"'{wrong}' is stored twice with different values")


def _keys(store: RunStore) -> dict[str, Any]:
    """Return the parts of the study file that the run's keys repeat, in the form of the stored study."""
    info = store.info()
    keys: dict[str, Any] = {key: info[key] for key in ("study", "question", "baseline") if key in info}
    try:
        keys |= {key: json.loads(info[key]) for key in ("seed", "equivalence") if key in info}
    except ValueError:
        raise _damage_error(store, "its stored seed or equivalence is not a number") from None
    return keys | {"repetitions": json.loads(info.get("repetitions", "{}")), "ladder": rungs_written(store.ladder())}


def _contradiction(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str | None:
    """Return a key that both have with different values; the tables of older runs do not have later options."""
    for key in ours.keys() & theirs.keys():
        one, other = ours[key], theirs[key]
        both = isinstance(one, dict) and isinstance(other, dict)
        if _contradiction(one, other) if both else one != other:
            return key
    return None


def _damage_error(store: RunStore, fault: str) -> RunDirectoryError:
    return RunDirectoryError(f"{store.directory} is damaged: {one_line(fault, _LONGEST)}")
