"""One trial: every way in which it can end is an outcome with a message, and nothing of it goes on running."""

import pytest

from weighbridge.errors import EnvironmentLost, Interrupted
from weighbridge.model.measurement import Outcome
from weighbridge.model.plugin import Endpoint
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.runner import trial as trials
from weighbridge.runner.trial import Stage, run_trial

from .world import Act, FakeSite, FakeSolo, FakeWorkload, Load, World, usual

TRIAL = Trial(1, 0, "net", (), "one")
SERVER = Act(stdout=b"", hangs=True)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "READY_S", 0.1)
    monkeypatch.setattr(trials, "AFTER_SERVER_S", 0.05)
    monkeypatch.setattr(trials, "_WATCH_S", 0.01)
    monkeypatch.setattr(FakeWorkload, "deadline_s", 0.3)


@pytest.fixture
def world() -> World:
    return World(act=usual)


def measure(world: World, *, warm: bool = False, solo: bool = False, **acts: Act) -> TrialRecord:
    """One trial in which the roles act as said."""
    if acts:
        usually = world.act
        world.act = lambda site, command: acts.get(command.argv[0].replace("-", "_")) or usually(site, command)
    workload = FakeSolo() if solo else FakeWorkload()
    world.sites = [FakeSite(world, role, "one", role) for role in workload.roles]
    sites = {site.role: site for site in world.sites}
    stage = Stage(sites, Endpoint("0.0.0.0", "198.51.100.1", 5201), 2)
    record = run_trial(TRIAL, workload, Load(warm=warm), stage)
    assert [program for program in world.programs if program.stopped is None] == []
    return record


def failed(record: TrialRecord, outcome: Outcome, *says: str) -> None:
    assert record.outcome is outcome
    assert all(word in record.message for word in says), record.message
    assert record.measurements == ()
    assert record.duration_s > 0


def test_a_good_trial(world: World):
    record = measure(world, client=Act(lasts=0.02))
    assert (record.outcome, record.message, record.trial) == (Outcome.OK, "", TRIAL)
    assert [m.value for m in record.measurements] == [42.0]
    assert [(role.role, role.argv, role.returncode) for role in record.roles] == [
        ("client", ("client", "1"), 0), ("server", ("server", "1"), -15)]  # fmt: skip
    assert 0.02 <= record.measured_s <= record.duration_s
    assert {(site, name) for site, name, _ in record.samples} >= {("client", "cpu_s"), ("server", "cpu_s")}
    assert record.started_at > 1e9


def test_zero_is_a_value(world: World):
    record = measure(world, client=Act(stdout=b"0"))
    assert (record.outcome, record.measurements[0].value) == (Outcome.OK, 0.0)


def test_a_solo_trial_has_no_server(world: World):
    record = measure(world, solo=True)
    assert record.outcome is Outcome.OK
    assert [role.role for role in record.roles] == ["solo"]


def test_a_warm_up_is_run_before_and_not_measured(world: World):
    record = measure(world, warm=True, warm_up=Act(stdout=b"7"))
    assert [argv[0] for _, argv, _ in world.started] == ["server", "warm-up", "client"]
    assert [m.value for m in record.measurements] == [42.0]


def test_a_warm_up_that_fails(world: World):
    record = measure(world, warm=True, warm_up=Act(returncode=3, stderr=b"no\nrefused\n"))
    failed(record, Outcome.PROGRAM_FAILED, "warm-up failed with exit code 3", "refused")


def test_a_program_that_fails_keeps_its_output(world: World):
    record = measure(world, client=Act(returncode=1, stderr=b"unable to connect\n"))
    failed(record, Outcome.PROGRAM_FAILED, "exit code 1", "unable to connect")
    assert record.roles[0].stderr == b"unable to connect\n"


@pytest.mark.parametrize("text", [b"", b"4 2", b"{", b"\xff\xfe", b"nan", b"inf"])
def test_an_output_that_is_none(world: World, text: bytes):
    record = measure(world, client=Act(stdout=text))
    failed(record, Outcome.UNPARSEABLE)
    assert record.roles[0].stdout == text


def test_a_server_that_never_listens(world: World):
    record = measure(world, server=Act(hangs=True, listens=False))
    failed(record, Outcome.SERVER_NOT_READY, "server did not listen", "5201")
    assert [role.role for role in record.roles] == ["server"]


