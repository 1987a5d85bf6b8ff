"""The command line, in this process: what it prints where, its exit codes, and that no failure is a traceback."""

import errno
import io
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
import typer
from rich.console import Console

from documents import fits
from sentences import assert_sentence
from weighbridge import errors
from weighbridge.cli import approval, output, progress
from weighbridge.cli.app import app
from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.errors import Interrupted, Unavailable
from weighbridge.model.cleanup import Leftover
from weighbridge.model.command import Completed
from weighbridge.model.environment import Environment
from weighbridge.model.level import Level
from weighbridge.model.measurement import Outcome
from weighbridge.model.options import External
from weighbridge.model.plugin import Readiness
from weighbridge.model.stored_study import study_json
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.model.userland import UserlandSpec
from weighbridge.report import html
from weighbridge.runner import clean as cleaning
from weighbridge.runner import planned as plans
from weighbridge.runner import preflight as machine
from weighbridge.runner import run as running
from weighbridge.runner.clean import Inventory
from weighbridge.runner.estimate import Forecast
from weighbridge.runner.file_ownership import Fault, Foreign
from weighbridge.runner.planned import PlannedRun
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.store.run import RunStore
from weighbridge.store.safe_folder import SafeFolder
from weighbridge.study import loader
from weighbridge.study.external import ExternalResource, compose_resource, external_resources
from weighbridge.study.loader import check, load
from weighbridge.study.schedule import block
from weighbridge.study.source import bundled, parse
from weighbridge.userland import build, commands

from .command_line import Weighbridge, one_sentence, users_machine

LEFT = Forecast(60.0, 10, 60.0, 10, "blocks")
COMMANDS = sorted(
    name for name, each in typer.main.get_command(app).commands.items() if not hasattr(each, "commands")
)


# -- help ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(weighbridge: Weighbridge, command: str):
    said = weighbridge(command, "--help")
    assert (said.code, said.err) == (0, "")
    assert re.search(rf"Examples? weighbridge {command}", " ".join(said.out.split()))
    assert f"weighbridge {command}" in said.out


def test_the_version(weighbridge: Weighbridge):
    said = weighbridge("--version")
    version, launcher = said.out.splitlines()
    assert (said.code, version, said.err) == (0, f"weighbridge {metadata.version('weighbridge')}", "")
    assert launcher.startswith("launcher ")


# -- json ------------------------------------------------------------------------------------------


PLANNED = (0, 4)
"""What a plan ends with: 4 where the machine of these tests lacks something for a run."""


@pytest.mark.parametrize("arguments", [["schema"], ["schema", "report"], ["schema", "plan"]])
def test_a_schema_is_all_there_is_on_standard_output(weighbridge: Weighbridge, arguments: list[str]):
    said = weighbridge(*arguments)
    assert (said.code, said.err) == (0, "")
    assert set(json.loads(said.out)) >= {"$schema", "$defs", "properties", "required"}


@pytest.mark.parametrize("name", ["first-look", "docker-networks", "native-vs-container-apps"])
def test_a_plan_as_json(weighbridge: Weighbridge, name: str):
    fits(SchemaDocument.PLAN, json.loads(weighbridge("plan", name, "--json").out))


def test_studies_as_json(weighbridge: Weighbridge):
    said = weighbridge("studies", "--json")
    assert (said.code, said.err) == (0, "")
    document = json.loads(said.out)
    fits(SchemaDocument.STUDIES, document)
    listed = {study["study"]: study for study in document["studies"]}
    assert set(listed) == set(bundled())
    assert listed["docker-networks"]["profiles"] == ["quick", "quick-coherence", "guest-hosts", "published"]
    assert listed["first-look"]["profiles"] == ["halt", "here"]
    assert listed["first-look"]["environments"][0] == "native"


