"""The index page of a registry: runs by machine and study, each with its costs. One file that needs no network."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from weighbridge.features.archive.entry import RegistryEntry
from weighbridge.report.page import FOLDER, templates
from weighbridge.report.text.formatting import plural
from weighbridge.report.text.matrix import WORDS
from weighbridge.store.unpacking import ENDING

TITLE = "Registry of runs"
MARK = f"<title>{TITLE} - Weighbridge</title>"
"""The line that identifies an index page of Weighbridge."""
_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run of the index. ``page`` and ``raw`` are links from the index page; ``raw`` can be empty."""

    entry: RegistryEntry
    page: str
    raw: str = ""

    @property
    def file(self) -> str:
        """The path of the kept file in the registry."""
        return f"{self.page.removesuffix('.html')}{ENDING}"


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file or folder of a registry that is not used, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Group:
    """The runs of a machine, or of a study on a machine: a title, an explanation, and the parts."""

    name: str
    """The folder of the machine, or the name of the study."""
    title: str
    about: str
    parts: Sequence["_Group"]
    runs: Sequence[ListedRun]


def index_html(runs: Iterable[ListedRun], skipped: Sequence[SkippedFile] = ()) -> str:
    """Return the index page of runs. The newest run of each study comes first."""
    newest_first = sorted(runs, key=lambda each: (each.entry.created, each.entry.run_id), reverse=True)
    machines = [_machine(group) for group in _grouped(newest_first, 0)]
    costs = [cost for each in newest_first for cost in each.entry.costs]
    facets = {
        "machine": [(each.name, f"{each.title} {each.about}") for each in machines],
        "study": [(name, name) for name in sorted({each.entry.study for each in newest_first})],
        "environment": [(name, name) for name in sorted({cost.environment for cost in costs})],
        "verdict": [(verdict, WORDS.get(verdict, verdict)) for verdict in sorted({cost.shown_as for cost in costs})],
    }
    number = len(facets["study"])
    studies = f"{number} {'study' if number == 1 else 'studies'}"
    counts = f"{plural(len(newest_first), 'run')} of {studies} on {plural(len(machines), 'machine')}"
    return templates().from_string((_TEMPLATES / "index.html.j2").read_text()).render(
        title=TITLE, counts=counts, facets=facets, machines=machines, skipped=skipped,
        specs={}, packed=False, packed_specs=False, library="", script="",
        style=_ours(FOLDER / "report.css"), index_script=_ours(_TEMPLATES / "index.js"),
    )  # fmt: skip


def _ours(path: Path) -> Markup:
    return Markup(path.read_text())  # noqa: S704 - our own file


def _grouped(runs: Iterable[ListedRun], level: int) -> list[list[ListedRun]]:
    """Return the runs by folder: of their machine at level 0, of their study at level 1."""
    groups: dict[str, list[ListedRun]] = {}
    for each in runs:
        groups.setdefault(each.entry.folders[level], []).append(each)
    return [groups[name] for name in sorted(groups)]


def _machine(runs: Sequence[ListedRun]) -> _Group:
    first = runs[0].entry
    studies = [_study(each) for each in _grouped(runs, 1)]
    return _Group(first.folders[0], first.machine, first.folders[0].rpartition("-")[2], studies, ())


def _study(runs: Sequence[ListedRun]) -> _Group:
    newest = runs[0].entry
    return _Group(newest.study, newest.study, newest.question, (), runs)
