"""Whether a run of ``weigh --base`` still has the two versions that it measured."""

import os

from weighbridge.model.stored_study import pairs_of_versions
from weighbridge.store.reader import RunReader


def has_its_versions(store: RunReader) -> bool:
    """Return whether the trees of both versions are here, so that the run can go on; True for any other run."""
    if (study := store.study()) is None or not pairs_of_versions(
        study.file.study, [arm.name for arm in study.arms if arm.aa_of is None]
    ):
        return True
    roots = [(study.file.model_extra or {}).get("userland"), *(arm.userland for arm in study.arms)]
    folders = [root.get("folder") for root in roots if isinstance(root, dict)]
    return all(
        isinstance(each, str) and os.path.isdir(each)  # noqa: PTH112 - it never raises
        for each in folders
    )
