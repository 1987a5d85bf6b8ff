"""Whether a run is one of ``weigh --base``, and whether a run can be continued."""

import os

from weighbridge.model.stored_study import StoredStudy, pairs_of_versions
from weighbridge.store.reader import RunReader


def measures_two_versions(study: StoredStudy) -> bool:
    """Return whether ``weigh --base`` made a study."""
    return bool(pairs_of_versions(study.file.study, [arm.name for arm in study.arms if arm.aa_of is None]))


def can_continue(store: RunReader) -> bool:
    """Return whether a run can be continued: False for a kept file, and if the tree of a measured version is gone."""
    if store.is_kept_file:
        return False
    if (study := store.study()) is None or not measures_two_versions(study):
        return True
    roots = [(study.file.model_extra or {}).get("userland"), *(arm.userland for arm in study.arms)]
    folders = [root.get("folder") for root in roots if isinstance(root, dict)]
    return all(
        isinstance(each, str) and os.path.isdir(each)  # noqa: PTH112 - it never raises
        for each in folders
    )
