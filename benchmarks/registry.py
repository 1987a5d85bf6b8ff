"""The cost of a registry with many runs: the sizes of its files, and the time to build and to load its index page.

Copies of kept runs with other ids, dates and machines are added to a registry in a temporary folder. The first
index of a fresh clone reads all runs. With playwright and Chromium, the page is also loaded and filtered.

    .venv/bin/python benchmarks/registry.py docs/runs/*.sqlite.xz [--runs 200] [--keep FOLDER]
"""

import argparse
import gzip
import lzma
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from weighbridge.features.archive.kept_file import opened
from weighbridge.features.archive.registry_folder import INDEX, add_run, read_run, rebuild
from weighbridge.report.html import write_html
from weighbridge.store.unpacking import unpacked

MACHINES = 5


def copies(archives: list[Path], number: int) -> Iterator[bytes]:
    """Yield this number of runs, each with its own id and date, on a few machines."""
    contents = [bytearray(unpacked(path.read_bytes(), path.name)) for path in archives]
    for content in contents:
        content[18:20] = b"\1\1"  # a database in memory has no log
    for count in range(number):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
            database.deserialize(bytes(contents[count % len(contents)]))
            database.execute("UPDATE run SET value = ? WHERE key = 'run_id'", (f"{count:012x}",))
            database.execute("UPDATE run SET value = value + ? WHERE key = 'created'", (86400 * count,))
            database.execute("DELETE FROM fact WHERE scope = 'host' AND key = 'machine id'")
            machine = f"{count // len(contents) % MACHINES:016x}"
            database.execute("INSERT INTO fact VALUES ('host', 'machine id', ?, 0.0)", (machine,))
            yield lzma.compress(database.serialize(), preset=0)


def load(page: Path) -> None:
    """Print how long a browser needs to load the page and to filter it."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("no browser: playwright is not installed")
        return
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        for width in (1200, 400):
            shown = browser.new_page(viewport={"width": width, "height": 900})
            start = time.monotonic()
            shown.goto(page.as_uri())
            loaded = time.monotonic() - start
            start = time.monotonic()
            shown.fill("input[type=search]", "docker")
            count = shown.locator("output").text_content()
            filtered = time.monotonic() - start
            print(f"browser, {width} px: loaded in {loaded:.2f} s, filtered in {filtered:.2f} s ({count})")
            shown.close()
        browser.close()


def main() -> None:
    """Build the registry and print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("archives", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--keep", type=Path, help="build the registry in this new folder, and keep it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        registry = options.keep or Path(temporary) / "registry"
        os.environ["WEIGHBRIDGE_CACHE"] = str(Path(temporary) / "cache")
        read_s = 0.0
        for data in copies(options.archives, options.runs):
            start = time.process_time()
            entry = read_run(data, "a run").entry
            read_s += time.process_time() - start
            add_run(registry, entry, data)
        rebuild(registry)  # writes the pages of all runs
        start, started = time.process_time(), time.monotonic()
        index = rebuild(registry)
        again_s, wall_s = time.process_time() - start, time.monotonic() - started
        assert len(index.runs) == options.runs and not index.skipped, index.skipped
        print(f"reading {options.runs} runs: {read_s:.0f} s of CPU time, {read_s / options.runs:.2f} s each")
        print(f"index of runs that were read before: {again_s:.2f} s of CPU time, {wall_s:.2f} s")
        page = registry / INDEX
        packed = len(gzip.compress(page.read_bytes()))
        print(f"index page: {page.stat().st_size / 1e6:.2f} MB, {packed / 1e6:.2f} MB as gzip")
        print(f"kept files: {mean_size(options.archives)}")
        print(f"pages of runs: {mean_size(registry.glob('machines/**/*.html'))}")
        reports = [whole_report(path, Path(temporary) / path.name) for path in options.archives]
        print(f"whole reports: {mean_size(reports)}")
        load(page)


def whole_report(archive: Path, page: Path) -> Path:
    """Write the report of a kept run."""
    with opened(archive.read_bytes(), archive.name) as store:
        return write_html(store, page)


def mean_size(paths: Iterable[Path]) -> str:
    """Return the mean size of files."""
    sizes = [path.stat().st_size for path in paths]
    return f"{sum(sizes) / len(sizes) / 1e6:.2f} MB each"


if __name__ == "__main__":
    main()