def test_a_report_as_json(weighbridge: Weighbridge, run: Path):
    before = sorted(run.rglob("*"))
    said = weighbridge("report", run, "--json")
    assert (said.code, said.err) == (0, "")
    report = json.loads(said.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert set(report) >= {"version", "study", "run", "noise_floor", "control_passed", "costs"}
    assert {cost["environment"] for cost in report["costs"]} >= {"docker-host", "docker-bridge", "docker-published"}
    assert sorted(run.rglob("*")) == before, "nothing is written"


@pytest.mark.parametrize(("left", "code"), [([], 0), ([Leftover("0123456789ab", "container", "x")], 1)])
@pytest.mark.parametrize("check", [["--check"], []])
def test_clean_as_json(weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch, left, code, check):
    for name in ("find", "clean"):
        monkeypatch.setattr(cleaning, name, lambda _: Inventory(tuple(left), {}, ()))
    said = weighbridge("clean", "--json", *check)
    assert said.code == code
    fits(SchemaDocument.CLEAN, document := json.loads(said.out))
    assert len(document["leftovers"]) == len(left)
    assert len(said.err.splitlines()) == code


@pytest.mark.parametrize("check", [(), ("--check",)])
def test_clean_names_what_it_spares(weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch, check):
    """A run that another user keeps alive, and what is ignored: then it is not said that no leftovers."""
    ignored = Foreign(Path("/tmp/weighbridge-7/0123456789ab/lock"), Fault.KIND)
    found = Inventory((), {"0123456789ab": Path("/tmp/weighbridge-8/0123456789ab")}, (ignored,))
    for name in ("find", "clean"):
        monkeypatch.setattr(cleaning, name, lambda _: found)
    said = weighbridge("clean", *check)
    assert said.code == 0 and said.out != "no leftovers\n"
    assert_sentence(said.err)


@pytest.mark.parametrize("by_id", [True, False])
def test_clean_of_one_run_says_what_it_removed(weighbridge: Weighbridge, monkeypatch, run: Path, by_id: bool):
    asked: list[str | None] = []
    gone = Leftover("0123456789ab", "process", "17 redis-server")

    def clean(only: str | None) -> Inventory:
        asked.append(only)
        return Inventory((), {}, (), (gone,))

    monkeypatch.setattr(cleaning, "clean", clean)
    said = weighbridge("clean", "--run", "0123456789ab" if by_id else run)
    assert (said.code, said.err, asked) == (0, "", ["0123456789ab"])
    assert said.out == "removed: process 17 redis-server\nno leftovers of run 0123456789ab\n"


def test_clean_of_one_run_that_lives_or_is_none(weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch):
    living = Inventory((), {"0123456789ab": Path("/run/weighbridge/0123456789ab")}, ())
    monkeypatch.setattr(cleaning, "clean", lambda _: living)
    one_sentence(weighbridge("clean", "--run", "0123456789ab"), 1)
    for wrong in ("0123456789a", "../../etc", ""):
        said = weighbridge("clean", "--run", wrong)
        assert said.code == 6 and "run" in said.err, wrong
    left = Inventory((Leftover("0123456789ab", "container", "x"),), {}, ())
    monkeypatch.setattr(cleaning, "find", lambda _: left)
    said = weighbridge("clean", "--run", "0123456789ab", "--check")
    assert said.code == 1
    assert_sentence(said.err)


# -- text ------------------------------------------------------------------------------------------


def test_the_plan_for_people(weighbridge: Weighbridge):
    said = weighbridge("plan", "first-look")
    study = load("first-look")
    assert said.code in PLANNED and said.err == ""
    assert all(arm.name in said.out for arm in study.arms)
    assert all(cell.label in " ".join(said.out.split()) for cell in study.cells)
    assert f"seed {study.file.seed}" in " ".join(said.out.split())
    assert re.search(
        r"time: \d+ (s|min|h).*, of which set-up and cleanup take \d+ (s|min)", " ".join(said.out.split())
    )


def test_the_plan_shows_limits_where_environments_have_not_the_same(weighbridge: Weighbridge, tmp_path: Path):
    study = tmp_path / "half.yaml"
    study.write_text(HALF)
    said = weighbridge("plan", study)
    rows = [line for line in said.out.splitlines() if line.startswith(("environment", "native", "half"))]
    assert ["limits" in rows[0], "1 CPU" in rows[1], "0.5 CPUs, 512 MiB, /dev/shm 64 MiB" in rows[2]] == [True] * 3
    planned = json.loads(weighbridge("plan", study, "--json").out)["environments"]
    assert planned[0]["resources"] == {"cpus": 1.0, "cpu_period": 0.1} and planned[0]["shm_size"] is None
    assert planned[1]["resources"]["memory"] == 2**29 and planned[1]["shm_size"] == 2**26
    assert "limits" not in weighbridge("plan", "first-look").out.partition("workloads:")[0]


HALF = """\
study: limited
question: What does half a CPU cost?
resources: {cpus: 1}
baseline: native
environments:
  native: {kind: native}
  half: {kind: native, resources: {cpus: 0.5, memory: 512MiB}, shm_size: 64MiB}
workloads:
  cpu: {kind: sysbench-cpu, duration: 1s}
repetitions: {rounds: 10}
"""


def test_the_plan_says_that_a_program_will_not_be_there(weighbridge: Weighbridge):
    study = Path("own.yaml")
    study.write_text(HALF.replace("cpu: {kind: sysbench-cpu, duration: 1s}", "own: {kind: command, run: [./prog]}"))
    said = weighbridge("plan", study)
    assert said.code == 4
    (line,) = [each for each in said.out.splitlines() if "./prog is not in" in each]
    assert_sentence(line)


def test_the_plan_of_a_precision(weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plans, "readiness_of", lambda study: {arm.name: Readiness(True) for arm in study.arms})
    weighbridge("init", "s.yaml")
    text = Path("s.yaml").read_text()
    for rule, says in {
        "target: 2%, budget: 30min": "10 to 60 rounds, until every primary metric reaches ±2% (budget 30 min): "
        "120 to 720 trials",
        "target: 0.5%, max: 10": "10 rounds, until every primary metric reaches ±0.5%: 120 trials",
        "rounds: 1": "1 round x 3 workloads x 4 environments = 12 trials",
    }.items():
        Path("s.yaml").write_text(text.replace("rounds: 10", rule))
        said = " ".join(weighbridge("plan", "s.yaml").out.split())
        assert says in said
        assert "native-again (control: native measured again)" in said


@pytest.mark.parametrize(
    ("programs", "ids", "says"),
    [
        ({"mmdebstrap", "newuidmap"}, "other:100000:65536\n", "usermod --add-subuids 165536-231071"),
        ({"mmdebstrap"}, "4321:100000:65536\n", "apt-get install uidmap"),
        ({"newuidmap"}, "4321:100000:65536\n", "apt-get install mmdebstrap"),
        ({"mmdebstrap", "newuidmap"}, "other:1:2\n4321:100000:65536\n", None),
    ],
)
def test_who_cannot_build_the_userland_is_told(
    weighbridge: Weighbridge, monkeypatch, ready: list, tmp_path: Path, programs: set[str], ids: str, says: str | None
):
    users_machine(monkeypatch, tmp_path, programs=programs, ids=ids)
    found = json.loads(weighbridge("doctor", "--json").out)
    for row in found["workloads"]:  # one of a study's own program can have this machine's
        assert row["ready"] is (says is None or row["name"] == "command"), row
        assert bool(row["caveat"]) is (says is not None and row["name"] == "command")
    told = [row["remedy"] for row in found["workloads"]]
    said = weighbridge("run", "first-look", "--out", "there")
    assert said.code == (0 if says is None else 4)
    if says is not None:
        assert all(says in remedy for remedy in told)
        assert says in said.err
        assert ready == []


def test_native_needs_a_userland_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    class Here(Environment):
        kind = "here"

        def open(self, options, request):
            raise NotImplementedError

    users_machine(monkeypatch, tmp_path, programs={"mmdebstrap"}, ids="")
    state = machine.environment_readiness(Here())
    assert not state.ready and "WEIGHBRIDGE_CACHE" in state.remedy
    Here.shares_root = True
    state = machine.environment_readiness(Here())
    assert state.ready and state.caveat and "WEIGHBRIDGE_CACHE" in state.remedy, "weigh needs none"
    about = tmp_path / "cache/userlands/x/about.json"
    about.parent.mkdir(parents=True)
    about.touch()
    assert machine.environment_readiness(Here()).ready


def test_a_failure_of_mmdebstrap_is_told_with_what_helps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    users_machine(monkeypatch, tmp_path, programs={"mmdebstrap", "newuidmap"}, ids="4321:1:2\n")
    stderr = b"E: unable to pick chroot mode automatically (use --mode for manual selection)\n"
    monkeypatch.setattr(commands, "run", lambda command, _: Completed(command.argv, 1, b"", stderr, 1.0))
    with pytest.raises(Unavailable, match="usermod --add-subuids") as caught:
        build.ensure(UserlandSpec.of(["hello"]), tmp_path / "cache", lambda _: None)
    assert "--mode" not in str(caught.value)


def test_the_plan_lists_every_trial_in_order(weighbridge: Weighbridge):
    planned = json.loads(weighbridge("plan", "first-look", "--json").out)
    table = weighbridge("plan", "first-look", "--trials").out
    rows = re.findall(r"^(\d+) +(\d+) +(\S+) +(?:client=(\S+) +)?(\S+) *$", table, re.MULTILINE)
    assert [(int(n), int(b), w, c, e) for n, b, w, c, e in rows] == [
        (n, t["block"], t["workload"], t["level"].get("client", ""), t["environment"])
        for n, t in enumerate(planned["trials"], 1)
    ]
    assert planned == json.loads(weighbridge("plan", "first-look", "--json").out)


@pytest.mark.parametrize("width", [20, 40, 80])
def test_what_studies_lists_can_be_copied_on_any_terminal(
    weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch, width: int
):
    monkeypatch.setattr(output.out(), "width", width)
    said = weighbridge("studies").out
    assert [line for line in said.splitlines() if not line.startswith(" ")] == list(bundled())
    words = set(re.findall(r"[^\s,]+", said))
    for study in map(load, bundled()):
        assert words >= {*study.file.environments, *study.file.workloads, *study.file.profiles}
        assert words >= set(re.findall(r"[^\s,]+", study.file.question))
    names = [word for word in words if len(word) > width - 5]  # beside its indentation and comma
    assert all(len(line) <= width or any(name in line for name in names) for line in said.splitlines())


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (["docker-bridge.tcp.throughput > 90%"], 0),
        (["docker-bridge.tcp.throughput > -90%"], 11),
        (["docker-bridge.tcp.throughput > 0%"], 12),
        (["docker-bridge.tcp.throughput > 0%", "docker-bridge.tcp.throughput > -90%"], 11),
    ],
)
def test_a_report_that_fails_above_a_limit(weighbridge: Weighbridge, run: Path, limits: list[str], code: int):
    """Whatever the answer is, the report itself is written."""
    said = weighbridge("report", run, *(word for limit in limits for word in ("--fail-if", limit)))
    assert said.code == code and (run / "report.html").exists()
    assert ("limit kept: " in said.out) == (code == 0)
    lines = [line for line in said.err.splitlines() if line.startswith("weighbridge: ")]
    assert len(lines) == (len(limits) if code else 0)
    said = weighbridge("report", run, "--json", *(word for limit in limits for word in ("--fail-if", limit)))
    assert said.code == code
    assert [each["limit"] for each in json.loads(said.out)["limits"]] == limits


