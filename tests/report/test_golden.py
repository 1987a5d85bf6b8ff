"""What people read, in one place: every sentence of the pages and of the terminal, of a few runs.

``golden/NAME.txt`` is what a page says, or what the terminal prints at 80 columns. Other tests assert codes and
figures. Where a sentence changes on purpose, make the files anew, and read the difference before it is committed:

    pytest tests/report/test_golden.py --update-golden
"""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from weighbridge.analysis.analyse import analyse
from weighbridge.features.fleets.analysis import read_fleet
from weighbridge.features.fleets.changes import compare_fleets
from weighbridge.features.fleets.report import fleet_document
from weighbridge.features.gate.between_runs import compare_runs
from weighbridge.features.gate.compare_document import compare_document
from weighbridge.features.gate.compared_run import read_run
from weighbridge.features.gate.history_document import history_document
from weighbridge.features.gate.past_runs import history
from weighbridge.features.replication.comparison import replication
from weighbridge.features.replication.published import published
from weighbridge.features.replication.report import replication_document
from weighbridge.features.replication.words import print_replication_screen
from weighbridge.model.decisions import LeftOut
from weighbridge.model.facts import layers_json
from weighbridge.model.isolation import SCOPE, SiteLayers
from weighbridge.model.measurement import Outcome
from weighbridge.report.html import write_html
from weighbridge.report.terminal import print_report
from weighbridge.store.run import RunStore

from .made_up_fleets import RECIPE as FLEET
from .made_up_fleets import make_fleet, make_pairs, make_unit, rounds
from .made_up_runs import CREATED, LOSS, RETRANSMITS, TCP, Recipe, Workload, make_run, rising_load, two_versions
from .rich_runs import TCG
from .serialised import serialised
from .swept_runs import Sweep, make_sweep
from .visible_text import VisibleText

GOLDEN = Path(__file__).parent / "golden"
LOSSY = Workload("udp", [(LOSS, 0.05, 2.0), (RETRANSMITS, 4.0, 0.5)])
KVM = LeftOut(environment="kvm", kind="qemu", why="/dev/kvm is missing", remedy="enable nested virtualisation")
SAMPLES = (("server", "program_cpu_user_s", 0.2), ("client", "program_switches", 1000.0), ("server", "cpu_s", 0.9))
"""Of the programs alone, and of their sites."""
RUNS: dict[str, Recipe | Sweep] = {
    "simple": Recipe(costs={"bridge": 1.25, "host": 1.0}, outputs=True),
    "few-blocks": Recipe(costs={"bridge": 1.25, "host": 1.0}, workloads=[TCP, LOSSY], blocks=2),
    "exploratory": Recipe(costs={"bridge": 1.5}, workloads=[TCP, LOSSY], blocks=6, samples=SAMPLES),
    "untrusted": Recipe(costs={"host": 1.0}, aa_factor=1.1),
    "failures": Recipe(
        costs={"bridge": 1.25}, blocks=12, failing={(block, "bridge"): Outcome.DEADLINE for block in range(1, 13)},
        left_out=(KVM,), outputs=True,
    ),
    "nothing": Recipe(costs={"bridge": 1.0}, blocks=0),
    "baseline-alone": Recipe(costs={}, aa=False),
    "unverified": Recipe(
        costs={"bridge": 1.1}, facts={"unverified": {"bridge": "no bridge was crossed", "host a": "no a"}}
    ),
    "rising-load": Recipe(**rising_load(outputs=False)),
    "two-versions": Recipe(**two_versions(samples=SAMPLES)),
    "over-time": Sweep(levels=(50, 400), blocks=2, workloads=(("nginx", "connections"),)),
}  # fmt: skip

WHOLE = ("few-blocks", "exploratory", "rising-load", "over-time")
"""Those that are printed with every metric's table too."""


