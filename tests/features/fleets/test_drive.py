"""A driver: rounds one after the other, what is finished never again, whatever ends in between."""

import contextlib
import itertools
import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from report.made_up_fleets import RECIPE, make_unit
from sentences import raises_sentence
from weighbridge.errors import Interrupted, RunDirectoryError, Unavailable
from weighbridge.features.fleets import drive as driving
from weighbridge.features.fleets import providers as providing
from weighbridge.features.fleets import suspects
from weighbridge.features.fleets.drive import UnitsUnfinished, drive
from weighbridge.features.fleets.folder import Fleet, FleetFolder, UnitRecord
from weighbridge.features.fleets.machine_provider import (
    DriverState,
    MachineProvider,
    ProviderOptions,
    Submission,
    Wanted,
)
from weighbridge.features.fleets.rounds import FleetUnit, unit_named
from weighbridge.features.fleets.survey import SurveyedMachine
from weighbridge.model.secret import SecretName
from weighbridge.runner.run_lock import FLEET_VARIABLE
from weighbridge.secret_values import VARIABLE, keep
from weighbridge.store.extensions import note_begin, note_end
from weighbridge.store.run import RunStore

from .test_study import PAIR, SINGLE


class Chosen(MachineProvider):
    """Machines that a scheduler chooses: known to the driver alone, which starts runs by another program."""

    kind = "chosen"
    summary = "made-up machines of a test"
    options = ProviderOptions
    names: tuple[str, ...] = ("n1", "n2", "n3", "n4")

    def count(self, options: Any) -> int:
        return len(self.names)

    def submit(self, options: Any, submission: Submission) -> str:
        return "17"

    def state(self, options: Any, job: str) -> DriverState:
        return DriverState("ended", f"job {job}")

    def cancel(self, options: Any, job: str, folder: Path) -> None:
        return None

    def allotted(self, options: Any) -> tuple[str, ...]:
        return self.names

    def host(self, options: Any, machine: str) -> Mapping[str, Any]:
        return {"kind": "ssh", "destination": machine}

    def command(self, options: Any, machines: Sequence[str], argv: Sequence[str]) -> tuple[str, ...]:
        return ("srun", "-w", machines[0], *argv)


class World:
    """Runs that end by themselves when they are looked at, in the way that a test says."""

    def __init__(self, folder: FleetFolder) -> None:
        self.folder = folder
        self.started: list[str] = []
        self.words: dict[str, tuple[str, ...]] = {}
        self.variables: list[Mapping[str, str]] = []
        self.going: set[str] = set()
        self.most: list[set[str]] = []
        self.signals: list[tuple[str, int]] = []
        self.ends: dict[str, list[Callable[[FleetUnit], int | None]]] = {}

    def run(self, argv: Sequence[str], log: Path, env: Mapping[str, str]) -> "Run":
        unit = log.stem
        self.started.append(unit)
        self.words[unit], self.going = tuple(argv), self.going | {unit}
        self.variables.append(env)
        self.most.append({*self.going})
        return Run(self, unit)

    def finish(self, unit: FleetUnit) -> int:
        self.measured(unit, ended=True)
        return 0

    def measured(self, unit: FleetUnit, *, ended: bool) -> None:
        if not self.folder.run(unit).exists():
            make_unit(self.folder.runs, unit.name, RECIPE, unit.machines, {})
        with RunStore(self.folder.run(unit), writable=True) as store:
            (note_end if ended else note_begin)(store)


class Run:
    """One of them, in the place of a process."""

    def __init__(self, world: World, unit: str) -> None:
        self.world, self.unit = world, unit
        self.code: int | None = None

    def poll(self) -> int | None:
        unit = unit_named(self.unit)
        assert unit is not None
        if self.code is None:
            ends = self.world.ends.get(self.unit)
            self.code = (ends.pop(0) if ends else self.world.finish)(unit)
            if self.code is not None:
                self.world.going -= {self.unit}
        return self.code

    def signal(self, number: int) -> None:
        self.world.signals.append((self.unit, number))


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Chosen:
    made = Chosen()
    monkeypatch.setattr(providing, "providers", lambda: {"chosen": made})
    return made


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: Chosen) -> World:
    folder = FleetFolder(tmp_path / "fleet")
    made = World(folder)
    monkeypatch.setattr(driving, "LoggedProcess", made.run)
    monkeypatch.setattr(driving, "_LOOK_S", 0)
    monkeypatch.setattr(driving, "survey", lambda study, hosts, *_: [SurveyedMachine(name) for name in hosts])
    monkeypatch.setattr(driving, "with_weighbridge", lambda machines, _: machines)
    monkeypatch.chdir(tmp_path)
    return made


