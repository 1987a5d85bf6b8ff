"""Whether the rows of a run belong together."""

from weighbridge.errors import RunDirectoryError
from weighbridge.model.level import level_text
from weighbridge.model.stored_study import StoredStudy
from weighbridge.store.run import RunStore


def require_consistent(store: RunStore) -> None:
    """Raise RunDirectoryError where a row is about something that the run does not have: the file is damaged."""
    environments = {name for name, *_ in store.environments()}
    cells = {(workload, level) for workload, level, *_ in store.cells()}
    baseline = store.info().get("baseline", "")
    if baseline not in environments:
        raise _damaged(store, f"the baseline '{baseline}' is none of its environments")
    for _, _, _, aa_of in store.environments():
        if aa_of not in (None, baseline):
            raise _damaged(store, f"the A/A arm repeats '{aa_of}', which is not the baseline")
    for trial in store.trials():
        if trial.environment not in environments:
            raise _damaged(store, f"trial {trial.id}: there is no environment '{trial.environment}'")
        if (trial.workload, trial.level) not in cells:
            raise _damaged(store, f"trial {trial.id}: there is no workload '{trial.workload}' {trial.level}")


def require_same_study(store: RunStore, study: StoredStudy) -> None:
    """Raise RunDirectoryError where the stored study is not that of the run's tables."""
    arms = [(arm.name, arm.kind, arm.aa_of) for arm in study.arms]
    cells = [(cell.workload, level_text(cell.level), cell.kind) for cell in study.cells]
    if arms != [(name, kind, aa_of) for name, kind, _, aa_of in store.environments()]:
        raise _damaged(store, "its study has other environments than its tables")
    if cells != [(workload, level, kind) for workload, level, kind, *_ in store.cells()]:
        raise _damaged(store, "its study has other workloads than its tables")


def _damaged(store: RunStore, what: str) -> RunDirectoryError:
    return RunDirectoryError(f"{store.directory} is damaged: {what}")
