"""A command line in this process, on a machine without engines, and a finished run for it."""

import shutil
import sys
from pathlib import Path

import pytest
import typer

from weighbridge.cli import output
from weighbridge.cli.app import main
from weighbridge.errors import Unavailable
from weighbridge.linux import process
from weighbridge.model.measurement import Measurement, Metric, Outcome
from weighbridge.model.plugin import Readiness
from weighbridge.model.trial import RoleRecord, TrialRecord
from weighbridge.runner import planned
from weighbridge.runner import run as running
from weighbridge.store.run import RunStore
from weighbridge.study.profiles import load as load_profile
from weighbridge.study.schedule import block
from weighbridge.userland.sources import packages

from .command_line import Said, Weighbridge


@pytest.fixture
def weighbridge(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Weighbridge:
    """Runs a command line in an empty folder of a machine without programs and engines."""

    def refuse(command, **_):
        raise Unavailable(f"the program '{command.argv[0]}' is not installed")

    monkeypatch.setattr(process, "Process", refuse)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    monkeypatch.setenv("COLUMNS", "100")
    for console in (output.out, output.err):
        console.cache_clear()  # it has the width at its first use
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def call(*arguments: object) -> Said:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["weighbridge", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Said(code, out, err)

    return call


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `run` is a copy of."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    study = load_profile("first-look", "here")
    with RunStore(folder, writable=True) as store:
        store.begin(study, {"run_id": "0123456789ab"})
        store.add_facts("host", {"kernel": "Linux <6.1>", "CPU": "Imaginary"})
        clock = 1e9
        for number in range(1, 11):
            for trial in block(study, number):
                clock += 1
                store.save(
                    TrialRecord(
                        trial, Outcome.OK, clock, 0.5, 0.4,
                        measurements=(Measurement(Metric("throughput", "Mbit/s", "higher"), 100 + clock % 7),),
                        roles=(RoleRecord("client", ("x",), 0, 0.4, b"<script>alert(1)</script>", b""),),
                    )
                )  # fmt: skip
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A finished run of the bundled study, with clients here alone, with made-up numbers."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """A machine on which everything is ready and a run does nothing; what was asked for."""
    asked: list[tuple] = []
    monkeypatch.setattr(planned, "readiness_of", lambda study: {arm.name: Readiness(True) for arm in study.arms})
    for reasons in ("refusals", "require_prometheus"):
        monkeypatch.setattr(planned, reasons, lambda *_: [])
    monkeypatch.setattr(packages, "_which", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(running, "run_study", lambda study, directory, *_, **__: asked.append((study, directory)))
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: pytest.fail("nobody is there to be asked"))
    return asked
