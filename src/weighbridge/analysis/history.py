"""The runs of a folder in order of time: their headline costs, and the facts that changed from one to the next."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from weighbridge.analysis.compared_run import ComparedRun, FactChange, Part, changed_facts, changed_settings, read_run
from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.errors import RunDirectoryError
from weighbridge.store.run import DATABASE, RunStore


@dataclass(frozen=True, slots=True)
class Skipped:
    """A folder that holds no run that can be read, and why; "" where it holds none at all."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class PastRun:
    """One run of the folder. ``changed``: what is not as in the run before it of the same ``series``.

    That is a number from 1: runs of one study and baseline, whose workloads do the same.
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
    """The runs, oldest first, and what was skipped."""

    folder: Path
    runs: tuple[PastRun, ...]
    skipped: tuple[Skipped, ...]


def history(folder: Path, progress: Callable[[str], None] = lambda _: None) -> History:
    """Read the runs of a folder, also those of folders in it. ``progress`` is told each run's name.

    Raises OSError where the folder cannot be listed.
    """
    read: list[ComparedRun] = []
    skipped: list[Skipped] = []
    places, foreign = run_places(folder)
    skipped += [Skipped(str(each.relative_to(folder)), "") for each in foreign]
    for place in places:
        name = str(place.relative_to(folder)) if place != folder else folder.name
        progress(name)
        try:
            with RunStore(place) as store:
                read.append(read_run(store, name))
        except (RunDirectoryError, OSError) as why:
            skipped.append(Skipped(name, str(why)))
        except (ValueError, KeyError, TypeError) as why:  # a value that no run of ours has
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
    """Whether two runs are of one study and baseline, and the workloads that both have do the same.

    Two commands of `weigh` may make studies of one name.
    """
    question, others = ((run.analysis.study, run.analysis.baseline) for run in (one, other))
    if question != others or not one.cells.keys() & other.cells.keys():
        return False
    return not any(each.part is Part.WORKLOAD for each in changed_settings(one, other))


def run_places(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the run directories in a folder and in folders of it, and itself where it is one; folders without any.

    A directory that several links lead to is given once.
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
