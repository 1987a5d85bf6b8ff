"""Show the finished runs that the project keeps, for the documentation, with the program of this version."""

import json
import os
import re
import shlex
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import chdir, closing, contextmanager
from functools import cache
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

ROOT = Path(__file__).parents[1]
KEPT = (ROOT / "docs/runs", ROOT / "tests/report/finished_runs")
"""The folders of kept runs: runs for the documentation alone, and runs for tests as well."""
WEIGHED, SERVER, SERVER_LATER = "weigh", "weigh-server", "weigh-server-later"
"""The names of a run of one program, a run of a server, and a later run of the same server."""
WIDTH, LINES = 80, 25
"""Columns of a terminal, and how many of its lines the page of examples shows."""
ABOUT = {
    "first-look": "TCP, latency, Redis and CPU in four environments, with clients here and on another host",
    "why-first-look": "The same study with `weighbridge explain`: why a published port of Docker costs latency",
    WEIGHED: "One program, measured with `weighbridge weigh`",
    "agent-sandboxes": "The commands of a coding agent in twelve sandboxes, with the causes of the largest costs",
    SERVER: "redis-server with redis-benchmark, in a network namespace and on Docker's bridge",
}
"""The runs whose reports are examples, with a description of each. Runs of published studies are added to them."""
COMPARED = "compare"
"""The name of the example that compares two runs."""
PULL_REQUESTS = ("pull-request-slower", "pull-request-equal")
"""The runs of two pull requests that docs/pull_requests.py measured: one slower by 5%, one equal."""
PULL_REQUEST_BUDGET = "head.*.time<=3%"
GATE = "A gate on the run `weigh`, as the summary of a CI job shows it:"


def replicated_studies() -> list[str]:
    """Return the published studies that have a kept run."""
    from weighbridge.features.replication.published import available

    return [study for study in available() if is_kept(study)]


def about_examples() -> dict[str, str]:
    """Return the name of every example report with its description."""
    published = {
        study: f"A published study, repeated. [The published figures next to it](measured.md#{study})"
        for study in replicated_studies()
    }
    return {**ABOUT, **published, COMPARED: "Two runs of redis-server, compared: what changed and what did not"}


def example_text(name: str) -> str:
    """Return a code block with the command that shows an example and the first lines that it prints."""
    if name == COMPARED:
        words = ("compare", f"runs/{SERVER}", f"runs/{SERVER_LATER}")
        with _runs(SERVER, SERVER_LATER) as folder:
            text = _weighbridge(*words, folder=folder)
        command = " ".join(("weighbridge", *words))
    else:
        command, text = f"weighbridge report runs/{name}", terminal_text(name)
    lines = [f"$ {command}", *(line.rstrip() for line in text.splitlines())]
    cut = [*lines[: LINES - 1], f"[{len(lines) - LINES + 1} more lines]"] if len(lines) > LINES else lines
    return "\n".join(["```text", *cut, "```"])


def is_kept(name: str) -> bool:
    """Return whether the project keeps a run of this name."""
    return any((folder / f"{name}.sqlite.xz").exists() for folder in KEPT)


def kept_file(name: str) -> Path:
    """Return the file of a kept run."""
    return next(path for folder in KEPT if (path := folder / f"{name}.sqlite.xz").exists())


@contextmanager
def run_directory(name: str) -> Iterator[Path]:
    """Give a temporary run directory with a kept run."""
    with _runs(name) as folder:
        yield folder / "runs" / name


@contextmanager
def _runs(*names: str) -> Iterator[Path]:
    """Give a temporary folder that has the directories of kept runs in its folder ``runs``."""
    from weighbridge.store.run import DATABASE
    from weighbridge.store.unpacking import unpacked

    with tempfile.TemporaryDirectory(prefix="weighbridge-docs-") as folder:
        for name in names:
            directory = Path(folder) / "runs" / name
            directory.mkdir(parents=True)
            (directory / DATABASE).write_bytes(unpacked(kept_file(name).read_bytes(), name))
        yield Path(folder)


@cache
def recorded(name: str) -> Console:
    """Return a terminal that has recorded the output of ``weighbridge report`` for a kept run."""
    from weighbridge.analysis.analyse import analyse
    from weighbridge.report.terminal import print_report
    from weighbridge.store.run import RunStore

    with open(os.devnull, "w") as nowhere, run_directory(name) as directory, RunStore(directory) as store:  # noqa: PTH123
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True, color_system="truecolor")
        print_report(analyse(store), console, run=f"runs/{name}")
    return console


