"""What the program imports before it knows the command."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from .released import must

MOST_MODULES = 150
NOT_FOR_HELP = {"numpy", "scipy", "jinja2", "docker", "rich"}
SHOW_EVERY_HELP = """
import contextlib, io, json, sys
import typer.main
from pydantic import BaseModel
from weighbridge.cli.app import app

def has_model(module):
    ours = module.__name__.startswith("weighbridge.")
    return ours and any(isinstance(each, type) and issubclass(each, BaseModel) for each in vars(module).values())

def show(command, *words):
    with contextlib.redirect_stdout(io.StringIO()):
        program([*words, "--help"], prog_name="weighbridge", standalone_mode=False)
    yield " ".join(words), {name: has_model(module) for name, module in sys.modules.items()}
    for name, inner in getattr(command, "commands", {}).items():
        yield from show(inner, *words, name)

program = typer.main.get_command(app)
print(json.dumps(dict(show(program))))
"""
"""Prints the modules that are loaded after the help of each command, and whether they have pydantic models."""
NOT_FOR_WEIGH = {"scipy", "docker", "jsonpath", "asyncio"}
SAVE_A_STUDY = """
import json, sys
from weighbridge.cli.app import app

app(["weigh", "--in", "netns", "--save", sys.argv[1], "true"], prog_name="weighbridge", standalone_mode=False)
print(json.dumps([*sys.modules]))
"""


@pytest.mark.real
@pytest.mark.side_by_side
def test_help_imports_few_modules_and_no_slow_library():
    after = json.loads(must(sys.executable, "-c", SHOW_EVERY_HELP, env={**os.environ}))
    assert {"", "weigh", "schema", "fleet submit"} < {*after}
    for command, modules in after.items():
        assert NOT_FOR_HELP & {*modules} == set(), command
        if not command.startswith("fleet "):  # its help lists the options of plug-ins, which are models
            assert [name for name, has_model in modules.items() if has_model] == [], command
        assert sum(name.startswith("weighbridge.") for name in modules) <= MOST_MODULES, command


@pytest.mark.real
@pytest.mark.side_by_side
def test_weigh_imports_its_own_command_and_the_plug_ins_of_its_study(tmp_path: Path):
    said = must(sys.executable, "-c", SAVE_A_STUDY, tmp_path / "study.yaml", env={**os.environ})
    modules = json.loads(said.splitlines()[-1])
    assert NOT_FOR_WEIGH & {*modules} == set()
    kinds = {name.split(".")[2] for name in modules if name.startswith("weighbridge.environments.")}
    assert kinds == {"native", "netns"}
    assert "weighbridge.cli.commands.studies" not in modules
    assert [name for name in modules if re.fullmatch(r"weighbridge\.features\.\w+\.options", name)] == []
