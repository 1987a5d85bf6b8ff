"""The steps of the GitHub action and the script of the GitLab job, as their runners run them: in order, here.

They weigh a program with the installed wheel, hold its cost against budgets, and leave summary and report.
"""

import json
import os
import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from .released import ROOT, run

pytestmark = [pytest.mark.real, pytest.mark.side_by_side]
WEIGHED = {"command": "true", "in": "netns", "within": "1s", "budgets": "*.time<=100000%", "run": "costs"}


@pytest.fixture
def env(program: Path, tmp_path: Path) -> dict[str, str]:
    """The variables of a job whose machine has Weighbridge in its PATH."""
    for name in ("project", "temp"):
        (tmp_path / name).mkdir()
    return {
        "HOME": str(tmp_path), "PATH": f"{program.parent}:{os.environ['PATH']}", "LANG": "C.UTF-8",
        "WEIGHBRIDGE_BESIDE_OTHERS": "yes", "WEIGHBRIDGE_REHEARSAL": "yes",
    }  # fmt: skip


def test_the_steps_of_the_action(env: dict[str, str], tmp_path: Path):
    action = YAML(typ="safe").load(ROOT / "action.yml")
    inputs = {name: each["default"] for name, each in action["inputs"].items()} | WEIGHED
    files = {name: tmp_path / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "GITHUB_PATH")}
    env |= {name: str(path) for name, path in files.items()}
    env |= {"GITHUB_ACTION_PATH": str(ROOT), "RUNNER_TEMP": str(tmp_path / "temp")}
    uploaded = []
    for step in action["runs"]["steps"]:
        if "uses" in step:
            assert step["uses"].startswith("actions/upload-artifact@") and step["if"] == "always()"
            uploaded += filled(step["with"]["path"], inputs).split()
            continue
        own = {name: filled(value, inputs) for name, value in step["env"].items()}
        done = run("sh", "-e", "-c", step["run"], env={**env, **own}, cwd=tmp_path / "project")
        assert done.returncode in (0, 12), done.stdout + done.stderr  # undecided: too few blocks in a second
    assert uploaded == ["costs/report.html", "costs/run.sqlite"]
    assert all((tmp_path / "project" / path).stat().st_size > 10_000 for path in uploaded)
    assert files["GITHUB_OUTPUT"].read_text().strip() in ("answer=passed", "answer=undecided")
    summary = files["GITHUB_STEP_SUMMARY"].read_text()
    answer, _, table = summary.removeprefix("```text\n").partition("\n```\n")
    assert "netns" in answer and "| netns" in table
    assert not files["GITHUB_PATH"].exists(), "it was installed already"


def filled(text: str, inputs: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], text)


def test_the_job_of_gitlab(env: dict[str, str], program: Path, tmp_path: Path):
    job = YAML(typ="safe").load(ROOT / "ci/gitlab/weighbridge.yml")[".weighbridge-gate"]
    folder = tmp_path / "project"
    env |= {str(name): str(value) for name, value in job["variables"].items()}
    env |= {"WB_PACKAGE": "", "WB_CI": str(program.parents[1] / "share/weighbridge")}
    env |= {"WB_COMMAND": "true", "WB_IN": "netns", "WB_WITHIN": "1s", "WB_BUDGETS": "*.time<=100000%"}
    lines = "\n".join((*job["before_script"], *job["script"]))
    done = run("sh", "-e", "-c", lines, env=env, cwd=folder)
    assert done.returncode in (0, 12), done.stdout + done.stderr
    assert all((folder / path).exists() for path in job["artifacts"]["paths"])
    assert (folder / "weighbridge-run/report.html").stat().st_size > 10_000
    assert "weigh-true" in (folder / "weighbridge-gate.md").read_text()
    assert isinstance(json.loads((folder / job["artifacts"]["reports"]["codequality"]).read_text()), list)
    assert (folder / job["artifacts"]["reports"]["junit"]).exists()
