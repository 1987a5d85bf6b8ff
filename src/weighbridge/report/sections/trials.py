"""The trials of a page, in groups by workload, level and environment. Numbers on the page link to them.

Each process of a trial has its command line, and how its raw outputs begin. Most of a large page is here, and it is
seen only after a click. If it is large, it is stored compressed, and the page's script unpacks a group when it is
opened. A packed group is the same markup, escaped by the same template.
"""

import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from weighbridge.analysis.results import Analysis
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import grouped
from weighbridge.model.text import printable
from weighbridge.report.anchors import trials_id
from weighbridge.report.page import PLAIN_CHARACTERS, fragment, packed
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import quantity
from weighbridge.store.run import RunStore
from weighbridge.store.safe_folder import file_in_run

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
    processes_by_trial: dict[int, list[TrialProcess]] = {}
    for row in rows:
        outputs = tuple(
            TrialOutput(
                name,
                f"{begin}{quote(file)}",
                sizes[file],
                _excerpt(store.directory, file, limit),
            )
            for name, file in (("stdout", row.stdout), ("stderr", row.stderr))
            if sizes[file]
        )
        command = " ".join(map(_quoted, row.argv))
        processes_by_trial.setdefault(row.trial, []).append(
            TrialProcess(row.role, command, row.returncode, row.duration_s, outputs)
        )
    return processes_by_trial


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


def _excerpt(run: Path, name: object, limit: int) -> str:
    folder, _, plain = name.partition("/") if isinstance(name, str) else ("", "", "")
    with file_in_run(run, "raw", plain if folder == "raw" else "") as file:
        return "" if file is None else printable(os.pread(file, limit, 0).decode(errors="replace"))


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
    places = grouped(analysis.trials, lambda trial: (trial.label, trial.environment))
    order = [(label, name) for label in analysis.labels for name in analysis.environments if (label, name) in places]
    texts = {
        place: fragment(
            "trials.html.j2", trials=[(trial, _values(trial, units)) for trial in places[place]], processes=processes
        )
        for place in order
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
            html=packed(text) if large else text,
        )
        for place, text in texts.items()
    ]


def _values(trial: TrialRow, units: Mapping[tuple[str, str], str]) -> str:
    return ", ".join(
        f"{metric} {quantity(value, units[trial.label, metric])}" for metric, value in trial.values.items()
    )
