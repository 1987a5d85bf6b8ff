"""Where a user's programs keep what they can make again."""

import os
from pathlib import Path

from weighbridge.errors import Unavailable


def cache_folder() -> Path:
    """Where userlands, engines' data and what reports keep are: WEIGHBRIDGE_CACHE, else the user's cache folder.

    Raises Unavailable for a user who has neither.
    """
    if folder := os.environ.get("WEIGHBRIDGE_CACHE"):
        return Path(folder).absolute()
    return user_cache_folder()


def user_cache_folder() -> Path:
    """``$XDG_CACHE_HOME/weighbridge``, else in the home folder. Raises Unavailable for a user who has none."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "weighbridge"
    try:
        return Path.home() / ".cache/weighbridge"
    except RuntimeError:  # HOME is not set, and the user's number is not in the passwd database
        raise Unavailable(
            f"user {os.geteuid()} has no home folder for root filesystems: set WEIGHBRIDGE_CACHE to a folder for "
            "them (on an ssh host: XDG_CACHE_HOME)"
        ) from None