@pytest.mark.parametrize("limit", ["nonsense", "dokcer.tcp.throughput > 5%", "docker-bridge.tcp.throughput > 5ms"])
def test_what_is_no_limit_writes_nothing(weighbridge: Weighbridge, run: Path, limit: str):
    one_sentence(weighbridge("report", run, "--fail-if", limit), 2)
    assert not (run / "report.html").exists()


def test_a_report_for_people(weighbridge: Weighbridge, run: Path):
    said = weighbridge("report", run)
    assert said.code == 0
    assert "docker-bridge" in said.out
    page = (run / "report.html").read_text()
    assert "<script>alert(1)</script>" not in page


@pytest.mark.parametrize("option", ["--openmetrics", "--github-action-benchmark"])
def test_a_report_for_another_tool_is_all_there_is_on_standard_output(
    weighbridge: Weighbridge, run: Path, option: str
):
    said = weighbridge("report", run, option, "--fail-if", "docker-bridge.tcp.throughput > -90%")
    assert said.code == 11, said
    assert said.out.endswith(("# EOF\n", "]\n")) and "weighbridge:" in said.err
    assert not (run / "report.html").exists()
    one_sentence(weighbridge("report", run, option, "--json"), 2)


def test_export(weighbridge: Weighbridge, run: Path, tmp_path: Path):
    said = weighbridge("export", run, "--csv", tmp_path / "tables")
    assert said.code == 0
    assert [Path(line).is_file() for line in said.out.splitlines()] == [True] * 3


# -- init ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["study.yaml", "été.yaml", "1.yaml", "-.yaml", "a b.yaml", "ü.yaml", f"{'x' * 60}.yaml", "[red].yaml"]
)
def test_init_writes_a_study_that_loads(weighbridge: Weighbridge, name: str):
    said = weighbridge("init", "--", name)
    assert (said.code, said.err) == (0, "")
    assert name in said.out
    study = load(f"./{name}")
    assert len(study.arms) == 4
    assert weighbridge("plan", "--", f"./{name}").code in PLANNED


def test_what_init_writes_becomes_a_study_on_two_hosts_as_it_says(weighbridge: Weighbridge):
    weighbridge("init", "two.yaml")
    text = re.sub(r"^inside: .*\n", "", Path("two.yaml").read_text(), flags=re.MULTILINE)
    text = re.sub(r"^#(hosts|placement|inside):", r"\1:", text, flags=re.MULTILINE)
    with pytest.raises(errors.StudyError, match="attach: interface"):
        check(parse(text, "two.yaml"))
    written = text.replace("network: bridge}", "network: bridge, attach: interface}")
    study = check(parse(written, "two.yaml"))
    assert {*study.client_hosts, study.server_host} == {"a", "b"}
    assert study.file.inside == ["server", "client"]


@pytest.mark.parametrize("name", bundled())
def test_init_copies_a_bundled_study_with_its_comments(weighbridge: Weighbridge, name: str):
    said = weighbridge("init", "--from", name, "mine.yaml")
    assert (said.code, said.err) == (0, "")
    assert Path("mine.yaml").read_text() == bundled()[name]
    one_sentence(weighbridge("init", "--from", name, "mine.yaml"), 1)


def test_init_from_a_study_that_there_is_not(weighbridge: Weighbridge):
    one_sentence(weighbridge("init", "--from", "docker-netwrks", "a.yaml"), 3)
    assert not Path("a.yaml").exists()


def test_init_overwrites_nothing(weighbridge: Weighbridge):
    Path("mine.yaml").write_text("precious")
    one_sentence(weighbridge("init", "mine.yaml"), 1)
    assert Path("mine.yaml").read_text() == "precious"


def test_init_where_nothing_can_be_written(weighbridge: Weighbridge):
    one_sentence(weighbridge("init", "no/folder/a.yaml"), 1)
    one_sentence(weighbridge("init", f"{'x' * 300}.yaml"), 1)


# -- run -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("yes", [["--yes"], ["-y"], []])
def test_run_without_a_terminal_asks_nothing(weighbridge: Weighbridge, ready: list, yes: list[str]):
    said = weighbridge("run", "first-look", "--out", "there", *yes)
    assert (said.code, said.out) == (0, "")
    ((study, directory),) = ready
    assert (study.file.study, directory) == ("first-look", Path("there"))
    assert "results go to there" in said.err


def test_run_names_its_own_directory(weighbridge: Weighbridge, ready: list):
    assert weighbridge("run", "first-look").code == 0
    assert re.fullmatch(r"runs/first-look-\d{8}-\d{6}", str(ready[0][1]))


