"""The runs of a folder in chronological order: their headline costs, and the facts that changed between them."""

from dataclasses import dataclass
from pathlib import Path

from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.errors import RunDirectoryError
from weighbridge.features.gate.compared_run import (
    ComparedRun,
    FactChange,
    Part,
    changed_facts,
    changed_settings,
    read_run,
)
from weighbridge.store.run import DATABASE, RunStore


@dataclass(frozen=True, slots=True)
class Skipped:
    """A folder without a readable run, and the reason; "" if it contains no run at all."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class PastRun:
    """One run of the folder. ``changed`` has the differences from the previous run of the same ``series``.

    A series is a number from 1. Its runs have the same study, baseline and workloads.
    """

    run: ComparedRun
    changed: tuple[FactChange, ...]
    series: int = 1

    @property
    def blocks(self) -> int:
        """The largest number of blocks of a headline metric."""
        return max((row.blocks for report in self.run.analysis.headlines for row in report.comparisons), default=0)

    @property
    def costs(self) -> tuple[tuple[MetricReport, Comparison], ...]:
        """The headline comparisons, without the A/A arm."""
        return tuple(
            (report, row) for report in self.run.analysis.headlines for row in report.comparisons if not row.aa
        )


@dataclass(frozen=True, slots=True)
class History:
    """The runs, oldest first, and the folders that were skipped."""

    folder: Path
    runs: tuple[PastRun, ...]
    skipped: tuple[Skipped, ...]


def history(folder: Path) -> History:
    """Read the runs of a folder and of its subfolders. Raises OSError if the folder cannot be listed."""
    read: list[ComparedRun] = []
    skipped: list[Skipped] = []
    places, foreign = run_places(folder)
    skipped += [Skipped(str(each.relative_to(folder)), "") for each in foreign]
    for place in places:
        name = str(place.relative_to(folder)) if place != folder else folder.name
        try:
            with RunStore(place) as store:
                read.append(read_run(store, name))
        except (RunDirectoryError, OSError) as why:
            skipped.append(Skipped(name, str(why)))
        except (ValueError, KeyError, TypeError) as why:  # a value that Weighbridge never writes
            skipped.append(Skipped(name, type(why).__name__))
    last: dict[int, ComparedRun] = {}
    runs = []
    for run in sorted(read, key=lambda each: (each.created, each.name)):
        series = next((number for number, other in last.items() if _same_programs(other, run)), len(last) + 1)
        previous = last.get(series)
        runs.append(PastRun(run, changed_facts(previous, run) if previous is not None else (), series))
        last[series] = run
    return History(folder, tuple(runs), tuple(skipped))


def _same_programs(one: ComparedRun, other: ComparedRun) -> bool:
    """Return whether two runs have the same study and baseline, and the same programs in shared workloads.

    Two `weigh` commands can create studies with the same name.
    """
    question, others = ((run.analysis.study, run.analysis.baseline) for run in (one, other))
    if question != others or not one.cells.keys() & other.cells.keys():
        return False
    return not any(each.part is Part.WORKLOAD for each in changed_settings(one, other))


def run_places(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the run directories in a folder, and the subfolders without a run.

    The folder itself and its subfolders are searched. A directory that several links lead to is returned once.
    """
    directories, foreign = [folder] if (folder / DATABASE).exists() else [], []
    for each in sorted(folder.iterdir()) if not directories else ():
        if not each.is_dir():
            continue
        inside = [each] if (each / DATABASE).exists() else [x for x in _folders(each) if (x / DATABASE).exists()]
        directories += inside
        if not inside:
            foreign.append(each)
    once: dict[Path, Path] = {}
    for each in directories:
        once.setdefault(each.resolve(), each)
    return list(once.values()), foreign


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if each.is_dir())
    except OSError:
        return []
