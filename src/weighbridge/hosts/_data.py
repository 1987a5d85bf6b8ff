"""A folder on this machine's disk for a site's data."""

import contextlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weighbridge.model.site import RunContext


@contextmanager
def data_folder_here(run: RunContext, name: str) -> Iterator[Path]:
    """Make it beside the data of engines, where ``weighbridge clean`` looks too, and remove it at the end."""
    folder = run.cache / "engines" / run.id / f"data-{name}"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for above in (folder.parent, folder.parent.parent):
            with contextlib.suppress(OSError):
                above.rmdir()