def terminal_text(name: str) -> str:
    """Return the output of ``weighbridge report`` for a kept run, as text."""
    lines = recorded(name).export_text(clear=False).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


def terminal_picture(name: str) -> str:
    """Return the output of ``weighbridge report`` for a kept run, as an SVG picture."""
    command = command_line(name)
    form = re.sub(
        r"@font-face \{\{.*?\}\}\s*|<!--.*?-->\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL
    )  # the picture loads no fonts
    return recorded(name).export_svg(title=command, clear=False, unique_id="weighbridge", code_format=form)


def command_line(name: str) -> str:
    """Return the ``weighbridge weigh`` command that measured a kept run."""
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
    """Write the HTML report of every example into a folder, with the commands that users have."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*ABOUT, *replicated_studies()):
        with run_directory(name) as directory:
            write_page(directory, folder / f"{name}.html")
            if name not in ABOUT:
                _weighbridge("replicate", "--report", directory)
                (folder / f"{name}-published.html").write_bytes((directory / "replication.html").read_bytes())
    with run_directory(SERVER) as first, run_directory(SERVER_LATER) as second:
        _weighbridge("compare", first, second, "--html", folder / "compare.html")
    write_index(folder)


def write_index(folder: Path) -> None:
    """Write the index page of the runs in ``docs/runs``, and the missing ones of the reports that it links."""
    from weighbridge.features.archive.index_page import ListedRun, index_html
    from weighbridge.features.archive.registry_folder import INDEX, read_run
    from weighbridge.store.unpacking import ENDING

    listed = []
    for archive in sorted(KEPT[0].glob(f"*{ENDING}")):
        page = folder / archive.name.replace(ENDING, ".html")
        if not page.exists():
            with run_directory(page.stem) as directory:
                write_page(directory, page)
        listed.append(ListedRun(read_run(archive.read_bytes(), archive.name).entry, page.name))
    (folder / INDEX).write_text(index_html(listed))


@cache
def gate_summary() -> str:
    """Return the Markdown summary of a gate on the run of one program."""
    with run_directory(WEIGHED) as directory:
        summary = directory / "gate.md"
        _weighbridge(
            "gate", directory, "--budget", "docker.command.time<=25%", "--markdown", summary, ends=(0, 11, 12, 10)
        )
        return summary.read_text()


def gate_text(name: str, budget: str) -> str:
    """Return the answer of a gate with a budget for the run time in docker."""
    with _runs(name) as folder:
        words = ("gate", f"runs/{name}", "--budget", f"docker.command.time<={budget}")
        return _weighbridge(*words, ends=(0, 11, 12, 10), folder=folder)


@cache
def comment_text(name: str) -> str:
    """Return the comment on a pull request with a kept run, without a link to a report."""
    with run_directory(name) as directory:
        gate, comment = directory / "gate.md", directory / "comment.md"
        budget = ("--budget", PULL_REQUEST_BUDGET)
        _weighbridge("gate", directory, *budget, "--markdown", gate, ends=(0, 11, 12, 10))
        _weighbridge("comment", directory, "--add", gate, "--markdown", comment)
        return comment.read_text()


def write_page(directory: Path, page: Path) -> None:
    """Write the page of a run."""
    _weighbridge("report", directory, "--html", page)


_TERMINAL = {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "GITHUB_ACTIONS": None, "GITLAB_CI": None}
"""Variables of a terminal, also in a job of a CI service."""


def _weighbridge(*words: object, ends: tuple[int, ...] = (0,), folder: Path = ROOT) -> str:
    """Run a command in this process, as tests start no other one, and return what it prints."""
    from typer.testing import CliRunner

    from weighbridge.cli import output
    from weighbridge.cli.app import app

    output.out.cache_clear()  # it can have the width of an earlier caller
    with chdir(folder):
        done = CliRunner().invoke(app, [*map(str, words)], env=_TERMINAL)
    code = getattr(done.exception, "exit_code", done.exit_code)
    if code not in ends:
        raise RuntimeError(f"weighbridge {' '.join(map(str, words))} ended with {code}:\n{done.exception}")
    return str(done.stdout)