def _fleet(world: World, text: str = PAIR, **more: Any) -> Fleet:
    fleet = Fleet(
        name="pair", study=text, pairs=text == PAIR, on={"kind": "chosen"}, machines=None, seed=3,
        cwd=str(world.folder.path.parent), created=1.0, **more,
    )  # fmt: skip
    world.folder.create(fleet)
    return fleet


def _drive(world: World) -> list[str]:
    said: list[str] = []
    drive(world.folder, said.append)
    return said


def test_single_machines_are_measured_at_the_same_time(world: World):
    _fleet(world, SINGLE)
    said = _drive(world)
    assert world.started == ["n1", "n2", "n3", "n4"] and world.most[-1] == {*world.started}
    assert said[-1] == "every run finished" and world.folder.machines() == ("n1", "n2", "n3", "n4")
    assert {each[FLEET_VARIABLE] for each in world.variables} == {str(world.folder.path)}
    assert world.words["n2"][:3] == ("srun", "-w", "n2") and "--rehearsal" not in world.words["n2"]
    text = (world.folder.runs / "n2.yaml").read_text()
    assert "destination: n2" in text
    for name in world.started:
        record = world.folder.record(FleetUnit((name,)))
        assert record is not None and record.code == 0 and record.ended is not None


def test_runs_get_secrets_by_their_environment_alone(world: World):
    keep(SecretName("PW"), "canary")
    _fleet(
        world, SINGLE.replace("{kind: native}", "{kind: native, userland: {kind: host, env: {A: '${secret:PW}'}}}")
    )
    said = _drive(world)
    assert [json.loads(each[VARIABLE]) for each in world.variables] == [{"PW": "canary"}] * 4
    assert "canary" not in str((said, world.words))
    files = [path for path in world.folder.path.rglob("*") if path.is_file()]
    assert files and not [path for path in files if b"canary" in path.read_bytes()]


