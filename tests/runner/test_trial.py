"""One trial: every way in which it can end is an outcome with a message, and nothing of it goes on running."""

import errno
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from sentences import assert_sentence
from weighbridge.errors import EnvironmentLost, Interrupted
from weighbridge.linux.cgroups import Cgroup
from weighbridge.meters import host
from weighbridge.meters.machines import Idle
from weighbridge.meters.meter import NO_SAMPLERS, MeterFailed, MeterReadings, Samplers
from weighbridge.model.command import Command, Usage
from weighbridge.model.flag import BOTTLENECKS, Flag, FlagCode
from weighbridge.model.host import NetworkLink
from weighbridge.model.level import Level
from weighbridge.model.measurement import Broke, Measurement, Outcome, ServerDied, Unparseable
from weighbridge.model.trial import Series, Trial, TrialRecord, TrialResult, Work
from weighbridge.model.workload import Endpoint
from weighbridge.runner import programs as trial_programs
from weighbridge.runner import window as windows
from weighbridge.runner.stage import Stage, StageMachine, machines_of
from weighbridge.runner.trial import run_trial
from weighbridge.runner.window import Window

from .world import ROLES, SPEED, Act, FakeHost, FakeSite, FakeSolo, FakeWorkload, Load, Program, World, usual

pytestmark = pytest.mark.measures  # its programs last by the clock
TICKS = os.sysconf("SC_CLK_TCK")
LATE = Flag(FlagCode.GENERATOR_LATE, figures={"share": 0.03})

AT = Endpoint("0.0.0.0", "198.51.100.1", 5201)
TRIAL = Trial(1, 0, "net", Level(), "one")
SERVER = Act(stdout=b"", hangs=True)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_programs, "READY_S", 0.1)
    monkeypatch.setattr(trial_programs, "AFTER_SERVER_S", 0.05)
    monkeypatch.setattr(trial_programs, "_WATCH_S", 0.01)
    monkeypatch.setattr(FakeWorkload, "deadline_s", 0.3)


@pytest.fixture
def world() -> World:
    return World(act=usual)


def measure(
    world: World, *, warm: bool = False, solo: bool = False, meters: Mapping[str, object] | None = None,
    links: tuple[NetworkLink, ...] = (), **acts: Act,
) -> TrialRecord:  # fmt: skip
    """One trial in which the roles act as said."""
    if acts:
        usually = world.act
        world.act = lambda site, command: acts.get(command.argv[0].replace("-", "_")) or usually(site, command)
    workload = FakeSolo() if solo else FakeWorkload()
    world.sites = [FakeSite(world, role, "one", role) for role in workload.roles(Load())]
    for site in world.sites:
        site.host.name = {"server": "a", "client": "b", "solo": "a"}[site.role]
    world.sites[0].links = links
    sites = {site.role: site for site in world.sites}
    machines = {"host": StageMachine(2, tuple(sites))}
    stage = Stage(sites, dict.fromkeys(sites, AT), machines, meters=meters or {})
    record = run_trial(TRIAL, workload, Load(warm=warm), stage)
    assert [program for program in world.programs if program.stopped is None] == []
    return record


GOOD = TrialResult((Measurement(SPEED, 42.0),))


def tells(monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
    """The workload reads more than its measurement."""
    monkeypatch.setattr(FakeWorkload, "parse", lambda *_: replace(GOOD, **more))


def failed(record: TrialRecord, outcome: Outcome, *says: str) -> None:
    assert record.outcome is outcome
    assert all(word in record.message for word in says), record.message
    assert record.measurements == ()
    assert record.duration_s > 0


@pytest.mark.parametrize(("error", "outcome"), [(OSError, Outcome.OK), (EnvironmentLost, Outcome.ENVIRONMENT_LOST)])
def test_a_guest_whose_own_view_cannot_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch, error: type[Exception], outcome: Outcome
):
    def fail(_: FakeSite) -> dict[str, float]:
        raise error("it does not answer")

    monkeypatch.setattr(FakeSite, "guest_meters", fail)
    record = measure(world)
    assert record.outcome is outcome and not [name for _, name, _ in record.samples if name.startswith("guest_")]