def test_a_server_that_ends_at_once(world: World):
    record = measure(world, server=Act(returncode=1, stderr=b"bad option\n"))
    failed(record, Outcome.SERVER_NOT_READY, "ended before it listened", "bad option")


def test_a_port_that_is_in_use(world: World):
    world.port_in_use = True
    record = measure(world)
    failed(record, Outcome.SERVER_NOT_READY, "tcp port 5201 is in use")
    assert world.started == []


@pytest.mark.parametrize("client", [Act(hangs=True), Act(lasts=0.05), Act(lasts=0.05, returncode=1)])
def test_a_server_that_dies(world: World, client: Act):
    record = measure(world, server=Act(lasts=0.02, returncode=-9, stderr=b"segfault\n"), client=client)
    failed(record, Outcome.SERVER_DIED, "code -9", "segfault")
    assert {role.role for role in record.roles} == {"client", "server"}


def test_a_server_that_dies_during_the_warm_up(world: World):
    record = measure(world, warm=True, server=Act(lasts=0.02, returncode=1), warm_up=Act(hangs=True))
    failed(record, Outcome.SERVER_DIED, "while the warm-up was at work")


def test_a_client_that_hangs(world: World):
    record = measure(world, client=Act(hangs=True))
    failed(record, Outcome.DEADLINE, "client was still running at its deadline")
    assert record.duration_s < 2


@pytest.mark.parametrize("role", ["server", "client"])
@pytest.mark.parametrize("when", ["start", "poll", "stop"])
def test_an_environment_that_goes_away(world: World, role: str, when: str):
    if (role, when) == ("client", "poll"):
        pytest.skip("a client is waited for, not polled")
    acts = {"server": SERVER, role: Act(lost=when, hangs=role == "server")}
    usually = world.act
    world.act = lambda site, command: acts.get(command.argv[0]) or usually(site, command)
    world.sites = [FakeSite(world, name, "one", name) for name in ("server", "client")]
    stage = Stage({s.role: s for s in world.sites}, Endpoint("", "", 5201), 2)
    record = run_trial(TRIAL, FakeWorkload(), Load(), stage)
    failed(record, Outcome.ENVIRONMENT_LOST, f"{role} went away at {when}")


def test_an_interruption_stops_what_runs_and_goes_on_up(world: World):
    with pytest.raises(Interrupted):
        measure(world, client=Act(raises=Interrupted(2)))
    assert [program.stopped is not None for program in world.programs] == [True]


def test_an_interruption_while_a_client_is_waited_for(world: World, monkeypatch: pytest.MonkeyPatch):
    from .world import Program

    def interrupt(*_):
        raise Interrupted(15)

    monkeypatch.setattr(Program, "wait", interrupt)
    with pytest.raises(Interrupted):
        measure(world)
    assert [program.stopped is not None for program in world.programs] == [True, True]


def test_a_lost_environment_while_tidying_up_does_not_hide_an_interruption(world: World):
    with pytest.raises(Interrupted):
        measure(world, server=Act(hangs=True, lost="stop"), client=Act(raises=Interrupted(2)))


def test_flags_stand_beside_the_number(world: World, monkeypatch: pytest.MonkeyPatch):
    readings = iter([{"cpu_s": 0.0, "throttled_s": 0.0}] * 4 + [{"cpu_s": 100.0, "throttled_s": 50.0}] * 4)
    monkeypatch.setattr(FakeSite, "meters", lambda _: next(readings))
    record = measure(world, client=Act(lasts=0.01))
    assert "generator saturated" in record.flags
    assert any(flag.startswith("server throttled") for flag in record.flags)
    assert ("client", "cpu_s", 100.0) in record.samples


def test_meters_that_vanish_are_absent(world: World, monkeypatch: pytest.MonkeyPatch):
    readings = iter([{"cpu_s": 0.0}] * 2 + [{}] * 6)
    monkeypatch.setattr(FakeSite, "meters", lambda _: next(readings))
    record = measure(world)
    assert record.outcome is Outcome.OK
    assert not [sample for sample in record.samples if sample[0] != "host"]


def test_a_stage_that_is_lost_is_no_trial(world: World):
    world.act = lambda *_: (_ for _ in ()).throw(EnvironmentLost("the engine died"))
    failed(measure(world), Outcome.ENVIRONMENT_LOST, "the engine died")
