"""``weighbridge fleet plan``, ``submit``, ``status``, ``continue`` and ``cancel``: words, codes, what is kept."""

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from documents import fits
from features.fleets.test_study import PAIR, SINGLE
from report.made_up_fleets import RECIPE, make_unit
from sentences import assert_sentence
from weighbridge import secret_values
from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.errors import DiskFull, StudyError, Unavailable
from weighbridge.features.fleets import providers as providing
from weighbridge.features.fleets import run_commands as fleet_runs
from weighbridge.features.fleets import survey as surveying
from weighbridge.features.fleets.folder import FleetFolder, UnitRecord
from weighbridge.features.fleets.machine_provider import DriverState, Submission
from weighbridge.features.fleets.on.hosts import Hosts
from weighbridge.features.fleets.rounds import FleetUnit
from weighbridge.features.fleets.survey import SurveyedMachine
from weighbridge.features.slurm.fleets.slurm import SlurmProvider
from weighbridge.runner import planned
from weighbridge.secret_values import VARIABLE
from weighbridge.store.extensions import note_end
from weighbridge.store.run import RunStore

from .command_line import Weighbridge, one_sentence


class Listed(Hosts):
    """The list, whose driver is none."""

    def __init__(self) -> None:
        self.submitted: list[Submission] = []
        self.told: Any = DriverState("running", "process 4711 on this machine")
        self.cancelled: list[str] = []
        self.refusal: Exception | None = None

    def submit(self, options: Any, submission: Submission) -> str:
        if self.refusal is not None:
            raise self.refusal
        self.submitted.append(submission)
        return f"job {len(self.submitted)}"

    def state(self, options: Any, job: str) -> DriverState:
        state: DriverState = self.told
        return state

    def cancel(self, options: Any, job: str, folder: Path) -> None:
        self.cancelled.append(job)
        self.told = DriverState("ended", self.told.detail)


@pytest.fixture
def listed(weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch) -> Listed:
    made = Listed()
    monkeypatch.setattr(providing, "providers", lambda: {"hosts": made})
    monkeypatch.setattr(planned, "refusals", lambda *_: [])
    monkeypatch.setattr(planned, "userland_problems", lambda _: iter(()))
    monkeypatch.setattr(surveying, "survey", lambda study, hosts, say: [SurveyedMachine(name) for name in hosts])
    monkeypatch.setattr(fleet_runs, "_LOOK_S", 0)
    for name, text in (("hosts.txt", "n1\nroot@n2\nn3\nn4\n"), ("pair.yaml", PAIR), ("single.yaml", SINGLE)):
        Path(name).write_text(text)
    return made


def _finish(folder: Path, *machines: str) -> None:
    unit = FleetUnit(machines)
    make_unit(folder / "runs", unit.name, RECIPE, machines, {})
    with RunStore(folder / "runs" / unit.name, writable=True) as store:
        note_end(store)
    FleetFolder(folder).note(unit, UnitRecord(round=1, began=1.0, ended=2.0, code=0))


SUBMIT = ("fleet", "submit", "single.yaml", "--on", "hosts.txt", "--out", "fleet", "--yes")
CONTINUE = ("fleet", "continue", "fleet", "--yes")


