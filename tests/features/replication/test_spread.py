"""Statistics of published studies beside means: ratios of two environments, coefficients of variation."""

import json
import math

import pytest
from pydantic import ValidationError
from scipy import stats

from report.made_up_runs import Workload
from sentences import raises_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.features.replication.comparison import replication
from weighbridge.features.replication.document import replication_json
from weighbridge.features.replication.proof import rows
from weighbridge.features.replication.published import (
    Compared,
    Figure,
    Measured,
    Published,
    SpreadTable,
    published,
    unused,
)
from weighbridge.features.replication.words import direction_words
from weighbridge.model.decisions import LeftOut
from weighbridge.model.facts import layers_json
from weighbridge.model.isolation import SCOPE, Layer, SiteLayers
from weighbridge.model.measurement import Metric, Outcome
from weighbridge.statistics.one_sample import RunSpread, spread

from .rendered import page, printed

TCP = Workload("tcp", [(Metric("throughput", "bit/s", "higher"), 5e10, 0.05)])
THROUGHPUT = Measured(workload="tcp", metric="throughput")


def figure(environment: str, statistic: str, value: float, unit: str = "Mbit/s", **other) -> Figure:
    about = {"study": "s", "table": "Section 1", "workload": "iperf", "metric": "throughput", "unit": unit}
    keys = {"environment": environment, "level_name": "", "level": "", "statistic": statistic, "value": value}
    return Figure.model_validate({**about, **keys, "better": "higher", **other})


def ratios(**other) -> Compared:
    keys = {"title": "ratios", "labels": ("Section 1",), "workload": "iperf", "metric": "throughput", "unit": "1"}
    return Compared.model_validate({**keys, "statistic": "ratio", "measured": THROUGHPUT, **other})


def study(*figures: Figure, comparisons: tuple[Compared, ...] = (), **other) -> Published:
    return Published.model_validate({
        "study": "s", "source": "x", "baseline": "native", "runs": 10, "comparisons": comparisons,
        "environments": {"native": "native", "qemu": ["kvm", "tcg"], "xen": "xen"}, "figures": figures, **other,
    })  # fmt: skip


PRINTED = (figure("qemu / native", "ratio", 0.5, "1"), figure("xen / qemu", "ratio", 2, "1"))


# -- ratios of two environments --------------------------------------------------------------------


def test_a_printed_ratio_is_a_row_for_each_environment_in_its_place():
    given = study(*PRINTED, comparisons=(ratios(),))
    found = [(row.environment, row.against, row.effect, row.proof) for row in rows(given, ratios(), 0.03)]
    assert found == [
        ("kvm", "", 0.5, "sign only"), ("tcg", "", 0.5, "sign only"),
        ("xen", "kvm", 2.0, "sign only"), ("xen", "tcg", 2.0, "sign only"),
    ]  # fmt: skip
    assert unused(given) == []
    assert unused(study(*PRINTED))


def test_two_environments_are_compared_inside_their_blocks(run):
    store = run(costs={"kvm": 1.6, "tcg": 4.0, "xen": 1.1}, workloads=[TCP], failing={(3, "xen"): Outcome.DEADLINE})
    found = replication(analyse(store), study(*PRINTED, comparisons=(ratios(),)))
    here = {row.name: row for row in found.tables[0].rows}
    assert set(here) == {"kvm", "tcg", "xen / kvm", "xen / tcg"}
    assert all(row.verdict == "agrees" for row in here.values())
    pair = here["xen / tcg"].measured
    assert pair.cost.typical == pytest.approx(4.0 / 1.1, rel=0.1) and pair.blocks == 9
    assert pair.cost.low < 4.0 / 1.1 < pair.cost.high and pair.verdict == "different"
    assert here["tcg"].measured.cost in [each.cost for each in analyse(store).metrics[0].comparisons]
    document = replication_json(found)
    assert [(row["environment"], row["against"]) for row in document["rows"]] == [
        ("kvm", "native"), ("tcg", "native"), ("xen", "kvm"), ("xen", "tcg"),
    ]  # fmt: skip
    assert document["rows"][2]["value"] is None and document["rows"][2]["published"]["estimate"] == 2


def test_a_baseline_of_its_own_is_another_environment_of_the_run(run):
    compared = Compared(
        title="t", labels=("Section 1",), workload="iperf", metric="throughput", unit="Mbit/s", measured=THROUGHPUT,
        against="kvm", environments={"native": ("kvm",), "xen": ("xen",)}, spread="cv",
    )  # fmt: skip
    figures = (figure("native", "mean", 100), figure("native", "cv", 2, "%"), figure("xen", "mean", 50),
               figure("xen", "cv", 4, "%"))  # fmt: skip
    found = replication(
        analyse(run(costs={"kvm": 1.5, "xen": 3.0}, workloads=[TCP])), study(*figures, comparisons=(compared,))
    )
    (row,) = found.tables[0].rows
    assert (row.name, row.published.proof, row.verdict) == ("xen / kvm", "different", "agrees")
    degrees = 9 * (0.02**2 + 0.04**2) ** 2 / (0.02**4 + 0.04**4)  # Welch and Satterthwaite, ten runs each
    half = stats.t.ppf(0.975, degrees)
    width = half * math.sqrt((0.02**2 + 0.04**2) / 10)
    assert math.log(row.published.interval.high / 0.5) == pytest.approx(width, rel=1e-6)


