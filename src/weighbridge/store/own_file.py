"""Files in the folders of a run's directory, which may be somebody else's."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def own_file(run: Path, folder: str, name: str) -> Iterator[int | None]:
    """A descriptor to read ``folder/name`` in the run by; None where that is no regular file of the run's own.

    A stored name must not lead to another file of this machine, by a link neither.
    """
    if not name or "/" in name or "\0" in name:
        yield None
        return
    within = file = None
    try:
        with suppress(OSError):
            within = os.open(run / folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=within)
        yield file if file is not None and stat.S_ISREG(os.fstat(file).st_mode) else None
    finally:
        for descriptor in (within, file):
            if descriptor is not None:
                os.close(descriptor)
