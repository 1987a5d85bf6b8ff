"""The runs of a folder in chronological order: their headline costs, and everything that changed between them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from weighbridge.analysis.analyse import Depth
from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.errors import RunDirectoryError
from weighbridge.features.gate.between_runs import ChangeRow, MetricChanges, primary_changes
from weighbridge.features.gate.compared_run import (
    ComparedRun,
    FactChange,
    Part,
    SettingChange,
    changed_facts,
    changed_settings,
    read_run,
)
from weighbridge.model.names import RunId
from weighbridge.store.run import DATABASE, RunStore
from weighbridge.store.unpacking import ENDING, is_kept_file

_Run = TypeVar("_Run")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A folder without a readable run, and the reason; "" if it contains no run at all."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class PastRun:
    """One run of the folder, with the differences from the previous run of the same ``series``.

    A series is a number from 1. Its runs have the same study, baseline and workloads.
    """

    run: ComparedRun
    changed: tuple[FactChange, ...]
    series: int = 1
    settings: tuple[SettingChange, ...] = ()
    changes: tuple[MetricChanges, ...] = ()
    """The changes of the primary costs since the run with the number ``since``."""
    since: int = 0
    """The number of the last earlier run of the series whose control did not fail, from 1; 0 if there is none."""

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

    def change_of(self, report: MetricReport, row: Comparison) -> ChangeRow | None:
        """Return the change of one of the `costs`; None if there is none."""
        for metric in self.changes:
            if metric.after.metric_id == report.metric_id:
                return next((each for each in metric.rows if each.environment == row.environment), None)
        return None


@dataclass(frozen=True, slots=True)
class History:
    """The runs, oldest first, and the folders that were skipped."""

    folder: Path
    runs: tuple[PastRun, ...]
    skipped: tuple[Skipped, ...]


def history(folder: Path, progress: Callable[[int, int, str], None] = lambda *_: None) -> History:
    """Read the runs of a folder and of its subfolders. Raises OSError if the folder cannot be listed.

    ``progress``: see `read_places`.
    """
    read, left_out = read_places(folder, folder.name, _read, progress)
    skipped = [
        Skipped(each.name, f"it is a copy of {each.copy_of}" if each.copy_of else each.why) for each in left_out
    ]
    in_order = (each.run for each in sorted(read, key=lambda each: (each.created, each.run.name)))
    return History(folder, tuple(_in_series(in_order)), tuple(skipped))


@dataclass(frozen=True, slots=True)
class _ReadRun:
    created: float
    """When the run began, in seconds since the epoch."""
    run: ComparedRun


def _read(store: RunStore, name: str) -> _ReadRun:
    return _ReadRun(float(store.info().get("created", 0.0)), read_run(store, name, Depth.PRIMARY))


def _in_series(runs: Iterable[ComparedRun]) -> Iterator[PastRun]:
    """Return the runs with what changed since earlier ones of their series, without the values of trials."""
    last: dict[int, ComparedRun] = {}
    usable: dict[int, tuple[int, ComparedRun]] = {}
    for number, run in enumerate(runs, 1):
        series = next((each for each, other in last.items() if _same_programs(other, run)), len(last) + 1)
        past = PastRun(_without_values(run), (), series)
        if series in last:
            facts, settings = changed_facts(last[series], run), changed_settings(last[series], run)
            past = replace(past, changed=facts, settings=settings)
        if series in usable:
            since, earlier = usable[series]
            past = replace(past, changes=_changes(earlier, run), since=since)
        yield past
        last[series] = run
        if run.analysis.trust.trusted is not False:
            usable[series] = number, run


def _without_values(run: ComparedRun) -> ComparedRun:
    """Return a run with its results alone: hundreds of whole runs would take gigabytes."""
    context = replace(run.analysis.context, trials=(), facts=(), limits={}, results={})
    analysis = replace(run.analysis, trials=(), limits={}, metrics=run.analysis.headlines, context=context)
    return replace(run, analysis=analysis, facts=(), values={})


def _changes(previous: ComparedRun, run: ComparedRun) -> tuple[MetricChanges, ...]:
    try:
        return primary_changes(previous, run)
    except ValueError:  # another kind of baseline, only other environments, or values that Weighbridge never writes
        return ()


def _same_programs(one: ComparedRun, other: ComparedRun) -> bool:
    """Return whether two runs have the same study and baseline, and the same programs in shared workloads.

    Two `weigh` commands can create studies with the same name.
    """
    question, others = ((run.analysis.study, run.analysis.baseline) for run in (one, other))
    if question != others or not one.cells.keys() & other.cells.keys():
        return False
    return not any(each.part is Part.WORKLOAD for each in changed_settings(one, other))


@dataclass(frozen=True, slots=True)
class NotRead:
    """A place that gives no run of its own: ``why`` it cannot be read, or the run that it is a ``copy_of``.

    Both are empty for a folder without a run.
    """

    name: str
    why: str = ""
    copy_of: str = ""


def read_places(
    folder: Path,
    name_of_folder: str,
    read: Callable[[RunStore, str], _Run],
    progress: Callable[[int, int, str], None],
) -> tuple[list[_Run], list[NotRead]]:
    """Read each run of `run_places` once, with its name, and return the results and the places left out.

    A kept file of a run that was read already is left out. ``progress`` is called before each run is read, with its
    number from 1, the number of runs, and its name. ``name_of_folder`` names the run that the folder itself is.
    """
    places, foreign = run_places(folder)
    left_out = [NotRead(str(each.relative_to(folder))) for each in foreign]
    runs: list[_Run] = []
    names: dict[RunId, str] = {}
    for number, place in enumerate(sorted(places, key=is_kept_file), 1):
        name = str(place.relative_to(folder)) if place != folder else name_of_folder
        progress(number, len(places), name)
        try:
            with RunStore(place) as store:
                run, run_id = read(store, name), store.run_id
        except (RunDirectoryError, OSError) as why:
            left_out.append(NotRead(name, str(why)))
        except (ValueError, KeyError, TypeError) as why:  # a value that Weighbridge never writes
            left_out.append(NotRead(name, type(why).__name__))
        else:
            if is_kept_file(place) and run_id in names:
                left_out.append(NotRead(name, copy_of=names[run_id]))
                continue
            names.setdefault(run_id, name)
            runs.append(run)
    return runs, left_out


def run_places(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the run directories and kept files in a folder, and the subfolders without a run.

    The folder itself and its subfolders are searched. A directory that several links lead to is returned once.
    """
    directories, foreign = [folder] if (folder / DATABASE).exists() else [], []
    for each in sorted(folder.iterdir()) if not directories else ():
        if not each.is_dir():
            directories += [each] if each.name.endswith(ENDING) else []
            continue
        inside = [each] if (each / DATABASE).exists() else [x for x in _inside(each) if _is_run(x)]
        directories += inside
        if not inside:
            foreign.append(each)
    once: dict[Path, Path] = {}
    for each in directories:
        once.setdefault(each.resolve(), each)
    return list(once.values()), foreign


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _is_run(place: Path) -> bool:
    return (place / DATABASE).exists() if place.is_dir() else place.name.endswith(ENDING)
