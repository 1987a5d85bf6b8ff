"""``--json`` on every command, the error document, the events of ``--progress json``, and the exit codes."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main

from documents import fits
from weighbridge import errors
from weighbridge.cli import events
from weighbridge.cli.app import app
from weighbridge.cli.commands.studies import DOCUMENTS, SchemaDocument
from weighbridge.cli.output import err, out
from weighbridge.errors import Interrupted
from weighbridge.features.calibration.analysis import summary
from weighbridge.model.document import StepCode
from weighbridge.model.level import Level
from weighbridge.model.measurement import Measurement, Metric, Outcome
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.runner import run as running
from weighbridge.runner.estimate import Forecast
from weighbridge.runner.precision import CostEstimate
from weighbridge.statistics import Contrast
from weighbridge.store.run import RunStore
from weighbridge.study.loader import load
from weighbridge.study.schedule import block

from .command_line import Said, Weighbridge

REFERENCE = Path(__file__).parents[2] / "docs/reference"


def _commands(command: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, each in getattr(command, "commands", {}).items():
        if not each.hidden:
            yield from _commands(each, *words, name)
    if not hasattr(command, "commands"):
        yield words, command


COMMANDS = dict(_commands(typer.main.get_command(app)))
TO_ADD = """
    add `as_json: bool = json_flag()` to its options,
    print its result with `print_json` if `options.as_json`,
    add `documents=(NAME,)` to its `Declared`,
    add NAME with the type of the document to `documents=` of its `Feature` (or to `DOCUMENTS`),
    and add `<!-- generated: json NAME -->` to docs/reference/json.md"""


# -- every command -----------------------------------------------------------------------------------


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_json_with_a_schema(words: tuple[str, ...]):
    command = COMMANDS[words]
    assert "--json" in {name for each in command.params for name in each.opts}, TO_ADD
    if words != ("schema",):  # its document is a schema
        assert command.documents and {*command.documents} <= {*DOCUMENTS}, TO_ADD


def test_the_reference_has_every_document_and_every_code_of_a_step():
    page = (REFERENCE / "json.md").read_text()
    assert [each for each in DOCUMENTS if each != "study" and f"<!-- generated: json {each} -->" not in page] == []
    assert [each for each in DOCUMENTS if each != "study" and f"\n## {each.replace('-', ' ')}" not in page] == []
    assert [each for each in get_args(StepCode) if f"| `{each}` |" not in page] == []


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_wrong_command_line_is_a_document(weighbridge: Weighbridge, words: tuple[str, ...]):
    said = weighbridge(*words, "--json", "--nosuch")
    document = json.loads(said.out)
    fits(SchemaDocument.ERROR, document)
    assert (said.code, document["error"]["exit_code"], document["error"]["kind"]) == (2, 2, "command-line")
    (step,) = document["next_steps"]
    assert step["code"] == "usage" and step["command"] == ["weighbridge", *words, "--help"]
    assert said.err == f"weighbridge: {document['error']['message']}\n"
    assert weighbridge(*words, "--nosuch").out == ""


@pytest.mark.parametrize(
    ("line", "document"),
    [
        ("init mine.yaml", "files"),
        ("weigh --save made.yaml --in netns -- true", "files"),
        ("kit first-look --out kit", "files"),
        ("export RUN --csv tables", "files"),
        ("report RUN", "report"),
        ("plan first-look", "plan"),
        ("studies", "studies"),
        ("skill", "skill"),
        ("--version", "version"),
    ],
)
def test_standard_output_is_one_document(weighbridge: Weighbridge, run: Path, line: str, document: str):
    first, *others = [str(run) if word == "RUN" else word for word in line.split()]
    said = weighbridge(first, "--json", *others)
    made = json.loads(said.out)
    fits(SchemaDocument(document), made)
    assert (said.code, said.err) == (0, "") or line.startswith("plan")
    assert all(Path(each).exists() for each in made.get("files", ()))


def test_a_calibration_has_its_schema(tmp_path: Path):
    study, clock = load("calibrate-cpu"), 0.0
    with RunStore(tmp_path / "run", writable=True) as store:
        store.begin(study, {"run_id": "0123456789ab"})
        for trial in (each for number in range(1, 7) for each in block(study, number)):
            clock += 1
            events = Measurement(Metric("events", "1/s", "higher"), 100 + clock % 7)
            store.save(TrialRecord(trial, Outcome.OK, clock, 0.5, 0.4, measurements=(events,)))
        document = summary([store], "now")
    fits(SchemaDocument.CALIBRATE, document)
    assert len(document["readings"]) == len(study.arms) - 1
    assert document["inside"] == sum(row["inside"] for row in document["readings"])


def test_json_before_the_command_is_refused(weighbridge: Weighbridge):
    said = weighbridge("--json", "studies")
    assert said.code == 2 and json.loads(said.out)["error"]["message"] == "put --json after the command"


@pytest.mark.parametrize("command", ["run", "weigh"])
def test_a_run_prints_its_report(weighbridge: Weighbridge, run: Path, ready: list, monkeypatch, command: str):
    monkeypatch.setattr(running, "run_study", _finishing(run))
    words = ("--out", run, "--yes") if command == "run" else ("--in", "netns", "--", "true")
    said = weighbridge(command, "--json", *words)
    assert said.code == 0, said
    document = json.loads(said.out)
    fits(SchemaDocument.REPORT, document)
    reported = json.loads(weighbridge("report", run, "--json").out)
    assert document["directory"] == str(run) and document["answer"]
    steps = [document.pop("next_steps"), reported.pop("next_steps")]
    assert document == reported
    commands = [step["command"] for each in steps for step in each if step["command"]]
    assert all(("--yes" in each) == (number < len(commands) / 2) for number, each in enumerate(commands))


def _finishing(run: Path, also: Callable[[Any], None] = lambda progress: None) -> Callable[..., None]:
    """Return a run that has ended: its directory has all trials."""

    def run_study(study: object, directory: Path, progress: Any, after: Any, *_: Any, **__: Any) -> None:
        also(progress)
        with RunStore(run) as store:
            after(store)

    return run_study


# -- failures ----------------------------------------------------------------------------------------


STABLE = {
    (0, ""), (1, "failure"), (1, "leftovers"), (1, "not-started"), (2, "command-line"), (3, "study"),
    (3, "time-too-short"), (3, "secret"), (4, "unavailable"), (5, "root-filesystem"), (6, "run-directory"),
    (7, "disk-full"), (8, "environment-lost"), (9, "trials-failed"), (10, "control-failed"), (11, "limit-exceeded"),
    (12, "limit-undecided"), (129, "interrupted"), (130, "interrupted"), (141, ""), (143, "interrupted"),
}  # fmt: skip
"""Scripts rely on these: rows can be added, and none can change or go."""
CLASSES = {
    each.kind: each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, errors.WeighbridgeError)
}


def test_the_codes_of_the_reference_are_stable():
    rows = re.findall(r"^\| (\d+) \| (?:`([\w-]+)`)? ?\|", (REFERENCE / "exit-codes.md").read_text(), re.MULTILINE)
    assert {(int(code), kind) for code, kind in rows} == STABLE


@pytest.mark.parametrize(("code", "kind"), sorted(STABLE - {(0, ""), (2, "command-line"), (141, "")}))
def test_a_failure_has_its_code_and_its_kind(
    weighbridge: Weighbridge, ready: list, monkeypatch: pytest.MonkeyPatch, code: int, kind: str
):
    other = {"interrupted": lambda _: Interrupted(code - 128), "not-started": lambda _: typer.Abort()}

    def fail(*_: Any, **__: Any) -> None:
        raise other.get(kind, CLASSES.get(kind))("what went wrong")

    monkeypatch.setattr(running, "run_study", fail)
    said = weighbridge("run", "first-look", "--out", "there", "--json")
    document = json.loads(said.out)
    fits(SchemaDocument.ERROR, document)
    assert (said.code, document["error"]["exit_code"], document["error"]["kind"]) == (code, code, kind)
    assert said.err.splitlines()[-1] == f"weighbridge: {document['error']['message']}"


def test_the_command_that_continues_a_run_is_a_list(weighbridge: Weighbridge, ready: list, monkeypatch, run: Path):
    def fail(*_: Any, **__: Any) -> None:
        raise errors.EnvironmentLost("gone")

    monkeypatch.setattr(running, "run_study", fail)
    said = weighbridge("run", "--out", run, "--json")
    (step,) = json.loads(said.out)["next_steps"]
    assert step["code"] == "unfinished" and step["command"] == [
        "weighbridge",
        "run",
        "--out",
        str(run),
        "--allow-concurrent",
    ]
    assert said.err.splitlines()[-1] == f"weighbridge: to continue: {' '.join(step['command'])}"


def test_a_result_is_the_only_document_although_the_command_fails(weighbridge: Weighbridge, run: Path):
    said = weighbridge("report", run, "--json", "--fail-if", "*.tcp.throughput > 0.1%")
    assert said.code in (11, 12) and said.err.startswith("weighbridge: ")
    fits(SchemaDocument.REPORT, json.loads(said.out))


# -- events ------------------------------------------------------------------------------------------


TRIAL = Trial(7, 0, "tcp", Level(), "docker-bridge")


def _measures(progress: Any) -> None:
    values = [100.0 + number for number in range(7)], [110.0] * 7
    cost = Contrast.between("docker-bridge", "native").cost(values, better="lower")
    estimate = CostEstimate("tcp", "docker-bridge", Metric("time", "s", "lower"), cost, cost.half_width, 0.02)
    progress.say("starting\nnative\x1b[31m")
    for second in range(3):
        progress.trial_started(TRIAL, second, 20, Forecast(5.0, 10, 100.0, 400, "limit"))
        progress.costs_estimated(7, [estimate])
        progress.trial_finished(TrialRecord(TRIAL, Outcome.OK, 0.0, 1.0, 1.0))
    progress.precision_checked(7, [])
    progress.precision_checked(7, [])
    progress.trial_finished(TrialRecord(TRIAL, Outcome.PROGRAM_FAILED, 0.0, 1.0, 1.0, message="exit code 1"))


def _events(said: Said) -> list[dict[str, Any]]:
    made = [json.loads(line) for line in said.err.splitlines()]
    for each in made:
        fits(SchemaDocument.PROGRESS, each)
    return made


def test_standard_error_has_only_events(weighbridge: Weighbridge, run: Path, ready: list, monkeypatch):
    monkeypatch.setattr(running, "run_study", _finishing(run, _measures))
    said = weighbridge("run", "--out", run, "--yes", "--json", "--timing", "--progress", "json")
    made = _events(said)
    assert [each["event"] for each in made] == [
        "begin", "step", "progress", "progress", "warning", "message", "end",
    ]  # fmt: skip
    begin, _, first, look, warning, table, end = made
    assert begin["directory"] == str(run) and end["exit_code"] == said.code == 0 and "total" in table["text"]
    assert (first["round"], first["trials"], first["trials_planned"], first["left_s"]) == (7, 0, 20, 100.0)
    assert first["at_most"] and first["costs"] == []
    (cost,) = look["costs"]
    assert look["trials"] == 3 and cost["rounds"] == 7 and cost["cost_low"] < cost["cost"] < cost["cost_high"]
    assert warning["code"] == "failed-trial" and "exit code 1" in warning["text"]
    fits(SchemaDocument.REPORT, json.loads(said.out))


@pytest.mark.parametrize("words", [("--nosuch",), ("there",), ("--progress",)])
def test_a_failure_is_the_last_event(weighbridge: Weighbridge, words: tuple[str, ...]):
    said = weighbridge("run", "--progress=json", *words)
    *_, end = _events(said)
    assert said.code == end["exit_code"] > 0 and end["event"] == "end" and end["message"]
    assert said.out == ""


def test_events_of_several_threads_are_whole_lines(capsys: pytest.CaptureFixture[str]):
    text = "ä" * 10_000
    threads = [threading.Thread(target=lambda: [events.emit_message(text) for _ in range(20)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert len(made) == 160 and {each["text"] for each in made} == {text}


def test_the_form_of_an_answer_ends_with_the_command(weighbridge: Weighbridge, capsys: pytest.CaptureFixture[str]):
    weighbridge("studies", "--json")
    out().print("for people")
    err().print("also for people")
    assert capsys.readouterr() == ("for people\n", "also for people\n")
