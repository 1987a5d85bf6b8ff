"""What the program imports before it knows the command."""

import json
import os
import sys

import pytest

from .released import must

MOST_MODULES = 150
NOT_FOR_HELP = {"numpy", "scipy", "jinja2", "docker", "rich"}
SHOW_EVERY_HELP = """
import contextlib, io, json, sys
import typer.main
from weighbridge.cli.app import app

def show(command, *words):
    with contextlib.redirect_stdout(io.StringIO()):
        program([*words, "--help"], prog_name="weighbridge", standalone_mode=False)
    yield " ".join(words), [*sys.modules]
    for name, inner in getattr(command, "commands", {}).items():
        yield from show(inner, *words, name)

program = typer.main.get_command(app)
print(json.dumps(dict(show(program))))
"""
"""A program that prints the modules that are loaded after the help of each command."""


@pytest.mark.real
@pytest.mark.side_by_side
def test_help_imports_few_modules_and_no_slow_library():
    after = json.loads(must(sys.executable, "-c", SHOW_EVERY_HELP, env={**os.environ}))
    assert {"", "weigh", "schema", "fleet submit"} < {*after}
    for command, modules in after.items():
        assert NOT_FOR_HELP & {*modules} == set(), command
        assert sum(name.startswith("weighbridge.") for name in modules) <= MOST_MODULES, command
