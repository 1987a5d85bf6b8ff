"""What the programs of trials used, each alone: medians over the blocks, beside what their site used."""

import pytest

from csv_rows import csv_rows
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.program_use import program_use
from weighbridge.model.measurement import Outcome
from weighbridge.report.export.csv import write_programs
from weighbridge.report.export.json import report_json
from weighbridge.report.sections.metrics import program_table

from .test_html import page_of

SAMPLES = (
    ("server", "program_cpu_user_s", 0.2), ("server", "program_cpu_system_s", 0.6), ("server", "cpu_s", 0.9),
    ("client", "program_cpu_user_s", 0.1), ("client", "program_switches", 1000.0), ("client", "cpu_s", 0.5),
    ("warm-up", "program_cpu_user_s", 9.0), ("host", "cpu_s", 99.0),
)  # fmt: skip


def test_each_role_has_a_row_for_each_environment(run):
    store = run(costs={"bridge": 2.0}, aa=False, blocks=3, samples=SAMPLES, failing={(2, "bridge"): Outcome.DEADLINE})
    rows = program_use(store, analyse(store))["tcp"]
    found = {(row.role, row.environment): row for row in rows}
    assert [*found] == [(role, name) for role in ("server", "client") for name in ("native", "bridge")]
    assert found["server", "native"].medians == {
        "program_cpu_user_s": 0.2, "program_cpu_system_s": 0.6, "cpu_s": 0.9
    }  # fmt: skip
    bridge = found["client", "bridge"]
    assert bridge.blocks == 2 and bridge.medians["program_switches"] == pytest.approx(2000.0)


def test_the_table_has_the_columns_that_were_told(run):
    store = run(costs={"bridge": 2.0}, aa=False, blocks=2, samples=SAMPLES)
    table = program_table(program_use(store, analyse(store))["tcp"])
    assert table.heads == ["CPU, user", "CPU, system", "CPU, whole site", "context switches"]
    generator = [[cell.replace("\u00a0", " ") for cell in row] for row in table.roles["generator"]]
    assert generator[0] == ["native", "100 ms", "–", "500 ms", "1,000"] and generator[1][0] == "bridge"
    assert page_of(store).text.count("The programs alone") == 1


def test_what_a_guest_sees_stands_beside_what_its_hypervisor_used(run, tmp_path):
    """Also for machines; an environment without a kernel of its own has a gap there, and no zero."""
    guest = (*SAMPLES, ("server", "guest_cpu_s", 0.5), ("server", "guest_steal_s", 0.1))
    store = run(costs={"bridge": 2.0}, aa=False, blocks=2, samples=guest)
    table = program_table(program_use(store, analyse(store))["tcp"])
    assert table.heads[2:5] == ["CPU, whole site", "CPU, guest's view", "steal, guest's view"]
    assert table.roles["server"][0][3:6] == ["900\u00a0ms", "500\u00a0ms", "100\u00a0ms"]
    assert table.roles["generator"][0][4:6] == ["–", "–"]
    (server, *_) = report_json(store)["programs"]
    assert (server["environment"], server["role"], server["workload"]) == ("native", "server", "tcp")
    assert server["medians"]["cpu_s"] == 0.9 and server["medians"]["guest_cpu_s"] == 0.5
    rows = [row for row in csv_rows(write_programs(store, tmp_path)) if row["name"] == "guest_cpu_s"]
    assert [(row["trial"] > 0, row["role"], row["unit"]) for row in rows] == 4 * [(True, "server", "s")]


def test_a_run_from_before_launchers_told_it_has_no_table(run):
    store = run(costs={"bridge": 2.0}, blocks=2, samples=(("server", "cpu_s", 0.9),))
    assert program_use(store, analyse(store)) == {} and "The programs alone" not in page_of(store).text