@pytest.mark.parametrize("costs", [{"kvm": 1.5}, {"kvm": 1.5, "xen": 2.0}])
def test_what_there_is_no_environment_for_is_listed_with_the_reason(run, tmp_path, costs):
    """Also beside a run whose own study happens to have something of that name."""
    why = "qemu-system-x86_64 is not installed"
    tcg = LeftOut(environment="tcg", kind="qemu", why=why, remedy="apt-get install x")
    given = study(*PRINTED, comparisons=(ratios(),), no_environment={"xen": "no environment of this kind yet"})
    store = run(costs=costs, workloads=[TCP], left_out=(tcg,))
    found = replication(analyse(store), given)
    whys = {row.name: row.reason for row in found.tables[0].rows}
    assert whys["kvm"] == ""
    assert whys["tcg"].endswith("qemu-system-x86_64 is not installed; apt-get install x")
    if "xen" not in costs:
        assert whys["xen / kvm"] == "xen: no environment of this kind yet"
    assert whys["xen / tcg"] == "xen: no environment of this kind yet"
    written = page(found, store, tmp_path / "page.html")
    assert "xen: no environment of this kind yet" in written and "qemu-system-x86_64 is not installed" in written
    text = printed(found, store)
    assert "no environment of this kind yet" in text and "ratio of two environments" in text


@pytest.mark.parametrize("other", [{"levels": {"a": "a"}}, {"tests": ("x",)}, {"scale": "difference"}])
def test_a_ratio_has_no_levels_and_no_difference(other):
    with raises_sentence(ValidationError):
        ratios(**other)


# -- coefficients of variation ---------------------------------------------------------------------

TABLE = SpreadTable(
    title="RunSpread",
    labels=("Section 1",),
    workload="iperf",
    metric="throughput",
    unit="Mbit/s",
    measured=THROUGHPUT,
)


def test_the_spread_of_runs_is_numpy_s_and_its_limits_scipy_s():
    found = spread([9.0, 10.0, 11.0, 10.0])
    assert (found.mean, found.runs) == (10.0, 4) and found.deviation == pytest.approx(math.sqrt(2 / 3))
    low, high = found.limits
    chi = [stats.chi2.ppf(share, 3) for share in (0.975, 0.025)]
    assert (low, high) == pytest.approx([found.variation * math.sqrt(3 / each) for each in chi])
    assert spread([1.0]) is None and spread([]) is None
    assert RunSpread(0.0, 1.0, 5).variation is None and RunSpread(0.0, 1.0, 5).limits is None


def test_published_and_measured_spread_stand_side_by_side(run, tmp_path):
    figures = (figure("native", "mean", 200), figure("native", "cv", 7.79, "%"), figure("xen", "mean", 100),
               figure("xen", "stdev", 5), figure("qemu", "mean", 50))  # fmt: skip
    given = study(*figures, spreads=(TABLE,), no_environment={"xen": "no environment of this kind yet"})
    assert unused(given) == []
    store = run(costs={"kvm": 1.6}, workloads=[TCP])
    analysis = analyse(store)
    found = replication(analysis, given)
    here = {row.published.environment: row for row in found.spreads[0].rows}
    assert list(here) == ["native", "kvm", "tcg", "xen"]
    assert here["native"].published.deviation == pytest.approx(15.58)
    assert here["native"].published.derived == ("deviation",)
    assert here["xen"].published.variation == 0.05 and here["xen"].published.derived == ("variation",)
    assert here["kvm"].published.variation is None and not here["kvm"].published.derived
    values = analysis.block_values(analysis.metrics[0], "native")
    assert here["native"].measured.mean == pytest.approx(sum(values) / len(values))
    assert (
        here["xen"].reason == "xen: no environment of this kind yet"
        and here["tcg"].reason == "tcg is not in this run"
    )
    document = json.loads(json.dumps(replication_json(found), allow_nan=False))
    assert [row["environment"] for row in document["spreads"]] == list(here)
    assert document["spreads"][0]["measured"]["runs"] == 10 and document["spreads"][3]["measured"] is None
    written = page(found, store, tmp_path / "page.html")
    assert "15.6 Mbit/s (derived)" in written and "7.79 %" in written and "5.00 % (derived)" in written
    text = printed(found, store)
    assert "15.6 Mbit/s (derived)" in text and "(10 runs)" in text


def test_one_block_has_no_spread(run):
    given = study(figure("native", "mean", 200), spreads=(TABLE,))
    row = replication(analyse(run(costs={"kvm": 2.0}, workloads=[TCP], blocks=1)), given).spreads[0].rows[0]
    assert row.measured is None and row.reason == "fewer than two blocks of tcp in this run"


# -- docker-vs-virtualbox --------------------------------------------------------------------------


