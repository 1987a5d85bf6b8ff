"""Environments that could not be opened: said in every form of a report, and in the ladder."""

import io

import pytest
from rich.console import Console

from csv_rows import csv_rows
from weighbridge.analysis.analyse import analyse
from weighbridge.errors import RunDirectoryError
from weighbridge.features.replication.comparison import replication
from weighbridge.features.replication.document import replication_json
from weighbridge.features.replication.published import published
from weighbridge.model.decisions import LeftOut
from weighbridge.report.export.csv import write_csv
from weighbridge.report.export.json import report_json
from weighbridge.report.html import write_html
from weighbridge.report.terminal import print_report
from weighbridge.report.text.conditions import left_out_lines
from weighbridge.store.run import RunStore

KVM = LeftOut(environment="kvm", kind="qemu", why="/dev/kvm is missing", remedy="enable nested virtualisation")
PODMAN = LeftOut(environment="podman", kind="podman", why="<b>no image came up</b>")
LINE = "kvm was skipped (/dev/kvm is missing; enable nested virtualisation)"


def printed(analysis) -> str:
    text = io.StringIO()
    print_report(analysis, Console(file=text, width=1000))
    return text.getvalue()


@pytest.mark.parametrize("blocks", [0, 1, 10])
def test_every_form_says_it(run, tmp_path, blocks: int):
    store = run(costs={"host": 1.2}, left_out=(KVM, PODMAN), blocks=blocks)
    analysis = analyse(store)
    assert analysis.environments == ("native", "host", "native-again")
    assert LINE in printed(analysis)
    page = write_html(store, tmp_path / "report.html").read_text()
    assert LINE in page and "&lt;b&gt;no image came up" in page and "<b>no image" not in page
    document = report_json(store)
    assert document["left_out"] == [
        {"environment": "kvm", "kind": "qemu", "why": KVM.why, "remedy": KVM.remedy},
        {"environment": "podman", "kind": "podman", "why": PODMAN.why, "remedy": ""},
    ]
    assert not [row for row in document["costs"] if row["environment"] in ("kvm", "podman")]
    rows = csv_rows(write_csv(store, tmp_path)[0])
    (row,) = [each for each in rows if each["environment"] == "kvm"]
    assert (row["outcome"], row["message"], row["trial"]) == ("left out", KVM.reason, None)


def test_a_step_from_it_is_linked_to_what_it_adds_to(run):
    ladder = [["native", None], ["kvm", "native"], ["host", "kvm"], ["podman", "host"]]
    found = analyse(run(costs={"host": 1.2}, left_out=(KVM, PODMAN), ladder=ladder))
    steps = {(step.row.against, step.row.environment) for each in found.ladder for step in each.steps}
    assert steps == {("native", "host")}
    first, second = left_out_lines(found)
    assert first == f"{LINE}; host is compared with native instead"
    assert second.endswith("(<b>no image came up</b>)")


def test_a_root_of_the_ladder_that_is_left_out(run):
    found = analyse(run(costs={"host": 1.2}, left_out=(KVM,), ladder=[["kvm", None], ["host", "kvm"]]))
    assert not found.ladder
    assert left_out_lines(found)[0].endswith("; host has nothing to be compared with in the ladder")


def test_a_replication_row_says_it(run):
    bridge = LeftOut(environment="docker-bridge", kind="docker", why="docker does not answer", remedy="start it")
    found = replication(
        analyse(run(costs={"docker-host": 1.0}, study="docker-networks", left_out=(bridge,))),
        published("docker-networks"),
    )
    rows = [row for row in replication_json(found)["rows"] if row["environment"] == "docker-bridge"]
    said = "docker-bridge was skipped: docker does not answer; start it"
    assert rows and all(row["direction"] == "not measured" and row["why"] == said for row in rows)


@pytest.mark.parametrize("text", ["{}", "[1]", '[{"environment": "x"}]', "nonsense"])
def test_a_damaged_run_is_told(run, text: str):
    directory = run(costs={"host": 1.2}, blocks=1).directory
    with RunStore(directory, writable=True) as store:
        store.set_info("left_out", text)
        with pytest.raises(RunDirectoryError, match="left_out"):
            analyse(store)