def test_a_good_trial(world: World):
    record = measure(world, client=Act(lasts=0.02))
    assert (record.outcome, record.message, record.trial) == (Outcome.OK, "", TRIAL)
    assert [m.value for m in record.measurements] == [42.0]
    assert [(role.role, role.argv, role.returncode) for role in record.roles] == [
        ("client", ("client", "1"), 0), ("server", ("server", "1"), -15)]  # fmt: skip
    assert 0.02 <= record.measured_s <= record.duration_s
    assert {(site, name) for site, name, _ in record.samples} >= {("client", "cpu_s"), ("server", "cpu_s")}
    assert record.started_at > 1e9
    assert not [name for _, name, _ in record.samples if name.startswith("guest_")]


def test_a_warm_up_is_run_before_and_not_measured(world: World):
    record = measure(world, warm=True, warm_up=Act(stdout=b"7"))
    assert [argv[0] for _, argv, _ in world.started] == ["server", "warm-up", "client"]
    assert [m.value for m in record.measurements] == [42.0]


NOT_THERE = {"returncode": 127, "stdout": b"", "stderr": b"redis: 1: exec: wrk: not found\n"}
DIES = Act(lasts=0.02, returncode=-9, stderr=b"segfault\n")
FAILURES: dict[str, tuple[dict[str, Any], Outcome]] = {
    "a warm-up that fails": (
        {"warm": True, "warm_up": Act(returncode=3, stderr=b"no\nrefused\n")}, Outcome.PROGRAM_FAILED,
    ),
    "a program that fails": ({"client": Act(returncode=1, stderr=b"unable to connect\n")}, Outcome.PROGRAM_FAILED),
    **{f"no output: {text!r}": ({"client": Act(stdout=text)}, Outcome.UNPARSEABLE)
       for text in (b"", b"4 2", b"{", b"\xff\xfe", b"nan", b"inf")},
    "a server that never listens": ({"server": Act(hangs=True, listens=False)}, Outcome.SERVER_NOT_READY),
    "a server that ends at once": ({"server": Act(returncode=1, stderr=b"bad option\n")}, Outcome.SERVER_NOT_READY),
    **{f"a server that dies beside a client that {name}": ({"server": DIES, "client": client}, Outcome.SERVER_DIED)
       for name, client in {"hangs": Act(hangs=True), "ends": Act(lasts=0.05),
                            "fails": Act(lasts=0.05, returncode=1)}.items()},
    "a server that dies during the warm-up": (
        {"warm": True, "server": Act(lasts=0.02, returncode=1), "warm_up": Act(hangs=True)}, Outcome.SERVER_DIED,
    ),
    "a client that hangs": ({"client": Act(hangs=True)}, Outcome.DEADLINE),
    "a client that is not in the userland": ({"client": Act(**NOT_THERE)}, Outcome.PROGRAM_FAILED),
    "a client that says on its output that it is not there": (
        {"client": Act(**NOT_THERE | {"stdout": NOT_THERE["stderr"], "stderr": b""})}, Outcome.PROGRAM_FAILED,
    ),
    "a warm-up that is not in the userland": ({"warm": True, "warm_up": Act(**NOT_THERE)}, Outcome.PROGRAM_FAILED),
    "a server that is not in the userland": ({"server": Act(**NOT_THERE)}, Outcome.SERVER_NOT_READY),
    "an exit code of 127 of its own": ({"client": Act(returncode=127, stderr=b"oops\n")}, Outcome.PROGRAM_FAILED),
    "a program without a file": (
        {"client": Act(stdout=b"", returncode=127, error=errno.ENOENT)}, Outcome.PROGRAM_FAILED,
    ),
    "a program without the right": (
        {"client": Act(stdout=b"", returncode=127, error=errno.EACCES)}, Outcome.PROGRAM_FAILED,
    ),
    "a client that prints too much": ({"client": Act(too_much=True)}, Outcome.PROGRAM_FAILED),
    "a server that prints too much": (
        {"server": Act(stdout=b"", hangs=True, too_much=True)}, Outcome.PROGRAM_FAILED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILURES)
def test_a_trial_that_fails_has_a_sentence_and_keeps_the_outputs(world: World, case: str):
    how, outcome = FAILURES[case]
    record = measure(world, **how)
    failed(record, outcome)
    assert_sentence(record.message)
    assert record.duration_s < 2
    roles = {role.role: role for role in record.roles}
    assert ("server" in roles) and ("client" in roles) == (
        outcome is not Outcome.SERVER_NOT_READY and "warm" not in how
    )
    for role in {*roles} & {*how}:
        assert (roles[role].stdout, roles[role].stderr) == (how[role].stdout, how[role].stderr)


@pytest.mark.parametrize("said", [{"stdout": b"starting\nready at 7\n"}, {"stderr": b"x\nready at 7\n"}])
def test_a_server_that_says_when_it_is_ready(world: World, monkeypatch: pytest.MonkeyPatch, said: dict[str, bytes]):
    _says(monkeypatch, r"^ready at \d$")
    assert measure(world, server=Act(**{"stdout": b"", **said}, hangs=True)).outcome is Outcome.OK


def test_a_server_that_listens_and_never_says_that_it_is_ready(world: World, monkeypatch: pytest.MonkeyPatch):
    _says(monkeypatch, "^ready$")
    record = measure(world, server=Act(stdout=b"not ready\nready", hangs=True))
    failed(record, Outcome.SERVER_NOT_READY, "5201", "/^ready$/")


def _says(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    command = FakeWorkload.command

    def saying(self: FakeWorkload, role: Any, *rest: Any) -> Command:
        made = command(self, role, *rest)
        return replace(made, says=line) if role == "server" else made

    monkeypatch.setattr(FakeWorkload, "command", saying)


def test_a_port_that_is_in_use(world: World):
    world.port_in_use = True
    record = measure(world)
    failed(record, Outcome.SERVER_NOT_READY, "tcp port 5201 is in use")
    assert world.started == []


@pytest.mark.parametrize("role", ["server", "client"])
@pytest.mark.parametrize("when", ["start", "poll", "stop", "stop, and its client fails"])
def test_an_environment_that_goes_away(world: World, role: str, when: str):
    if (role, when) == ("client", "poll"):
        pytest.skip("a client is waited for, not polled")
    when, _, client_fails = when.partition(", ")
    acts = {"server": SERVER, "client": Act(returncode=1) if client_fails else Act()}
    acts[role] = Act(lost=when, hangs=role == "server")
    usually = world.act
    world.act = lambda site, command: acts.get(command.argv[0]) or usually(site, command)
    world.sites = [FakeSite(world, name, "one", name) for name in ("server", "client")]
    stage = Stage(
        {s.role: s for s in world.sites},
        dict.fromkeys(ROLES, Endpoint("", "", 5201)),
        {"host": StageMachine(2, ("server", "client"))},
    )
    record = run_trial(TRIAL, FakeWorkload(), Load(), stage)
    failed(record, Outcome.ENVIRONMENT_LOST, f"{role} went away at {when}")


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


class Hypervisor(Cgroup):
    """The control group of one that used a second of CPU time at each look."""

    def __init__(self) -> None:
        self.used_s = count(0)

    def meters(self) -> dict[str, float]:
        return {"cpu_s": float(next(self.used_s))}


@pytest.mark.parametrize(("busy_s", "other"), [(1, False), (2, True)])
def test_what_befalls_this_machine_befalls_a_trial_on_its_guests(world: World, busy_s: int, other: bool):
    world.sites = [FakeSite(world, name, "one", name) for name in ("server", "client")]
    ticks = count(0)

    def here(path: str) -> bytes:
        if path != "/proc/stat":
            raise FileNotFoundError(path)
        at = next(ticks) * TICKS
        return b"cpu  %d 0 0 0 0 0 0 %d 0 0\n" % (at * busy_s, at)

    for site in world.sites:
        guest = FakeHost(world)
        guest.machine, guest.name, guest.hypervisor = f"host {site.role}", site.role, Hypervisor()
        site.host = guest
    sites = {site.role: site for site in world.sites}
    machines = machines_of(sites, here)
    two = machines["host"]
    assert two.roles == () and set(two.hypervisors) == {"hypervisor of host server", "hypervisor of host client"}
    one = {"host": replace(two, cpus=1, hypervisors={"hypervisor of host a": Hypervisor()})}
    stage = Stage(sites, dict.fromkeys(sites, Endpoint("", "", 5201)), machines | one)
    assert stage.working.keys() == {"host server", "host client"}
    record = run_trial(TRIAL, FakeWorkload(), Load(), stage)
    flags = {(flag.code, flag.where) for flag in record.flags}
    assert (FlagCode.STEAL, "") in flags  # it is told only to this machine, and not to an emulator's guest
    assert ((FlagCode.OTHER_WORK, "") in flags) == other  # what the hypervisor used is the guests'
    assert {("host", "steal_s", 1.0), ("hypervisor of host a", "cpu_s", 1.0)} <= {*record.samples}


# -- what a server starts from, and what it bears ---------------------------------------------------


def test_what_cannot_be_prepared(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FakeWorkload, "wants", Command(("prepare",)))
    monkeypatch.setattr(FakeWorkload, "needs_data", lambda *_: True)
    world.fails = ("prepare",)
    for _ in range(2):
        failed(measure(world), Outcome.SERVER_NOT_READY, "cannot be prepared: no space left")
    assert len(world.ran) == 2 and world.started == []
    kills = count()
    world.oom_kills = lambda: float(next(kills))
    failed(measure(world), Outcome.SERVER_NOT_READY, "cannot be prepared: it exceeded its memory limit")


@pytest.mark.parametrize(
    ("code", "kills", "outcome"),
    [
        (1, 0, Outcome.BROKE),
        (-9, 0, Outcome.SERVER_DIED),
        (137, 0, Outcome.SERVER_DIED),
        (-9, 1, Outcome.BROKE),
        (137, 1, Outcome.BROKE),
    ],
)
def test_a_server_breaks_by_itself_or_for_its_memory_and_not_when_somebody_kills_it(
    world: World, monkeypatch: pytest.MonkeyPatch, code: int, kills: int, outcome: Outcome
):
    monkeypatch.setattr(FakeWorkload, "its_load", "n")
    counted = iter([0.0] * 4)
    world.oom_kills = lambda: next(counted, float(kills))
    died = measure(world, server=Act(listens=True, lasts=0.05, returncode=code), client=Act(hangs=True))
    failed(died, outcome, f"exited with code {code}")
    assert died.message.startswith("the server exceeded its memory limit") is bool(kills)


def test_a_worker_that_somebody_kills_is_not_broken_by_the_load(world: World, monkeypatch: pytest.MonkeyPatch):
    """The server itself goes on, and tells it in what the workload parses; for its memory it is the load again."""

    def parse(*_):
        raise ServerDied("worker 7 exited on signal 9", killed=True)

    monkeypatch.setattr(FakeWorkload, "its_load", "n")
    monkeypatch.setattr(FakeWorkload, "parse", parse)
    failed(measure(world), Outcome.SERVER_DIED, "exited on signal 9")
    warming = measure(world, warm=True, warm_up=Act(stdout=b"", returncode=1))
    failed(warming, Outcome.SERVER_DIED, "during the warm-up, worker 7 exited on signal 9")
    counted = iter([0.0] * 4)
    world.oom_kills = lambda: next(counted, 1.0)
    failed(measure(world), Outcome.BROKE, "the server exceeded its memory limit")


def test_a_generator_that_rests_is_the_limit_by_what_it_clocked(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        host, "site_flags", lambda role, use, busy_s, threads: [Flag(role, figures={"s": round(busy_s, 1)})]
    )
    tells(monkeypatch, active_s=0.1)
    record = measure(world, client=Act(lasts=0.3))
    assert Flag("client", figures={"s": 0.1}) in record.flags and record.measured_s >= 0.3


OF_THE_TIME = {
    FlagCode.THROTTLED, FlagCode.GENERATOR_SATURATED, FlagCode.GENERATOR_TOOK, *BOTTLENECKS - {FlagCode.NO_BOTTLENECK}
}  # fmt: skip


@pytest.mark.parametrize(
    ("client", "outcome"),
    [
        (Act(), Outcome.ENVIRONMENT_LOST),
        (Act(hangs=True), Outcome.DEADLINE),
        (Act(clock_s=0.0), Outcome.OK),
    ],
    ids=["its node lost its power", "it hangs", "the clock of its guest stood still"],
)
def test_no_figure_is_computed_over_a_time_that_was_not_measured(
    world: World, monkeypatch: pytest.MonkeyPatch, client: Act, outcome: Outcome
):
    """A report once said: the generator took 161,700,000 CPUs."""
    reads = count(1)

    def meters(site: FakeSite) -> dict[str, float]:
        read = next(reads)
        if outcome is Outcome.ENVIRONMENT_LOST and site.role == "server" and read > 4:  # both were read twice
            raise EnvironmentLost("nothing is heard from its node")
        return {"cpu_s": 0.1 * read, "throttled_s": 0.05 * read, "throttled_periods": read, "oom_kills": 0.0}

    monkeypatch.setattr(FakeSite, "meters", meters)
    record = measure(world, client=client)
    assert (record.outcome, record.measured_s, record.measured_from_s) == (outcome, None, None)
    assert not {flag.code for flag in record.flags} & OF_THE_TIME, record.flags
    assert [each.metric.name for each in record.measurements] == ["speed"] * (outcome is Outcome.OK)


def test_a_server_whose_disk_is_full_has_not_broken(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FakeWorkload, "its_load", "n")
    full = Act(lasts=0.05, returncode=1, stdout=b"Error writing to the AOF file: No space left on device\n")
    failed(measure(world, server=full, client=Act(hangs=True)), Outcome.SERVER_DIED, "No space left on device")


def test_a_load_that_meets_no_deadline_broke(world: World, monkeypatch: pytest.MonkeyPatch):
    failed(measure(world, client=Act(hangs=True)), Outcome.DEADLINE)
    monkeypatch.setattr(FakeWorkload, "its_load", "n")
    failed(measure(world, client=Act(hangs=True)), Outcome.BROKE, "deadline")


def test_a_warm_up_under_a_load_fails_as_the_workload_tells(world: World, monkeypatch: pytest.MonkeyPatch):
    """Only there, and only what it can tell."""

    class Telling(FakeWorkload):
        def parse(self, options, completed):
            assert completed["server"].returncode == -15, "stopped, so that its output can be read too"
            raise {b"full": Broke("it is full"), b"": Unparseable("nothing")}[completed["client"].stderr]

    monkeypatch.setattr(FakeWorkload, "parse", Telling.parse)
    for load, words, outcome, says in (
        ("n", b"full", Outcome.BROKE, "during the warm-up, it is full"),
        ("n", b"", Outcome.PROGRAM_FAILED, "the warm-up failed with exit code 1"),
        ("", b"full", Outcome.PROGRAM_FAILED, "the warm-up failed with exit code 1: full"),
    ):
        monkeypatch.setattr(FakeWorkload, "its_load", load)
        failed(measure(world, warm=True, warm_up=Act(stdout=b"", stderr=words, returncode=1)), outcome, says)


def test_what_programs_used_is_kept(world: World):
    usage = Usage(1.5, 0.5, 4096, 7, 8, 9, 10)
    record = measure(world, client=Act(usage=usage, outside_s=0.25))
    told = {name: value for place, name, value in record.samples if place == "client" and name.startswith("program_")}
    assert told == {
        "program_cpu_user_s": 1.5, "program_cpu_system_s": 0.5, "program_peak_bytes": 4096, "program_switches": 7,
        "program_preemptions": 8, "program_minor_faults": 9, "program_major_faults": 10, "program_outside_s": 0.25,
    }  # fmt: skip


def test_counters_are_read_before_the_output_comes(world: World, monkeypatch: pytest.MonkeyPatch):
    order: list[str] = []
    stop, meters = Program.stop, FakeSite.meters
    monkeypatch.setattr(Program, "stop", lambda self, **named: (order.append("stop"), stop(self, **named))[1])
    monkeypatch.setattr(FakeSite, "meters", lambda self: (order.append("meters"), meters(self))[1])
    measure(world)
    first = order.index("stop")
    assert order[:first].count("meters") == 6, "of two sites: at the beginning, before and after the measured program"


# -- meters ----------------------------------------------------------------------------------------


class FakeMeter:
    """Implements ``Meter``; notes what ran when it was begun and ended."""

    def __init__(self, world: World, name: str, fails: str = "") -> None:
        self.world, self.name, self.fails = world, name, fails
        self.done: list[tuple[str, object]] = []

    def _may_fail(self, when: str) -> None:
        if self.fails == when:
            raise MeterFailed(f"it broke at {when}")

    def begin(self, sites: Mapping[str, Mapping[str, str]], samplers: Samplers = NO_SAMPLERS) -> None:
        self.done.append(("begin", (dict(sites), len(self.world.started))))
        self._may_fail("begin")

    def end(self, since: float) -> MeterReadings:
        self.done.append(("end", [p.command.argv[0] for p in self.world.programs if p.stopped is None]))
        self._may_fail("end")
        held = Series("server", "memory_anonymous_bytes", (0.0, 1.0), (2.0**20, 4 * 2.0**20))
        return MeterReadings((Series(f"host {self.name}", "load1", (0.0,), (1.0,)), held), 0.004)


def test_meters_are_begun_before_the_server_and_ended_after_the_client(world: World):
    made = {name: FakeMeter(world, name) for name in "ab"}
    record = measure(world, meters=made, client=Act(lasts=0.02))
    scope = {"server": {"cpuacct.usage": "/groups/server/cpuacct.usage"}}
    assert made["a"].done == [("begin", (scope, 0)), ("end", ["server"])]
    assert [set(each[1][0]) for each in made["b"].done[:1]] == [{"client"}], "each reads its own host's sites"
    assert [(each.place, each.name) for each in record.series][:2] == [
        ("host a", "load1"), ("server", "memory_anonymous_bytes")]  # fmt: skip
    samples = {(site, name): value for site, name, value in record.samples}
    assert samples["host a", "meter_cpu_s"] == 0.004
    assert record.measured_from_s is not None
    assert 0 < record.measured_from_s < record.duration_s
    assert not [flag for flag in record.flags if flag.code == FlagCode.NO_READINGS]


@pytest.mark.parametrize("when", ["begin", "end"])
def test_a_meter_that_fails_never_fails_a_trial(world: World, when: str):
    record = measure(world, meters={"a": FakeMeter(world, "a", when), "b": FakeMeter(world, "b")})
    assert (record.outcome, [m.value for m in record.measurements][:1]) == (Outcome.OK, [42.0])
    assert Flag(FlagCode.NO_READINGS, "host a", text=f"it broke at {when}") in record.flags
    assert "host b" in {each.place for each in record.series}


def test_a_failed_trial_keeps_its_readings(world: World):
    meter = FakeMeter(world, "a")
    record = measure(world, meters={"a": meter}, client=Act(returncode=1))
    failed(record, Outcome.PROGRAM_FAILED)
    assert record.series
    assert [name for name, _ in meter.done] == ["begin", "end"]
    record = measure(world, meters={"a": meter}, server=Act(returncode=1))
    failed(record, Outcome.SERVER_NOT_READY)
    assert record.series


def test_what_a_workload_says_of_its_generator_is_a_flag(world: World, monkeypatch: pytest.MonkeyPatch):
    tells(monkeypatch, flags=(LATE,))
    assert LATE in measure(world).flags
    monkeypatch.setattr(FakeWorkload, "parse", lambda *_: (_ for _ in ()).throw(Unparseable("cut short")))
    assert LATE not in measure(world).flags


# -- all who worked --------------------------------------------------------------------------------


def test_all_who_worked_stand_before_the_sites_own(world: World, monkeypatch: pytest.MonkeyPatch):
    """A machine of 100 CPUs that are never idle, a meter that took its part of it."""
    tells(monkeypatch, work=Work(2.0, "gbit"))
    switches = count(0, 500)

    def read(path: str) -> bytes:
        if path != "/proc/stat":
            raise FileNotFoundError(path)
        return b"cpu 0 0 0 7 0 0 0 0\n" + b"cpu0 0\n" * 100 + b"ctxt %d\n" % next(switches)

    sites = {role: FakeSite(world, role, "one", role) for role in ROLES}
    world.act = lambda site, command: Act(lasts=0.05) if command.argv[0] == "client" else usual(site, command)
    stage = Stage(
        sites, dict.fromkeys(sites, AT), {"host b": StageMachine(100, ("server", "client"), read)},
        idle={"host b": Idle(10.0, 0.0)},
    )  # fmt: skip
    record = run_trial(TRIAL, FakeWorkload(), Load(), stage)
    found = {each.metric.name: each.value for each in record.measurements}
    assert list(found) == [
        "speed", "cpu_all_per_gbit", "context_switches_per_gbit", "cpu_client_per_gbit",
        "cpu_server_per_gbit",
    ]  # fmt: skip
    busy = next(value for place, name, value in record.samples if (place, name) == ("host b", "measured_busy_s"))
    assert busy >= 100 * 0.05 and found["cpu_all_per_gbit"] == pytest.approx(0.9 * busy / 2)
    assert found["context_switches_per_gbit"] == 500 / 2
    unknown = run_trial(TRIAL, FakeWorkload(), Load(), replace(stage, idle={}))
    assert not any(each.metric.name.startswith("cpu_all") for each in unknown.measurements)


def test_of_a_site_that_its_host_does_not_count_no_cost_is_made(world: World, monkeypatch: pytest.MonkeyPatch):
    tells(monkeypatch, work=Work(2.0, "gbit"))
    stolen = count(0, 9000)
    sites = {role: FakeSite(world, role, "one", role, counted=role != "server") for role in ROLES}
    world.act = lambda site, command: Act(lasts=0.05) if command.argv[0] == "client" else usual(site, command)

    def read(path: str) -> bytes:
        if path != "/proc/stat":
            raise FileNotFoundError(path)
        return b"cpu 0 0 0 7 0 0 0 %d\n" % next(stolen) + b"cpu0 0\n" * 100

    readings = count(0.0, 0.25)
    monkeypatch.setattr(FakeSite, "meters", lambda _: {"cpu_s": next(readings)})
    stage = Stage(
        sites, dict.fromkeys(sites, AT), {"host b": StageMachine(100, ("server", "client"), read)},
        idle={"host b": Idle(10.0, 0.0)},
    )  # fmt: skip
    record = run_trial(TRIAL, FakeWorkload(), Load(), stage)
    assert [each.metric.name for each in record.measurements] == ["speed", "cpu_client_per_gbit"]
    assert not {FlagCode.STEAL, FlagCode.OTHER_WORK} & {flag.code for flag in record.flags}
    assert not [sample for sample in record.samples if sample[1] == "measured_busy_s"]
    for site in sites.values():
        site.counted = True
    record = run_trial(TRIAL, FakeWorkload(), Load(), stage)
    assert FlagCode.STEAL in {flag.code for flag in record.flags}
    assert "cpu_server_per_gbit" in [each.metric.name for each in record.measurements]


def test_only_the_meters_share_of_the_measured_time_is_taken_off(world: World, monkeypatch: pytest.MonkeyPatch):
    clock = iter((9.0, 10.0, 11.0, 14.0))
    monkeypatch.setattr(windows.time, "monotonic", lambda: next(clock))
    meter = SimpleNamespace(begin=lambda scopes, samplers: None, end=lambda since: MeterReadings((), 0.8))
    sites = {"solo": FakeSite(world, "solo", "one", "solo")}
    window = Window(Stage(sites, dict.fromkeys(sites, Endpoint("", "", 0)), meters={"a": meter}))  # type: ignore[arg-type,dict-item]
    window.begin_series()
    window.begin_measured(served=False, opens=False)
    window.note_measured(2.0)
    window.end_series()
    assert window.meters_s == pytest.approx(0.8 * 2 / 4)


def test_a_cable_is_read_before_and_after_the_measured_process(world: World):
    """Twice, and not for the warm-up."""
    readings = iter([{"out": 7e6}, {"out": 7e6 + 1e9}])
    link = NetworkLink("host a", 100e6, lambda: next(readings))
    record = measure(world, warm=True, links=(link,), client=Act(lasts=0.05))
    (flag,) = [flag for flag in record.flags if flag.code in BOTTLENECKS]
    assert flag == Flag(FlagCode.CABLE, "host a", {"share": 1.0, "rate": 100e6}) and list(readings) == []


# -- whose fault it is -----------------------------------------------------------------------------


def test_a_fault_of_a_plugin_fails_its_trial(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FakeWorkload, "command", lambda *_: {}["nothing"])
    failed(measure(world), Outcome.PROGRAM_FAILED, "fake failed with KeyError")
    monkeypatch.undo()
    monkeypatch.setattr(FakeWorkload, "parse", lambda *_: ().index(1))
    failed(measure(world), Outcome.UNPARSEABLE, "fake failed with ValueError")
    monkeypatch.setattr(FakeWorkload, "parse", lambda *_: (Measurement(SPEED, 42.0),))
    failed(measure(world), Outcome.UNPARSEABLE, "parse returned a tuple instead of a TrialResult")
    monkeypatch.undo()
    monkeypatch.setattr(FakeWorkload, "generator_threads", lambda *_: 1 / 0)
    failed(measure(world), Outcome.PROGRAM_FAILED, "fake failed with ZeroDivisionError")
    monkeypatch.undo()
    monkeypatch.setattr(FakeWorkload, "asked_rate", lambda *_: 1 / 0)
    failed(measure(world), Outcome.UNPARSEABLE, "fake failed with ZeroDivisionError")


def test_an_output_is_read_once(world: World, monkeypatch: pytest.MonkeyPatch):
    reads: list[str] = []
    monkeypatch.setattr(FakeWorkload, "parse", lambda *_: (reads.append("once"), GOOD)[1])
    measure(world)
    assert reads == ["once"]


@pytest.mark.parametrize(
    ("error", "remedy"), [(errno.ENOSPC, "make it smaller"), (errno.EROFS, "name a path in /tmp, /run or /srv")]
)
def test_a_file_that_cannot_be_put_into_a_site_is_the_studys_failure(
    world: World, monkeypatch: pytest.MonkeyPatch, error: int, remedy: str
):
    """The environment is there: the file does not belong where the study has it, or is too large."""

    def put(_: FakeSite, path: str, data: bytes, mode: int) -> None:
        raise OSError(error, os.strerror(error), path)

    monkeypatch.setattr(FakeSite, "put", put)
    monkeypatch.setattr(FakeWorkload, "wants", Command(("prepare",)))
    record = measure(world)
    failed(record, Outcome.PROGRAM_FAILED, "/tmp/of-server (4 bytes)", os.strerror(error), remedy)


TABLE = b"31 30 0:41 / / ro - overlay overlay ro\n32 31 0:42 / /dev/shm rw - tmpfs shm rw,size=65536k\n"


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (Act(stderr=b"dd: error writing '/dev/shm/x': No space left on device\n", returncode=1), True),
        (Act(stderr=b"OSError: [Errno 28] No space left on device\n", returncode=1), True),
        (Act(stderr=b"dd: error writing '/srv/x': No space left on device\n", returncode=1), False),
        (Act(stderr=b"", returncode=-signal.SIGBUS), True),
        (Act(stderr=b"Bus error\n", returncode=128 + signal.SIGBUS), True),
        (Act(stderr=b"no such table\n", returncode=1), False),
    ],
)
def test_a_failure_that_is_that_of_a_full_shared_memory_names_it(
    world: World, monkeypatch: pytest.MonkeyPatch, program: Act, told: bool
):
    monkeypatch.setattr(FakeSite, "read", lambda *_: TABLE)
    world.act = lambda *_: program
    record = measure(world, solo=True)
    hint = "; /dev/shm may be full: it holds 64 MiB (shm_size)"
    assert record.outcome is Outcome.PROGRAM_FAILED and record.message.endswith(hint) == told, record.message
