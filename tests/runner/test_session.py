"""A session: every trial saved as it ends, failed ones again, finished ones never; all closed however it ends."""

import math
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from sentences import raises_sentence
from weighbridge.errors import (
    DiskFull,
    EnvironmentLost,
    Interrupted,
    RunDirectoryError,
    TimeTooShort,
    TrialsFailed,
    Unavailable,
)
from weighbridge.model.command import Command
from weighbridge.model.facts import layers_of
from weighbridge.model.isolation import SCOPE, Layer, SiteLayers
from weighbridge.model.level import NO_LEVEL
from weighbridge.model.measurement import Broke, Outcome
from weighbridge.model.plugin import Readiness
from weighbridge.model.study import Repetitions, Role, Study
from weighbridge.model.trial import RoleRecord, Trial, TrialRecord
from weighbridge.model.workload import Endpoint
from weighbridge.runner import planned, routes
from weighbridge.runner import run as running
from weighbridge.runner import session as session_module
from weighbridge.runner.estimate import Forecast, TimeLeft, seconds
from weighbridge.runner.recorder import Ending
from weighbridge.runner.sites import Sites, limits_of
from weighbridge.store.run import RunStore

from .world import Act, FakeSite, FakeWorkload, Told, World, finished, go, study, usual

ARMS = ["native", "one", "two", "native-again"]


def failing(world: World, *failures: tuple[int, str]) -> None:
    """The client of environment ``name`` fails in its ``number``-th trials."""
    seen: Counter[str] = Counter()

    def act(site, command) -> Act:
        if command.argv[0] == "server":
            return usual(site, command)
        seen[site.place] += 1
        return Act(returncode=1, stderr=b"it broke") if (seen[site.place], site.place) in failures else Act()

    world.act = act


def test_the_hypervisors_of_the_sites_that_are_in_some_are_kept(world: World, tmp_path: Path):
    world.layers = {"one": (Layer("QEMU, TCG", emulated=True),)}
    told = Told()
    go(tmp_path, study("net: {kind: fake}", blocks=1), told)
    with RunStore(tmp_path / "run") as store:
        kept = {key: layers_of(value) for scope, key, value, _ in store.facts() if scope == SCOPE}
    assert kept == {"one/server": SiteLayers("local", (), world.layers["one"])}
    assert told.layers == {"one": (kept["one/server"],)}, "and told, before the first trial"
    world.layers = {}
    with raises_sentence(RunDirectoryError):
        go(tmp_path, study("net: {kind: fake}", blocks=2))


def test_each_trial_has_a_fresh_server_and_a_fresh_client(world: World, tmp_path: Path):
    go(tmp_path, study("net: {kind: fake}", blocks=2))
    assert Counter(argv[0] for _, argv, _ in world.started) == {"server": 8, "client": 8}


# -- failures --------------------------------------------------------------------------------------


def test_a_failed_trial_is_recorded_and_its_whole_block_is_run_again(world: World, tmp_path: Path):
    failing(world, (2, "one"))
    told = go(tmp_path, study("cpu: {kind: fake-solo}", blocks=3))
    outcomes = finished(tmp_path)
    (bad,) = [trial for trial, outcome in outcomes.items() if outcome is not Outcome.OK]
    assert (bad.environment, bad.attempt, outcomes[bad]) == ("one", 0, Outcome.PROGRAM_FAILED)
    again = [trial for trial in outcomes if trial.attempt == 1]
    assert {trial.block for trial in again} == {bad.block}
    assert sorted(trial.environment for trial in again) == sorted(ARMS)
    assert len(outcomes) == 12 + 4
    with RunStore(tmp_path / "run") as store:
        (row,) = [row for row in store.trials() if row.outcome != "ok"]
        assert "it broke" in str(row.message)
        (process,) = [process for process in store.processes() if process.trial == row.id]
        assert (tmp_path / "run" / str(process.stderr)).read_bytes() == b"it broke"
    assert any("repeating round" in line for line in told.lines)


def test_what_fails_alike_every_time_is_given_up_and_the_rest_is_measured(world: World, tmp_path: Path):
    failing(world, *((number, "two") for number in range(100)))
    with raises_sentence(TrialsFailed):
        go(tmp_path, study("cpu: {kind: fake-solo}", blocks=5))
    trials = Counter((trial.environment, trial.attempt) for trial in finished(tmp_path))
    assert trials == {("two", 0): 3, **{(arm, 0): 5 for arm in ARMS if arm != "two"}}
    assert world.left() == []
    runs = len(world.started)
    with pytest.raises(TrialsFailed):
        go(tmp_path, study("cpu: {kind: fake-solo}", blocks=5))
    assert len(world.started) == runs, "nor is it run again when the run is continued"