def test_docker_beside_virtualbox(run):
    given = published("docker-vs-virtualbox")
    store = run(costs={"docker-bridge": 2.0, "docker-host": 1.0}, workloads=[TCP], study=given.study)
    found = replication(analyse(store), given)
    (bridge,), (host,) = (table.rows for table in found.tables)
    assert bridge.published.effect == pytest.approx(3740.15 / 51996.17) and bridge.published.proof == "different"
    assert bridge.reason == host.reason and "virtualbox is not in this run" in bridge.reason
    here = {row.published.environment: row.published for row in found.spreads[0].rows}
    assert list(here) == ["docker-bridge", "docker-host", "virtualbox", "qemu-kvm", "qemu-tcg"]
    assert here["qemu-tcg"].mean is None is here["qemu-kvm"].variation  # another hypervisor is no replication
    assert here["docker-host"].deviation == pytest.approx(51996.17 * 0.0779)
    assert here["virtualbox"].deviation == pytest.approx(3740.15 * 0.1192)
    assert all(each.derived == ("deviation",) for each in here.values() if each.mean)


QEMU = {
    "qemu-tcg/server": SiteLayers("here", (), (Layer("QEMU, TCG", emulated=True),)),
    "qemu-kvm/server": SiteLayers("here", (), (Layer("QEMU, KVM"),)),
}
LAYERS = {SCOPE: {place: layers_json(each) for place, each in QEMU.items()}}
NAME_TCG, NAME_KVM = "qemu-tcg (QEMU, TCG: emulated)", "qemu-kvm (QEMU, KVM)"


def test_spreads_fit_in_a_terminal_and_name_the_hypervisors(run, tmp_path):
    given = published("docker-vs-virtualbox")
    store = run(costs={"docker-bridge": 2.0, "qemu-tcg": 9.0}, workloads=[TCP], study=given.study, facts=LAYERS)
    found = replication(analyse(store), given)
    said = printed(found, store, 80)
    words = {word for line in said.splitlines() for word in line.split()}
    assert {"docker-bridge", "published", "measured", "coefficient", "variation", "(derived)", "[95%]"} <= words
    assert {"qemu-tcg", "(QEMU,", "TCG:", "emulated)"} <= words
    assert "7.79 %" in said and "not measured (virtualbox is not in this run" in said
    rows = {row["environment"]: row["measured"] for row in replication_json(found)["spreads"]}
    assert rows["qemu-tcg"]["emulated"] and rows["qemu-tcg"]["layers"] == [{"name": "QEMU, TCG", "emulated": True}]
    assert not rows["docker-bridge"]["emulated"] and rows["virtualbox"] is None
    written = page(found, store, tmp_path / "page.html")
    assert f">{NAME_TCG}</th>" in written


# -- hypervisor-network ----------------------------------------------------------------------------

CLIENTS = [Workload("tcp", TCP.metrics, (("client", place),)) for place in ("machine", "elsewhere")]
WITHOUT = {"xen / qemu-kvm", "xen / qemu-tcg", "virtualbox / qemu-kvm", "virtualbox / qemu-tcg"}


def test_both_test_environments_stand_beside_the_client_elsewhere(run):
    given = published("hypervisor-network")
    store = run(costs={"qemu-kvm": 1.3, "qemu-tcg": 9.0}, workloads=CLIENTS, study=given.study, facts=LAYERS)
    found = replication(analyse(store), given)
    assert [table.source.measured.level for table in found.tables] == [{"client": "elsewhere"}] * 2
    for table in found.tables:
        here = {row.name: row for row in table.rows}
        assert set(here) == {NAME_KVM, NAME_TCG, *WITHOUT}
        assert here[NAME_KVM].verdict == here[NAME_TCG].verdict == "agrees"
        assert direction_words(here[NAME_TCG]) == "agrees (sign only, emulated)"
        assert all(
            ("--profile xen" if name.startswith("xen") else "virtualbox is not in this run") in here[name].reason
            for name in WITHOUT
        )
    assert [out.why for out in given.left_out if "44 Mbit/s" in out.why]


def test_the_other_side_of_a_pair_has_its_hypervisors_too(run):
    given = published("hypervisor-network")
    costs = {"qemu-kvm": 1.3, "qemu-tcg": 9.0, "xen": 1.1}
    found = replication(analyse(run(costs=costs, workloads=CLIENTS, study=given.study, facts=LAYERS)), given)
    assert {f"xen / {NAME_TCG}", f"xen / {NAME_KVM}"} <= {row.name for row in found.tables[0].rows}


def test_a_hypervisor_that_does_not_come_up_is_listed_with_the_reason(run):
    given = published("hypervisor-network")
    kvm = LeftOut(environment="qemu-kvm", kind="qemu", why="no guest comes up under KVM on host machine")
    store = run(costs={"qemu-tcg": 9.0}, workloads=CLIENTS, study=given.study, facts=LAYERS, left_out=(kvm,))
    text = printed(replication(analyse(store), given), store)
    assert "no guest comes up under KVM on host machine): virtualbox / qemu-kvm, qemu-kvm" in text
    assert "xen: on guest hosts alone (--profile xen)" in text
