"""A fleet's folder: what is kept, what is read of damaged and foreign ones, and what became of each unit."""

import errno
import fcntl
import json
import os
from pathlib import Path

import pytest

from report.made_up_fleets import RECIPE, make_unit
from sentences import raises_sentence
from weighbridge.errors import DiskFull, RunDirectoryError, Unavailable
from weighbridge.features.fleets import folder as folder_module
from weighbridge.features.fleets.folder import Fleet, FleetFolder, UnitRecord, last_line
from weighbridge.features.fleets.rounds import FleetUnit
from weighbridge.store.extensions import note_begin, note_end
from weighbridge.store.run import STATUS, RunStore

FLEET = Fleet(
    name="uplink", study="study: uplink\n", pairs=True, on={"kind": "hosts"}, machines=("a", "b"), seed=7, cwd="/",
    created=1.5,
)  # fmt: skip
UNIT = FleetUnit(("a", "b"))


@pytest.fixture
def folder(tmp_path: Path) -> FleetFolder:
    made = FleetFolder(tmp_path / "fleet")
    made.create(FLEET)
    return made


def _run(folder: FleetFolder, unit: FleetUnit, *, ended: bool) -> None:
    make_unit(folder.runs, unit.name, RECIPE, unit.machines, {})
    with RunStore(folder.run(unit), writable=True) as store:
        (note_end if ended else note_begin)(store)


def test_what_is_written_is_read(folder: FleetFolder):
    assert folder.read() == FLEET
    folder.write(FLEET.model_copy(update={"jobs": ("17",)}))
    assert folder.read().jobs == ("17",) and {path.name for path in folder.path.iterdir()} == {"runs", "fleet.json"}


@pytest.mark.parametrize(
    "name", ["../../etc", "/srv/data", "", ".", "..", "a/b", "a--b", "-rf", "a\nb", "a\n", "again"]
)
def test_a_machine_whose_name_leads_elsewhere_is_refused(folder: FleetFolder, name: str):
    """It would become the name of a run directory."""
    folder.note_machines(["a", name])
    assert folder.machines() == ("a",)
    folder.write(FLEET.model_copy(update={"machines": ("a", name)}))
    with pytest.raises(RunDirectoryError, match="damaged"):
        folder.read()


@pytest.mark.parametrize("name", ["../../etc", "/srv/data", "", "..", "a/b", "-rf", "a b", "a\n", "a" * 41])
def test_a_fleet_whose_study_has_an_impossible_name_is_refused(folder: FleetFolder, name: str):
    """The name becomes a part of paths and of commands of a scheduler."""
    folder.write(FLEET.model_copy(update={"name": name}))
    with pytest.raises(RunDirectoryError, match="damaged"):
        folder.read()


def test_a_folder_with_another_fleet_or_with_anything_is_refused(folder: FleetFolder, tmp_path: Path):
    with raises_sentence(RunDirectoryError):
        folder.create(FLEET)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/of").touch()
    (tmp_path / "file").touch()
    for name in ("full", "file"):
        with raises_sentence(RunDirectoryError):
            FleetFolder(tmp_path / name).create(FLEET)
    assert not (tmp_path / "full/fleet.json").exists()


def test_an_empty_folder_is_taken(tmp_path: Path):
    FleetFolder(tmp_path).create(FLEET)
    assert FleetFolder(tmp_path).read() == FLEET


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with raises_sentence(RunDirectoryError):
        FleetFolder(tmp_path / "fleet").require_new()


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, DiskFull), (errno.EROFS, RunDirectoryError)])
def test_a_disk_that_takes_no_more_is_told(
    folder: FleetFolder, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
):
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with raises_sentence(kind):
        folder.write(FLEET)
    assert folder.read() == FLEET


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"version": 2}', FLEET.model_dump_json().replace('"seed":7', '"seed":"x"')],
    ids=["empty", "half", "list", "nothing", "newer", "wrong"],
)
def test_a_damaged_fleet_or_one_of_a_newer_program_is_told(folder: FleetFolder, text: str):
    (folder.path / "fleet.json").write_text(text)
    with raises_sentence(RunDirectoryError):
        folder.read()


