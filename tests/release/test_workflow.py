"""What CI, the pre-commit hooks and the dev container run: targets of the Makefile, and nothing of their own."""

import json
import re
import runpy
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github/workflows/ci.yml"
TARGETS = {*re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)}


def read(path: Path):
    return YAML(typ="safe").load(path)


def commands() -> Iterator[str]:
    """Give every command line that is started for a contributor."""
    for job in read(WORKFLOW)["jobs"].values():
        yield from (step["run"] for step in job["steps"] if "run" in step)
    for repository in read(ROOT / ".pre-commit-config.yaml")["repos"]:
        assert repository["repo"] == "local", "a hook must not download anything"
        yield from (hook["entry"] for hook in repository["hooks"])
    yield json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())["postCreateCommand"]


def test_every_make_target_exists():
    named = [name for line in commands() for name in re.findall(r"\bmake ([\w-]+)", line)]
    assert {"lint", "check", "unit", "real-hosted"} <= {*named} <= TARGETS


def test_the_makefile_describes_every_target():
    described = {*re.findall(r"^#   make ([\w-]+) ", (ROOT / "Makefile").read_text(), re.MULTILINE)}
    assert TARGETS - described == {
        "setup",
        "texts_and_types",
        "checked",
        "side_by_side",
        "apart",
        "unmeasured",
        "alone",
    }, "parts of other targets"


def test_the_unit_tests_run_under_every_supported_python():
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    supported = [found[1] for each in classifiers if (found := re.search(r":: Python :: (3\.\d+)$", each))]
    assert read(WORKFLOW)["jobs"]["unit"]["strategy"]["matrix"]["python"] == supported


@pytest.mark.parametrize("path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name)
def test_an_issue_template_has_its_fields(path: Path):
    template = read(path)
    if path.name == "config.yml":
        assert template["blank_issues_enabled"] is True
        return
    assert template["name"] and template["description"]
    ids = [field["id"] for field in template["body"] if field["type"] != "markdown"]
    assert len(ids) == len({*ids})
    assert all(field["attributes"].get("label") or field["type"] == "markdown" for field in template["body"])


def test_the_pictures_of_the_architecture_are_current():
    script = runpy.run_path(str(ROOT / "docs/pictures/architecture.py"))
    for name, picture in script["PICTURES"].items():
        assert (script["TARGETS"] / name).read_text() == picture(), "run docs/pictures/architecture.py"


def test_make_looks_for_real_tests_where_they_are():
    (places,) = re.findall(r"^REAL = (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if "mark.real" in path.read_text()]
    elsewhere = [path for path in files if not any(path.is_relative_to(ROOT / each) for each in places.split())]
    assert len(files) > 10 and elsewhere == []
