"""Folders on this machine's disk for the data of sites and of engines."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weighbridge.linux.mounts import unmount_below
from weighbridge.linux.process import output
from weighbridge.model.host import RunContext


@contextmanager
def data_folder_here(run: RunContext, name: str) -> Iterator[Path]:
    """Make it beside the data of engines, where ``weighbridge clean`` looks too, and remove it at the end."""
    folder = run.cache / "engines" / run.id / f"data-{name}"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)
        for above in (folder.parent, folder.parent.parent):
            with contextlib.suppress(OSError):
                above.rmdir()


def remove_engine_folder(data: Path) -> None:
    """Remove an engine's folder. Where its host has just gone, its mounts are taken apart a moment later."""
    for _ in range(50):
        output(("rm", "-rf", "--one-file-system", str(data)), deadline_s=300)  # far faster than shutil's
        if not data.exists():
            break
        time.sleep(0.1)
    for folder in (data.parent, data.parent.parent):
        with contextlib.suppress(OSError):
            folder.rmdir()
