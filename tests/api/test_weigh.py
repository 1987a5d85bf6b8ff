"""What `weighbridge.weigh` refuses, and how the end of its process becomes an exception. tests/real measures."""

import sys

import pytest

import weighbridge
from sentences import raises_sentence
from weighbridge import errors
from weighbridge.api import call, pytest_plugin, weighing


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The command lines that would be started; nothing is measured."""
    lines: list[tuple[str, ...]] = []
    monkeypatch.setattr(weighing, "run_command", lambda *words: lines.append(words))
    monkeypatch.setattr(weighing, "load", lambda place: place)
    return lines


def test_a_command_is_a_list_of_words(started: list[tuple[str, ...]]):
    texts = {"command": "./prog", "against": "./old", "options": "-w", "environments": "docker"}
    for name, text in texts.items():
        given = {"command": ["x"], name: text}
        with raises_sentence(weighbridge.WeighbridgeError):
            weighbridge.weigh(**given)  # type: ignore[arg-type]
    assert started == []


def test_the_command_line_has_what_is_given(started: list[tuple[str, ...]], tmp_path):
    weighbridge.weigh(
        ["./prog", "-x"], environments=["native", "docker", "netns"], rounds=20, out=tmp_path, options=["--cpus", "1"]
    )
    weighbridge.weigh(["./prog"], environments=["native"], against=["./old", "a b"], within="1min", out="run")
    weighbridge.weigh(["./prog"], environments=["native"], out="run")
    first = ("--in", "docker,netns", "--rounds", "20", "--out", str(tmp_path), "--cpus", "1", "--", "./prog", "-x")
    second = ("--in", "native", "--against", "./old 'a b'", "--within", "1min", "--out", "run", "--", "./prog")
    third = ("--in", "native", "--out", "run", "--", "./prog")  # the command says what is wrong
    assert started == [("weigh", *each) for each in (first, second, third)]


def test_each_run_has_a_new_directory(started: list[tuple[str, ...]], tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    places = {str(weighbridge.weigh(["./prog"])) for _ in range(3)}
    assert len(places) == 3 and all(each.startswith(f"{tmp_path}/weighbridge/runs/python-") for each in places)


@pytest.mark.parametrize(
    ("code", "output", "kind"),
    [
        (4, "progress\nweighbridge: docker is missing\n", errors.Unavailable),
        (2, "weighbridge: ./prog: no such program. Check the path, or add --shell\n", errors.WeighbridgeError),
        (8, "weighbridge: docker was lost\nweighbridge: to continue: weighbridge run\n", errors.EnvironmentLost),
        (1, "Traceback\nKeyError: \x1b[2J1\n", errors.WeighbridgeError),
        (-9, "", errors.WeighbridgeError),
    ],
)
def test_a_failure_has_the_sentence_and_the_code_of_the_command(code: int, output: str, kind: type):
    error = weighing._failure(code, output)
    assert type(error) is kind and error.exit_code == code
    with raises_sentence(kind):
        raise error


# -- functions -------------------------------------------------------------------------------------


def tenth_of_a_millisecond() -> None:
    sum(range(3000))


def test_a_function_is_timed_by_its_name():
    words = pytest_plugin._command(tenth_of_a_millisecond)
    assert words[0] == sys.executable and words[2].endswith("api/call.py")
    assert words[3:5] == [__name__, "tenth_of_a_millisecond"]
    assert 1e-6 < call.seconds_per_call(*words[3:5]) < call.ENOUGH_S
    assert pytest_plugin.METRIC.startswith(f"call=regex:{call.PRINTED}(")


def test_what_has_no_name_is_refused():
    for given in (lambda: None, [].append):
        with pytest.raises(weighbridge.WeighbridgeError, match="cannot be imported by its name"):
            pytest_plugin._command(given)


# -- the fixture -----------------------------------------------------------------------------------


@pytest.fixture
def judged(runs, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The command lines of gates; what would be measured is a kept run."""
    lines: list[tuple[str, ...]] = []
    monkeypatch.setattr(weighbridge, "weigh", lambda *_, **__: weighbridge.load(runs / "weigh"))
    monkeypatch.setattr(weighing, "run_command", lambda *words: lines.append(words))
    return lines


def test_the_budget_is_for_the_primary_metric(judged: list[tuple[str, ...]], runs):
    run = pytest_plugin.weigh_within(["./prog"], budget="5%", environment="docker")
    pytest_plugin.weigh_within(["./prog"], budget="3%", environment="docker", baseline="earlier")
    assert judged == [
        ("gate", str(run.path), "--budget", "*.command.time<=5%"),
        ("gate", str(run.path), "--against", "earlier", "--margin", "3%"),
    ]


@pytest.mark.parametrize(
    ("answer", "undecided", "end"),
    [
        (errors.LimitExceeded, "skip", pytest.fail.Exception),
        (errors.LimitUndecided, "fail", pytest.fail.Exception),
        (errors.LimitUndecided, "skip", pytest.skip.Exception),
        (errors.Untrusted, "skip", pytest.skip.Exception),
        (errors.TrialsFailed, "fail", pytest.fail.Exception),
        (errors.Unavailable, "skip", errors.Unavailable),
    ],
)
def test_the_answer_of_the_gate_is_that_of_the_test(judged, monkeypatch, answer: type, undecided, end: type):
    def refuse(*_: str) -> None:
        raise answer("The cost is 15.4%.")

    monkeypatch.setattr(weighing, "run_command", refuse)
    with pytest.raises(end, match=r"The cost is 15.4%\."):
        pytest_plugin.weigh_within(["./prog"], budget="5%", undecided=undecided)
