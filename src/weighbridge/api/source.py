"""Opens the places that hold a run: a run directory, its database, a kept archive, and a report's JSON."""

import lzma
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from weighbridge.analysis.run_result import VERSION, RunResult
from weighbridge.cli.runs import run_directory
from weighbridge.errors import RunDirectoryError
from weighbridge.model.validation import first_problem
from weighbridge.store.database import DATABASE, saving
from weighbridge.store.run import RunStore

_LARGEST = 2**30
"""The most bytes of an unpacked archive, because a small one from a stranger can fill a disk."""
_DICTIONARY = 2**28
"""The most bytes of memory for unpacking it."""
_PIECE = 2**20


@contextmanager
def opened(place: Path) -> Iterator[RunStore]:
    """Open a run to read. Raises RunDirectoryError if the place does not hold a run, or if the run is damaged."""
    if place.suffix == ".json":
        raise RunDirectoryError(f"{place} is a report, which has no trials: name the run directory")
    if place.suffix != ".xz":
        with RunStore(run_directory(place)) as store:
            yield store
        return
    with tempfile.TemporaryDirectory(prefix="weighbridge-") as folder:
        _unpack(place, Path(folder) / DATABASE)
        try:
            with RunStore(Path(folder)) as store:
                yield store
        except RunDirectoryError as error:
            raise RunDirectoryError(str(error).replace(folder, str(place))) from None


def _unpack(archive: Path, to: Path) -> None:
    unpacker = lzma.LZMADecompressor(memlimit=_DICTIONARY)
    _require_file(archive)
    with saving(archive), archive.open("rb") as packed, to.open("xb") as file:
        while not unpacker.eof:
            piece = packed.read(_PIECE) if unpacker.needs_input else b""
            try:
                if unpacker.needs_input and not piece:
                    raise EOFError
                file.write(unpacker.decompress(piece, _PIECE))
            except (lzma.LZMAError, EOFError) as error:
                raise RunDirectoryError(f"{archive} is not a kept run: it is not a complete .xz file") from error
            if file.tell() > _LARGEST:
                raise RunDirectoryError(f"{archive} is not a kept run: it has more than {_LARGEST:,} bytes")


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