def test_run_continues_without_a_study(weighbridge: Weighbridge, ready: list):
    with RunStore(Path("there"), writable=True) as store:
        store.begin(load("first-look"), {"run_id": "0" * 12, "version": "1"})
    assert weighbridge("run", "--out", "there").code == 0
    assert ready == [(None, Path("there"))]
    one_sentence(weighbridge("run"), 2)


def test_run_with_other_blocks_says_so_in_the_text_that_is_kept(weighbridge: Weighbridge, ready: list):
    assert weighbridge("run", "first-look", "--rounds", "2", "--out", "there").code == 0
    ((study, _),) = ready
    assert study.file.repetitions.blocks == 2
    assert study_json(check(parse(study.text, "kept"))) == study_json(study)
    assert re.findall("^repetitions:.*", study.text, re.MULTILINE) == ["repetitions: {rounds: 2}"]
    plain = load("first-look")
    assert (study.arms, study.cells, study.lines) == (plain.arms, plain.cells, plain.lines)
    assert weighbridge("run", "first-look", "--rounds", "0", "--out", "there").code == 2


def test_too_few_blocks_for_a_verdict_are_refused_unless_it_is_a_rehearsal(
    weighbridge: Weighbridge, ready: list, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("WEIGHBRIDGE_QUICK_TEST")
    few = ("first-look", "--rounds", str(MIN_BLOCKS_VERDICT - 1))
    refused = weighbridge("run", *few, "--out", "there")
    one_sentence(refused, 3)
    assert ready == [] and "--quick-test" in refused.err
    plan = weighbridge("plan", *few, "--json")
    planned = json.loads(plan.out)
    assert plan.code == 3, "as run and weigh"
    assert planned["decides"]["verdicts"] == "none"
    assert any(why in refused.err for why in planned["refusals"])
    assert weighbridge("run", *few, "--out", "there", "--quick-test").code == 0
    assert len(ready) == 1
    weighbridge("init", "s.yaml")
    text = Path("s.yaml").read_text().replace("rounds: 10", "rounds: 2")
    for more, code in (("", 3), ("rehearsal: true\n", 0)):
        Path("s.yaml").write_text(text + more)
        assert weighbridge("run", "s.yaml", "--out", "there", "--yes").code == code
    weighed = ("weigh", "--in", "netns", "--out", "there", "--rounds", 2)
    assert [weighbridge(*weighed, *more, "--", "true").code for more in ((), ("--quick-test",))] == [3, 0]


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        (2, "2 rounds: too few for a verdict (6 for a first one, 10 for a reliable one)"),
        (6, "6 rounds, exploratory (fewer than 10 rounds). The smallest detectable cost depends"),
        (10, "10 rounds. The smallest detectable cost depends"),
    ],
)
def test_plan_and_the_first_line_of_a_run_say_what_its_blocks_can_decide(
    weighbridge: Weighbridge, ready: list, blocks: int, words: str
):
    assert words in " ".join(weighbridge("plan", "first-look", "--rounds", blocks).out.split())
    assert words in weighbridge("run", "first-look", "--rounds", blocks, "--out", "there").err.splitlines()[0]


def test_limits_without_effect_are_told_before_anything_runs(weighbridge: Weighbridge, ready: list):
    weighbridge("init", "s.yaml")
    Path("s.yaml").write_text(Path("s.yaml").read_text().replace("cpus: 1,", "cpus: 5000,"))
    for said in (weighbridge("plan", "s.yaml").out, weighbridge("run", "s.yaml", "--out", "there", "-y").err):
        assert re.search(r"note: .*cpus: 5000 is more than .*so the limit has no effect", said)


def test_where_no_trial_has_ended_only_the_cause_is_told(weighbridge: Weighbridge, monkeypatch, ready: list):
    def lose(study, directory, progress, after, blocks, **_):
        with RunStore(directory, writable=True) as store:
            store.begin(study, {"run_id": "0123456789ab"})
            after(store)
        raise Unavailable("what went wrong")

    monkeypatch.setattr(running, "run_study", lose)
    said = weighbridge("run", "first-look", "--out", "there")
    assert (said.code, said.out) == (4, "")
    assert said.err.splitlines()[1:] == ["weighbridge: what went wrong"]
    assert not Path("there/report.html").exists()


def test_repeated_blocks_never_show_more_trials_than_planned(monkeypatch: pytest.MonkeyPatch):
    screen = Console(file=io.StringIO(), width=120, highlight=False)
    monkeypatch.setattr(progress, "err", lambda: screen)
    monkeypatch.setattr(progress, "_LINES_S", (0.0,))
    with progress.show() as shown:
        for done in range(4):
            trial = Trial(1, done // 2, "redis", Level(), "bridge")
            shown.trial_started(trial, done, 2, LEFT)
            shown.trial_finished(TrialRecord(trial, Outcome.OK, 0, 1, 1))
        shown.close()
    told = [line.split(" trials")[0] for line in screen.file.getvalue().splitlines()]
    assert told == ["0 of 2", "1 of 2", "2 of 3", "3 of 4"]


def test_the_time_that_a_run_may_take_is_not_called_what_is_left(monkeypatch: pytest.MonkeyPatch):
    screen = Console(file=io.StringIO(), width=120, highlight=False)
    monkeypatch.setattr(progress, "err", lambda: screen)
    monkeypatch.setattr(progress, "_LINES_S", (0.0,))
    with progress.show() as shown:
        for done, left in enumerate(
            (
                Forecast(20.0, 10, 75.0, 30, "limit"), LEFT, Forecast(3.0, 8, 3.0, 8, "block"),
                Forecast(0.0, 10, math.inf, 60, "blocks"),
            )
        ):  # fmt: skip
            shown.trial_started(Trial(1, 0, "redis", Level(), "bridge"), done, 40, left)
    assert screen.file.getvalue().splitlines() == [
        "0 trials done, at most 75 s left; round 1: redis in bridge",
        "1 of 40 trials done, 60 s left; round 1: redis in bridge",
        "2 trials done, last round, 3 s left; round 1: redis in bridge",
        "3 trials done; round 1: redis in bridge",
    ]


def test_the_bar_ends_before_the_report_begins(monkeypatch: pytest.MonkeyPatch):
    screen = Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False)
    monkeypatch.setattr(progress, "err", lambda: screen)
    trial = Trial(1, 0, "redis", Level([("clients", "50")]), "bridge")
    with progress.show() as shown:
        assert shown._bar is not None
        for done in range(3):
            shown.trial_started(trial, done, 3, LEFT)
            assert shown._bar.tasks[0].fields["left"] == "60 s left"
            shown.trial_finished(
                TrialRecord(trial, Outcome.OK if done else Outcome.PROGRAM_FAILED, 0, 1, 1, message="why")
            )
        (task,) = shown._bar.tasks
        assert (task.completed, task.total, task.fields["count"]) == (3, 3, "3/3")
        assert task.description == "round 1: redis (clients=50) in bridge"
        assert task.fields["left"]
        shown.say("cleaning up")
        assert task.fields["left"] == ""
        shown._bar.refresh()
        shown.close()
        assert shown._bar.finished
        assert not shown._bar.live.is_started
    printed = screen.file.getvalue()
    assert "round 1, redis (clients=50) in bridge: " in printed
    assert "3/3" in printed
    assert "cleaning up" in printed


