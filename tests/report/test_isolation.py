"""What was measured inside of hypervisors never stands without them: terminal, page, charts, JSON, CSV."""

import csv
import io
import json
import re

import pytest
from rich.console import Console

from sentences import raises_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.conditions import Isolation, isolations
from weighbridge.analysis.latency import PERCENTS
from weighbridge.analysis.limits import judge
from weighbridge.analysis.remarks.hypervisors import Emulated, EmulatedCost, Nested
from weighbridge.analysis.remarks.meters import GuestTicks
from weighbridge.analysis.requirement import LIMIT, parse_requirement
from weighbridge.errors import RunDirectoryError
from weighbridge.model.facts import layers_json
from weighbridge.model.isolation import SCOPE, Layer, SiteLayers
from weighbridge.model.measurement import Metric, Outcome
from weighbridge.report.export.csv import write_csv
from weighbridge.report.export.json import report_json
from weighbridge.report.export.limits import limits_json
from weighbridge.report.html import write_html
from weighbridge.report.terminal import print_report
from weighbridge.report.text.environments import display_name, environment_name, names_of, use_display_names
from weighbridge.report.text.formatting import quantity
from weighbridge.report.text.limits import limit_sentence
from weighbridge.report.text.metric_names import value_unit
from weighbridge.report.text.remarks import remark_text
from weighbridge.store.run import RunStore

from .made_up_runs import LOSS, REQUESTS, TCP, Workload
from .rich_runs import FACTS, KVM, NESTED, ON_GUEST, TCG, WITHIN, XEN
from .swept_runs import Sweep, make_sweep


def unlabelled(text: str) -> list[str]:
    """Every place where such an environment stands without what it was measured in."""
    found = []
    for name, within in WITHIN.items():
        for match in re.finditer(rf"{name}(?!/)", text):
            if not text.startswith(f" {within}", match.end()):
                found.append(text[max(0, match.start() - 40) : match.end() + 60])
    return found


def terminal(analysis, *, width=400, whole=False) -> str:
    file = io.StringIO()
    print_report(analysis, Console(file=file, width=width, highlight=False), everything=whole)
    return file.getvalue().replace("\u00a0", " ")


@pytest.mark.parametrize("whole", [False, True])
def test_no_name_in_the_terminal_is_without_its_hypervisors(rich_analysis, whole):
    text = terminal(rich_analysis, whole=whole)
    assert all(text.count(name) > (5 if whole else 1) for name in WITHIN)
    assert unlabelled(text) == []
    assert "zqemu (QEMU, TCG: emulated) costs " in text


def drawn(page: str) -> str:
    """A page whose axes have their labels in one line, without what its script goes by.

    The study as it was written is in quotes.
    """
    page = re.sub(r' (?:data-environment|value)="[^"]*"', "", page)
    page = re.sub(r"</text><text[^>]*>", " ", page).replace(r"\", \"", " ")
    return re.sub("&#34;[a-z]+&#34;", "", page)


def test_none_in_the_page_and_its_charts_is(rich_page):
    page = drawn(rich_page)
    assert all(page.count(name) > 30 for name in WITHIN)
    assert unlabelled(page) == []


def test_nor_over_time_and_by_level(tmp_path):
    sweep = Sweep(environments=("native", "zqemu", "zkvm", "native-again"), broke=("zkvm", 400))
    make_sweep(tmp_path / "run", sweep).close()
    with RunStore(tmp_path / "run", writable=True) as store:
        store.add_facts(SCOPE, FACTS[SCOPE])
        page = drawn(write_html(store, store.directory / "report.html").read_text())
    assert "Resource use" in page and page.count("zqemu") > 30
    assert unlabelled(page) == []


def test_names_are_those_of_the_study_but_where_people_read_them(rich_analysis):
    names = names_of(rich_analysis)
    controls = {"native-again": "native (control)"}
    assert names == {name: f"{name} {within}" for name, within in WITHIN.items()} | controls
    with use_display_names(names):
        assert (display_name("zkvm"), display_name("bridge")) == ("zkvm (QEMU, KVM)", "bridge")
    assert display_name("zkvm") == "zkvm"


