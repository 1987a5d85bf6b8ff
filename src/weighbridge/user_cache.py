"""The folders for data that a user's programs can make again."""

import os
from pathlib import Path

from weighbridge.errors import Unavailable


def cache_folder() -> Path:
    """Return the folder for root filesystems, engines' data and reports: WEIGHBRIDGE_CACHE, else the user's cache.

    Raises Unavailable for a user who has neither.
    """
    if folder := os.environ.get("WEIGHBRIDGE_CACHE"):
        return Path(folder).absolute()
    return user_cache_folder()


def user_cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/weighbridge``, else in the home folder. Raises Unavailable for a user without one."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "weighbridge"
    try:
        return Path.home() / ".cache/weighbridge"
    except RuntimeError:  # HOME is not set, and the user is not in the passwd database
        raise Unavailable(
            f"user {os.geteuid()} has no home folder for root filesystems: set WEIGHBRIDGE_CACHE to a folder for "
            "them (on an ssh host: XDG_CACHE_HOME)"
        ) from None