def test_no_fleet_is_told(tmp_path: Path):
    with raises_sentence(RunDirectoryError):
        FleetFolder(tmp_path).read()


def test_of_a_fleet_that_never_began_nothing_stays(folder: FleetFolder):
    folder.driver_log.touch()
    folder.discard()
    assert not folder.path.exists()


def test_a_unit_waits_runs_stops_and_is_finished(folder: FleetFolder):
    def state(*, driven: bool = False) -> str:
        return folder.status(UNIT, driven=driven).state

    assert state() == state(driven=True) == "waiting" and folder.units() == ()
    folder.note(UNIT, UnitRecord(round=1, began=10.0))
    assert (state(driven=True), state()) == ("running", "stopped") and folder.units() == (UNIT,)
    _run(folder, UNIT, ended=False)
    assert not folder.is_finished(UNIT)
    assert folder.status(UNIT, driven=True).trials > 0 and state(driven=True) == "running"
    folder.log(UNIT).write_text("all is well\nweighbridge: it broke\nweighbridge: to continue: weighbridge run x\n")
    folder.note(UNIT, UnitRecord(round=1, began=10.0, ended=11.0, code=8))
    status = folder.status(UNIT, driven=True)
    assert (status.state, status.code, status.reason) == ("stopped", 8, "it broke")
    with RunStore(folder.run(UNIT), writable=True) as store:
        note_end(store)
    assert state() == state(driven=True) == "finished" and folder.is_finished(UNIT)


def test_the_database_of_a_running_unit_is_not_read(folder: FleetFolder, monkeypatch: pytest.MonkeyPatch):
    """It can be written on another host at that time."""
    _run(folder, UNIT, ended=False)
    folder.note(UNIT, UnitRecord(round=1, began=10.0))
    with RunStore(folder.run(UNIT), writable=True) as store:
        trials = len(store.finished())
        monkeypatch.setattr(folder_module, "RunStore", lambda _: pytest.fail("the database was read"))
        status = folder.status(UNIT, driven=True)
    assert (status.state, status.trials) == ("running", trials) and trials > 0


def test_a_killed_run_of_a_driver_that_is_gone_is_stopped(folder: FleetFolder):
    _run(folder, UNIT, ended=False)
    folder.note(UNIT, UnitRecord(round=1, began=10.0))
    (folder.run(UNIT) / STATUS).write_text('{"trials": 1}')
    status = folder.status(UNIT, driven=False)
    assert status.state == "stopped" and status.trials > 1


# -- links in the folder of another user -----------------------------------------------------------


def test_no_line_of_another_file_is_shown(folder: FleetFolder, tmp_path: Path):
    (tmp_path / "secret").write_text("root:x:1\n")
    folder.log(UNIT).symlink_to(tmp_path / "secret")
    assert last_line(folder.log(UNIT)) == ""


@pytest.mark.parametrize("name", ["runs/a.json", "machines.json"])
def test_a_note_that_is_a_link_is_not_read(folder: FleetFolder, tmp_path: Path, name: str):
    note = UnitRecord(round=1, began=1.0).model_dump_json() if "runs" in name else '["a"]'
    (tmp_path / "note").write_text(note)
    (folder.path / name).symlink_to(tmp_path / "note")
    assert folder.record(FleetUnit(("a",))) is None and folder.machines() == ()


def test_a_fleet_in_another_file_is_not_read(folder: FleetFolder, tmp_path: Path):
    (folder.path / "fleet.json").rename(tmp_path / "other.json")
    (folder.path / "fleet.json").symlink_to(tmp_path / "other.json")
    with raises_sentence(RunDirectoryError):
        folder.read()


def test_a_lock_that_is_a_link_creates_no_file(folder: FleetFolder, tmp_path: Path):
    (folder.path / "drive.lock").symlink_to(tmp_path / "nologin")
    with raises_sentence(RunDirectoryError), folder.driving():
        pass
    assert not (tmp_path / "nologin").exists()


