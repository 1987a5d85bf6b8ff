"""How noisy this machine was when it was last measured, kept where `plan` finds it."""

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from weighbridge.model.study import Study
from weighbridge.runner.estimate import blocks_in_time
from weighbridge.statistics import expected_half_width
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.userland.build import cache_folder


def _file() -> Path:
    return cache_folder() / "noise.json"


_RUN = "noise-run-"


@contextlib.contextmanager
def run_folder() -> Iterator[Path]:
    """A folder for the run by which it is measured, where `left` finds it after a kill."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{_RUN}{os.getpid()}-", dir=cache_folder()) as folder:
        yield Path(folder)


def left() -> list[Path]:
    """Those of processes that have ended."""
    found = []
    for path in cache_folder().glob(f"{_RUN}*-*"):
        pid = path.name.removeprefix(_RUN).partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            found.append(path)
    return found


def keep(found: Mapping[str, Any]) -> None:
    """Keep what ``doctor --noise --json`` prints, with when it was ``made``, as this machine's last one."""
    _file().parent.mkdir(parents=True, exist_ok=True)
    _file().write_text(json.dumps(found, indent=1))


def expected(study: Study) -> tuple[str, Mapping[str, float]]:
    """When the noise was measured, and the half-width (0.02: ±2 %) to be expected of each kind in the study.

    As natively, at the study's number of blocks; with a target at its fewest. Where a pilot block is to make trials
    short it is the most: that of as many blocks as the time holds of trials as they are written. Empty: not known.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        kept = json.loads(_file().read_text())
        fixed = study.file.repetitions.blocks or study.file.repetitions.min
        blocks = fixed if study.file.repetitions.within is None else max(MIN_BLOCKS_VERDICT, blocks_in_time(study))
        kinds = {cell.kind for cell in study.cells}
        seen = {str(row["kind"]): float(row["variation"]) for row in kept["noise"] if row["kind"] in kinds}
        if all(math.isfinite(each) and each >= 0 for each in seen.values()):
            return str(kept["made"]), {kind: expected_half_width(each, blocks) for kind, each in seen.items()}
    return "", {}