@pytest.fixture
def golden(request) -> Callable[[str, str], None]:
    """Compare a text with the file of its name, which is made anew where that is asked for."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert text.splitlines() == path.read_text().splitlines(), "see the docstring of this module"

    return compare


def printed(show: Callable[[Console], None]) -> str:
    """What is printed at 80 columns; no-break spaces are spaces, and no line ends with any."""
    file = io.StringIO()
    show(Console(file=file, width=80, highlight=False))
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().replace("\u00a0", " ").splitlines())


def begun(directory: Path, recipe: Recipe | Sweep, *, created: str = CREATED) -> RunStore:
    """Make a run whose date is known, and open it."""
    (make_run(directory, recipe) if isinstance(recipe, Recipe) else make_sweep(directory, recipe)).close()
    with RunStore(directory, writable=True) as store:
        store.set_info("created", created)
    return RunStore(directory)


@pytest.mark.parametrize("name", RUNS)
def test_a_run(golden, tmp_path, name: str):
    with begun(tmp_path / "run", RUNS[name]) as store:
        analysis = analyse(store)
        page = write_html(store, tmp_path / "report.html", analysis).read_text()
    golden(f"page-{name}", VisibleText(page, reading=name == "simple").text())
    golden(f"terminal-{name}", printed(lambda console: print_report(analysis, console)))
    if name in WHOLE:
        golden(f"terminal-{name}-all", printed(lambda console: print_report(analysis, console, everything=True)))


def test_a_run_that_has_something_in_every_part(golden, rich_page, rich_analysis):
    golden("page-rich", VisibleText(rich_page).text())
    golden("terminal-rich", printed(lambda console: print_report(rich_analysis, console)))
    golden("terminal-rich-all", printed(lambda console: print_report(rich_analysis, console, everything=True)))


def test_several_runs(golden, tmp_path):
    kernels, costs = ("6.1", "6.2", "6.1"), (1.2, 1.35, 1.2)
    recipes = [
        Recipe(costs={"bridge": cost, "host": 1.0}, blocks=15, seed=number, workloads=[TCP, LOSSY],
               facts={"host": {"kernel": f"Linux {kernel}"}})
        for number, (kernel, cost) in enumerate(zip(kernels, costs, strict=True), 7)
    ]  # fmt: skip
    stores = [
        begun(tmp_path / "runs" / f"run{number}", recipe, created=str(float(CREATED) + 86_400 * number))
        for number, recipe in enumerate(recipes)
    ]
    compared = compare_runs(*(read_run(store, store.directory.name) for store in stores))
    for store in stores:
        store.close()
    golden("document-compare", serialised(compare_document(compared)))
    golden("document-history", serialised(history_document(history(tmp_path / "runs"))))


def test_a_replication(golden, tmp_path):
    emulated = {SCOPE: {"docker-macvlan/server": layers_json(SiteLayers("here", (), (TCG,)))}}
    recipe = Recipe(costs={"docker-host": 1.0, "docker-macvlan": 1.3}, study="docker-networks", facts=emulated)
    with begun(tmp_path / "run", recipe) as store:
        found = replication(analyse(store), published("docker-networks"))
        golden("document-replication", serialised(replication_document(found, store)))
    golden("terminal-replication", printed(lambda console: print_replication_screen(found, console)))


def test_fleets(golden, tmp_path):
    facts = {"n3": {"firmware": "1.2 of 2023-05-05"}, "n7": {"mtu": "1400"}}
    singles = make_fleet(tmp_path / "singles", 12, odd={"n3": 1.25}, slow={"n7": 1.3}, facts=facts)
    make_unit(singles / "runs", "n13", replace(FLEET, aa_factor=1.3), ["n13"], {})
    make_unit(singles / "runs", "n14", replace(FLEET, study="elsewhere"), ["n14"], {})
    (singles / "runs" / "n15").mkdir()
    fleet, earlier = read_fleet(singles), read_fleet(make_fleet(tmp_path / "earlier", 11, spread=0.0, seed=2))
    compared = compare_fleets(fleet, earlier)
    golden("document-fleet", serialised(fleet_document(fleet, compared)))
    alone = [("n1", "n2"), ("n2", "n3"), ("n6", "n7")]
    pairs = make_pairs(
        tmp_path / "pairs", rounds(10, 4), slow={"n5": 1.3}, bad={("n8", "n9"): 1.4}, alone=alone, together=1.15
    )
    fleet = read_fleet(pairs)
    golden("document-fleet-pairs", serialised(fleet_document(fleet)))


def test_every_file_is_compared():
    runs = {f"{kind}-{name}" for name in [*RUNS, "rich"] for kind in ("page", "terminal")}
    runs |= {f"terminal-{name}-all" for name in [*WHOLE, "rich"]}
    rendered = {f"rendered-{each}" for each in ("terminal", "terminal-all", "terminal-narrow", "markdown", "page")}
    documents = {f"document-{each}" for each in ("compare", "history", "replication", "fleet", "fleet-pairs")}
    assert {path.stem for path in GOLDEN.iterdir()} == {*runs, *documents, *rendered, "terminal-replication"}
