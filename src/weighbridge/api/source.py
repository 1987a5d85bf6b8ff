"""Opens the places that hold a run: a run directory, its database, a kept file, and a report's JSON."""

from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from weighbridge.analysis.run_result import VERSION, RunResult
from weighbridge.cli.runs import run_directory
from weighbridge.errors import RunDirectoryError
from weighbridge.model.validation import first_problem
from weighbridge.store.database import saving
from weighbridge.store.run import RunStore


def opened(place: Path) -> RunStore:
    """Open a run to read. Raises RunDirectoryError if the place does not hold a run, or if the run is damaged."""
    if place.suffix == ".json":
        raise RunDirectoryError(f"{place} is a report, which has no trials: name the run directory")
    return RunStore(run_directory(place))


def read_report(file: Path) -> RunResult:
    """Read the document of ``report --json``. Raises RunDirectoryError if it is something else."""
    _require_file(file)
    with saving(file):
        text = file.read_bytes()
    try:
        report = _report().validate_json(text)
    except ValidationError as error:
        location, problem = first_problem(error)
        where = f"{'.'.join(map(str, location))}: " if location else ""
        raise RunDirectoryError(
            f"{file} is not the JSON of 'weighbridge report --json' (version {VERSION}): {where}{problem}"
        ) from None
    for cost in report.costs:
        sides = {len(each) for each in (cost.pairs.round, cost.pairs.baseline, cost.pairs.environment)}
        if len(sides) > 1 or not all(0 <= number < len(report.remarks) for number in cost.remarks):
            raise RunDirectoryError(f"{file} is damaged: a cost has rounds or remarks that are incomplete")
    return report


def _require_file(file: Path) -> None:
    """Raise RunDirectoryError for a pipe or a device too, which might have no end."""
    if not file.is_file():
        raise RunDirectoryError(f"there is no file {file}")


@cache
def _report() -> TypeAdapter[RunResult]:
    return TypeAdapter(RunResult)
