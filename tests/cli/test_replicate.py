"""`weighbridge replicate`: what it refuses before anything runs, and the pages of a finished run."""

import json

import pytest

from report.made_up_runs import Recipe, Workload, make_run
from weighbridge.model.measurement import Metric
from weighbridge.report.screen import LINES

from .command_line import one_sentence

COSTS = {"docker-host": 1.0, "docker-bridge": 1.12}
LATENCY = Workload("latency", [(Metric("one_way_latency", "ms", "lower"), 0.05, 0.002)])


@pytest.fixture
def finished(tmp_path):
    store = make_run(tmp_path / "finished", Recipe(costs=COSTS, workloads=[LATENCY], study="docker-networks"))
    store.close()
    return store.directory


def test_the_pages_of_a_finished_run_are_written_again(weighbridge, finished):
    said = weighbridge("replicate", "--report", finished)
    assert said.code == 0
    assert "45 published comparisons: " in said.out and len(said.out.splitlines()) <= LINES
    assert said.out.splitlines()[-1] == f"published and measured: {finished / 'replication.html'}"
    assert "Table 8: one-way latency" in weighbridge("report", finished, "--all").out
    assert (finished / "report.html").is_file() and (finished / "replication.html").is_file()


def test_a_page_elsewhere_leaves_the_run_as_it_is(weighbridge, finished, tmp_path):
    weighbridge("replicate", "--report", finished)
    pages = [finished / "report.html", finished / "replication.html"]
    for page in pages:
        page.write_text("before")
    said = weighbridge("report", finished, "--html", tmp_path / "elsewhere.html")
    assert said.code == 0 and "</html>" in (tmp_path / "elsewhere.html").read_text()
    assert [page.read_text() for page in pages] == ["before", "before"] and "replication.html" not in said.err
    assert weighbridge("report", finished).code == 0
    assert all("</html>" in page.read_text() for page in pages)


def test_as_json(weighbridge, finished):
    said = weighbridge("replicate", "--report", finished, "--json")
    assert json.loads(said.out)["study"] == "docker-networks"


def test_a_study_without_published_figures(weighbridge, tmp_path):
    one_sentence(weighbridge("replicate", "first-look"), 3)
    make_run(tmp_path / "plain", Recipe(costs=COSTS)).close()
    one_sentence(weighbridge("replicate", "--report", tmp_path / "plain"), 3)
    one_sentence(weighbridge("replicate", "--out", tmp_path / "plain"), 3)


def test_wrong_command_lines(weighbridge, finished):
    one_sentence(weighbridge("replicate"), 2)
    one_sentence(weighbridge("replicate", "docker-networks", "--report", finished), 2)
    one_sentence(weighbridge("replicate", "--out", finished, "--profile", "quick"), 2)
    one_sentence(weighbridge("replicate", "docker-networks", "--profile", "quik"), 3)
    one_sentence(weighbridge("replicate", "docker-networks", "--link", "fast"), 3)
    one_sentence(weighbridge("run", "--out", finished, "--profile", "quick"), 2)
    one_sentence(weighbridge("plan", "first-look", "--profile", "quik"), 3)


def test_nowhere_to_report(weighbridge, tmp_path):
    one_sentence(weighbridge("replicate", "--report", tmp_path / "nowhere"), 6)
    one_sentence(weighbridge("replicate", "--out", tmp_path / "nowhere"), 6)
    assert not (tmp_path / "nowhere").exists()


def test_a_bundled_study_of_hypervisors_is_planned_in_every_profile(weighbridge):
    for profile in ("standard", "quick", "published"):
        said = weighbridge("plan", "hypervisor-network", "--profile", profile)
        assert said.code in (0, 4) and "qemu-tcg" in said.out and "client=elsewhere" in said.out
