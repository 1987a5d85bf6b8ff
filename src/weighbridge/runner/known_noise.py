"""Keeps earlier measurements of this machine: its noise, its calibration and its interrupts."""

import contextlib
import fcntl
import json
import math
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from weighbridge.facts.device_interrupts import InterruptCounts, interrupt_rates, interrupts_of
from weighbridge.facts.host import noise_facts
from weighbridge.linux import file_lock
from weighbridge.model.facts import InterruptRate
from weighbridge.model.stored_study import pairs_of_versions
from weighbridge.model.study import Study
from weighbridge.runner.estimate import blocks_in_time
from weighbridge.statistics import looks_share, planned_looks, visible_effect
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK, MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import ALPHA
from weighbridge.userland.build import cache_folder

MADE = "%Y-%m-%d %H:%M:%S %z"
"""The format of the time of a stored measurement."""
_RUN = "noise-run-"
_NOISE, _LOCK, _CALIBRATION = "noise.json", "noise.lock", "calibration.json"


@contextmanager
def run_folder() -> Iterator[Path]:
    """Make a folder for the run that measures the noise; it is not `left` until the context ends."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / _LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        with tempfile.TemporaryDirectory(prefix=_RUN, dir=cache_folder()) as folder:
            yield Path(folder)


@contextmanager
def left() -> Iterator[list[Path]]:
    """Yield folders of killed measurements; none while one runs, and none can begin until the context ends."""
    with ExitStack() as stack:
        folders = [path for path in cache_folder().glob(f"{_RUN}*") if path.is_dir()]
        if folders:
            lock = stack.enter_context((cache_folder() / _LOCK).open("a"))
            if not file_lock.take(lock):
                folders = []
        yield folders


def keep(noise: Mapping[str, Any]) -> None:
    """Store what ``doctor --noise --json`` prints as this machine's latest noise measurement."""
    _store(_NOISE, noise)


def stamp() -> dict[str, Any]:
    """Return the time and the machine of a measurement. They show a later reader whether it has expired."""
    return {"made": time.strftime(MADE), "facts": noise_facts()}


def keep_calibration(calibration: Mapping[str, Any]) -> None:
    """Store a calibration as this machine's latest one."""
    _store(_CALIBRATION, calibration)


def _store(name: str, document: Mapping[str, Any]) -> None:
    cache_folder().mkdir(parents=True, exist_ok=True)
    (cache_folder() / name).write_text(json.dumps(document, indent=1))


MOST_DAYS = 30
"""The age in days after which a measured noise no longer counts."""


@dataclass(frozen=True, slots=True)
class Outdated:
    """Why a measured noise no longer counts: the fact of the machine that changed, or its age in days."""

    what: str
    before: str
    now: str


AGE = "age"
"""`Outdated.what` for a noise that is too old."""


@dataclass(frozen=True, slots=True)
class KnownNoise:
    """The latest noise of this machine; all empty if there is none, or if it is ``outdated``."""

    measured: str = ""
    """When ``doctor --noise`` measured it."""
    variations: Mapping[str, float] = field(default_factory=dict)
    """The standard deviation of log ratios within blocks, by kind of workload."""
    cost: float | None = None
    """The smallest cost that ten minutes can detect whatever the resource (0.02 is 2%); None if that is unknown."""
    outdated: Outdated | None = None


@dataclass(frozen=True, slots=True)
class Decidable:
    """The smallest costs that a run of a study's size can detect.

    ``blocks`` is the fewest blocks of the run, or as many of the written length as its time holds, if a pilot block
    shortens them. ``comparisons`` is the size of Holm's family: the number of headline costs.
    """

    blocks: int
    most_blocks: int
    comparisons: int
    visible_deviations: float
    """The smallest cost that four of five runs call different, in standard deviations of its blocks."""
    visible: Mapping[str, float]
    """That cost (0.02 is 2%) for each kind of workload whose native noise is known."""
    measured: str
    """When ``doctor --noise`` measured it; "" if unknown."""
    noise: KnownNoise = KnownNoise()
    """The noise of this machine."""
    fewest_blocks: int = MIN_BLOCKS_VERDICT
    reliable_blocks: int = MIN_BLOCKS_SIGNED_RANK
    """The fewest blocks whose verdicts are not exploratory."""
    elsewhere: bool = False
    """Whether another machine, or another kernel, runs a part of it, so that this machine's noise does not apply."""
    limited_by_time: bool = False
    """Whether ``blocks`` is the number of blocks that fit into the run's time."""

    @property
    def verdicts(self) -> Literal["none", "exploratory", "reliable"]:
        """The best verdicts that the run can give."""
        if self.most_blocks < self.fewest_blocks:
            return "none"
        return "exploratory" if self.most_blocks < self.reliable_blocks else "reliable"