def test_run_says_what_is_not_ready(weighbridge: Weighbridge):
    said = weighbridge("run", "first-look", "--out", "there", "--yes")
    assert (said.code, said.out, said.err.count("\n")) == (4, "", 1) and said.err.startswith("weighbridge: ")
    assert "docker" in said.err and "native" in said.err, "what else, each machine says in words of its own"
    assert not Path("there").exists()


@pytest.mark.parametrize(
    "prepare",
    [
        lambda path: None,
        lambda path: path.mkdir(),
        lambda path: path.touch(),
        lambda path: (path.mkdir(), (path / "run.sqlite").write_bytes(b"garbage" * 99)),
    ],
)  # fmt: skip
def test_run_into_what_is_no_run(weighbridge: Weighbridge, prepare):
    prepare(Path("there"))
    before = {*Path.cwd().rglob("*")}
    one_sentence(weighbridge("run", "--out", "there"), 6)
    assert {*Path.cwd().rglob("*")} == before, "nothing is made where nothing was"


def test_two_runs_of_one_directory(weighbridge: Weighbridge, run: Path):
    with RunStore(run, writable=True):
        one_sentence(weighbridge("run", "--out", run), 6)


def test_a_run_of_another_study(weighbridge: Weighbridge, run: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(PlannedRun, "require", lambda _: None)
    weighbridge("init", "other.yaml")
    said = weighbridge("run", "other.yaml", "--out", run, "--yes")
    assert said.code == 6
    assert "another study" in said.err.splitlines()[-1]


# -- failures --------------------------------------------------------------------------------------


CODES = {
    "StudyError": 3,
    "Unavailable": 4,
    "UserlandError": 5,
    "RunDirectoryError": 6,
    "DiskFull": 7,
    "EnvironmentLost": 8,
    "TrialsFailed": 9,
    "Untrusted": 10,
    "LimitExceeded": 11,
    "LimitUndecided": 12,
    "Leftovers": 1,
}


def test_exit_codes_are_stable():
    found = {
        c.__name__: c.exit_code for c in vars(errors).values() if isinstance(c, type) and issubclass(c, Exception)
    }
    assert {name: found[name] for name in CODES} == CODES
    assert found["WeighbridgeError"] == 1
    assert Interrupted(2).exit_code == 130
    assert Interrupted(15).exit_code == 143
    assert 2 not in found.values(), "2 is a wrong command line"


@pytest.mark.parametrize("name", CODES)
def test_every_failure_is_its_sentence_and_its_code(weighbridge: Weighbridge, monkeypatch, ready: list, name: str):
    def fail(*_, **__):
        raise getattr(errors, name)("what went wrong")

    monkeypatch.setattr(running, "run_study", fail)
    said = weighbridge("run", "first-look", "--out", "there")
    assert said.code == CODES[name]
    assert said.out == ""
    assert said.err.splitlines()[-1] == "weighbridge: what went wrong"


@pytest.mark.parametrize("ended", [Interrupted(2), Interrupted(15), errors.EnvironmentLost("gone")])
@pytest.mark.parametrize("command", ["run first-look", "replicate docker-networks"])
def test_what_ends_a_run_gives_the_command_that_continues_it(
    weighbridge: Weighbridge, monkeypatch, ready: list, command: str, ended
):
    def begin_and_end(study, directory, *_, **__):
        with RunStore(directory, writable=True) as store:
            store.begin(study, {"run_id": "0123456789ab"})
            store.save(TrialRecord(block(study, 1)[0], Outcome.ENVIRONMENT_LOST, 1e9, 0.5, 0.4))
        raise ended

    monkeypatch.setattr(running, "run_study", begin_and_end)
    name, study = command.split()
    said = weighbridge(name, study)
    assert said.code == ended.exit_code
    advice = said.err.splitlines()[-1].partition("to continue: weighbridge ")[2].split()
    assert advice[:2] == [name, "--out"] and Path(advice[2], "run.sqlite").is_file()
    monkeypatch.setattr(running, "run_study", lambda study, directory, *_, **__: ready.append((study, directory)))
    ready.clear()
    assert weighbridge(*advice).code == 0
    assert ready == [(None, Path(advice[2]))]


@pytest.mark.parametrize("name", ["TrialsFailed", "RunDirectoryError", "Untrusted"])
def test_what_cannot_be_continued_gives_no_such_command(weighbridge: Weighbridge, monkeypatch, ready, run, name: str):
    def end(*_, **__):
        raise getattr(errors, name)("what went wrong")

    monkeypatch.setattr(running, "run_study", end)
    one_sentence(weighbridge("run", "--out", run), CODES[name])


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("ended", [Interrupted(2), errors.Unavailable("no room"), errors.UserlandError("no network")])
def test_without_a_trial_there_is_nothing_to_continue(
    weighbridge: Weighbridge, monkeypatch, ready, ended, begun: bool
):
    def refuse(study, directory, *_, **__):
        if begun:
            with RunStore(directory, writable=True) as store:
                store.begin(study, {"run_id": "0123456789ab"})
        raise ended

    monkeypatch.setattr(running, "run_study", refuse)
    said = weighbridge("run", "first-look", "--out", "there")
    assert said.code == ended.exit_code and "to continue" not in said.err


# -- a study is code -------------------------------------------------------------------------------

BRINGS = """\
study: brings
question: What is read and started?
hosts:
  a: {kind: ssh, destination: localhost, address: 192.0.2.10}
  b: {kind: ssh, destination: me@there, config: their.conf}
placement: {client: a, server: b}
baseline: native
environments: {native: {kind: native}}
workloads: {web: {kind: nginx-wrk, picture: cat.jpg, content: picture}}
prometheus: {url: "http://127.0.0.1:9090", queries: {load: {query: up, unit: "1"}}}
repetitions: {rounds: 10}
"""


@pytest.fixture
def brings() -> Path:
    """A study that brings one of everything."""
    Path("their.conf").write_text("Host there\n  ProxyCommand sh -c 'id > /tmp/x'\n  User me\nMatch exec true\n")
    Path("cat.jpg").write_bytes(b"jpg")
    Path("brings.yaml").write_text(BRINGS)
    return Path("brings.yaml")


def test_the_plan_shows_every_file_and_command_that_a_study_brings(weighbridge: Weighbridge, brings: Path):
    found = json.loads(weighbridge("plan", brings, "--json").out)["brings"]
    assert {(each["what"], each["place"], each["value"]) for each in found} == {
        ("machine", "hosts.a.destination", "localhost"),
        ("machine", "hosts.a.address", "192.0.2.10"),
        ("machine", "hosts.b.destination", "me@there"),
        ("ssh configuration", "hosts.b.config", str(Path("their.conf").absolute())),
        ("server", "prometheus.url", "http://127.0.0.1:9090"),
        ("file", "workloads.web.picture", str(Path("cat.jpg").absolute())),
    }
    (lines,) = [each["lines"] for each in found if each["lines"]]
    assert lines == ["Host there", "ProxyCommand sh -c 'id > /tmp/x'", "User me", "Match exec true"]
    said = weighbridge("plan", brings).out
    assert all(value in said for each in found for value in (each["value"], *each["lines"]))
    assert (
        f"  ssh configuration {Path('their.conf').absolute()} (hosts.b.config), its lines:\n    Host there\n" in said
    )


def test_the_list_of_what_a_study_brings_fits_on_80_columns():
    long = "ProxyCommand sh -c 'a program with many words that ends somewhere beyond the eightieth column of a line'"
    brought = [
        ExternalResource(External.FILE, "userland.path", "/usr"),
        ExternalResource(External.SSH_CONFIGURATION, "--on, n1.config", "/c", ("Host n1", long)),
        ExternalResource(External.MACHINE, "--on", "n1, n2"),
        compose_resource("/c.yaml"),
    ]
    lines = approval.resource_lines(brought, 80)
    assert max(map(len, lines)) <= 80
    assert lines[:2] == ["The fleet contacts or reads:", "  ssh configuration /c (--on, n1.config), its lines:"]
    assert lines[2] == "    Host n1" and lines[4].startswith(" " * 10)
    study = lines.index("The study starts, reads or contacts:")
    assert lines[study + 1].startswith("  folder /usr") and "  Compose file /c.yaml (compose.file):" in lines
    assert " ".join(" ".join(lines).split()) == " ".join(" ".join(approval.resource_lines(brought)).split())


def test_a_bundled_study_brings_commands_of_its_userland_at_most(weighbridge: Weighbridge):
    brought = [each for name in bundled() for each in json.loads(weighbridge("plan", name, "--json").out)["brings"]]
    assert {each["what"] for each in brought} <= {"command", "argument", "machine"}


def test_a_study_that_is_not_bundled_needs_yes_without_a_terminal(weighbridge: Weighbridge, ready: list, brings):
    weighbridge("init", "mine.yaml")
    for study in ("mine.yaml", brings):
        one_sentence(weighbridge("run", study, "--out", "there"), 2)
        assert ready == []
        assert weighbridge("run", study, "--out", "there", "--yes").code == 0
        ready.clear()


def test_a_compose_file_needs_yes_without_a_terminal(weighbridge: Weighbridge):
    head = "study: s\nquestion: q?\nbaseline: native\nenvironments: {native: {kind: native}}\n"
    Path("shop.yaml").write_text(head + "compose: {file: services.yaml, service: shop, load: {client: [true]}}\n")
    Path("services.yaml").touch()
    said = weighbridge("run", "shop.yaml")
    assert said.code == 2
    assert_sentence(said.err.splitlines()[-1])


def test_a_run_whose_study_brings_something_needs_yes_again(weighbridge: Weighbridge, ready: list, brings, tmp_path):
    with RunStore(tmp_path / "got", writable=True) as store:
        store.begin(load(str(brings)), {"run_id": "0123456789ab"})
    said = weighbridge("run", "--out", tmp_path / "got")
    assert (said.code, ready) == (2, []) and "ProxyCommand" in said.err
    assert_sentence(said.err.splitlines()[-1])
    assert weighbridge("run", "--out", tmp_path / "got", "--yes").code == 0
    assert ready == [(None, tmp_path / "got")]


def test_a_run_of_a_stranger_needs_yes_if_its_study_brings_nothing(weighbridge: Weighbridge, ready: list, tmp_path):
    """Programs of this machine are started by any study."""
    text = bundled()["first-look"].replace("duration: 1s", "duration: 2s", 1)
    assert text != bundled()["first-look"]
    Path("first.yaml").write_text(text)
    for name, study in (("own", load("first.yaml")), ("got", load("first-look"))):
        with RunStore(tmp_path / name, writable=True) as store:
            store.begin(study, {"run_id": "0123456789ab"})
    one_sentence(weighbridge("run", "--out", tmp_path / "own"), 2)
    assert ready == []
    assert weighbridge("run", "--out", tmp_path / "own", "--yes").code == 0
    assert weighbridge("run", "--out", tmp_path / "got").code == 0


def test_variables_and_kernel_settings_are_shown(tmp_path: Path):
    study = tmp_path / "vars.yaml"
    study.write_text(
        "study: x\nquestion: What?\nbaseline: native\nrepetitions: {rounds: 6}\n"
        "userland: {kind: host, env: {LD_PRELOAD: /dev/shm/evil.so}}\n"
        "companions: {db: {image: db, environment: {A: b}, sysctls: {net.core.somaxconn: 9}}}\n"
        "environments:\n  native: {kind: native}\n"
        "  bridge: {kind: docker, network: bridge, sysctls: {net.core.somaxconn: 8}}\n"
        "workloads: {own: {kind: command, run: [dd]}}\n"
    )
    shown = {f"{each.kind}: {each.value} ({each.place})" for each in external_resources(load(str(study)))}
    assert shown == {
        "environment variable: LD_PRELOAD=/dev/shm/evil.so (userland.env.LD_PRELOAD)",
        "image: db (companions.db.image)",
        "environment variable: A=b (companions.db.environment.A)",
        "kernel setting: net.core.somaxconn=9 (companions.db.sysctls.net.core.somaxconn)",
        "kernel setting: net.core.somaxconn=8 (environments.bridge.sysctls.net.core.somaxconn)",
        "command: dd (workloads.own.run)",
    }


def test_a_person_is_asked(weighbridge: Weighbridge, ready: list, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    monkeypatch.setattr(approval, "_person_there", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda text, **_: asked.append(text))
    weighbridge("init", "mine.yaml")
    assert weighbridge("run", "mine.yaml", "--out", "there").code == 0
    assert len(asked) == len(ready) == 1


@pytest.mark.parametrize("command", ["doctor --noise", "calibrate", "studies"])
def test_a_file_does_not_stand_in_for_a_bundled_study_that_nobody_named(
    weighbridge: Weighbridge, ready: list, monkeypatch: pytest.MonkeyPatch, command: str
):
    weighbridge("init", "hostile.yaml")
    names = ("noise", "calibrate-cpu", "calibrate-link", "first-look")
    for name in names:
        shutil.copy("hostile.yaml", name)
    loaded: list[str] = []

    def checked(source, *more):
        loaded.append(source.text)
        return check(source, *more)

    monkeypatch.setattr(loader, "check", checked)
    monkeypatch.setattr(plans, "userland_problems", lambda _: iter(()))
    weighbridge(*command.split())
    assert loaded and Path("hostile.yaml").read_text() not in loaded


# -- more blocks -----------------------------------------------------------------------------------


def test_the_plan_of_other_blocks(weighbridge: Weighbridge):
    planned = json.loads(weighbridge("plan", "first-look", "--rounds", "3", "--json").out)
    assert planned["blocks"] == planned["most_blocks"] == 3
    assert {trial["block"] for trial in planned["trials"]} == {1, 2, 3}


def test_fewer_blocks_than_a_run_has(weighbridge: Weighbridge, run: Path):
    one_sentence(weighbridge("run", "--out", run, "--rounds", "3"), 6)


def test_a_failure_of_several_lines_has_the_program_in_each(weighbridge: Weighbridge):
    Path("bad.yaml").write_text("study: 1\nfoo: 2\n")
    said = weighbridge("plan", "bad.yaml")
    assert (said.code, said.out) == (3, "")
    assert all(re.match(r"weighbridge: bad\.yaml:\d+: ", line) for line in said.err.splitlines())


STUDIES: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "empty": lambda: Path("s.yaml").touch(),
    "folder": lambda: Path("s.yaml").mkdir(),
    "binary": lambda: Path("s.yaml").write_bytes(bytes(range(256))),
    "list": lambda: Path("s.yaml").write_text("- a\n"),
    "no YAML": lambda: Path("s.yaml").write_text("a: [\n"),
    "aliases": lambda: Path("s.yaml").write_text("a: &a [x]\nb: &a [*a, *a]\n<<: *a\n"),
    "deep": lambda: Path("s.yaml").write_text("a: " + "[" * 1000),
    "broken link": lambda: Path("s.yaml").symlink_to("nowhere"),
    "link to itself": lambda: Path("s.yaml").symlink_to("s.yaml"),
    "huge": lambda: Path("s.yaml").write_bytes(b"#" * 2**20),
}


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize("name", STUDIES)
def test_a_bad_study_file_is_exit_3(weighbridge: Weighbridge, command: str, name: str):
    STUDIES[name]()
    one_sentence(weighbridge(command, "s.yaml"), 3)


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize("study", ["first-lok", "x" * 5000, ".", "/dev/zero", "", "a\0b"])
def test_a_study_that_is_none_is_exit_3(weighbridge: Weighbridge, command: str, study: str):
    one_sentence(weighbridge(command, study), 3)


RUNS: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "empty": lambda: Path("r").mkdir(),
    "file": lambda: Path("r").touch(),
    "garbage": lambda: (Path("r").mkdir(), Path("r/run.sqlite").write_bytes(b"\xff" * 9999)),
    "an empty database": lambda: (Path("r").mkdir(), Path("r/run.sqlite").touch()),
    "a database that is a folder": lambda: Path("r/run.sqlite").mkdir(parents=True),
}


