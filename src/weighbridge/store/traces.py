"""The folder of a run that has what tracers saw: beside the trials, so that nothing that reads these counts it."""

from collections.abc import Sequence
from pathlib import Path

from weighbridge.model.traced import Trace, Traces

FOLDER, FILE = "traces", "traces.json"
_MOST = 2**22
"""Bytes of the document that are read."""


def write_traces(directory: Path, traces: Sequence[Trace]) -> Path:
    """Write the traces of a run in place of earlier ones, all or nothing; return the file. Raises OSError."""
    folder = directory / FOLDER
    folder.mkdir(exist_ok=True)
    unfinished = folder / f"{FILE}.new"
    unfinished.write_text(Traces(traces=tuple(traces)).model_dump_json(indent=1))
    return unfinished.replace(folder / FILE)


def read_traces(directory: Path) -> tuple[Trace, ...]:
    """Return the traces of a run; none where it has none, or where its file is damaged or a link."""
    folder = directory / FOLDER
    if folder.is_symlink() or (folder / FILE).is_symlink():
        return ()
    try:
        with (folder / FILE).open("rb") as file:
            return Traces.model_validate_json(file.read(_MOST)).traces
    except (OSError, ValueError):
        return ()
