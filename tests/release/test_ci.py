"""The steps of the GitHub action and the script of the GitLab job, as their runners run them: in order, here.

They weigh a program with the installed wheel, hold its cost against budgets, and leave summary and report. Where no
Weighbridge is there they install it first, with its dependencies from the package index.
"""

import json
import os
import re
from pathlib import Path
from string import Template

import pytest
from ruamel.yaml import YAML

from .released import ROOT, run, wheel_in

pytestmark = [pytest.mark.real, pytest.mark.side_by_side]
WEIGHED = {"command": "true", "in": "netns", "within": "1s", "budgets": "*.time<=100000%", "run": "costs"}
_MACHINES_OWN = ("PIP_", "SSL_", "REQUESTS_")
"""How the names of variables begin by which this machine's pip reaches the index."""


def installs(test):
    """Mark a test that installs from the index: minutes."""
    promise = pytest.mark.promise("the GitHub action and the GitLab job install what they run")
    return pytest.mark.long(promise(test))


@pytest.fixture
def job(tmp_path: Path) -> dict[str, str]:
    """The variables of a job, but for PATH."""
    for name in ("project", "temp"):
        (tmp_path / name).mkdir()
    return {
        "HOME": str(tmp_path), "LANG": "C.UTF-8", "WEIGHBRIDGE_BESIDE_OTHERS": "yes", "WEIGHBRIDGE_REHEARSAL": "yes",
    }  # fmt: skip


@pytest.fixture
def equipped(job: dict[str, str], program: Path) -> dict[str, str]:
    """The variables of a job whose machine has Weighbridge in its PATH."""
    return job | {"PATH": f"{program.parent}:{os.environ['PATH']}"}


@pytest.fixture
def bare(job: dict[str, str]) -> dict[str, str]:
    """The variables of a job whose machine has no Weighbridge; pip takes the tested versions of what it needs."""
    own = {name: value for name, value in os.environ.items() if name.startswith(_MACHINES_OWN)}
    path = [each for each in os.environ["PATH"].split(":") if not Path(each, "weighbridge").exists()]
    return own | job | {"PATH": ":".join(path), "PIP_CONSTRAINT": str(ROOT / "constraints.txt")}


def test_the_steps_of_the_action(equipped: dict[str, str], tmp_path: Path):
    assert steps_of_the_action(equipped, tmp_path) == [], "it was installed already"


@installs
def test_the_action_installs_its_checkout(bare: dict[str, str], tmp_path: Path):
    assert steps_of_the_action(bare, tmp_path) == [str(tmp_path / "temp/weighbridge/bin")]


def steps_of_the_action(env: dict[str, str], tmp_path: Path) -> list[str]:
    """Run every step of the action, and look at what they leave; return the folders that they added to PATH."""
    action = YAML(typ="safe").load(ROOT / "action.yml")
    inputs = {name: each["default"] for name, each in action["inputs"].items()} | WEIGHED
    files = {name: tmp_path / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "GITHUB_PATH")}
    env |= {name: str(path) for name, path in files.items()}
    env |= {"GITHUB_ACTION_PATH": str(ROOT), "RUNNER_TEMP": str(tmp_path / "temp")}
    files["GITHUB_PATH"].touch()
    uploaded = []
    for step in action["runs"]["steps"]:
        if step["id"] == "comment":
            assert "inputs.build || inputs.base" in step["if"], "neither is given: it is skipped"
            continue
        if "uses" in step:
            assert step["uses"].startswith("actions/upload-artifact@") and step["if"].startswith("always()")
            uploaded += filled(step["with"]["path"], inputs).split()
            continue
        own = {name: filled(value, inputs) for name, value in step["env"].items()}
        added = files["GITHUB_PATH"].read_text().splitlines()
        path = {"PATH": ":".join([*reversed(added), env["PATH"]])}
        done = run("sh", "-e", "-c", step["run"], env={**env, **path, **own}, cwd=tmp_path / "project")
        assert done.returncode in (0, 12), done.stdout + done.stderr  # undecided: too few blocks in a second
    assert uploaded == ["costs/report.html", "costs/run.sqlite", "costs/comment.md"]
    assert all((tmp_path / "project" / path).stat().st_size > 10_000 for path in uploaded[:2])
    assert files["GITHUB_OUTPUT"].read_text().strip() in ("answer=passed", "answer=undecided")
    summary = files["GITHUB_STEP_SUMMARY"].read_text()
    answer, _, table = summary.removeprefix("```text\n").partition("\n```\n")
    assert "netns" in answer and "| netns" in table
    return files["GITHUB_PATH"].read_text().splitlines()


def filled(text: str, inputs: dict[str, str]) -> str:
    text = text.replace(" || (inputs.build && github.event.pull_request.base.sha) || ''", "")  # no pull request
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], text)


def test_the_job_of_gitlab(equipped: dict[str, str], program: Path, tmp_path: Path):
    there = {"WB_PACKAGE": "", "WB_CI": str(program.parents[1] / "share/weighbridge")}
    job_of_gitlab(equipped | there, tmp_path / "project")


@installs
def test_the_job_of_gitlab_installs_the_package(bare: dict[str, str], release: tuple[Path, str], tmp_path: Path):
    job_of_gitlab(bare | {"WB_PACKAGE": str(wheel_in(release[0]))}, tmp_path / "project")
    assert (tmp_path / "project/.weighbridge/bin/weighbridge").exists()


def job_of_gitlab(env: dict[str, str], folder: Path) -> None:
    """Run the job in a folder, and look at what it leaves; ``env`` has precedence over the job's own variables."""
    job = YAML(typ="safe").load(ROOT / "ci/gitlab/weighbridge.yml")[".weighbridge-gate"]
    env = {str(name): str(value) for name, value in job["variables"].items()} | env
    env |= {"WB_COMMAND": "true", "WB_IN": "netns", "WB_WITHIN": "1s", "WB_BUDGETS": "*.time<=100000%"}
    lines = "\n".join((*job["before_script"], *job["script"]))
    done = run("sh", "-e", "-c", lines, env=env, cwd=folder)
    assert done.returncode in (0, 12), done.stdout + done.stderr
    assert all((folder / Template(path).substitute(env)).exists() for path in job["artifacts"]["paths"])
    assert (folder / env["WB_RUN"] / "report.html").stat().st_size > 10_000
    assert "weigh-true" in (folder / "weighbridge-gate.md").read_text()
    assert isinstance(json.loads((folder / job["artifacts"]["reports"]["codequality"]).read_text()), list)
    assert (folder / job["artifacts"]["reports"]["junit"]).exists()