@pytest.mark.parametrize("command", [["report"], ["report", "--json"], ["export", "--csv", "t"]])
@pytest.mark.parametrize("name", RUNS)
def test_what_is_no_run_is_exit_6(weighbridge: Weighbridge, command: list[str], name: str):
    RUNS[name]()
    one_sentence(weighbridge(*command, "r"), 6)


@pytest.mark.parametrize("command", [["report"], ["report", "--json"], ["export", "--csv", "t"]])
def test_a_run_without_trials_is_no_traceback(weighbridge: Weighbridge, tmp_path: Path, command: list[str]):
    with RunStore(tmp_path / "r", writable=True) as store:
        store.begin(load("first-look"), {"run_id": "0123456789ab"})
    said = weighbridge(*command, tmp_path / "r")
    assert said.code in {0, 6}
    if command[-1] == "--json":
        json.loads(said.out)


@pytest.mark.parametrize("command", [["report"], ["report", "--json"], ["export", "--csv", "t"]])
def test_a_run_that_never_began_is_no_traceback(weighbridge: Weighbridge, tmp_path: Path, command: list[str]):
    RunStore(tmp_path / "r", writable=True).close()
    one_sentence(weighbridge(*command, tmp_path / "r"), 6)


def test_a_run_is_found_by_its_database_and_in_a_folder_of_runs(weighbridge: Weighbridge, run: Path):
    assert weighbridge("report", run / "run.sqlite").code == 0
    assert (run / "report.html").is_file()
    assert weighbridge("export", run / "run.sqlite", "--csv", "t").code == 0
    one_sentence(weighbridge("report", run.parent), 6)


