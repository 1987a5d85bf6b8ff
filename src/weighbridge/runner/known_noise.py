"""What is known of this machine from when it was last measured: its noise, its calibration, who interrupts it."""

import contextlib
import json
import math
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from weighbridge.model.facts import InterruptCounts, InterruptRate, interrupt_rates, interrupts_of
from weighbridge.model.study import Study
from weighbridge.runner.estimate import blocks_in_time
from weighbridge.statistics import expected_half_width
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.userland.build import cache_folder


def _noise_file() -> Path:
    return cache_folder() / "noise.json"


_RUN = "noise-run-"


@contextlib.contextmanager
def run_folder() -> Iterator[Path]:
    """A folder for the run by which it is measured, where `left` finds it after a kill."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{_RUN}{os.getpid()}-", dir=cache_folder()) as folder:
        yield Path(folder)


def left() -> list[Path]:
    """The folders of noise measurements whose process has ended."""
    folders = []
    for path in cache_folder().glob(f"{_RUN}*-*"):
        pid = path.name.removeprefix(_RUN).partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            folders.append(path)
    return folders


def keep(noise: Mapping[str, Any]) -> None:
    """Keep what ``doctor --noise --json`` prints, with when it was ``made``, as this machine's last one."""
    _noise_file().parent.mkdir(parents=True, exist_ok=True)
    _noise_file().write_text(json.dumps(noise, indent=1))


def expected(study: Study) -> tuple[str, Mapping[str, float]]:
    """When the noise was measured, and the half-width (0.02: ±2 %) to be expected of each kind in the study.

    As natively, at the study's number of blocks; with a target at its fewest. Where a pilot block is to make trials
    short it is the most: that of as many blocks as the time holds of trials as they are written. Empty: not known.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        noise = json.loads(_noise_file().read_text())
        fixed = study.file.repetitions.blocks or study.file.repetitions.min
        blocks = fixed if study.file.repetitions.within is None else max(MIN_BLOCKS_VERDICT, blocks_in_time(study))
        kinds = {cell.kind for cell in study.cells}
        variations = {str(row["kind"]): float(row["variation"]) for row in noise["noise"] if row["kind"] in kinds}
        if all(math.isfinite(each) and each >= 0 for each in variations.values()):
            return str(noise["made"]), {kind: expected_half_width(each, blocks) for kind, each in variations.items()}
    return "", {}


def _calibration_file() -> Path:
    return cache_folder() / "calibration.json"


def keep_calibration(calibration: dict[str, Any]) -> None:
    """Keep a calibration as this machine's last one."""
    _calibration_file().parent.mkdir(parents=True, exist_ok=True)
    _calibration_file().write_text(json.dumps(calibration, indent=1))


def calibration_facts() -> dict[str, str]:
    """The last calibration as facts of a run; empty where there is none or it cannot be read."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        calibration = json.loads(_calibration_file().read_text())
        total = len(calibration["readings"])
        inside = f"{calibration['inside']} of {total} known costs were read inside their interval"
        facts = {"calibrated": f"{calibration['made']}: {inside}"}
        for what, spans in calibration["smallest_visible"].items():
            facts[f"smallest visible cost, {what}"] = ", ".join(
                f"{cost:.2%} in {span}" for span, cost in spans.items()
            )
        return facts
    return {}


@contextmanager
def counted_interrupts(least_per_s: float) -> Iterator[list[InterruptRate]]:
    """Count this machine's interrupts while the body runs. The list then has those with at least ``least_per_s``.

    It stays empty where the counters cannot be read.
    """
    rates: list[InterruptRate] = []
    began, before = time.monotonic(), _interrupts()
    yield rates
    rates += interrupt_rates(before, _interrupts(), time.monotonic() - began, least_per_s)


def _interrupts() -> InterruptCounts:
    with suppress(OSError, UnicodeDecodeError):
        return interrupts_of(Path("/proc/interrupts").read_text())
    return {}
