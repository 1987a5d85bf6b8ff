"""Which program of an engine that a study names may be started by root, and how its engine is started."""

import os
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from sentences import assert_sentence
from weighbridge.engines import private
from weighbridge.engines.private import program_readiness
from weighbridge.engines.settings import USUAL
from weighbridge.errors import Unavailable
from weighbridge.model.cleanup import OrphanedRun
from weighbridge.model.command import Command
from weighbridge.model.host import RunContext
from weighbridge.model.names import GroupName, RunId


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that may be started, as far as root's folders above it go; the user is root."""
    monkeypatch.setattr(private.os, "geteuid", lambda: 0)
    folder = tmp_path / "engine"
    folder.mkdir(mode=0o755)
    made = folder / "dockerd"
    for path in (made, folder / "runc"):
        path.write_text("")
        path.chmod(0o755)
    if os.getuid() != 0:
        pytest.skip("only root has files of root")
    return made


def test_one_that_may_be_started(program: Path):
    assert program_readiness(str(program)).ready


def _link(program: Path) -> None:
    away = program.parent.parent / "away"
    away.mkdir()
    away.chmod(0o777)
    program.rename(away / "dockerd")
    program.symlink_to(away / "dockerd")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda program: program.unlink(), "there is no "),
        (lambda program: (program.unlink(), program.mkdir()), "is not an executable program"),
        (lambda program: program.chmod(0o644), "is not an executable program"),
        (lambda program: program.chmod(0o757), "engine/dockerd is writable by others"),
        (lambda program: program.parent.chmod(0o775), "engine is writable by others"),
        (lambda program: program.with_name("runc").chmod(0o777), "engine/runc is writable by others"),
        (lambda program: os.chown(program, 4711, 0), "engine/dockerd belongs to another user"),
        (_link, "away is writable by others"),
    ],
)
def test_one_that_may_not(program: Path, change: Callable[[Path], object], told: str):
    change(program)
    found = program_readiness(str(program))
    assert not found.ready and found.remedy
    assert found.detail.startswith("dockerd: ") and told in found.detail and "\n" not in found.detail


def test_one_where_an_engine_has_other_files(program: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(private, "_COVERED", (program.parent.parent,))
    assert_sentence(program_readiness(str(program)).detail)


def test_only_root_starts_one(program: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(private.os, "geteuid", lambda: 4711)
    assert not program_readiness(str(program)).ready


def test_what_is_no_file_at_all_is_told():
    for named in ("/etc/passwd/dockerd", "/" + "x" * 300):
        found = program_readiness(named)
        assert not found.ready and found.detail.startswith("dockerd: ")


def test_it_has_all_cpus_whatever_the_users_shell_is_set_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The launcher starts it: docker-proxy, which carries what is measured, is on the CPUs that sites have."""
    commands = []

    def process(command: Command, **_: object) -> SimpleNamespace:
        commands.append(command)
        return SimpleNamespace(stop=lambda: None)

    nothing = nullcontext()
    monkeypatch.setattr(private, "exclusive_machine_lock", lambda *_: nothing)
    monkeypatch.setattr(private, "_prepare", lambda *_, **__: None)
    monkeypatch.setattr(private, "_discard", lambda *_, **__: None)
    monkeypatch.setattr(private, "Cgroup", lambda name: SimpleNamespace(create=lambda: name))
    monkeypatch.setattr(private, "within", lambda host, _, group, *argv: ("launcher", host, group, *argv))
    monkeypatch.setattr(private, "await_answer", lambda *_, **__: None)
    monkeypatch.setattr(private.process, "Process", process)
    run = RunContext("0123456789ab", tmp_path, tmp_path, ExitStack(), print)
    with private.private_engine(run, "here", USUAL):  # type: ignore[arg-type]
        pass
    assert commands[0].argv[:4] == ("launcher", "here", "0123456789ab/engine", "unshare")


def test_sockets_of_an_engine_that_stay_are_an_error(
    monkeypatch: pytest.MonkeyPatch, immutable: set[Path], tmp_path: Path
):
    monkeypatch.setattr(private, "restore", lambda *_, **__: None)
    run = OrphanedRun("0123456789ab", tmp_path, tmp_path / "data")
    private.EngineTraces().remove(run)  # there are none
    (tmp_path / "engine").mkdir()
    immutable.add(tmp_path / "engine")
    with pytest.raises(OSError, match="Operation not permitted"):
        private.EngineTraces().remove(run)


def test_a_failed_start_leaves_the_other_sites_of_the_run_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    run = RunContext(RunId("0123456789ab"), tmp_path / "state/run", tmp_path, ExitStack())
    data, killed = tmp_path / "engines" / run.id, list[str]()
    (data / "data-site").mkdir(parents=True)
    (data / "engine/data").mkdir(parents=True)
    (run.state / "engine").mkdir(parents=True)

    def group(name: GroupName) -> list[SimpleNamespace]:
        return [SimpleNamespace(kill=lambda: killed.append(name), remove=lambda: None)]

    def fails(*_: object) -> None:
        raise Unavailable("dockerd did not start")

    monkeypatch.setattr(private, "restore", lambda *_, **__: None)
    monkeypatch.setattr(private, "groups_of", group)
    monkeypatch.setattr(private, "exclusive_machine_lock", lambda *_: nullcontext())
    monkeypatch.setattr(private, "_prepare", fails)
    with pytest.raises(Unavailable), private.private_engine(run, "here", USUAL):  # type: ignore[arg-type]
        pytest.fail("it has not started")
    assert killed == [f"{run.id}/engine"]
    assert [*data.iterdir()] == [data / "data-site"] and [*run.state.iterdir()] == []