@pytest.mark.parametrize("name", ["runs/a--b.log", "drive.lock"])
def test_a_second_name_of_another_file_is_refused(folder: FleetFolder, tmp_path: Path, name: str):
    (tmp_path / "other").touch()
    (folder.path / name).hardlink_to(tmp_path / "other")
    with raises_sentence(RunDirectoryError):
        folder.refuse_links()


def test_a_folder_elsewhere_is_used_if_the_link_is_this_users(folder: FleetFolder, tmp_path: Path):
    folder.runs.rename(tmp_path / "elsewhere")
    folder.runs.symlink_to(tmp_path / "elsewhere")
    folder.refuse_links()
    folder.write_study(UNIT, "study: x")
    assert (tmp_path / "elsewhere/a--b.yaml").read_text() == "study: x"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a link to another user: needs root")
def test_a_folder_elsewhere_is_refused_if_the_link_is_another_users(folder: FleetFolder, tmp_path: Path):
    folder.runs.rename(tmp_path / "elsewhere")
    folder.runs.symlink_to(tmp_path / "elsewhere")
    os.lchown(folder.runs, 65534, 65534)
    with raises_sentence(RunDirectoryError):
        folder.refuse_links()
    with raises_sentence(RunDirectoryError):
        folder.write_study(UNIT, "study: x")
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_a_finished_run_is_finished_whatever_became_of_notes_about_it(folder: FleetFolder):
    _run(folder, UNIT, ended=True)
    for noted in (None, "", "{"):
        if noted is not None:
            folder.record_file(UNIT).write_text(noted)
        assert folder.status(UNIT, driven=False).state == "finished" and folder.units() == (UNIT,)


def test_a_damaged_run_is_not_finished(folder: FleetFolder):
    _run(folder, UNIT, ended=True)
    (folder.run(UNIT) / "run.sqlite").write_bytes(b"no database")
    assert not folder.is_finished(UNIT)


def test_the_last_line_of_a_log_is_what_happened(tmp_path: Path):
    log = tmp_path / "log"
    assert last_line(log) == ""
    for text, told in (
        ("", ""),
        ("one\ntwo\n\n", "two"),
        ("weighbridge: no\nto continue: x\n", "no"),
        ("weighbridge: no\nsrun: error: n1: task 0: Exited with exit code 8\n", "no"),
        ("one\nsrun: error: n1: task 0: Killed\n", "srun: error: n1: task 0: Killed"),
        ("\xff", "\xff"),
    ):
        log.write_text(text)
        assert last_line(log) == told
    log.write_bytes(b"x" * 100_000 + b"\n\xfflast\n")
    assert last_line(log).endswith("last")


def test_one_process_drives_a_fleet_and_each_part_of_an_array(folder: FleetFolder):
    with folder.driving():
        with raises_sentence(RunDirectoryError), folder.driving():
            pass
        with folder.driving("17_1"), folder.driving("17_2"):
            pass
    with folder.driving():
        pass


def test_who_continues_waits_for_runs_that_are_ending(folder: FleetFolder):
    folder.run(UNIT).mkdir()
    lock = folder.run(UNIT) / "lock"
    lock.touch()
    folder.await_units(("a",), 0)
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with raises_sentence(Unavailable):
            folder.await_units(("a",), 0)
    folder.await_units(("a",), 0)


def test_machines_of_drivers_are_kept(folder: FleetFolder):
    assert folder.machines() == ()
    folder.note_machines(["n2", "n1"])
    folder.note_machines(["n3"], "17_2")
    assert folder.machines() == ("n1", "n2", "n3")
    (folder.path / "machines-17_2.json").write_text("{")
    assert folder.machines() == ("n1", "n2")


def test_what_another_program_reads_is_json(folder: FleetFolder):
    assert json.loads((folder.path / "fleet.json").read_text())["version"] == 1
