"""The panels of ``--help``, the old spellings of options, and command lines that cannot be parsed."""

import inspect
from importlib import import_module
from pathlib import Path

import pytest
import typer.main

from sentences import assert_sentence
from weighbridge.cli.app import app
from weighbridge.cli.commands import agents, machine, measurements, results, studies, weigh
from weighbridge.cli.declared import Declared
from weighbridge.cli.help import DURATION, LIMITS, MEASURE, OLD_NAMES, OUTPUT, WHAT, WHERE
from weighbridge.features.fleets import options as fleet

from .command_line import Weighbridge, one_sentence

DECLARED = [
    each
    for module in (weigh, machine, studies, measurements, results, agents, fleet)
    for each in vars(module).values()
    if isinstance(each, Declared)
]


@pytest.mark.parametrize("declared", DECLARED, ids=lambda declared: declared.runs)
def test_a_command_runs_a_function_that_takes_its_options(declared: Declared):
    module, _, name = declared.runs.partition(":")
    (options,) = inspect.signature(getattr(import_module(module), name)).parameters.values()
    assert options.annotation is declared.options


def test_the_help_lists_every_command_and_begins_with_weigh(
    weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")
    said = weighbridge("--help")
    assert (said.code, said.err) == (0, "")
    assert_sentence(said.out)


def test_weigh_has_six_panels_with_an_example_each(weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = weighbridge("weigh", "--help").out.splitlines()
    panels = (WHAT, WHERE, MEASURE, LIMITS, DURATION, OUTPUT)
    assert [line for line in lines if line in panels] == [*panels]
    assert max(map(len, lines)) <= 80
    for panel, following in zip(panels, (*panels[1:], "Examples"), strict=True):
        part = lines[lines.index(panel) : lines.index(following)]
        assert any(line.startswith("  Example: weighbridge weigh ") for line in part), panel


def test_no_command_shows_an_old_spelling_or_a_python_type(weighbridge: Weighbridge):
    group = typer.main.get_command(app)
    words = [(name,) for name in group.commands if name != "fleet"]
    words += [("fleet", name) for name in group.commands["fleet"].commands]
    for command in words:
        shown = weighbridge(*command, "--help").out
        assert [each for each in (*OLD_NAMES, "<str>", "<int", "<path>", "<bool>", "list[") if each in shown] == []


@pytest.mark.parametrize("option", ["--rounds", "--blocks"])
def test_rounds_have_an_old_spelling(weighbridge: Weighbridge, ready: list, option: str):
    assert weighbridge("run", "first-look", option, "7", "--out", "there").code == 0
    assert weighbridge("run", "first-look", f"{option}=7", "--out", "there").code == 0
    assert {study.file.repetitions.blocks for study, _ in ready} == {7}


@pytest.mark.parametrize("option", ["--quick-test", "--rehearsal"])
def test_a_quick_test_has_an_old_spelling(
    weighbridge: Weighbridge, ready: list, option: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("WEIGHBRIDGE_QUICK_TEST")
    assert weighbridge("run", "first-look", "--rounds", "2", "--out", "there").code == 3
    assert weighbridge("run", "first-look", "--rounds", "2", option, "--out", "there").code == 0


@pytest.mark.parametrize("option", ["--rounds", "--blocks"])
def test_an_option_after_the_program_of_weigh_is_refused_in_either_spelling(weighbridge: Weighbridge, option: str):
    said = weighbridge("weigh", "true", option, "3")
    assert said.code == 2 and f"put {option} before the program" in said.err


@pytest.mark.parametrize(
    "words",
    [
        ("run", "x", "--rounds", "few"),
        ("run", "x", "--rounds", "0"),
        ("run", "x", "--roundz", "3"),
        ("run", "--out"),
        ("plan",),
        ("nosuch",),
        ("--nosuch",),
        ("plan", "--nosuch"),
        ("init", "a", "b"),
        ("schema", "x"),
        ("doctor", "x"),
        ("durability", "x", "--seconds", "700"),
        ("fleet", "submit", "x", "--on", "slurm", "--nodes"),
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_one_sentence(weighbridge: Weighbridge, words: tuple[str, ...]):
    one_sentence(weighbridge(*words), 2)


def test_a_study_can_say_blocks_but_not_both(weighbridge: Weighbridge):
    text = (
        "study: s\nquestion: q\nbaseline: native\nenvironments: {native: {kind: native}}\n"
        "workloads: {cpu: {kind: sysbench-cpu, duration: 1s}}\nrepetitions: {REPETITIONS}\n"
    )
    for rule, blocks in (("blocks: 7", "7 rounds"), ("rounds: 8", "8 rounds")):
        Path("s.yaml").write_text(text.replace("REPETITIONS", rule))
        assert blocks in weighbridge("plan", "s.yaml").out
    for name in ("blocks", "rounds"):
        assert "9 rounds" in weighbridge("plan", "s.yaml", "--set", f"repetitions.{name}=9").out
    Path("s.yaml").write_text(text.replace("REPETITIONS", "rounds: 8, blocks: 8"))
    one_sentence(weighbridge("plan", "s.yaml"), 3)
    schema = weighbridge("schema").out
    assert '"rounds": {' in schema and '"deprecated": true' in schema