def test_machines_get_the_name_and_the_layers_beside_it(rich_run, rich_analysis):
    limits = limits_json(rich_analysis, judge([parse_requirement("*.tcp.throughput > 5%", LIMIT)], rich_analysis))
    document = json.loads(json.dumps(report_json(rich_run, rich_analysis, limits), allow_nan=False))
    xen = {"layers": [{"name": "QEMU, TCG", "emulated": True}, {"name": "Xen PVH", "emulated": False}],
           "emulated": True}  # fmt: skip
    kept = {"kind": "docker", "control_of": None, "options": {"note": ""}, "workloads": {}}
    assert document["environments"]["zxen"] == {**xen, **kept}
    assert document["environments"]["native"] == {"layers": [], "emulated": False, **kept, "kind": "native"}
    assert document["environments"]["zkvm"] == {"layers": [{"name": "QEMU, KVM", "emulated": False}],
                                                "emulated": False, **kept}  # fmt: skip
    for part in ("costs", "ladder", "curves", "percentiles", "bottlenecks", "overloaded", "limits"):
        rows = document[part]
        assert rows or part == "bottlenecks"
        for row in rows:
            assert row["emulated"] == (row["environment"] in ("zxen", "zqemu")), part
            environment = document["environments"][row["environment"]]
            assert (row["layers"], row["emulated"]) == (environment["layers"], environment["emulated"])


def test_tables_for_spreadsheets_have_them_too(rich_run, tmp_path):
    for path in write_csv(rich_run, tmp_path):
        with path.open() as file:
            rows = list(csv.DictReader(file))
        assert {(row["environment"], row["layers"], row["emulated"]) for row in rows} >= {
            ("zxen", "QEMU, TCG; Xen PVH", "true"), ("zkvm", "QEMU, KVM", "false"), ("bridge", "", "false"),
        }  # fmt: skip


def test_a_limit_is_answered_with_them(rich_analysis):
    (finding,) = judge([parse_requirement("zqemu.tcp.throughput > 5%", LIMIT)], rich_analysis)
    assert "zqemu.tcp.throughput (QEMU, TCG: emulated): " in limit_sentence(finding, rich_analysis)


def test_on_top_stands_whose_the_costs_are(rich_analysis):
    found = rich_analysis
    assert found.notices == (
        Emulated(("zxen", "zqemu"), ("QEMU, TCG",)), Nested(("zxen",), "lab", ("QEMU, TCG",)),
    )  # fmt: skip
    (row,) = [row for row in found.metrics[0].comparisons if row.environment == "zqemu"]
    assert EmulatedCost("zqemu", ("QEMU, TCG",)) in row.remarks
    assert not [each for each in row.remarks if isinstance(each, Nested)]


def test_environments_on_one_guest_are_compared_inside_of_it(run):
    facts = {SCOPE: {f"{name}/server": layers_json(ON_GUEST) for name in ("native", "native-again", "bridge")}}
    facts[SCOPE]["zxen/server"] = layers_json(NESTED)
    found = analyse(run(costs={"zxen": 1.4, "bridge": 1.1}, facts=facts))
    (row,) = [row for row in found.metrics[0].comparisons if row.environment == "zxen"]
    assert Nested((), "lab", ("QEMU, TCG",)) in row.remarks
    text = terminal(found, whole=True)
    assert "against native (inside QEMU, TCG: emulated)" in text
    assert EmulatedCost("zxen", ("QEMU, TCG",), both=True) in row.remarks
    assert not [each for each in row.remarks if each == EmulatedCost("native", ("QEMU, TCG",))]
    (notice,) = [each for each in found.notices if each.code == "emulated"]
    assert notice == Emulated(("native", "zxen", "bridge", "native-again"), ("QEMU, TCG",), "native", everywhere=True)
    assert "Everything was measured under emulation (QEMU, TCG). Real hardware would show different" in text
    assert "Everything was measured on host lab, itself a guest: costs apply inside that machine" in text


def test_environments_on_two_guests_are_told_apart(run):
    first = Layer("Xen's first domain")
    at = {name: SiteLayers("lab", (TCG, first)) for name in ("native", "native-again", "bridge")}
    at["zxen"] = SiteLayers("lab-ports", (TCG,), (XEN,))
    facts = {SCOPE: {f"{name}/server": layers_json(site) for name, site in at.items()}}
    found = analyse(run(costs={"zxen": 1.4, "bridge": 1.1}, facts=facts))
    rows = {row.environment: [each for each in row.remarks if isinstance(each, Nested)]
            for row in found.metrics[0].comparisons}  # fmt: skip
    assert rows["bridge"] == [Nested((), "lab", ("QEMU, TCG", first.name))]
    assert {*rows["zxen"]} == {
        Nested(("zxen",), "lab-ports", ("QEMU, TCG",)), Nested(("native",), "lab", ("QEMU, TCG", first.name)),
    }  # fmt: skip
    text = terminal(found, whole=True)
    assert "against native (inside Xen's first domain inside QEMU, TCG: emulated)" in text
    assert (
        "zxen (Xen PVH inside QEMU, TCG: emulated): measured on host lab-ports, which is itself inside QEMU" in text
    )