def test_no_more_runs_go_at_once_than_can(world: World, provider: Chosen, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(provider, "at_once", lambda _: 3)
    for name in ("n1", "n2", "n3"):
        world.ends[name] = [lambda _: None] * 2
    _fleet(world, SINGLE)
    _drive(world)
    assert max(map(len, world.most)) == 3 and world.started == ["n1", "n2", "n3", "n4"]
    assert _drive(world)[-1] == "every run finished"


def test_machines_are_had_as_long_as_they_are_driven(world: World, provider: Chosen, monkeypatch: pytest.MonkeyPatch):
    had: list[Any] = []

    @contextlib.contextmanager
    def allotment(options: Any, wanted: Wanted) -> Iterator[tuple[str, ...]]:
        had.append(wanted)
        try:
            yield ("n1", "n2")
        finally:
            had.append([*world.started])

    monkeypatch.setattr(provider, "allotment", allotment)
    fleet = _fleet(world, SINGLE)
    world.ends["n2"] = [lambda _: 8]
    with pytest.raises(UnitsUnfinished):
        _drive(world)
    _drive(world)
    first, before, second, after = had
    assert (first.id, first.had, second.id, second.had) == (fleet.id, (), fleet.id, ("n1", "n2"))
    assert (before, after) == (["n1", "n2"], ["n1", "n2", "n2"])


def test_rounds_are_one_after_the_other_and_controls_alone(world: World):
    _fleet(world, rehearsal=True, beside_others=True)
    _drive(world)
    assert len(world.started) == 3 * 2 + 2
    for together in world.most:
        machines = [machine for name in together for machine in name.removeprefix("alone--").split("--")]
        assert len({*machines}) == len(machines)
    assert [len(each) for each in world.most] == [1, 2] * 3 + [1, 1]
    assert all(name.startswith("alone--") for name in world.started[-2:])
    assert {"--rehearsal", "--beside-others"} <= {*world.words[world.started[0]]}


def test_what_is_finished_is_not_measured_again_and_what_has_begun_goes_on(world: World):
    _fleet(world, SINGLE)
    world.measured(FleetUnit(("n2",)), ended=True)
    world.measured(FleetUnit(("n3",)), ended=False)
    _drive(world)
    assert world.started == ["n1", "n3", "n4"]
    assert str(world.folder.runs / "n1.yaml") in world.words["n1"] and "--out" in world.words["n1"]
    assert str(world.folder.runs / "n3.yaml") in world.words["n3"]  # a run directory of another study is refused
    assert _drive(world) == ["checking 4 machines: n1, n2, n3, n4", "every run finished"]


@pytest.mark.parametrize("name", ["runs/n1.yaml", "runs/n1.log", "runs/n1.json", "drive.log", "job.sh", "drive.lock"])
def test_a_link_in_the_place_of_a_file_is_refused(world: World, tmp_path: Path, name: str):
    _fleet(world, SINGLE)
    (tmp_path / "own").write_text("mine")
    (world.folder.path / name).symlink_to(tmp_path / "own")
    with pytest.raises(RunDirectoryError, match="symbolic link"):
        _drive(world)
    assert (tmp_path / "own").read_text() == "mine" and world.started == []


def test_a_run_that_another_weighbridge_began_is_measured_anew_and_its_trials_are_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    _fleet(world, SINGLE)
    for name, ended in (("n1", True), ("n2", False)):
        world.measured(FleetUnit((name,)), ended=ended)
    monkeypatch.setattr(driving, "own_version", lambda: "99.9")
    _drive(world)
    assert sorted(world.started) == ["n2", "n3", "n4"]
    [kept] = (world.folder.path / "set-aside").iterdir()
    assert kept.name.startswith("n2-") and (kept / "run.sqlite").is_file()


def test_a_run_that_fails_stops_no_other_one_and_is_told(world: World):
    _fleet(world, SINGLE)

    def broken(unit: FleetUnit) -> int:
        world.folder.log(unit).write_text("weighbridge: host n2 was lost\n")
        return 8

    world.ends["n2"] = [broken]
    world.ends["n3"] = [lambda _: -9]
    with raises_sentence(UnitsUnfinished):
        _drive(world)
    assert [world.folder.is_finished(FleetUnit((name,))) for name in ("n1", "n2", "n3", "n4")] == [
        True,
        False,
        False,
        True,
    ]
    status = world.folder.status(FleetUnit(("n2",)), driven=False)
    assert (status.state, status.code, status.reason) == ("stopped", 8, "host n2 was lost")
    assert world.folder.status(FleetUnit(("n3",)), driven=False).code == 137
    _drive(world)
    assert world.started[4:] == ["n2", "n3"]


def test_a_run_that_cannot_be_started_is_told_and_the_others_go_on(world: World, monkeypatch: pytest.MonkeyPatch):
    _fleet(world, SINGLE)
    usual = world.run

    def start(argv: Sequence[str], log: Path, env: Mapping[str, str]) -> Run:
        if log.stem == "n1":
            raise Unavailable("the program 'srun' is not installed")
        return usual(argv, log, env)

    monkeypatch.setattr(driving, "LoggedProcess", start)
    with pytest.raises(UnitsUnfinished):
        _drive(world)
    assert world.started == ["n2", "n3", "n4"] and world.folder.status(FleetUnit(("n1",)), driven=False).code == 4


@pytest.mark.parametrize("ends", ["in good order", "not at all"])
def test_who_ends_a_driver_ends_its_runs(world: World, monkeypatch: pytest.MonkeyPatch, ends: str):
    _fleet(world, SINGLE)
    monkeypatch.setattr(driving, "_END_S", 0.0 if ends == "not at all" else 100.0)

    def interrupted(_: FleetUnit) -> int:
        raise Interrupted(signal.SIGTERM)

    def ended(unit: FleetUnit) -> int | None:
        asked = [number for name, number in world.signals if name == unit.name]
        enough = signal.SIGKILL if ends == "not at all" else signal.SIGTERM
        return -asked[-1] if asked and asked[-1] == enough else None

    world.ends = {name: [ended] * 50 for name in ("n1", "n2", "n3", "n4")}
    world.ends["n2"].insert(0, interrupted)
    with pytest.raises(Interrupted):
        _drive(world)
    assert world.going == set() and ("n1", signal.SIGTERM) in world.signals
    assert (("n1", signal.SIGKILL) in world.signals) is (ends == "not at all")
    codes = {world.folder.status(FleetUnit((name,)), driven=False).code for name in ("n1", "n2", "n3", "n4")}
    assert codes == {137 if ends == "not at all" else 143}


def test_machines_that_lack_something_are_told_together_before_anything_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    _fleet(world, SINGLE)
    asked: dict[str, Any] = {}

    def survey(_: object, hosts: Mapping[str, Any], __: object, fleet: str) -> list[SurveyedMachine]:
        assert fleet == str(world.folder.path)
        asked.update(hosts)
        lacks = {"n1": ("no python3",), "n3": ("no python3",), "n4": ("no space",)}
        return [SurveyedMachine(name, lacks=lacks.get(name, ())) for name in hosts]

    monkeypatch.setattr(driving, "survey", survey)
    with raises_sentence(Unavailable):
        _drive(world)
    assert world.started == [] and {*asked} == {"n1", "n2", "n3", "n4"}
    world.folder.note(FleetUnit(("n1",)), UnitRecord(round=1, began=1.0, ended=2.0, code=8))  # it goes on
    assert _drive(world)[1].startswith("note: n1, n3: no python3") and {*world.started} == {*asked}


def test_a_fleet_that_goes_on_without_any_machine_is_refused(world: World, monkeypatch: pytest.MonkeyPatch):
    _fleet(world, SINGLE)
    world.folder.note(FleetUnit(("n1",)), UnitRecord(round=1, began=1.0))
    monkeypatch.setattr(
        driving, "survey", lambda _, hosts, *__: [SurveyedMachine(name, lacks=("no python3",)) for name in hosts]
    )
    with raises_sentence(Unavailable):
        _drive(world)
    assert world.started == []


def test_suspects_are_measured_again_once(world: World, monkeypatch: pytest.MonkeyPatch):
    _fleet(world)
    odd = suspects.Suspects(("n1",), ("n2", "n3", "n4"))
    monkeypatch.setattr(driving.Suspects, "of", classmethod(lambda *_: odd))
    _drive(world)
    again = [name for name in world.started if name.startswith("again--")]
    assert len(again) == 1 and "n1" in again[0] and world.started[-1] == again[0]
    _drive(world)
    assert len(world.started) == 3 * 2 + 2 + 1


def test_a_second_measurement_that_was_stopped_goes_on(world: World, monkeypatch: pytest.MonkeyPatch):
    _fleet(world)
    odd = suspects.Suspects(("n1",), ("n2", "n3", "n4"))
    monkeypatch.setattr(driving.Suspects, "of", classmethod(lambda *_: odd))
    for names in itertools.permutations(("n1", "n2", "n3", "n4"), 2):
        world.ends["--".join(("again", *names))] = [lambda _: 8]
    with pytest.raises(UnitsUnfinished):
        _drive(world)
    (first,) = [name for name in world.started if name.startswith("again--")]
    _drive(world)
    assert [name for name in world.started if name.startswith("again--")] == [first, first]


def test_nobody_is_measured_again_where_that_is_not_wanted(world: World, monkeypatch: pytest.MonkeyPatch):
    _fleet(world, again=False)
    monkeypatch.setattr(driving.Suspects, "of", classmethod(lambda *_: pytest.fail("it was asked")))
    _drive(world)


class Killed(BaseException):
    """The driver is ended at once: nothing of it runs any more."""


@pytest.mark.parametrize("seed", range(8))
def test_whatever_ends_drivers_and_runs_nothing_finished_is_measured_again(
    world: World, monkeypatch: pytest.MonkeyPatch, seed: int
):
    """Drivers are cancelled or killed, runs fail and machines die, all at random, until nothing is missing."""
    random = Random(seed)
    _fleet(world, PAIR if seed % 2 else SINGLE)
    usual_stop, usual_finish, finished = driving.Drive._stop, world.finish, list[str]()

    def finish(unit: FleetUnit) -> int | None:
        chance = random.random()
        if chance < 0.1:
            raise Interrupted(signal.SIGTERM)
        if chance < 0.2:
            raise Killed
        if chance < 0.4:
            world.measured(unit, ended=False)
            return random.choice([8, 4, -9])
        if chance < 0.7:
            return None
        finished.append(unit.name)
        return usual_finish(unit)

    def stop(drive: driving.Drive) -> None:
        if isinstance(sys.exc_info()[1], Killed):
            world.going = set()
            return
        monkeypatch.setattr(world, "finish", lambda _: -15)
        usual_stop(drive)
        monkeypatch.setattr(world, "finish", finish)

    monkeypatch.setattr(world, "finish", finish)
    monkeypatch.setattr(driving.Drive, "_stop", stop)
    for _ in range(100):
        before, began = [*finished], len(world.started)
        try:
            drive(world.folder, lambda _: None)
            break
        except (Interrupted, Killed, UnitsUnfinished):
            assert not {*before} & {*world.started[began:]}
    assert sorted(finished) == sorted({*world.started}) and not world.going
