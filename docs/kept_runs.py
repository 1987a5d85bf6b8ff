"""What the documentation shows of the finished runs that are kept, made by the program of this version."""

import json
import lzma
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

ROOT = Path(__file__).parents[1]
KEPT = (ROOT / "docs/runs", ROOT / "tests/report/finished_runs")
"""Where runs are kept: those that only the documentation needs, and those that tests need too."""
WEIGHED, SERVER, SERVER_LATER = "weigh", "weigh-server", "weigh-server-later"
"""The run of the first minute; a server, and the same once more."""
WIDTH = 80
ABOUT = {
    "first-look": "TCP, latency, Redis and CPU in four environments, with clients here and on another host",
    "why-first-look": "`weighbridge explain` of that study: why a published port of Docker costs latency",
    WEIGHED: "one program, by `weighbridge weigh`: the run of The first minute",
    SERVER: "redis-server with redis-benchmark, in a network namespace and on Docker's bridge",
}
"""The runs whose reports are examples, each with what it is; of published studies those that are kept are, too."""
GATE = "A gate on the run of The first minute, as the summary of a CI job shows it:"


def replicated_studies() -> list[str]:
    """Return the published studies of which a run is kept."""
    from weighbridge.replication.published import available

    return [study for study in available() if is_kept(study)]


def about_examples() -> dict[str, str]:
    """Return every example report by the name of its file, with what it is."""
    about = dict(ABOUT)
    for study in replicated_studies():
        about |= {
            study: "a published study repeated",
            f"{study}-published": "the published figures beside that run's",
        }
    return about | {"compare": "two runs of redis-server compared: what changed and what did not"}


def is_kept(name: str) -> bool:
    """Return whether a run of this name is kept."""
    return any((folder / f"{name}.sqlite.xz").exists() for folder in KEPT)


def _archive(name: str) -> Path:
    return next(path for folder in KEPT if (path := folder / f"{name}.sqlite.xz").exists())


@contextmanager
def run_directory(name: str) -> Iterator[Path]:
    """Give a run directory with a kept run; it goes with the block."""
    from weighbridge.store.run import DATABASE

    with tempfile.TemporaryDirectory(prefix="weighbridge-docs-") as folder:
        directory = Path(folder) / name
        directory.mkdir()
        (directory / DATABASE).write_bytes(lzma.decompress(_archive(name).read_bytes()))
        yield directory


@cache
def recorded(name: str) -> Console:
    """Return a terminal that has what ``weighbridge report`` prints of a kept run."""
    from weighbridge.analysis.analyse import analyse
    from weighbridge.report.terminal import print_report
    from weighbridge.store.run import RunStore

    with open(os.devnull, "w") as nowhere, run_directory(name) as directory, RunStore(directory) as store:  # noqa: PTH123
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True, color_system="truecolor")
        print_report(analyse(store), console, run=f"runs/{name}")
    return console


def terminal_text(name: str) -> str:
    """Return those lines as text."""
    lines = recorded(name).export_text(clear=False).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


def terminal_picture(name: str) -> str:
    """Return the same as SVG."""
    command = command_line(name)
    form = re.sub(
        r"@font-face \{\{.*?\}\}\s*|<!--.*?-->\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL
    )  # no fonts of a network
    return recorded(name).export_svg(title=command, clear=False, unique_id="weighbridge", code_format=form)


def command_line(name: str) -> str:
    """Return the command that made a kept run of ``weigh``."""
    from weighbridge.store.run import DATABASE

    with run_directory(name) as directory, closing(sqlite3.connect(directory / DATABASE)) as database:
        ((options,),) = database.execute("select options from cell")
    workload = json.loads(options)
    server = [] if workload["server"] is None else ["--server", workload["server"]]
    words = workload["run"] or workload["client"]
    return " ".join(["weighbridge weigh", *_quoted(server), "--", *_quoted(words)])


def _quoted(words: Iterable[str]) -> list[str]:
    return [word if re.fullmatch(r"[\w@%+=:,./{}-]+", word) else shlex.quote(word) for word in words]


def write_examples(folder: Path) -> None:
    """Write every example report into a folder, by the command lines of a user."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*ABOUT, *replicated_studies()):
        with run_directory(name) as directory:
            _weighbridge("report", directory, "--html", folder / f"{name}.html")
            if name not in ABOUT:
                _weighbridge("replicate", "--report", directory)
                (folder / f"{name}-published.html").write_bytes((directory / "replication.html").read_bytes())
    with run_directory(SERVER) as first, run_directory(SERVER_LATER) as second:
        _weighbridge("compare", first, second, "--html", folder / "compare.html")


@cache
def gate_summary() -> str:
    """Return the Markdown of a gate of the run of the first minute."""
    with run_directory(WEIGHED) as directory:
        summary = directory / "gate.md"
        _weighbridge(
            "gate", directory, "--budget", "docker.command.time<=25%", "--markdown", summary, ends=(0, 11, 12, 10)
        )
        return summary.read_text()


def write_page(directory: Path, page: Path) -> None:
    """Write the page of a run."""
    _weighbridge("report", directory, "--html", page)


def _weighbridge(*words: object, ends: tuple[int, ...] = (0,)) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "weighbridge", *map(str, words)],
        check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    if done.returncode not in ends:
        raise RuntimeError(f"weighbridge {' '.join(map(str, words))} ended with {done.returncode}:\n{done.stderr}")


if __name__ == "__main__":
    (ROOT / "docs/_static/weigh.svg").write_text(terminal_picture(WEIGHED))
