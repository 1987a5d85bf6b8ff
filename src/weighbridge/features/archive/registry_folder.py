"""The folder of a registry: finds the kept files, and writes them, the pages of their runs and the index page.

``machines/MACHINE/STUDY/RUN-ID.sqlite.xz`` is a kept file, and next to it are the page of its run and, if the user
asked for them, its raw outputs. Any of these files can come from a stranger, for example with a pull request. So no
link is followed, every size is limited, and each page is made again from the kept file.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from pydantic import TypeAdapter

from weighbridge.analysis.analyse import analyse
from weighbridge.errors import RunDirectoryError, WeighbridgeError
from weighbridge.features.archive.entry import RegistryEntry, entry_of
from weighbridge.features.archive.index_page import MARK, ListedRun, SkippedFile, index_html
from weighbridge.features.archive.kept_file import is_same_run, opened
from weighbridge.features.archive.run_page import run_document
from weighbridge.model.names import SafeName
from weighbridge.model.text import one_line
from weighbridge.report.page import FOLDER, render
from weighbridge.report.page_cache import read_cached, write_cached
from weighbridge.report.render_page import document_page
from weighbridge.store.safe_folder import SafeFolder
from weighbridge.store.unpacking import ENDING, read_packed, unpacked

INDEX, MACHINES = "index.html", "machines"
PAGE, RAW = ".html", ".raw.tar.xz"
_MOST_PAGE = 2**24
"""The largest page in bytes that is compared before it is written."""
_LEVELS = 2
"""The levels of folders below ``machines``."""
_REASON, _MOST_SKIPPED = 300, 200
_FOREIGN = "belongs to no run of this registry"


@dataclass(frozen=True, slots=True)
class ReadRun:
    """A kept file as the registry shows it: its entry, and the page of its run."""

    entry: RegistryEntry
    page: str


_READ_RUN = TypeAdapter(ReadRun)


def read_run(data: bytes, where: str) -> ReadRun:
    """Return the entry and the page of a kept file, from the user's cache if this version has read it before.

    Raises RunDirectoryError, whose sentence names ``where``, if the file is damaged.
    """
    name = f"registry/{sha256(_version() + data).hexdigest()}.json"
    with contextlib.suppress(ValueError):
        return _READ_RUN.validate_json(read_cached(name))
    with opened(data, where) as store:
        analysis = analyse(store)
        run = ReadRun(entry_of(store, analysis), render(document_page(run_document(store, analysis))))
    write_cached(name, _READ_RUN.dump_json(run))
    return run


def _version() -> bytes:
    """Return bytes that differ between versions of the pages."""
    return metadata.version("weighbridge").encode() + (FOLDER / "report.css").read_bytes()


# -- writing ---------------------------------------------------------------------------------------


def add_run(repository: Path, entry: RegistryEntry, data: bytes, raw: bytes = b"") -> tuple[list[str], bool]:
    """Write a kept file, and return the paths of its files in the registry, and whether one of them changed.

    Raises RunDirectoryError if a folder on the way is a link, OSError if it cannot be written.
    """
    repository.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(SafeFolder.open(repository, writable=True))
        _require_own_index(folder)
        for name in (MACHINES, *entry.folders):
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder.descriptor)
            folder = stack.enter_context(folder.subfolder(name))
        files = {f"{entry.run_id}{ENDING}": data, **({f"{entry.run_id}{RAW}": raw} if raw else {})}
        changed = [name for name, content in files.items() if _write(folder, name, content)]
    place = "/".join((MACHINES, *entry.folders))
    return [f"{place}/{name}" for name in files], bool(changed)


def _write(folder: SafeFolder, name: str, content: bytes) -> bool:
    """Replace a file unless it has this content already; return whether it was replaced."""
    with contextlib.suppress(RunDirectoryError, FileNotFoundError):
        present = read_packed(folder, name, max(_MOST_PAGE, len(content)))
        if present == content:
            return False
        if name.endswith(ENDING) and is_same_run(unpacked(present, name), unpacked(content, name)):
            return False
    folder.replace(name, content)
    return True


def _require_own_index(folder: SafeFolder) -> None:
    """Raise WeighbridgeError if the folder has an index page that Weighbridge did not write."""
    start = folder.read(INDEX, 2**16)
    if start and MARK.encode() not in start:
        raise WeighbridgeError(f"{folder.path / INDEX} is not the index of a registry: name another folder")


# -- the index -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Index:
    """The files of a registry that its index page lists."""

    runs: tuple[ListedRun, ...]
    skipped: tuple[SkippedFile, ...]


def rebuild(repository: Path) -> Index:
    """Write the index page and the pages of all runs from the kept files.

    Raises RunDirectoryError if the folder is not a registry, OSError if a page cannot be written.
    """
    with SafeFolder.open(repository, writable=True) as top:
        _require_own_index(top)
        index = _index_of(top, repository, write_pages=True)
        _write(top, INDEX, index_html(index.runs, index.skipped).encode(errors="replace"))
    return index


def read_index(repository: Path) -> Index:
    """Return the runs of a registry without writing anything. Raises RunDirectoryError if it is not a registry."""
    with SafeFolder.open(repository) as top:
        return _index_of(top, repository, write_pages=False)


def _index_of(top: SafeFolder, repository: Path, *, write_pages: bool) -> Index:
    runs: list[ListedRun] = []
    skipped: list[SkippedFile] = []
    if MACHINES not in top.names():
        raise RunDirectoryError(f"{repository} is not a registry: it has no folder '{MACHINES}'")
    with top.subfolder(MACHINES) as machines:
        for folder, parts, names in _folders(machines, (), skipped):
            runs += _runs_of(folder, parts, names, skipped, write_pages=write_pages)
    shown = tuple(_shortened(each, repository) for each in skipped[:_MOST_SKIPPED])
    if more := skipped[_MOST_SKIPPED:]:
        shown = (*shown, SkippedFile(f"{len(more)} more files", "are not listed"))
    return Index(tuple(runs), shown)


def _folders(
    folder: SafeFolder, parts: tuple[str, ...], skipped: list[SkippedFile]
) -> Iterator[tuple[SafeFolder, tuple[str, ...], list[str]]]:
    """Yield the folder of each study on each machine, with its place and the names in it."""
    for name in sorted(folder.names()):
        where = "/".join((MACHINES, *parts, name))
        try:
            with folder.subfolder(str(SafeName(name))) as inside:
                if len(parts) + 1 < _LEVELS:
                    yield from _folders(inside, (*parts, name), skipped)
                else:
                    yield inside, (*parts, name), sorted(inside.names())
        except ValueError:
            skipped.append(SkippedFile(where, _FOREIGN))
        except NotADirectoryError:
            skipped.append(SkippedFile(where, _FOREIGN))
        except (OSError, RunDirectoryError) as error:
            skipped.append(SkippedFile(where, _reason(error)))


def _runs_of(
    folder: SafeFolder, parts: tuple[str, ...], names: list[str], skipped: list[SkippedFile], *, write_pages: bool
) -> Iterator[ListedRun]:
    """Yield the runs in the folder of a study, after writing their pages if asked to."""
    place = "/".join((MACHINES, *parts))
    known: set[str] = set()
    for name in (each for each in names if each.endswith(ENDING)):
        known.add(name)
        where = f"{place}/{name}"
        try:
            run = read_run(read_packed(folder, name), where)
            if (run.entry.folders, f"{run.entry.run_id}{ENDING}") != (parts, name):
                right = "/".join((MACHINES, *run.entry.folders, f"{run.entry.run_id}{ENDING}"))
                raise RunDirectoryError(f"it belongs to {right}")
            page, raw = f"{run.entry.run_id}{PAGE}", f"{run.entry.run_id}{RAW}"
            if write_pages:
                _write(folder, page, run.page.encode(errors="replace"))
        except (OSError, RunDirectoryError) as error:
            skipped.append(SkippedFile(where, _reason(error)))
            continue
        known |= {page}
        has_raw = raw in names and _is_file(folder, raw)
        known |= {raw} if has_raw else set()
        yield ListedRun(run.entry, f"{place}/{page}", f"{place}/{raw}" if has_raw else "")
    skipped += [SkippedFile(f"{place}/{name}", _FOREIGN) for name in names if name not in known]


def _reason(error: OSError | RunDirectoryError) -> str:
    return (error.strerror or "cannot be read") if isinstance(error, OSError) else str(error)


def _shortened(file: SkippedFile, repository: Path) -> SkippedFile:
    """Return a skipped file with a reason of one line, without the name of the file at its beginning."""
    reason = file.reason.replace(f"{repository}/", "").removeprefix(file.name)
    return SkippedFile(one_line(file.name, _REASON), one_line(reason, _REASON))


def _is_file(folder: SafeFolder, name: str) -> bool:
    with contextlib.suppress(OSError, RunDirectoryError):
        os.close(folder.open_file(name))
        return True
    return False
