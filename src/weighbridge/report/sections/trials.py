"""The trials of a page, in groups by workload, level and environment. Numbers on the page link to them.

Each process of a trial has its command line, and how its raw outputs begin. Most of a large page is here, and it is
seen only after a click. If it is large, it is stored compressed, and the page's script unpacks a group when it is
opened. A packed group is the same markup.

The markup is built here, and not by a template: of a run with thousands of trials, the calls of a template for each
trial took longer than its analysis.
"""

import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from weighbridge.analysis.results import Analysis
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.errors import RunDirectoryError
from weighbridge.model.address import grouped
from weighbridge.model.text import printable
from weighbridge.report.anchors import trials_id
from weighbridge.report.page import PLAIN_CHARACTERS, escaped, packed
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import quantity
from weighbridge.report.text.trial_flags import flag_text
from weighbridge.store.run import RunStore
from weighbridge.store.safe_folder import SafeFolder

EXCERPT_BYTES = 4096
"""How much of each output is in the page."""

ALL_EXCERPTS_BYTES = 1_200_000
"""How much of all outputs together: with many trials each excerpt becomes shorter (never below 256 bytes)."""


@dataclass(frozen=True, slots=True)
class TrialOutput:
    """One raw output of a trial: its link from the page, its size in bytes, and how it begins."""

    name: str
    link: str
    size: int
    excerpt: str


@dataclass(frozen=True, slots=True)
class TrialProcess:
    """One process of a trial."""

    role: str
    command: str
    returncode: int
    duration_s: float
    outputs: tuple[TrialOutput, ...]


def processes(store: RunStore, path: Path) -> dict[int, list[TrialProcess]]:
    """Return the processes of each trial; links to raw outputs are relative to the page at `path`."""
    rows = store.processes()
    output_sizes, begin = _sizes(store.directory), _link(store.directory, path)
    sizes = {file: output_sizes.get(file, 0) for row in rows for file in (row.stdout, row.stderr)}
    limit = EXCERPT_BYTES
    while limit > 256 and sum(min(size, limit) for size in sizes.values()) > ALL_EXCERPTS_BYTES:
        limit //= 2
    with ExitStack() as closing:
        raw = _raw_folder(store.directory, closing)
        excerpts = {file: _excerpt(raw, file, limit) for file, size in sizes.items() if size} if raw else {}
    processes_by_trial: dict[int, list[TrialProcess]] = {}
    for row in rows:
        outputs = tuple(
            TrialOutput(name, f"{begin}{quote(file)}", sizes[file], excerpts.get(file, ""))
            for name, file in (("stdout", row.stdout), ("stderr", row.stderr))
            if sizes[file]
        )
        command = " ".join(map(_quoted, row.argv))
        processes_by_trial.setdefault(row.trial, []).append(
            TrialProcess(row.role, command, row.returncode, row.duration_s, outputs)
        )
    return processes_by_trial


def _raw_folder(run: Path, closing: ExitStack) -> SafeFolder | None:
    """Open the folder of the raw outputs; None if the run has none of its own."""
    with suppress(OSError, RunDirectoryError), SafeFolder.open(run) as folder:
        return closing.enter_context(folder.subfolder("raw"))
    return None


