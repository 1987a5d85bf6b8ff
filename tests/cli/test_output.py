"""What others wrote gives a terminal no orders, and no encoding of standard output ends a command."""

import io
import json
import sys
from collections.abc import Callable, Iterator

import pytest
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from sentences import assert_sentence
from weighbridge.cli import messages, output, variables
from weighbridge.cli.app import main
from weighbridge.cli.progress import Shown
from weighbridge.model.level import Level
from weighbridge.model.measurement import Outcome
from weighbridge.model.trial import Trial, TrialRecord

HOSTILE = "\x1b]0;title\x07\x1b[31m\x9b2J\x00\r\ud800\u202e"


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    for console in (output.out, output.err):
        console.cache_clear()
    yield
    for console in (output.out, output.err):
        console.cache_clear()


def _table() -> Table:
    table = Table(HOSTILE)
    table.add_row(Text(HOSTILE))
    return table


def _ended_badly() -> None:
    trial = Trial(1, 0, "tcp", Level(), "native")
    Shown(None).trial_finished(TrialRecord(trial, Outcome.SERVER_DIED, 1.0, 1.0, 1.0, message=HOSTILE))


def _in_a_bar() -> None:
    with Progress(console=output.err()) as bar:
        Shown(bar).say(HOSTILE)


def _failed() -> None:
    with pytest.raises(SystemExit):
        messages.fail(f"the server refuses the query: {HOSTILE}", 3)


@pytest.mark.parametrize(
    "show",
    [
        lambda: output.out().print(HOSTILE, markup=False),
        lambda: output.out().print(_table()),
        lambda: Shown(None).say(HOSTILE),
        lambda: output.print_json({HOSTILE: [HOSTILE]}),
        _ended_badly,
        _in_a_bar,
        _failed,
    ],
)
def test_nothing_that_others_wrote_reaches_the_terminal_as_an_order(
    show: Callable[[], None], capsys: pytest.CaptureFixture[str]
):
    show()
    shown = "".join(capsys.readouterr())
    assert len(shown) > len(HOSTILE) / 2
    assert not set(shown) & set(HOSTILE) - set("]0;title[31m2J")


def test_json_is_the_same_whatever_standard_output_takes(monkeypatch: pytest.MonkeyPatch):
    for encoding in ("utf-8", "ascii", "latin-1"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        for value in ({"±": "µs"}, {"€": HOSTILE + "\x7f"}):
            stream.seek(0)
            stream.truncate()
            output.print_json(value)
            stream.seek(0)
            assert json.loads(stream.read()) == value


def test_a_terminal_that_takes_only_ascii_is_shown_the_rest_escaped(monkeypatch: pytest.MonkeyPatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "argv", ["weighbridge", "studies"])
    monkeypatch.setattr("weighbridge.cli.app.app", lambda **_: output.out().print("±3 %"))
    main()
    stream.flush()
    stream.seek(0)
    assert stream.read().strip() == "\\xb13 %"


def test_on_a_terminal_lines_break_between_words_and_no_path_is_cut(monkeypatch: pytest.MonkeyPatch):
    console, words, path = output.err(), "a note " * 20, "/" + "folder/" * 20
    monkeypatch.setattr(console, "file", io.StringIO())
    for terminal in (True, False):
        monkeypatch.setattr(console, "_force_terminal", terminal)
        monkeypatch.setattr(console, "_width", 80)
        console.print(f"{words}{path}", markup=False)
    *lines, whole = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert [path] == [line for line in lines if len(line) > 80] and len(lines) == 3
    assert {word for line in lines[:-1] for word in line.split()} == {"a", "note"} and whole == f"{words}{path}"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["gate", "--env", "A=canary", "run"], ["gate", "--env", "A", "run"]),
        (["-e", "A=b=canary\nc", "--env=B=canary", "-eC=canary"], ["-e", "A", "--env=B", "-eC"]),
        (["--env", "A", "--budget", "a=b", "--extend=1"], ["--env", "A", "--budget", "a=b", "--extend=1"]),
    ],
)
def test_a_command_line_is_shown_without_values(words: list[str], shown: list[str]):
    assert variables.without_values(words) == shown


@pytest.mark.parametrize("option", ["my-name=canary", "=canary", "A=\udcffcanary", "NONE_OF_OURS"])
def test_a_wrong_variable_is_told_without_its_value(option: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        variables.given_variables([option])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and "canary" not in said
    assert_sentence(said.strip())


@pytest.mark.parametrize("value", [None, 0, "text", {"a": 1}])
def test_only_a_number_that_a_command_returns_is_an_exit_code(monkeypatch: pytest.MonkeyPatch, value: object):
    monkeypatch.setattr("weighbridge.cli.app.app", lambda **_: value)
    main()
    monkeypatch.setattr("weighbridge.cli.app.app", lambda **_: 5)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 5
