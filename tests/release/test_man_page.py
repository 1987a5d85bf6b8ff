"""docs/weighbridge.1 is made from the help of the command line; ``--update-golden`` rewrites it."""

import re
import shutil

import pytest
import typer.main

from weighbridge.cli.app import app
from weighbridge.cli.help import OLD_NAMES

from .released import must, script

man_page = script("man_page")


def test_the_page_is_that_of_the_command_line(request: pytest.FixtureRequest):
    page = man_page.page()
    if request.config.getoption("update_golden"):
        man_page.PAGE.write_text(page)
    assert page == man_page.PAGE.read_text(), "the help has changed: --update-golden"


def test_it_has_every_command_and_exit_code():
    page = man_page.page().replace("\\-", "-")
    commands = typer.main.get_command(app).commands
    assert len(commands) > 15 and [name for name in commands if f".SS weighbridge {name} " not in page] == []
    assert ".B 12\n" in page and "--version\n" in page


def test_it_shows_no_python_types_and_no_old_spellings():
    page = man_page.page().replace("\\-", "-")
    assert not re.search(r"<(?:str|int|float|bool|path|Path|list)|<\w+ range|\blist\[|\[\d*<=?x", page)
    assert [old for old in OLD_NAMES if old in page] == []


def test_fleet_has_the_options_of_every_provider():
    page = man_page.page().replace("\\-", "-")
    submit = page.partition(".SS weighbridge fleet submit ")[2].partition(".SS ")[0]
    options = ("--nodes", "--partition", "--array", "--queue", "--sbatch", "--at-once", "--sudo", "--context")
    assert [option for option in options if f".B {option}" not in submit] == []


@pytest.mark.real
@pytest.mark.side_by_side
@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_it_is_shown_without_a_warning():
    shown = must("groff", "-man", "-Tutf8", "-ww", "-P-cbou", man_page.PAGE)
    assert "weighbridge weigh [OPTIONS]" in shown and "weighbridge weigh -- python3 fib.py\n" in shown