def _sizes(run: Path) -> dict[str, int]:
    """The size of each regular file of the run's own that is an output: ``raw/NAME`` -> bytes."""
    sizes: dict[str, int] = {}
    with suppress(OSError):
        within = os.open(run / "raw", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            with os.scandir(within) as files:
                for file in files:
                    about = file.stat(follow_symlinks=False)
                    if stat.S_ISREG(about.st_mode):
                        sizes[f"raw/{file.name}"] = about.st_size
        finally:
            os.close(within)
    return sizes


_quoted = cache(shlex.quote)  # the same words in each trial


def _link(run: Path, page: Path) -> str:
    """How the links from a page to files of the run begin; empty if it is in the run."""
    relative = os.path.relpath(run.resolve(), page.resolve().parent)
    return "" if relative == "." else f"{quote(relative.replace(os.sep, '/'), safe='/.')}/"


def _excerpt(raw: SafeFolder, file: str, limit: int) -> str:
    """Return the beginning of an output; empty unless it is a regular file of the run."""
    try:
        descriptor = raw.open_file(file.removeprefix("raw/"))
    except (OSError, RunDirectoryError):
        return ""
    try:
        return printable(os.pread(descriptor, limit, 0).decode(errors="replace"))
    finally:
        os.close(descriptor)


# -- groups ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrialGroup:
    """The trials of one environment in one workload and level."""

    id: str
    workload: str
    label: str
    name: str
    """Of the environment, as the study has it; `environment` is how it is shown."""
    environment: str
    count: int
    trials: str
    """Their ids, by which the script finds the group of a trial."""
    packed: bool
    html: Markup | str
    """Markup, or (packed) its gzip in base 64."""


def trial_groups(analysis: Analysis, processes: Mapping[int, Sequence[TrialProcess]]) -> list[TrialGroup]:
    """Return the groups that have trials, in the study's order."""
    units = {(m.label, m.metric): m.unit for m in analysis.metrics}
    places = {
        (label, name): trials
        for label, mine in analysis.trials_of.items()
        for name, trials in grouped(mine, attrgetter("environment")).items()
    }
    order = [(label, name) for label in analysis.labels for name in analysis.environments if (label, name) in places]
    texts = {
        (label, name): "".join(
            _trial_html(each, _values(each, label, units), processes.get(each.id, ())) for each in places[label, name]
        )
        for label, name in order
    }
    large = sum(map(len, texts.values())) > PLAIN_CHARACTERS
    return [
        TrialGroup(
            id=trials_id(analysis, *place),
            workload=places[place][0].workload,
            label=place[0],
            name=place[1],
            environment=display_name(place[1]),
            count=len(places[place]),
            trials=" ".join(str(trial.id) for trial in places[place]),
            packed=large,
            html=packed(text) if large else Markup(text),  # noqa: S704 - `_trial_html` escapes
        )
        for place, text in texts.items()
    ]


def _values(trial: TrialRow, label: str, units: Mapping[tuple[str, str], str]) -> str:
    return ", ".join(f"{metric} {quantity(value, units[label, metric])}" for metric, value in trial.values.items())


def _trial_html(trial: TrialRow, values: str, processes: Sequence[TrialProcess]) -> str:
    """Return the markup of a trial with its processes; every text in it is escaped."""
    repetition = f" (repetition {trial.attempt})" if trial.attempt else ""
    flags = "".join(f" · {escaped(flag_text(flag))}" for flag in trial.flags)
    lasted = escaped(quantity(trial.duration_s, "s"))
    return (
        f'<details class="trial" id="t{trial.id}"><summary>trial {trial.id}, round {trial.block}{repetition}: '
        f"{escaped(values) if trial.ok else _failure(trial)}{flags}</summary>\n"
        f'<p class="soft">number {trial.order} of the session; {lasted} in total</p>\n'
        f"{''.join(map(_process_html, processes))}</details>\n"
    )


def _failure(trial: TrialRow) -> str:
    style, outcome = ("broke", "overloaded") if trial.broke else ("failed", trial.outcome)
    message = f": {escaped(trial.message)}" if trial.message else ""
    return f'<span class="{style}">{escaped(outcome)}{message}</span>'


def _process_html(process: TrialProcess) -> str:
    outputs = "".join(
        f'<details><summary>{each.name} <span class="soft">{escaped(quantity(each.size, "B"))}</span></summary><p>'
        f'<a href="{escaped(each.link)}">all of {each.name}</a></p><pre>{escaped(each.excerpt)}</pre></details>\n'
        for each in process.outputs
    )
    return (
        f'<p><strong>{escaped(process.role)}</strong> <span class="soft">exit code {process.returncode}, '
        f"{escaped(quantity(process.duration_s, 's'))}</span></p>\n<pre>{escaped(process.command)}</pre>\n{outputs}"
    )
