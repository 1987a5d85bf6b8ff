"""`weighbridge compare` and `history` from the command line: what they print where, and their exit codes."""

import json
import shutil
import sqlite3

import pytest

from cli.command_line import one_sentence
from sentences import assert_sentence
from weighbridge.features.gate.compare_command import percent
from weighbridge.store.run import DATABASE


@pytest.fixture
def two(run):
    """Two runs of one question, closed."""
    stores = [run(costs={"bridge": each}, blocks=12, seed=number) for number, each in enumerate((1.2, 1.4))]
    for store in stores:
        store.close()
    return [store.directory for store in stores]


def test_it_prints_tables_and_writes_a_page_where_it_is_told(weighbridge, two, tmp_path):
    page = tmp_path / "page.html"
    said = weighbridge("compare", *two, "--html", page)
    assert said.code == 0 and "1 of 1 costs changed significantly from A to B" in " ".join(said.out.split())
    assert (
        said.out.splitlines()[-1] == f"page: {page}" and not said.err and "<title>Runs compared" in page.read_text()
    )
    assert sorted(each.name for each in two[0].iterdir()) == sorted(each.name for each in two[1].iterdir())
    assert not (two[0] / "report.html").exists()


def test_json_and_markdown_are_alone_on_standard_output(weighbridge, two):
    document = json.loads(weighbridge("compare", *two, "--json").out)
    assert [each["letter"] for each in document["runs"]] == ["A", "B"]
    assert weighbridge("compare", *two, "--markdown").out.startswith("## Runs compared: first-look\n")
    one_sentence(weighbridge("compare", *two, "--markdown", "--json"), 2)


def test_margin_and_allowance_reach_the_comparison(weighbridge, two):
    document = json.loads(weighbridge("compare", *two, "--json", "--margin", "50%", "--allowance", "0%").out)
    change = document["pairs"][0]["costs"][0]["change"]
    assert (change["margin"], change["allowance"], document["pairs"][0]["costs"][0]["verdict"]) == (
        0.5, 0.0, "equivalent",
    )  # fmt: skip


def test_a_fact_that_was_changed_on_purpose_stands_beside_absolute_rates(weighbridge, run, tmp_path):
    facts = [{"host": {"kernel": "Linux 6.1", "sysctl vm.swappiness": value}} for value in ("60", "10")]
    stores = [run(costs={"bridge": 1.2}, blocks=12, seed=number, facts=each) for number, each in enumerate(facts)]
    for store in stores:
        store.close()
    two, named = [store.directory for store in stores], ("--changed", "sysctl:vm.swappiness")
    assert "Absolute values are not compared" in weighbridge("compare", *two, "--all").out
    said = weighbridge("compare", *two, *named, "--all", "--html", tmp_path / "page.html").out
    assert "absolute values (changed on purpose: sysctl vm.swappiness: 60 → 10)" in " ".join(said.split())
    purpose = "changed on purpose: sysctl vm.swappiness: 60 → 10"
    assert purpose in (tmp_path / "page.html").read_text()
    assert purpose in weighbridge("compare", *two, *named, "--markdown").out
    one_sentence(weighbridge("compare", *two, "--changed", "kernel"), 2)


def test_percentages_are_read():
    assert percent("--margin", "3%") == 0.03 and percent("--margin", " 0.5 %") == 0.005


@pytest.mark.parametrize("text", ["3", "three%", "-1%", "100%", "1e3%", "", "٣%", "9" * 400 + "%"])
def test_what_is_no_percentage_is_said(weighbridge, two, text):
    one_sentence(weighbridge("compare", *two, f"--margin={text}"), 2)


def test_one_run_is_not_enough(weighbridge, two):
    one_sentence(weighbridge("compare", two[0]), 2)
    one_sentence(weighbridge("compare", two[0], two[0] / DATABASE), 2)
    assert weighbridge("compare").code == 2


def test_what_is_no_run_is_one_sentence(weighbridge, two, tmp_path):
    one_sentence(weighbridge("compare", two[0], tmp_path / "nowhere"), 6)
    one_sentence(weighbridge("compare", two[0], tmp_path), 6)
    (two[1] / DATABASE).write_bytes(b"no database at all")
    one_sentence(weighbridge("compare", *two), 6)


def test_a_run_of_a_newer_weighbridge_is_refused_by_name(weighbridge, two):
    with sqlite3.connect(two[1] / DATABASE) as file:
        file.execute("PRAGMA user_version = 99")
    one_sentence(weighbridge("compare", *two), 6)


def test_a_run_without_a_measurement_is_refused(weighbridge, two, run):
    empty = run(costs={"bridge": 1.2}, blocks=0)
    empty.close()
    one_sentence(weighbridge("compare", two[0], empty.directory), 6)


def test_runs_of_other_questions_are_refused(weighbridge, two, run):
    other = run(costs={"host": 1.2})
    other.close()
    one_sentence(weighbridge("compare", two[0], other.directory), 6)


def test_a_page_that_cannot_be_written_is_one_sentence(weighbridge, two, tmp_path):
    one_sentence(weighbridge("compare", *two, "--html", tmp_path / "no" / "page.html"), 1)


def test_history_of_a_folder(weighbridge, two, tmp_path):
    (two[0].parent / "foreign").mkdir()
    said = weighbridge("history", two[0].parent)
    assert said.code == 0 and "run0" in said.out and "run1" in said.out
    assert_sentence(said.err)
    document = json.loads(weighbridge("history", two[0].parent, "--json").out)
    assert [each["name"] for each in document["runs"]] == ["run0", "run1"]


def test_history_of_nothing(weighbridge, tmp_path):
    (tmp_path / "empty").mkdir()
    one_sentence(weighbridge("history", tmp_path / "empty"), 6)
    one_sentence(weighbridge("history", tmp_path / "nowhere"), 6)


def test_history_of_one_run_is_that_run(weighbridge, two):
    copied = two[0].parent / "alone" / "x"
    shutil.copytree(two[0], copied)
    document = json.loads(weighbridge("history", copied, "--json").out)
    assert [each["name"] for each in document["runs"]] == ["x"]
