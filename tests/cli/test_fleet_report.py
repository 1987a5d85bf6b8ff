"""`weighbridge fleet report`: what it prints and writes where, and its failures in one sentence."""

import json

import pytest

from documents import fits
from report.made_up_fleets import make_fleet, new_fleet
from sentences import assert_sentence
from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.errors import RunDirectoryError, WeighbridgeError

from .command_line import one_sentence


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_fleet(tmp_path_factory.mktemp("fleets") / "now", 6, odd={"n3": 1.3})


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    return make_fleet(tmp_path_factory.mktemp("fleets") / "before", 6, seed=2)


def test_it_prints_a_screen_and_writes_its_page(weighbridge, folder, tmp_path):
    said = weighbridge("fleet", "report", folder)
    assert said.code == 0 and said.out.startswith("uplink: 1 of 6 machines is an outlier: n3.") and not said.err
    assert "n3: bridge TCP throughput" in (folder / "fleet.html").read_text()
    said = weighbridge("fleet", "report", folder / "runs", "--out", tmp_path / "page.html")
    assert said.code == 0 and (tmp_path / "page.html").exists() and not (folder / "runs" / "fleet.html").exists()


def test_for_machines(weighbridge, folder, earlier, tmp_path):
    said = weighbridge("fleet", "report", folder, "--against", earlier, "--json")
    document = json.loads(said.out)
    fits(SchemaDocument.FLEET, document)
    assert said.code == 0 and [each["machine"] for each in document["odd_machines"]] == ["n3"]
    assert document["against"]["folder"] == str(earlier)
    said = weighbridge("fleet", "report", folder, "--json", "--out", tmp_path / "page.html", "--margin", "60%")
    assert said.err == f"page: {tmp_path / 'page.html'}\n" and json.loads(said.out)["odd_machines"] == []


def test_the_machines_that_changed_are_named(weighbridge, folder, earlier):
    assert weighbridge("fleet", "report", folder, "--against", folder).code == 2, "it is no earlier one"
    said = weighbridge("fleet", "report", folder, "--against", earlier)
    assert "A cost changed on" in said.out and "n3" in said.out.partition("A cost changed on")[2]


@pytest.mark.parametrize("margin", ["0%", "three", "100%"])
def test_a_margin_that_is_none(weighbridge, folder, margin):
    said = weighbridge("fleet", "report", folder, "--margin", margin)
    one_sentence(said, 2)


def test_what_is_no_fleet_is_told_in_one_sentence(weighbridge, folder, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    new_fleet(tmp_path / "two" / "a")
    new_fleet(tmp_path / "two" / "b")
    for name in ("missing", "file", "empty", "two"):
        one_sentence(weighbridge("fleet", "report", tmp_path / name), RunDirectoryError.exit_code)
        against = weighbridge("fleet", "report", folder, "--against", tmp_path / name)
        assert against.code == RunDirectoryError.exit_code and not against.out


def test_a_page_that_cannot_be_written(weighbridge, folder, tmp_path):
    said = weighbridge("fleet", "report", folder, "--out", tmp_path / "nowhere" / "page.html")
    one_sentence(said, WeighbridgeError.exit_code)


def test_somebody_elses_folder_is_reported_without_its_page(weighbridge, folder, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied", "fleet.html")

    monkeypatch.setattr("weighbridge.features.fleets.report_command.write_document", refuse)
    said = weighbridge("fleet", "report", folder)
    assert said.code == WeighbridgeError.exit_code and said.out.startswith("uplink: ") and "page:" not in said.out
    assert_sentence(said.err.strip())