def test_other_exit_codes_are_not_alike():
    endings = [Ending.of(Outcome.PROGRAM_FAILED, f"exited with code {code} after 1{code} s") for code in (1, 137, 1)]
    assert endings[0] != endings[1] and endings[0] == endings[2]


def test_what_fails_in_other_ways_is_repeated_twice_and_then_told(world: World, tmp_path: Path):
    def act(site, command) -> Act:
        words = "x" * len(world.started)
        return Act(returncode=1, stderr=words.encode()) if site.place == "two" else usual(site, command)

    world.act = act
    with raises_sentence(TrialsFailed):
        go(tmp_path, study("cpu: {kind: fake-solo}", blocks=2))
    assert Counter(t.attempt for t in finished(tmp_path) if t.environment == "two") == {0: 2, 1: 2, 2: 2}


def test_the_first_time_left_is_the_plan_s_and_then_what_was_seen(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Opening the sites takes 600 s, a trial 4 s of which 2 s were expected."""
    now, opened = [1000.0], Sites.open_all

    def open_all(sites: Sites, stack) -> None:
        now[0] += 600
        opened(sites, stack)

    def saved(record):
        now[0] += 4
        return record

    monkeypatch.setattr(session_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(Sites, "open_all", open_all)
    monkeypatch.setattr(FakeWorkload, "expected_s", lambda *_: 2.0)
    made, told = study("cpu: {kind: fake-solo}", blocks=20), Told()
    go(tmp_path, made, told, completed=saved)
    least, most = seconds(made)
    assert least <= told.left[0].last_s <= most
    assert told.left[1].last_s <= 80 * 4
    for done in (20, 40, 79):
        assert told.left[done].last_s == pytest.approx((80 - done) * 4, rel=0.1)


def test_a_run_that_goes_on_knows_its_pace_from_the_begin(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """ "14 min left" of a run that took 82 s was made of what a program takes by the schema's default."""
    now = [1000.0]

    def interrupt(trial: Trial) -> None:
        now[0] += 3
        if trial.block == 11:
            raise Interrupted(2)

    def saved(record: TrialRecord) -> TrialRecord:
        return replace(record, started_at=now[0], duration_s=2.0)

    monkeypatch.setattr(session_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    made = study("cpu: {kind: fake-solo}", blocks=20)
    for told in (Told(at_begin=interrupt), again := Told()):
        with suppress(Interrupted):
            go(tmp_path, made, told, completed=saved)
    assert again.left[0].last_s == pytest.approx(10 * len(ARMS) * 3), "2 s each, one every 3 s"


def _taking(monkeypatch: pytest.MonkeyPatch, trial_s: float) -> None:
    """Have every trial take so long by the session's notes."""
    note = TimeLeft.note
    monkeypatch.setattr(TimeLeft, "note", lambda self, trial, _, **kept: note(self, trial, trial_s, **kept))


def _limited(made: Study, limit: str) -> Study:
    repetitions = Repetitions.model_validate({"target": "2%", "min": 10, "budget": limit})
    return made.model_copy(update={"file": made.file.model_copy(update={"repetitions": repetitions})})


def test_how_long_a_run_takes_is_told_after_the_first_one(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    _taking(monkeypatch, 40.0)
    told = go(tmp_path, study("cpu: {kind: fake-solo}", blocks=12))
    ((after, trial_s, left),) = told.times
    assert (after, trial_s) == (1, 40.0)
    left_s = 40.0 * (12 * len(ARMS) - 1)
    assert left == Forecast(left_s, 12, left_s, 12, "blocks") and not left.at_most


def test_without_a_time_in_the_study_nothing_is_forecast_before_a_program_has_run(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """ "at most 5 s left" of a run `--within 2s` was made of what a program takes by the schema's default."""
    _taking(monkeypatch, 40.0)
    told = go(tmp_path, study("cpu: {kind: fake-solo}", blocks=12), timed=False)
    assert told.left[0].last_s == math.inf and told.left[1].last_s == 40.0 * (12 * len(ARMS) - 1)


@pytest.mark.parametrize(("limit", "trials"), [("959s", 1), ("960s", None)])
def test_a_time_too_short_for_a_verdict_is_refused_after_the_first_run(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, trials: int | None
):
    _taking(monkeypatch, 40.0)  # six blocks of four: 960 s
    made, told = _limited(study("cpu: {kind: fake-solo}", blocks=12), limit), Told()
    if trials is None:
        go(tmp_path, made, told, short_time="refuse")
    else:
        with raises_sentence(TimeTooShort):
            go(tmp_path, made, told, short_time="refuse")
        assert len(finished(tmp_path)) == trials and told.times == [], "one time is told, that of the refusal"
    assert world.left() == []


@pytest.mark.parametrize("beside", [False, True])
def test_a_run_that_is_refused_leaves_neither_report_nor_directory(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool
):
    """The same command with more time may have the same --out."""

    def refuse(made: Study, store: RunStore, *_: object, **__: object) -> NoReturn:
        role = RoleRecord("solo", ("x",), 0, 0.4, b"out", b"")
        trial = Trial(1, 0, "cpu", NO_LEVEL, "native")
        store.save(TrialRecord(trial, Outcome.OK, 1e9, 0.5, 0.4, measurements=(), roles=(role,)))
        raise TimeTooShort("'within' is too short: raise it")

    monkeypatch.setattr(running, "_session", refuse)
    monkeypatch.setattr(planned, "readiness_of", lambda made: {arm.name: Readiness(True) for arm in made.arms})
    monkeypatch.setattr(running.clean, "sweep_and_forget", lambda run, *_: running.run_lock.forget(run) or ())
    if beside:
        (tmp_path / "run").mkdir()
        (tmp_path / "run/notes").touch()
    made = study("cpu: {kind: fake-solo}", blocks=12)
    with pytest.raises(TimeTooShort):
        running.run_study(made, tmp_path / "run", Told(), lambda _: pytest.fail("there is nothing to report"))
    assert [path.name for path in tmp_path.glob("run/*")] == ["notes"] * beside
    assert (tmp_path / "run").exists() == beside


def test_where_nobody_gave_a_time_the_first_look_is_waited_for(world: World, tmp_path: Path):
    made = _limited(study("cpu: {kind: fake-solo}", blocks=12), "1us")
    for short_time, blocks in (("keep", 1), ("extend", 10)):
        path = tmp_path / short_time
        ((_, _, left),) = go(path, made, short_time=short_time).times
        assert max(trial.block for trial in finished(path)) == blocks
        assert (left.ends_by, left.last_blocks) == (("block", 1) if blocks == 1 else ("blocks", 10))


def test_costs_are_estimated_from_the_third_block_on(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session_module, "ESTIMATE_EVERY_S", 0.0)
    monkeypatch.setattr(session_module, "ESTIMATE_SHARE", float("inf"))
    told = go(tmp_path, study("cpu: {kind: fake-solo}", blocks=5))
    assert [blocks for blocks, _ in told.estimates] == [3, 4, 5]
    assert {each.environment for each in told.estimates[-1][1]} == {"one", "two"}
    assert [each.cost.blocks for each in told.estimates[0][1]] == [3, 3]


@pytest.mark.parametrize("repetitions", ["blocks: 5", "target: 0.001%, min: 4, max: 5"])
def test_the_last_estimate_is_of_all_blocks_however_seldom_costs_are_estimated(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repetitions: str
):
    monkeypatch.setattr(session_module, "ESTIMATE_EVERY_S", 1e6)
    told = go(tmp_path, study("cpu: {kind: fake-solo}", repetitions=repetitions))
    (blocks, estimates) = told.estimates[-1]
    assert blocks == max(trial.block for trial in told.begun)
    assert {each.cost.blocks for each in estimates} == {blocks}


def test_what_broke_is_a_result_and_not_run_again(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FakeWorkload, "its_load", "n")
    monkeypatch.setattr(FakeWorkload, "parse", _refuses)
    go(tmp_path, study("net: {kind: fake}", blocks=2))
    assert set(finished(tmp_path).values()) == {Outcome.BROKE}
    assert {trial.attempt for trial in finished(tmp_path)} == {0}


def test_a_server_that_cannot_be_reached_is_none_that_broke(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(FakeWorkload, "its_load", "n")
    monkeypatch.setattr(routes, "REACHED_S", 0.01)
    world.path = None
    with raises_sentence(Unavailable):
        go(tmp_path, study("net: {kind: fake}", blocks=2))
    assert finished(tmp_path) == {} and all(site.closed for site in world.sites)


def test_what_always_breaks_needs_no_more_blocks(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FakeWorkload, "its_load", "n")
    monkeypatch.setattr(FakeWorkload, "parse", _refuses)
    go(tmp_path, study("net: {kind: fake}", repetitions="target: 1%, min: 3, max: 9"))
    assert max(trial.block for trial in finished(tmp_path)) == 3


def _refuses(*_: object) -> NoReturn:
    raise Broke("too many connections")


def test_one_complete_block_is_enough(world: World, tmp_path: Path):
    failing(world, *((number, "two") for number in range(2, 100)))
    go(tmp_path, study("cpu: {kind: fake-solo}", blocks=2))


def test_a_lost_environment_ends_the_session_and_is_recorded(world: World, tmp_path: Path):
    world.act = lambda site, command: Act(lost="stop") if len(world.started) > 5 else usual(site, command)
    with raises_sentence(EnvironmentLost):
        go(tmp_path, study("cpu: {kind: fake-solo}", blocks=2))
    assert Counter(finished(tmp_path).values()) == {Outcome.OK: 5, Outcome.ENVIRONMENT_LOST: 1}
    assert [site for site in world.sites if not site.closed] == []
    world.act = usual
    go(tmp_path, study("cpu: {kind: fake-solo}", blocks=2))
    assert Counter(finished(tmp_path).values()) == {Outcome.OK: 5 + 2 + 4, Outcome.ENVIRONMENT_LOST: 1}


def test_an_environment_that_is_lost_between_trials(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from .world import FakeSite

    def thaw(site: FakeSite) -> None:
        if len(world.started) == 3:
            raise EnvironmentLost("cannot unpause")
        site.frozen = False

    monkeypatch.setattr(FakeSite, "thaw", thaw)
    with pytest.raises(EnvironmentLost, match="cannot unpause"):
        go(tmp_path, study("cpu: {kind: fake-solo}"))
    assert len(finished(tmp_path)) == 3
    assert world.left() == []


def test_a_site_that_cannot_be_opened_leaves_none_open(world: World, tmp_path: Path):
    world.cannot_open = {"two"}
    with pytest.raises(EnvironmentLost, match="cannot open"):
        go(tmp_path, study())
    assert world.left() == []
    assert world.sites


def test_a_full_disk_ends_the_session_and_keeps_what_is_saved(world: World, tmp_path: Path, monkeypatch):
    save, room = RunStore.save, iter(range(5))

    def full(store: RunStore, record: TrialRecord):
        if next(room, None) is None:
            raise DiskFull("no space left")
        return save(store, record)

    monkeypatch.setattr(RunStore, "save", full)
    with pytest.raises(DiskFull):
        go(tmp_path, study())
    monkeypatch.setattr(RunStore, "save", save)
    assert len(finished(tmp_path)) == 5
    assert world.left() == []
    go(tmp_path, study())
    assert set(finished(tmp_path).values()) == {Outcome.OK}
    assert len(finished(tmp_path)) == 16


# -- interruption and continuing -------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1, 7])
@pytest.mark.parametrize("where", ["begin", "start"])
def test_an_interrupted_session_closes_all_and_goes_on_where_it_was(world: World, tmp_path: Path, number, where):
    made = study("cpu: {kind: fake-solo}", blocks=2)
    told = Told()

    def interrupt(_: object) -> None:
        if len(told.begun) == number + 1:
            raise Interrupted(2)

    if where == "begin":
        told.at_begin = interrupt
    else:
        world.act = lambda site, command: (
            Act(raises=Interrupted(2)) if len(told.begun) > number else usual(site, command)
        )
    with pytest.raises(Interrupted):
        go(tmp_path, made, told)
    assert len(finished(tmp_path)) == number
    assert world.left() == []
    assert told.lines[-1:] == ["cleaning up"]
    world.act = usual
    before = list(finished(tmp_path))
    rest = go(tmp_path, made)
    assert not set(rest.begun) & set(before), "a finished trial is never run again"
    assert told.begun[:number] + rest.begun == go(tmp_path / "whole", made).begun, "in the order of the schedule"
    assert rest.counts[0] == (number, 8)


def test_a_finished_run_is_not_run_again(world: World, tmp_path: Path):
    made = study()
    go(tmp_path, made)
    runs = len(world.started)
    assert go(tmp_path, made).begun == []
    assert len(world.started) == runs


def test_a_trial_is_saved_before_the_next_begins(world: World, tmp_path: Path):
    told = Told()
    saved: list[int] = []
    told.at_begin = lambda _: saved.append(len(finished(tmp_path)))
    go(tmp_path, study("cpu: {kind: fake-solo}", blocks=2), told)
    assert saved == list(range(8))


# -- sites -----------------------------------------------------------------------------------------


def _who(names: set[str]) -> set[str]:
    return {"-".join(name.split("-")[1:]) for name in names}


@pytest.mark.parametrize(
    ("inside", "server", "client"),
    [("[server]", "{}-server", "outside-client"), ("[client]", "outside-server", "{}-client"),
     ("[server, client]", "{}-server", "{}-client")],
)  # fmt: skip
def test_only_the_measured_sites_are_awake(world: World, tmp_path: Path, inside: str, server: str, client: str):
    made = study(
        "net: {kind: fake}, warm: {kind: fake, warm: true}, cpu: {kind: fake-solo}", more=f"inside: {inside}"
    )
    told = Told()
    go(tmp_path, made, told)
    expected: list[set[str]] = []
    for trial in told.begun:
        arm = trial.environment
        pair = {server.format(arm), client.format(arm)}
        if trial.workload == "cpu":
            expected.append({name for name in pair if name.startswith(arm)})
        else:
            expected += [pair] * (3 if trial.workload == "warm" else 2)
    assert len(world.started) == len(expected)
    for (_, argv, awake), pair in zip(world.started, expected, strict=True):
        assert _who(awake) <= pair, argv
        if argv[0] == "solo":
            assert len(awake) == 1
        else:
            assert _who(awake) == pair


def test_every_site_is_opened_once_with_its_limits_and_ports(world: World, tmp_path: Path):
    made = study(more="resources: {cpus: 0.5, memory: 64MiB, pin: spread}")
    go(tmp_path, made)
    assert Counter(_who({r.name}).pop() for r in world.requests) == Counter(
        [*(f"{arm}-server" for arm in ARMS), "outside-client"])  # fmt: skip
    for request in world.requests:
        assert (request.limits.cpus, request.limits.memory) == (0.5, 64 * 2**20)
        assert request.limits.cpuset == ("1" if request.role == "client" else "0")
        assert bool(request.ports) == (request.role == "server")
    ports = [port for request in world.requests for port in request.ports]
    assert all(1024 <= port.reached == port.listens < 65536 for port in ports)


@pytest.mark.parametrize("assigned", [0, 5])
def test_a_client_uses_the_port_by_which_the_site_of_its_server_is_reached(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, assigned: int
):
    command, opened, ports = FakeWorkload.command, FakeSite.__post_init__, dict[str, set[int]]()

    def noted(self: FakeWorkload, role: Role, options: Any, at: Endpoint) -> Command:
        ports.setdefault(role, set()).add(at.port)
        return command(self, role, options, at)

    def published(self: FakeSite) -> None:
        opened(self)
        self.reached = {port: port + 1000 for port in range(65536)}
        self.assigned_ports = {port: port + assigned for port in range(65536)}

    monkeypatch.setattr(FakeWorkload, "command", noted)
    monkeypatch.setattr(FakeSite, "__post_init__", published)
    go(tmp_path, study("net: {kind: fake}"))
    listens = {each.listens + assigned for request in world.requests for each in request.ports}
    assert ports == {"server": listens, "client": {port + 1000 for port in listens}}


def test_pins(world: World):
    def cpuset(made: Study, role: Role, *, online: Sequence[int] = (0, 1), own: str | None = None) -> str | None:
        host = SimpleNamespace(name="local", cpuset=own, cpus_online=lambda: list(online))
        return limits_of(made.file.resources, role, host).cpuset

    pinned = study(more="resources: {pin: {server: 0-1, client: '1'}}")
    assert cpuset(pinned, "server") == cpuset(pinned, "solo") == "0-1"
    assert cpuset(pinned, "client") == "1"
    half = study(more="resources: {pin: {client: '1'}}")
    assert cpuset(half, "server") is None
    assert cpuset(half, "server", online=[3], own="3") == "3"
    with raises_sentence(Unavailable):
        cpuset(study(more="resources: {pin: {client: '0,7'}}"), "client")
    spread = study(more="resources: {pin: spread}")
    assert cpuset(spread, "server", online=[3]) == cpuset(spread, "client", online=[3]) == "3"
