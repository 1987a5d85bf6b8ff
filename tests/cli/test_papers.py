"""What authors and evaluators call: `report --methods`, `report --bib`, `replicate --claims`, `kit --run`."""

import gzip
import hashlib
import os
import shutil

import pytest

from csv_rows import csv_rows
from report.latex_text import is_plain
from report.made_up_runs import Recipe, Workload, make_run
from sentences import assert_sentence
from weighbridge.model.measurement import Metric
from weighbridge.store.database import WAL
from weighbridge.store.run import DATABASE

from .command_line import one_sentence

LATENCY = Workload("latency", [(Metric("one_way_latency", "ms", "lower"), 0.05, 0.002)])


@pytest.fixture
def replicated(tmp_path):
    recipe = Recipe(costs={"docker-host": 1.0, "docker-bridge": 1.131}, workloads=[LATENCY], study="docker-networks")
    store = make_run(tmp_path / "replicated", recipe)
    store.close()
    return store.directory


def test_the_methods_of_a_run(weighbridge, run):
    before = (run / DATABASE).read_bytes()
    said = weighbridge("report", run, "--methods")
    assert (said.code, said.err) == (0, "") and said.out.startswith("With Weighbridge ")
    in_latex = weighbridge("report", run, "--methods", "--latex")
    assert in_latex.code == 0 and is_plain(in_latex.out) and r"\textless{}6.1\textgreater{}" in in_latex.out
    assert (run / DATABASE).read_bytes() == before and not (run / "report.html").exists()


def test_the_entry_of_a_run(weighbridge, run):
    said = weighbridge("report", run, "--bib")
    assert said.code == 0 and "@misc{weighbridge-0123456789ab," in said.out
    assert hashlib.sha256((run / DATABASE).read_bytes()).hexdigest() in said.out


def test_one_format_at_a_time(weighbridge, run, replicated):
    one_sentence(weighbridge("report", run, "--methods", "--bib"), 2)
    one_sentence(weighbridge("report", run, "--methods", "--json"), 2)
    one_sentence(weighbridge("replicate", "--report", replicated, "--latex", "--csv"), 2)


def test_the_file_of_a_killed_run_is_not_complete(weighbridge, run):
    (run / WAL).write_bytes(b"x" * 100)
    one_sentence(weighbridge("report", run, "--bib"), 6)
    one_sentence(weighbridge("kit", "--run", run), 6)


def test_the_claims_of_a_published_study(weighbridge, replicated, tmp_path):
    said = weighbridge("replicate", "--report", replicated, "--claims")
    assert said.code == 0 and "docker-bridge" in said.out and "inside" in said.out
    (tmp_path / "claims.csv").write_text(weighbridge("replicate", "--report", replicated, "--csv").out)
    assert len(csv_rows(tmp_path / "claims.csv")) == 45
    assert (replicated / "replication.html").is_file()


def test_a_run_is_packed(weighbridge, run, tmp_path):
    database = (run / DATABASE).read_bytes()
    said = weighbridge("kit", "--run", run, "--out", tmp_path / "kit")
    assert (said.code, said.err) == (0, "")
    assert_sentence(said.out)
    assert gzip.decompress((tmp_path / "kit/original.sqlite.gz").read_bytes()) == database
    assert os.access(tmp_path / "kit/repeat.sh", os.X_OK) and not os.access(tmp_path / "kit/README.md", os.X_OK)
    assert weighbridge("plan", tmp_path / "kit/study.yaml").code in (0, 4)
    assert (run / DATABASE).read_bytes() == database
    assert "kit-0123456789ab written" in weighbridge("kit", "--run", run / DATABASE).out
    one_sentence(weighbridge("kit", "--run", run, "--out", tmp_path / "kit"), 1)


def test_what_cannot_be_packed(weighbridge, run, tmp_path):
    one_sentence(weighbridge("kit"), 2)
    one_sentence(weighbridge("kit", "first-look", "--run", run), 2)
    one_sentence(weighbridge("kit", "--run", run, "--profile", "quick"), 2)
    one_sentence(weighbridge("kit", "--run", tmp_path / "nowhere"), 6)
    shutil.copytree(run, tmp_path / "runs/one")
    one_sentence(weighbridge("kit", "--run", tmp_path / "runs"), 6)
