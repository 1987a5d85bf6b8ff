"""Programs that start others in an open site: on its host, with the words and in the group that the site names."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from weighbridge import registry
from weighbridge.launcher import build
from weighbridge.model.command import Command
from weighbridge.model.host import Group
from weighbridge.model.measurement import Outcome
from weighbridge.model.site import SiteEntry
from weighbridge.model.study import Study
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.runner import sites
from weighbridge.runner.programs import Programs
from weighbridge.runner.stage import Stage
from weighbridge.workloads.exec import PLUGIN as EXEC

from .world import Act, FakeHost, FakeSite, Program, World, finished, go, study, usual

TIMES = "".join(f"output {100 + number} end {200 + number}\n" for number in range(3))
PRINTED = Act(stdout=f"{TIMES}starts 3 own 52\n".encode(), hangs=False)
ROOT = "/root-of-a-stranger"
REPEAT = ("/proc/self/exe", "repeat", "3", "echo")


@pytest.fixture
def entered(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    workloads: Mapping[str, Workload] = {**world.workloads, "exec": EXEC}
    monkeypatch.setattr(registry, "workloads", lambda: workloads)
    for environment in world.environments.values():
        monkeypatch.setattr(environment, "enters", True)
    world.act = lambda site, command: PRINTED if command.argv[0] == REPEAT[0] else usual(site, command)
    return world


@pytest.fixture
def on_host(entered: World, monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    """What is started on the host of the sites."""
    started: list[Command] = []

    def start(_: FakeHost, command: Command) -> Program:
        started.append(command)
        entered.programs.append(program := Program(entered.sites[0], command, PRINTED))
        return program

    monkeypatch.setattr(FakeHost, "start", start)
    monkeypatch.setattr(FakeHost, "userland", lambda *_: ROOT)
    monkeypatch.setattr(FakeHost, "program", lambda _, path: str(path))
    monkeypatch.setattr(build, "ensure", lambda *_: Path("/cache/launcher"))
    monkeypatch.setattr(sites, "within", lambda host, run, group, *argv: ("within", str(group), *argv))
    return started


def exec_study() -> Study:
    return study("do: {kind: exec, commands: 3}, net: {kind: fake}", blocks=1)


def test_words_are_started_on_the_host_by_our_own_launcher(entered: World, on_host: list[Command], tmp_path: Path):
    entered.entry = SiteEntry(("enter", "it"), cast(Group, "group"))
    told = go(tmp_path, exec_study())
    assert {*(finished(tmp_path).values())} == {Outcome.OK}
    words = ("within", "group", "/cache/launcher", "repeat", "3", "enter", "it", "echo")
    assert {command.argv for command in on_host} == {words}
    assert not [argv for _, argv, _ in entered.started if argv[0] == REPEAT[0]]
    (record, *_) = [each for each in told.records if each.trial.workload == "do"]
    found = {each.metric.name: each.value for each in record.measurements}
    assert found["time_to_exit_p50"] == pytest.approx(201e-9)
    assert found["time_to_output_p50"] == pytest.approx(101e-9)
    assert entered.left() == []


def test_a_client_of_a_cluster_starts_on_this_machine(
    entered: World, on_host: list[Command], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    here: list[Command] = []

    def start(command: Command, *, env: Mapping[str, str]) -> Program:
        here.append(command)
        entered.programs.append(program := Program(entered.sites[0], command, PRINTED))
        return program

    monkeypatch.setattr(sites.process, "Process", start)
    entered.entry = SiteEntry(("kubectl", "exec", "it", "--"), here=True)
    go(tmp_path, exec_study())
    assert {*(finished(tmp_path).values())} == {Outcome.OK}
    assert {each.argv for each in here} == {("/cache/launcher", "repeat", "3", "kubectl", "exec", "it", "--", "echo")}
    assert on_host == []


def test_no_file_of_the_root_filesystem_starts_on_the_host(entered: World, on_host: list[Command], tmp_path: Path):
    """A root filesystem can be a stranger's: outside of the site its programs would run as root."""
    entered.entry = SiteEntry(("enter", "it"), cast(Group, "group"))
    go(tmp_path, exec_study())
    assert on_host
    assert not [word for command in on_host for word in command.argv if word.startswith((ROOT, "/nonexistent/root"))]


def test_without_words_the_sites_launcher_starts_the_program(entered: World, on_host: list[Command], tmp_path: Path):
    entered.entry = SiteEntry()
    go(tmp_path, exec_study())
    assert {*(finished(tmp_path).values())} == {Outcome.OK}
    assert on_host == []
    assert [argv for _, argv, _ in entered.started].count(REPEAT) == 4, "in each environment and the control"


def test_a_site_that_cannot_be_entered_after_all_is_a_failed_trial(entered: World, tmp_path: Path):
    entered.entry = None
    with pytest.raises(Exception, match=re.escape("its host cannot start programs in it")):
        go(tmp_path, exec_study())
    failed = {trial.workload: outcome for trial, outcome in finished(tmp_path).items()}
    assert failed["do"] is Outcome.PROGRAM_FAILED


@pytest.mark.parametrize(
    ("entry", "outside"),
    [(SiteEntry(("docker",)), True), (SiteEntry(("nsenter",), cast(Group, "group")), False), (SiteEntry(), False)],
)
def test_the_work_of_an_engine_is_not_that_of_other_programs(entered: World, entry: SiteEntry, outside: bool):
    """As in a trial that opens sites: what the engine uses to enter one is no disturbance."""
    entered.entry = entry
    stage = Stage(
        {"solo": FakeSite(entered, "0", "one", "server")}, {"solo": Endpoint("0.0.0.0", "192.0.2.1", 20_000)}
    )
    programs = Programs(EXEC, EXEC.options(), stage)
    programs.prepare()
    assert programs.opens is outside