def test_a_client_on_a_guest_host_is_a_part_of_every_environment():
    facts = [
        (SCOPE, "outside/client", layers_json(ON_GUEST), 0.0),
        (SCOPE, "zxen/server", layers_json(NESTED), 0.0),
        ("other", "zxen/server", "nonsense", 0.0),
    ]
    found = isolations(facts, ["native", "zxen"])
    assert found == {"native": Isolation((ON_GUEST,)), "zxen": Isolation((NESTED,))}
    assert environment_name("native", found["native"]) == "native (inside QEMU, TCG: emulated)"


def test_a_client_is_a_part_of_those_that_are_measured_with_it_alone():
    first = SiteLayers("machine", (TCG, Layer("Xen's first domain")))
    sites = {"outside/client@machine": first, "outside/client@lab": ON_GUEST, "xen/server@lab": NESTED,
             "xen-beside/server@machine": NESTED}  # fmt: skip
    found = isolations([(SCOPE, key, layers_json(each), 0.0) for key, each in sites.items()],
                       ["xen", "xen-beside", "bare"])  # fmt: skip
    assert {name: each.sites for name, each in found.items()} == {
        "xen": (NESTED,), "xen-beside": (first, NESTED), "bare": (first,)
    }  # fmt: skip


def test_two_roles_in_other_hypervisors_are_both_named():
    sites = Isolation((SiteLayers("a", (), (KVM,)), SiteLayers("b", (), (TCG,))))
    assert environment_name("vm", sites) == "vm (QEMU, KVM; QEMU, TCG: emulated)" and sites.emulated


def test_what_cannot_be_read_is_damage(run):
    with raises_sentence(RunDirectoryError):
        analyse(run(costs={"bridge": 1.1}, facts={SCOPE: {"bridge/server": "no JSON"}}))


def test_a_narrow_terminal_keeps_every_letter(rich_analysis):
    text = terminal(rich_analysis, width=60, whole=True)
    assert max(map(len, text.splitlines())) <= 60
    assert "emulated" in text


@pytest.mark.parametrize("width", [40, 60, 70, 80])
@pytest.mark.parametrize("blocks", [2, 10])
def test_tables_of_long_names_lose_no_figure(run, width, blocks):
    facts = {SCOPE: {"zxen/client": layers_json(SiteLayers("machine", (TCG, Layer("Xen's first domain")))),
                     "zxen/server": layers_json(NESTED)}}  # fmt: skip
    store = run(
        costs={"zxen": 1.4, "a-name-as-long-as-a-name-is-allowed-to-b": 1.01}, facts=facts, blocks=blocks,
        workloads=[Workload("web", [(REQUESTS, 123456.0, 0.5), (LOSS, 0.01, 2.0)])],
        failing={(2, "zxen"): Outcome.DEADLINE}, histograms={"service_latency": 12.0},
    )  # fmt: skip
    analysis = analyse(store)
    text = terminal(analysis, width=width, whole=True)
    assert "…" not in text and max(map(len, text.splitlines())) <= width
    letters = re.sub(r"\s", "", text)
    report = analysis.metrics[0]
    for row in report.comparisons:
        if blocks > 2:
            assert "(exploratory)" in letters or width < 60
            (value,) = {quantity(row.value, "requests/s", value_unit(report)).replace("\u00a0", " ")}
            assert value in text or width < 60
    for latency in analysis.latencies:
        assert all(f"p{percent:g}" in letters for percent in PERCENTS)
        assert text.count(" s ") + text.count(" s\n") >= len(PERCENTS) * len(latency.rows)


def test_cpu_time_that_an_emulated_host_counts_is_told(run):
    workload = Workload("tcp", [*TCP.metrics, (Metric("cpu_all_per_gbit", "s/Gbit", "lower"), 0.9, 0.02)])
    told = {
        each: [remark for row in report.comparisons for remark in row.remarks if isinstance(remark, GuestTicks)]
        for report in analyse(run(costs={"zxen": 1.4, "zqemu": 3.0}, workloads=[workload], facts=FACTS)).metrics
        for each in [report.metric]
    }
    assert told.pop("cpu_all_per_gbit") == [GuestTicks("zxen", "lab")]  # zqemu's is of a process of this machine
    assert not any(told.values())
    assert "host lab's kernel counted" in remark_text(GuestTicks("zxen", "lab"))