def decidable(study: Study) -> Decidable:
    """Return what a run of the study can decide, with this machine's noise if that is known."""
    repetitions = study.file.repetitions
    blocks, most = (repetitions.blocks or repetitions.min), (repetitions.blocks or repetitions.max)
    fitting = blocks_in_time(study) if repetitions.within is not None else 0
    blocks = max(blocks, fitting)
    arms = [arm for cell in study.cells for arm in study.arms_of(cell)]
    bases = pairs_of_versions(study.file.study, {arm.name for arm in study.arms if arm.declared}).values()
    comparisons = sum(arm.declared and arm.name not in (study.file.baseline, *bases) for arm in arms)
    looks = 1 if repetitions.blocks else len(planned_looks(repetitions.min, repetitions.max))
    level = ALPHA * looks_share(looks) / max(1, comparisons)
    deviations = visible_effect(1 / math.sqrt(blocks), blocks, level)
    traits = [host.traits for host in study.file.hosts.values()]
    elsewhere = any(not each.here or each.own_kernel for each in traits)
    noise = KnownNoise() if elsewhere else known()
    variations = noise.variations
    kinds = dict.fromkeys(cell.kind for cell in study.cells if cell.kind in variations)
    visible = {
        kind: math.expm1(deviations * variations[kind]) for kind in kinds if deviations * variations[kind] < 700
    }
    measured = noise.measured if visible else ""
    return Decidable(
        blocks, most, comparisons, deviations, visible, measured, noise,
        elsewhere=elsewhere, limited_by_time=fitting >= blocks,
    )  # fmt: skip


def known() -> KnownNoise:
    """Return the latest noise of this machine that ``doctor --noise`` stored."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        noise = json.loads((cache_folder() / _NOISE).read_text())
        if (outdated := _outdated(noise)) is not None:
            return KnownNoise(outdated=outdated)
        variations = {str(row["kind"]): float(row["variation"]) for row in noise["noise"]}
        cost = noise["smallest_cost"]["cost"]
        cost = None if cost is None else float(cost)
        if all(math.isfinite(each) and each >= 0 for each in (*variations.values(), cost or 0.0)):
            return KnownNoise(str(noise["made"]), variations, cost)
    return KnownNoise()


def _outdated(noise: Mapping[str, Any]) -> Outdated | None:
    """Return why a stored noise no longer counts: another machine, kernel or CPU, or its age."""
    before = noise["facts"]
    for name, now in noise_facts().items():
        if before[name] != now:
            return Outdated(name, str(before[name]), now)
    made = datetime.strptime(noise["made"], MADE)
    days = (datetime.now(made.tzinfo) - made).days
    return Outdated(AGE, str(noise["made"]), str(days)) if days > MOST_DAYS else None


def calibration_facts() -> dict[str, str]:
    """Return the latest calibration as facts of a run; empty if there is none or it cannot be read."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        calibration = json.loads((cache_folder() / _CALIBRATION).read_text())
        total = len(calibration["readings"])
        inside = f"{calibration['inside']} of {total} known costs were inside their intervals"
        facts = {"calibrated": f"{calibration['made']}: {inside}"}
        for what, spans in calibration["smallest_visible"].items():
            facts[f"smallest detectable cost, {what}"] = ", ".join(
                f"{cost:.2%} in {span}" for span, cost in spans.items()
            )
        return facts
    return {}


@contextmanager
def counted_interrupts(least_per_s: float) -> Iterator[list[InterruptRate]]:
    """Count interrupts while the body runs. The list then has those with ``least_per_s``; none if unreadable."""
    rates: list[InterruptRate] = []
    began, before = time.monotonic(), _interrupts()
    yield rates
    rates += interrupt_rates(before, _interrupts(), time.monotonic() - began, least_per_s)


def _interrupts() -> InterruptCounts:
    with suppress(OSError, UnicodeDecodeError):
        return interrupts_of(Path("/proc/interrupts").read_text())
    return {}