def test_export_needs_to_know_what(weighbridge: Weighbridge, run: Path):
    one_sentence(weighbridge("export", run), 2)


@pytest.mark.parametrize(("number", "code"), [(28, 7), (122, 7), (30, 1)])
def test_a_disk_that_takes_nothing(weighbridge: Weighbridge, run: Path, monkeypatch, number: int, code: int):
    def refuse(folder: SafeFolder, name: str, _: bytes):
        raise OSError(number, "it is full", str(folder.path / name))

    monkeypatch.setattr(SafeFolder, "write_new", refuse)
    one_sentence(weighbridge("report", run), code)


def test_a_failure_of_the_system_without_a_file_is_a_sentence(weighbridge: Weighbridge, run: Path, monkeypatch):
    def refuse(*_: object):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SafeFolder, "write_new", refuse)
    one_sentence(weighbridge("report", run), 7)


@pytest.mark.parametrize("target", ["file/x", "file"])
def test_export_and_report_to_where_nothing_can_be_written(weighbridge: Weighbridge, run: Path, target: str):
    Path("file").touch()
    for arguments in (["export", run, "--csv", target], ["report", run, "--html", f"{target}/x.html"]):
        one_sentence(weighbridge(*arguments), 1)


def test_other_systems_are_told_in_one_sentence(weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    one_sentence(weighbridge("doctor"), 4)


def test_a_reader_that_goes_away(weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch):
    from weighbridge.cli import schema

    def gone(_: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(schema, "print_json", gone)
    assert weighbridge("schema").code in {1, 141}


@pytest.mark.parametrize("arguments", [["schema"], ["studies"], ["plan", "first-look", "--trials"]])
def test_head_as_the_reader(weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch, arguments: list[str]):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        said = weighbridge(*arguments)
        monkeypatch.undo()
    assert (said.code, said.err) == (141, "")


# -- optional environments -------------------------------------------------------------------------

OPTIONAL = """\
study: s
question: q
baseline: native
environments:
  native: {kind: native}
  inner: {kind: netns}
  port: {kind: docker, network: bridge, publish: true, optional: true}
workloads: {cpu: {kind: sysbench-cpu, duration: 1s}}
repetitions: {rounds: 2}
"""


def without_docker(made):
    return {
        arm.name: Readiness(False, "docker does not answer", "start it") if arm.kind == "docker" else Readiness(True)
        for arm in made.arms
    }


def test_the_plan_names_what_is_left_out(weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plans, "readiness_of", without_docker)
    Path("s.yaml").write_text(OPTIONAL)
    said = " ".join(weighbridge("plan", "s.yaml").out.split())
    assert "port docker skipped" in said and "port is skipped: docker does not answer; start it" in said
    assert "2 rounds x 1 workload x 3 environments = 6 trials" in said and "port: docker does not" not in said
    planned = json.loads(weighbridge("plan", "s.yaml", "--json").out)
    fits(SchemaDocument.PLAN, planned)
    (port,) = [each for each in planned["environments"] if each["name"] == "port"]
    assert (port["optional"], port["ready"], port["why"]) == (True, False, "docker does not answer")
    assert {trial["environment"] for trial in planned["trials"]} == {"native", "inner", "native-again"}
    Path("s.yaml").write_text(OPTIONAL.replace(", optional: true", ""))
    told = weighbridge("plan", "s.yaml")
    assert told.code == 4 and "will refuse: s.yaml:7: port: docker does not answer: start it" in told.out
    (why,) = json.loads(weighbridge("plan", "s.yaml", "--json").out)["refusals"]
    assert re.fullmatch(r"s\.yaml:\d+: port: docker does not answer: start it", why)


def test_a_plan_does_not_count_what_explains_a_skipped_environment(
    weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch
):
    """An environment can be ready without the mechanism that makes another one fail."""
    get = "github.com/zouuup/landrun/cmd/landrun@latest"
    monkeypatch.setattr(
        plans, "readiness_of", lambda made: {arm.name: Readiness(arm.name != "port", "no", get) for arm in made.arms}
    )
    Path("s.yaml").write_text(OPTIONAL + "explain: [port]\n")
    said = weighbridge("plan", "s.yaml").out
    assert "to explain" not in said and "x 3 environments = 6 trials" in " ".join(said.split())
    assert get in said.split(), "no command is cut off"
    planned = json.loads(weighbridge("plan", "s.yaml", "--json").out)
    assert {arm["ready"] for arm in planned["environments"] if arm["explains"]} == {False}


def test_a_plan_says_whether_the_name_of_a_wrapper_is_in_path(
    weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch
):
    """Without --yes, it said that all is well."""
    monkeypatch.setattr("weighbridge.runner.preflight.ready", lambda *_: Readiness(True))
    Path("s.yaml").write_text("""\
study: s
question: q
baseline: native
userland: host
environments:
  native: {kind: native}
  name: {kind: wrapper, command: [no-such-sandbox, --]}
  path: {kind: wrapper, command: [/no/such/sandbox, --]}
workloads: {cpu: {kind: command, run: "true"}}
repetitions: {rounds: 10}
""")
    said = weighbridge("plan", "s.yaml")
    assert said.code == 4 and "path wrapper not checked" in " ".join(said.out.split())
    why = "will refuse: s.yaml:7: name: the program 'no-such-sandbox' is not installed"
    assert why in " ".join(said.out.split())


def test_a_run_says_first_what_it_leaves_out(weighbridge: Weighbridge, ready: list, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plans, "readiness_of", without_docker)
    Path("s.yaml").write_text(OPTIONAL)
    said = weighbridge("run", "s.yaml", "--out", "there", "--yes")
    assert said.code == 0 and "note: port is skipped: docker does not answer; start it" in said.err
    assert "s: 3 environments x 1 workload" in said.err
    ((study, _),) = ready
    assert "port" in [arm.name for arm in study.arms]  # the run itself leaves it out, and keeps why
    assert said.err.count("is skipped") == 1


def test_a_calibration_that_is_refused_leaves_no_directory(weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch):
    def nothing_ready(study):
        return {arm.name: Readiness(False, "nothing answers", "start it") for arm in study.arms}

    monkeypatch.setattr(plans, "readiness_of", nothing_ready)
    one_sentence(weighbridge("calibrate", "--out", "there"), 4)
    assert not Path("there").exists()


def test_a_run_that_was_begun_is_swept_before_it_is_asked_what_there_is(
    weighbridge: Weighbridge, ready: list, monkeypatch: pytest.MonkeyPatch
):
    """What it left may hold the memory that it needs; `run_study` sweeps, then asks."""
    with RunStore(Path("there"), writable=True) as store:
        store.begin(load("first-look"), {"run_id": "0" * 12, "version": "1"})
    monkeypatch.setattr(PlannedRun, "require", lambda _: pytest.fail("it was asked before it was swept"))
    assert weighbridge("run", "first-look", "--out", "there").code == 0
    ((_, directory),) = ready
    assert directory == Path("there")


def test_nothing_but_the_baseline_is_no_study(weighbridge: Weighbridge, ready: list, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plans, "readiness_of", without_docker)
    Path("s.yaml").write_text(OPTIONAL.replace("  inner: {kind: netns}\n", ""))
    assert "will refuse: no environment is left to compare with native" in weighbridge("plan", "s.yaml").out
    said = weighbridge("run", "s.yaml", "--out", "there", "--yes")
    assert (
        said.code == 4
        and "no environment is left to compare with native: port is skipped: docker does not" in said.err
    )
    assert ready == []


def test_a_run_in_a_folder_of_somebody_else_is_shown_without_a_page(
    weighbridge: Weighbridge, run: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(run / "report.html"))

    monkeypatch.setattr(html, "write_html", refuse)
    said = weighbridge("report", run)
    assert said.code == 1 and "--html FILE" in said.err and "bridge" in said.out


def test_a_total_that_a_run_has_is_told_before_the_report(
    weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch, run: Path
):
    def nothing_left(_study: object, directory: Path, _progress: object, after: Callable, *_: object, **__: object):
        with RunStore(directory) as store:
            after(store)

    monkeypatch.setattr("weighbridge.runner.run.run_study", nothing_left)
    said = weighbridge("run", "--out", run, "--rounds", "10")
    assert said.code == 0 and "The run already has 10 rounds; --rounds is the total." in said.err
    assert "already has" not in weighbridge("run", "--out", run, "--rounds", "12").err
