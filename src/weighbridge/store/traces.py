"""The folder of a run that has what tracers saw: beside the trials, so that nothing that reads these counts it."""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from weighbridge.model.traced import Trace, Traces

FOLDER, FILE = "traces", "traces.json"
_UNFINISHED = f"{FILE}.new"
_MOST = 2**22
"""Bytes of the document that are read."""


def write_traces(directory: Path, traces: Sequence[Trace]) -> Path:
    """Write the traces of a run in place of earlier ones, all or nothing; return the file. Raises OSError.

    The folder may be somebody else's: nothing is written where a link leads.
    """
    folder = directory / FOLDER
    folder.mkdir(exist_ok=True)
    within = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        with suppress(FileNotFoundError):
            os.unlink(_UNFINISHED, dir_fd=within)
        created = os.open(_UNFINISHED, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=within)
        with os.fdopen(created, "w") as file:
            file.write(Traces(traces=tuple(traces)).model_dump_json(indent=1))
        os.replace(_UNFINISHED, FILE, src_dir_fd=within, dst_dir_fd=within)
    finally:
        os.close(within)
    return folder / FILE


def has_traces(directory: Path) -> bool:
    """Whether a run has traces, damaged ones too."""
    return os.path.lexists(directory / FOLDER / FILE)


def read_traces(directory: Path) -> tuple[Trace, ...]:
    """Return the traces of a run; none where it has none. Raises ValueError where they are damaged, or no file."""
    try:
        within = os.open(directory / FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            opened = os.open(FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=within)
        finally:
            os.close(within)
        with os.fdopen(opened, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError(f"{FOLDER}/{FILE} is no file")
            return Traces.model_validate_json(file.read(_MOST)).traces
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise ValueError(f"{FOLDER}/{FILE}: {error.strerror}") from error
