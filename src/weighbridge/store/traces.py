"""The folder of a run for the observations of tracers, separate from the trials, so that they do not count."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from weighbridge.model.traced import Trace, Traces
from weighbridge.store.safe_folder import SafeFolder, file_in_run

FOLDER, FILE = "traces", "traces.json"
_MOST = 2**22
"""The largest number of bytes of the document that are read."""


def write_traces(directory: Path, traces: Sequence[Trace]) -> Path:
    """Write the traces of a run in place of earlier ones, all or nothing; return the file.

    Raises OSError, and RunDirectoryError if the folder is a link.
    """
    with SafeFolder.open(directory) as run:
        with suppress(FileExistsError):
            os.mkdir(FOLDER, dir_fd=run.descriptor)
        with run.subfolder(FOLDER) as folder:
            folder.replace(FILE, Traces(traces=tuple(traces)).model_dump_json(indent=1))
    return directory / FOLDER / FILE


def has_traces(directory: Path) -> bool:
    """Return whether a run has traces, including damaged ones."""
    return os.path.lexists(directory / FOLDER / FILE)


def read_traces(directory: Path) -> tuple[Trace, ...]:
    """Return the traces of a run; empty if it has none. Raises ValueError if they are damaged or not a file."""
    if not has_traces(directory):
        return ()
    with file_in_run(directory, FOLDER, FILE) as file:
        if file is None:
            raise ValueError(f"{FOLDER}/{FILE} was not written by this run")
        return Traces.model_validate_json(os.pread(file, _MOST, 0)).traces