def test_a_plan_says_rounds_and_time_and_keeps_nothing(
    listed: Listed, weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")
    said = weighbridge("fleet", "plan", "pair.yaml", "--on", "hosts.txt")
    assert said.code == 0 and listed.submitted == []
    assert max(map(len, said.out.splitlines())) <= 80
    assert [line.split()[0] for line in said.out.splitlines() if line[:1].isdigit()] == ["1", "2", "3", "4", "5"]
    assert "alone--" in said.out and "10 rounds" in said.out
    assert {path.name for path in Path.cwd().iterdir()} == {"hosts.txt", "pair.yaml", "single.yaml"}


def test_a_plan_says_how_many_runs_go_at_once(listed: Listed, weighbridge: Weighbridge):
    def seconds(*words: str) -> str:
        said = weighbridge("fleet", "plan", "single.yaml", "--on", "hosts.txt", *words).out
        assert "--at-once" in said
        return next(line for line in said.splitlines() if line.startswith("time:"))

    assert seconds("--at-once", "4") == seconds("--at-once", "400") != seconds("--at-once", "1")
    assert (
        "at most 1 run at once" in weighbridge("fleet", "plan", "single.yaml", "--on", "hosts.txt", "--at-once=1").out
    )


def test_a_fleet_that_waits_for_its_machines_says_for_what(listed: Listed, weighbridge: Weighbridge):
    weighbridge(*SUBMIT)
    folder = FleetFolder(Path.cwd() / "fleet")
    folder.write(folder.read().model_copy(update={"machines": None}))
    folder.driver_log.write_text("12:00 waiting for nodes: 1 of 2 are reserved: 0/2 nodes are available\n")
    document = json.loads(weighbridge("fleet", "status", "fleet", "--json").out)
    assert document["runs"] == [] and document["detail"].endswith(": 0/2 nodes are available")
    assert "1 of 2 are reserved" in " ".join(weighbridge("fleet", "status", "fleet").out.split())


def test_every_command_has_a_document(listed: Listed, weighbridge: Weighbridge):
    planned = json.loads(weighbridge("fleet", "plan", *SUBMIT[2:5], "--yes", "--json").out)
    fits(SchemaDocument.FLEET_PLAN, planned)
    assert planned["contacted"] and planned["refusals"] == [] and sum(map(len, planned["waves"])) == 4
    submitted, cancelled, unchanged, continued = (
        json.loads(weighbridge(*words, "--json").out)
        for words in (SUBMIT, *(("fleet", each, "fleet") for each in ("cancel", "cancel")), CONTINUE)
    )
    for document in (submitted, cancelled, unchanged, continued):
        fits(SchemaDocument.FLEET_STATUS, document)
    assert (submitted["driver"], cancelled["driver"], unchanged["driver"]) == ("running", "ended", "ended")
    assert len(listed.submitted) == 2 and listed.cancelled == ["job 1"]


def test_a_plan_ends_as_submit_would_refuse(
    listed: Listed, weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch
):
    lacking = [SurveyedMachine("n1", lacks=("no python3",)), SurveyedMachine("n2", lacks=("no python3",))]
    monkeypatch.setattr(surveying, "survey", lambda *_: lacking)
    said = weighbridge("fleet", "plan", "single.yaml", "--on", "hosts.txt", "--yes")
    assert said.code == 4 and "n1, n2: no python3" in said.out
    said = weighbridge(*SUBMIT)
    assert said.code == 4 and "n1, n2: no python3" in said.err and not Path("fleet").exists()
    monkeypatch.setattr(surveying, "survey", lambda *_: [])
    said = weighbridge("fleet", "plan", "single.yaml", "--on", "hosts.txt", "--yes")
    assert said.code == 0 and said.out.endswith("ready: n1, n2, n3, n4\n"), said
    monkeypatch.delenv("WEIGHBRIDGE_QUICK_TEST", raising=False)
    said = weighbridge("fleet", "plan", "single.yaml", "--on", "hosts.txt", "--blocks", "1")
    assert said.code == 3


def test_a_fleet_of_your_own_study_needs_yes_without_a_terminal(listed: Listed, weighbridge: Weighbridge):
    said = weighbridge("fleet", "submit", "single.yaml", "--on", "hosts.txt", "--out", "fleet")
    assert said.code == 2 and listed.submitted == []
    assert_sentence(said.err.splitlines()[-1])


def test_a_fleet_is_submitted_and_told(listed: Listed, weighbridge: Weighbridge):
    said = weighbridge(*SUBMIT, "--nodes=3", "--sudo", "--no-again", "--rehearsal")
    assert said.code == 0, said
    (submission,) = listed.submitted
    assert submission.folder == Path.cwd() / "fleet" and submission.argv[-4:] == (
        "fleet",
        "drive",
        "--yes",
        str(Path.cwd() / "fleet"),
    )
    assert not submission.pairs and 0 < submission.seconds[0] <= submission.seconds[1]
    kept = FleetFolder(Path.cwd() / "fleet").read()
    assert (kept.jobs, kept.machines, kept.again, kept.rehearsal) == (("job 1",), ("n1", "n2", "n3"), False, True)
    assert kept.on["sudo"] is True and kept.cwd == str(Path.cwd())
    assert "weighbridge fleet status" in said.out and "process 4711" in said.out


def test_of_a_fleet_that_nobody_takes_nothing_stays(listed: Listed, weighbridge: Weighbridge):
    listed.refusal = Unavailable("no")
    assert weighbridge(*SUBMIT).code == 4
    assert not Path("fleet").exists()


@pytest.mark.parametrize("ends", ["submit", "state"])
def test_a_fleet_that_was_submitted_is_kept_and_told_whatever_ends_the_command(
    listed: Listed, weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch, ends: str
):
    usual = getattr(listed, ends)

    def interrupted(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return usual(*arguments)

    monkeypatch.setattr(listed, ends, interrupted)
    said = weighbridge(*SUBMIT)
    assert said.code == 130 and "submitted: " in said.out and "weighbridge fleet status" in said.out
    assert FleetFolder(Path("fleet")).read().jobs == ("job 1",)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--on", "nowhere.txt"), 3),
        (("--nodes", "9"), 4),
        (("--nodes", "1"), 4),
        (("--nodes", "x"), 2),
        (("--out", "single.yaml"), 6),
        (("--out", "."), 6),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else str(each),
)
def test_what_cannot_be_submitted_is_one_sentence(
    listed: Listed, weighbridge: Weighbridge, words: tuple[str, ...], code: int
):
    said = weighbridge("fleet", "submit", "pair.yaml", "--on", "hosts.txt", "--yes", *words)
    one_sentence(said, code)
    assert listed.submitted == []


def test_the_words_of_providers_may_stand_anywhere(listed: Listed, weighbridge: Weighbridge):
    said = weighbridge(
        "fleet", "submit", "--nodes", "2", "--on", "hosts.txt", "single.yaml", "--out", "fleet", "--yes"
    )
    assert said.code == 0 and FleetFolder(Path.cwd() / "fleet").read().machines == ("n1", "n2")
    assert weighbridge("fleet", "submit", "single.yaml", "--on", "hosts.txt", "--nodes").code == 2


def test_a_folder_with_a_fleet_is_refused(listed: Listed, weighbridge: Weighbridge):
    assert weighbridge(*SUBMIT).code == 0
    one_sentence(weighbridge(*SUBMIT), 6)
    assert len(listed.submitted) == 1


def test_status_is_a_table_of_80_columns_and_json(
    listed: Listed, weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")
    weighbridge(*SUBMIT)
    folder = FleetFolder(Path.cwd() / "fleet")
    _finish(folder.path, "n1")
    folder.note(FleetUnit(("n2",)), UnitRecord(round=1, began=1.0))
    folder.note(FleetUnit(("n3",)), UnitRecord(round=1, began=1.0, ended=2.0, code=8))
    folder.log(FleetUnit(("n3",))).write_text("weighbridge: host n3 was lost\n")
    said = weighbridge("fleet", "status", "fleet")
    assert said.code == 0 and "1 of 4 runs finished, 1 running, 1 stopped; driver running" in said.out
    assert [line.split()[:2] for line in said.out.splitlines()[-6:-1]] == [
        ["run", "state"], ["n1", "finished"], ["n2", "running"], ["n3", "stopped"], ["n4", "waiting"],
    ]  # fmt: skip
    assert "n3: exit code 8: host n3 was lost" in said.out
    document: Mapping[str, Any] = json.loads(weighbridge("fleet", "status", "fleet", "--json").out)
    assert [each["state"] for each in document["runs"]] == ["finished", "running", "stopped", "waiting"]
    assert (document["driver"], document["machines"]) == ("running", ["n1", "n2", "n3", "n4"])


def test_a_fleet_that_goes_on_is_not_continued_and_one_that_ended_is(listed: Listed, weighbridge: Weighbridge):
    weighbridge(*SUBMIT)
    one_sentence(weighbridge("fleet", "continue", "fleet", "--yes"), 6)
    listed.told = DriverState("ended", "process 4711 on this machine")
    said = weighbridge("fleet", "status", "fleet")
    assert "weighbridge fleet continue" in said.out
    assert weighbridge("fleet", "continue", "fleet", "--yes").code == 0
    assert FleetFolder(Path("fleet")).read().jobs == ("job 1", "job 2")


def test_a_fleet_goes_on_only_once_its_study_was_shown_and_machines_are_asked_afterwards(
    listed: Listed, weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch
):
    weighbridge(*SUBMIT)
    listed.told = DriverState("ended")
    counted: list[Any] = []
    monkeypatch.setattr(listed, "count", lambda options: counted.append(options) or 4)
    assert weighbridge("fleet", "continue", "fleet").code != 0 and counted == []
    assert weighbridge("fleet", "continue", "fleet", "--yes").code == 0 and len(counted) == 1


def test_a_fleet_whose_driver_may_run_goes_on_only_where_it_is_said_that_it_has_ended(
    listed: Listed, weighbridge: Weighbridge
):
    weighbridge(*SUBMIT)
    listed.told = DriverState("unknown", "squeue: the controller does not answer")
    one_sentence(weighbridge("fleet", "continue", "fleet", "--yes"), 4)
    assert len(listed.submitted) == 1
    assert weighbridge("fleet", "continue", "fleet", "--yes", "--driver-ended").code == 0
    assert len(listed.submitted) == 2


def test_a_driver_that_cannot_be_noted_is_cancelled(
    listed: Listed, weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch
):
    weighbridge(*SUBMIT)
    listed.told = DriverState("ended")

    def full(*_: object) -> None:
        raise DiskFull("no space left")

    monkeypatch.setattr(FleetFolder, "write", full)
    assert weighbridge("fleet", "continue", "fleet", "--yes").code == DiskFull.exit_code
    assert listed.cancelled == ["job 2"]


def test_what_any_of_the_machines_brings_is_shown_first(listed: Listed, weighbridge: Weighbridge):
    Path("own").write_text("Host n2\n  ProxyCommand sh -c true\n")
    Path("hosts.txt").write_text(
        "n1\nroot@n2 config=/own\nn3 config=/own\n".replace("/own", str(Path("own").absolute()))
    )
    said = weighbridge(*SUBMIT)
    assert said.code == 0 and "machine n1, root@n2, n3" in said.err
    assert said.err.count("ssh configuration") == 1 and said.err.count("ProxyCommand sh -c true") == 1
    assert "destination" not in said.err
    listed.told = DriverState("ended")
    assert "ProxyCommand sh -c true" in weighbridge("fleet", "continue", "fleet", "--yes").err


def test_a_wrong_option_of_any_machine_is_one_sentence(listed: Listed, weighbridge: Weighbridge):
    for line in ("n2 nosuch=1", "n2 sudo=perhaps"):
        Path("hosts.txt").write_text(f"n1\n{line}\n")
        one_sentence(weighbridge(*SUBMIT), StudyError.exit_code)


def test_runs_that_another_weighbridge_began_are_told_first(
    listed: Listed, weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch
):
    weighbridge(*SUBMIT)
    listed.told = DriverState("ended")
    folder = Path("fleet").absolute()
    make_unit(folder / "runs", "n1", RECIPE, ("n1",), {})
    with RunStore(folder / "runs" / "n1", writable=True) as store:
        store.set_info("version", "0.0.1")
    said = weighbridge("fleet", "continue", "fleet", "--yes")
    assert said.code == 0 and "another Weighbridge (0.0.1;" in said.err and "started n1." in said.err


def test_a_fleet_of_which_nothing_is_missing_is_not_started_again(listed: Listed, weighbridge: Weighbridge):
    weighbridge(*SUBMIT)
    listed.told = DriverState("ended")
    for name in ("n1", "n2", "n3", "n4"):
        _finish(Path("fleet").absolute(), name)
    said = weighbridge("fleet", "continue", "fleet", "--yes")
    assert said.code == 0 and said.out.startswith("nothing is missing") and len(listed.submitted) == 1


def test_a_dead_machine_is_told_and_the_others_go_on_unless_all_are(
    listed: Listed, weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch
):
    weighbridge(*SUBMIT)
    listed.told = DriverState("ended")
    surveyed = [SurveyedMachine("n1", lacks=("no answer",)), SurveyedMachine("n2")]
    monkeypatch.setattr(surveying, "survey", lambda *_: surveyed)
    said = weighbridge("fleet", "continue", "fleet", "--yes")
    assert said.code == 0 and "note: n1: no answer" in said.err
    monkeypatch.setattr(surveying, "survey", lambda *_: surveyed[:1])
    assert weighbridge("fleet", "continue", "fleet", "--yes").code == 4


def test_a_fleet_is_cancelled_once(listed: Listed, weighbridge: Weighbridge):
    weighbridge(*SUBMIT)
    said = weighbridge("fleet", "cancel", "fleet")
    assert said.code == 0 and listed.cancelled == ["job 1"] and "ended" in said.out
    said = weighbridge("fleet", "cancel", "fleet")
    assert said.code == 0 and said.out.startswith("nothing to cancel") and listed.cancelled == ["job 1"]


def test_a_driver_of_another_machine_is_not_cancelled(listed: Listed, weighbridge: Weighbridge):
    weighbridge(*SUBMIT)
    listed.told = DriverState("unknown", "its process is on another machine")
    one_sentence(weighbridge("fleet", "cancel", "fleet"), 4)


@pytest.mark.parametrize("command", ["status", "continue", "cancel", "drive"])
def test_a_folder_without_a_fleet_is_one_sentence(weighbridge: Weighbridge, command: str):
    one_sentence(weighbridge("fleet", command, "."), 6)


def test_the_help_has_the_providers_options(weighbridge: Weighbridge):
    said = weighbridge("fleet", "submit", "--help")
    assert said.code == 0 and "--on FILE" in said.out and "--sudo" in said.out


OWN = "{kind: command, server: 'x {port}', client: 'y {port}', server_env: {A: '${secret:PW}'}}"
SECRET = SINGLE.replace("{kind: iperf3}", OWN)


def test_the_driver_gets_secrets_by_its_environment_alone(
    listed: Listed, weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch
):
    Path("single.yaml").write_text(SECRET)
    one_sentence(weighbridge(*SUBMIT), StudyError.exit_code)
    assert not Path("fleet").exists()
    had = []
    usual = listed.submit
    monkeypatch.setattr(listed, "submit", lambda *a: had.append(os.environ.get(VARIABLE)) or usual(*a))
    said = weighbridge(*SUBMIT, "--env", "PW=canary")
    assert said.code == 0, said
    assert [json.loads(each or "") for each in had] == [{"PW": "canary"}] and VARIABLE not in os.environ
    assert "canary" not in said.out + said.err + Path("fleet/fleet.json").read_text()
    assert [*FleetFolder(Path("fleet").absolute()).read().secrets] == ["PW"]

    listed.told = DriverState("ended", "process 4711")
    monkeypatch.setattr(secret_values, "_values", {})
    monkeypatch.setattr(secret_values, "_offered", {})
    one_sentence(weighbridge("fleet", "continue", "fleet", "--yes"), StudyError.exit_code)
    monkeypatch.setenv("PW", "canary")
    file = Path("fleet/fleet.json")
    own = file.read_text()
    file.write_text(json.dumps({**json.loads(own), "created": 1.0}))  # a fleet of somebody who copied the digest
    assert weighbridge("fleet", "continue", "fleet", "--yes").code == StudyError.exit_code
    file.write_text(own)
    assert weighbridge("fleet", "continue", "fleet", "--yes").code == 0
    assert [json.loads(each or "") for each in had] == [{"PW": "canary"}] * 2


def test_who_would_store_secrets_is_refused_them(
    listed: Listed, weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch
):
    Path("single.yaml").write_text(SECRET)
    monkeypatch.setattr(Listed, "stores_environment", True)
    one_sentence(weighbridge(*SUBMIT, "--env", "PW=canary"), Unavailable.exit_code)
    assert listed.submitted == [] and SlurmProvider.stores_environment
