"""A pull request from its commits to its comment, as a CI job runs it: `weigh --base`, `ci/gate.sh`, `comment`."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from features.pull_request.service import Service, served
from weighbridge.analysis.analyse import analyse
from weighbridge.report.comment import marker
from weighbridge.store.run import RunStore

from .machine import Machine
from .pull_requests import BUILD, TESTED, WEIGHBRIDGE, job, versions
from .repositories import commit, git, repository

METRIC = ("--metric", r"version=regex:version=(\d+),higher,count")


def weigh(repo: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [*WEIGHBRIDGE.split(), "weigh", "--out", str(repo.parent / "run"), "--cpu-idle", "halt", *words]
    env = {**os.environ, "WEIGHBRIDGE_CACHE": str(repo.parent / "cache")}
    return subprocess.run(argv, cwd=repo, capture_output=True, text=True, timeout=300, check=False, env=env)


def values(run: Path, metric: str) -> dict[tuple[str, str], set[float]]:
    """The values of a metric by environment and workload."""
    found: dict[tuple[str, str], set[float]] = {}
    with sqlite3.connect(run / "run.sqlite") as store:
        query = (
            "select t.environment, t.workload, m.value from trial t join measurement m on m.trial = t.id "
            "where m.metric = ? and t.block > 0"
        )
        for environment, workload, value in store.execute(query, (metric,)):
            found.setdefault((environment, workload), set()).add(value)
    return found


def test_each_version_runs_in_its_own_tree_natively_and_in_each_environment(tmp_path: Path, machine: Machine):
    files = {"ask": "#!/bin/sh\necho version=$(cat $1)\n", "a": "1", "b": "5"}
    repo = repository(tmp_path / "repo", files, {"a": "2", "b": "6"})
    done = weigh(
        repo, "--base", "HEAD^", "--rounds", "2", *METRIC, "--in", "bubblewrap,docker", "--command", "a=./ask a",
        "--command", "b=./ask b", "--markdown", "-",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    places = ("", "-bubblewrap", "-docker")
    expected = {
        (f"{name}{place}", program): {float(value)}
        for name, both in (("base", "15"), ("head", "26"))
        for program, value in zip("ab", both, strict=True)
        for place in places
    }
    expected |= {("base-again", "a"): {1.0}, ("base-again", "b"): {5.0}}
    assert values(tmp_path / "run", "version") == expected
    assert done.stdout.startswith("**") and "report: " not in done.stdout, "only the Markdown"
    with RunStore(tmp_path / "run") as store:
        analysis = analyse(store)
    compared = {(row.environment, row.against) for report in analysis.headlines for row in report.comparisons}
    pairs = {(f"head{place}", f"base{place}") for place in places}
    assert compared == {*pairs, ("base-again", "base")} and not analysis.ladder
    commits = [git(repo, "rev-parse", ref)[:10] for ref in ("HEAD", "HEAD^")]
    assert all(each in analysis.question for each in commits)
    assert git(repo, "worktree", "list").count("\n") == 0


def test_uncommitted_changes_are_named_and_nothing_is_kept(tmp_path: Path):
    repo = repository(tmp_path / "repo", {"ask": "#!/bin/sh\necho version=1\n"})
    (repo / "ask").write_text("#!/bin/sh\necho version=2\n")
    done = weigh(repo, "--base", "HEAD", "--rounds", "6", *METRIC, "--", "./ask")
    assert done.returncode == 0 and "uncommitted changes are not measured" in done.stderr
    assert {value for each in values(tmp_path / "run", "version").values() for value in each} == {1.0}
    assert "weighbridge run --out" not in done.stdout + done.stderr, "its trees are gone"
    assert "note: base and head are the same commit" in done.stderr
    again = weigh(repo, "--base", "HEAD", "--build", "touch ../built", "--", "./ask")
    assert again.returncode == 6 and "choose a new --out" in again.stderr and "building" not in again.stderr


def test_a_run_whose_versions_are_removed_offers_no_more_rounds(tmp_path: Path):
    repo, run = repository(tmp_path / "repo", {"ask": "#!/bin/sh\n"}, {"other": ""}), str(tmp_path / "run")
    gate = ("gate", run, "--budget", "head.*.time<=0.0001%", "--json", "--yes")

    def steps(*words: str) -> list[dict[str, object]]:
        done = subprocess.run([*WEIGHBRIDGE.split(), *words], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 12), done.stderr
        found: list[dict[str, object]] = json.loads(done.stdout)["next_steps"]
        return found

    for _ in range(5):  # on a busy machine, the control can fail; such a run never offers more rounds
        measured = weigh(repo, "--base", "HEAD^", "--rounds", "6", "--keep-trees", "--json", "--", "./ask")
        (kept,) = json.loads(measured.stdout)["next_steps"]
        if kept["code"] != "control-failed":
            break
        shutil.rmtree(run)
    assert kept["command"] and steps("report", run, "--json")[0]["command"] and steps(*gate)[0]["command"]
    for tree in (tmp_path / "cache/revisions").glob("*/*"):
        shutil.rmtree(tree, ignore_errors=True)
    (removed,) = steps(*gate, "--extend", "1min")
    assert removed["command"] is None and "--keep-trees or a longer --within" in str(removed["reason"])
    assert steps("report", run, "--json")[0]["command"] is None
    words = [*WEIGHBRIDGE.split(), "run", "--out", run, "--yes"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 6 and "have been removed" in done.stderr and "to continue:" not in done.stderr


def test_a_program_that_one_version_does_not_have(tmp_path: Path):
    repo = repository(tmp_path / "repo", {"a": "x"}, {"ask": "#!/bin/sh\n"})
    done = weigh(repo, "--base", "HEAD^", "--rounds", "2", "--", "./ask")
    assert done.returncode == 2 and not (tmp_path / "run").exists()
    assert re.search(r"\./ask: no such program in base \([0-9a-f]{10}\) without --build", done.stderr), done.stderr


@pytest.mark.parametrize("during", ["build", "run"])
def test_an_interrupted_command_leaves_no_tree(tmp_path: Path, during: str):
    repo = repository(tmp_path / "repo", {"nap": "#!/bin/sh\nsleep 0.1\n"}, {"other": ""})
    build = f"sh -c 'touch {tmp_path}/begun; sleep 60'" if during == "build" else "./nap"
    argv = [*WEIGHBRIDGE.split(), "weigh", "--out", str(tmp_path / "run"), "--base", "HEAD^", "--build", build]
    env = {**os.environ, "WEIGHBRIDGE_CACHE": str(tmp_path / "cache")}
    with (tmp_path / "stderr").open("wb") as err:
        process = subprocess.Popen([*argv, "--", "./nap"], cwd=repo, stdout=err, stderr=err, env=env)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if (tmp_path / "begun").exists() or b"trials done" in (tmp_path / "stderr").read_bytes():
            break
        time.sleep(0.1)
    process.terminate()
    assert process.wait(60) == 143, (tmp_path / "stderr").read_text()
    assert [*(tmp_path / "cache/revisions").iterdir()] == [] and git(repo, "worktree", "list").count("\n") == 0
    assert "to continue" not in (tmp_path / "stderr").read_text(), "its trees are gone"


# -- as a job of GitHub runs it ---------------------------------------------------------------------


@pytest.mark.measures
def test_a_pull_request_gets_one_comment_with_its_verdict(tmp_path: Path):
    if not shutil.which("cc"):
        pytest.skip("needs cc")
    repo = versions(tmp_path / "repo", slower=0.5)
    (repo / "budgets.txt").write_text("# at most this\nhead.*.time<=25%   # generous\n")
    git(repo, "add", "."), git(repo, "commit", "--quiet", "--amend", "--no-edit")
    with served(Service()) as service:
        stranger = service.add(f"forged {marker('weighbridge')}", login="somebody", kind="User")
        gate, summary = job(
            repo, service, **TESTED, BASE="HEAD^", BUILD=BUILD, COMMAND="./count", WITHIN="10s",
            BUDGET_FILE="budgets.txt",
        )  # fmt: skip
        assert gate.returncode == 11, gate.stderr
        assert [each["id"] for each in service.comments] == [stranger, stranger + 1]
        text = service.comments[1]["body"]
        first = text.partition("\n")[0]
        assert first.startswith("**") and "longer" in first, first
        for expected in ("or more", "Control passed", "Gate", "actions/runs/5", marker("weighbridge")):
            assert expected in text, expected
        assert summary.read_text().count("\n| ") > 1 and first in summary.read_text()
        with RunStore(repo / "weighbridge-run") as store:
            (row,) = [row for report in analyse(store).headlines for row in report.comparisons if not row.aa]
        assert row.cost is not None and row.cost.penalty.low < 50 < row.cost.penalty.high + 15
        shutil.rmtree(repo / "weighbridge-run")
        commit(repo, {"notes": "once more"})
        job(repo, service, **TESTED, BASE="HEAD~2", BUILD=BUILD, COMMAND="./count", WITHIN="2s")
        assert len(service.comments) == 2 and service.comments[1]["body"] != text


def test_a_forks_token_leaves_the_text_in_the_summary_and_in_a_file(tmp_path: Path):
    repo = repository(tmp_path / "repo", {"ask": '#!/bin/sh\n[ -z "$GITHUB_TOKEN" ]\n'}, {"other": ""})
    with served(Service()) as service:
        service.faults["POST"] = (403, b"{}", {})
        gate, summary = job(repo, service, **TESTED, BASE="HEAD^", BUILD="./ask", COMMAND="./ask", WITHIN="2s")
        assert gate.returncode == 0 and service.comments == [], gate.stderr
    written = (repo / "weighbridge-run/comment.md").read_text()
    assert summary.read_text().startswith("**") and written.rstrip().endswith(marker("weighbridge"))


def test_kept_trees_let_a_gate_go_on_with_the_pairs_of_an_environment(tmp_path: Path):
    repo = repository(tmp_path / "repo", {"ask": "#!/bin/sh\necho\n"}, {"other": ""})
    with served(Service()) as service:
        gate, _ = job(
            repo, service, **TESTED, BASE="HEAD^", COMMAND="./ask", WITHIN="2s", IN="bubblewrap", EXTEND="3s",
            BUDGETS="head-*.time<=0.0001%",
        )  # fmt: skip
    assert gate.returncode in (11, 12), gate.stderr
    with RunStore(repo / "weighbridge-run") as store:
        looks, trials = store.gate_looks(), [trial.environment for trial in store.trials()]
    assert {arm.environment for look in looks for arm in look.open} <= {"head-bubblewrap"} and looks
    counts = {name: trials.count(name) for name in ("base-bubblewrap", "head-bubblewrap", "head")}
    assert counts["base-bubblewrap"] == counts["head-bubblewrap"] >= counts["head"]
    assert [*(tmp_path / "cache/revisions").iterdir()] == [] and git(repo, "worktree", "list").count("\n") == 0
