"""The folder of a run that has what tracers saw: beside the trials, so that nothing that reads these counts it."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from weighbridge.model.traced import Trace, Traces
from weighbridge.store.own_file import own_file

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
    if not has_traces(directory):
        return ()
    with own_file(directory, FOLDER, FILE) as file:
        if file is None:
            raise ValueError(f"{FOLDER}/{FILE} is no file of the run's own")
        return Traces.model_validate_json(os.pread(file, _MOST, 0)).traces
