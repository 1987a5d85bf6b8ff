"""No unit test starts a process or touches the user's cache: only those marked ``real`` may.

What is marked ``long`` or ``machines`` is left out unless ``-m`` names its marker. Where ``-m`` names ``long``,
Hypothesis tries many examples of each of its tests, else a few.
"""

import errno
import functools
import gc
import itertools
import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
import typer.testing
from hypothesis import settings

from weighbridge import secret_values
from weighbridge.linux import deletion
from weighbridge.store import database

# a clean checkout tries the same each time; how long an example takes says nothing on a shared machine
settings.register_profile("few", max_examples=25, derandomize=True, deadline=None)
settings.register_profile("many", max_examples=400, deadline=None)

pytest_plugins = ("pytester", "promises", "sentences")
NUMBERS = itertools.count(1)
UNLESS_NAMED = ("long", "machines")
"""Markers of tests that take minutes or hours."""
ONE_WORKER = "tests/real/pods/"
"""Tests that share a cluster."""
FORBIDDEN = ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system")


# every call of the command line in this process has the same commands: to make them was half of the time of most
typer.main.get_command = typer.testing._get_command = functools.cache(typer.main.get_command)
# tests are run two at a time, and beside others' runs: what is to be refused then unsets it
os.environ["WEIGHBRIDGE_ALLOW_CONCURRENT"] = "yes"
os.environ["WEIGHBRIDGE_QUICK_TEST"] = "yes"  # their studies are tiny
gc.disable()  # nothing of what is imported and collected is garbage: looking for it took a tenth of the time
gc.set_threshold(100_000, 50)  # little of what tests make is: with 700, to parse our modules took three times as long


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("many" if "long" in config.option.markexpr else "few")
    if config.option.basetemp and hasattr(config, "workerinput"):  # its /tmp is its own (own_machine.sh)
        Path(config.option.basetemp).parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    if (path := config.getoption("failures")) is None:
        return
    path.unlink(missing_ok=True)  # of the session before, whose failed tests this one repeats
    failed = [each for outcome in ("failed", "error") for each in terminalreporter.stats.get(outcome, [])]
    ends = [f"{each.nodeid} ({each.when})\n" + "\n".join(each.longreprtext.splitlines()[-12:]) for each in failed]
    if ends:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(ends) + "\n")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    gc.enable()  # where workers collect


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=12, help="how often tests/real/test_kill_anywhere.py kills a run")
    parser.addoption("--seed", type=int, default=secrets.randbelow(10**6), help="for the moments of these kills")
    parser.addoption("--update-golden", action="store_true", help="see sentences.py and report/test_golden.py")
    parser.addoption("--failures", type=Path, help="write the end of each failure to this file")
    hostile = parser.getgroup("hostile", "tests/hostile: run directories and fleet folders of a stranger")
    hostile.addoption("--hostile-seed", type=int, default=1, help="chooses the cases")
    hostile.addoption("--hostile-case", action="append", default=[], help="try this case alone; may be repeated")
    machines = parser.getgroup("machines", "tests/machines: whole machines as guests")
    machines.addoption("--machines", default="bookworm,trixie,sid,bookworm-arm64", help="which to try")
    machines.addoption("--users", default="root,docker,sudo,plain,podman", help="as whom")
    machines.addoption("--keep-machines", action="store_true", help="leave them running for the next call")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """Give each worker tests that follow one another, which share what their module, or their folder, has made."""
    from xdist.scheduler import LoadFileScheduling, WorkStealingScheduling

    class OfFiles(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return ONE_WORKER if nodeid.startswith(ONE_WORKER) else super()._split_scope(nodeid)

    schedulers = {"load": WorkStealingScheduling, "loadfile": OfFiles}
    kind = schedulers.get(config.getoption("dist"))
    return kind(config, log) if kind is not None else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    again = config.pluginmanager.hasplugin("rerunfailures")
    for item in items:
        if again and item.get_closest_marker("measures"):
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=2))
    named = {name for name in UNLESS_NAMED if name in config.getoption("markexpr")}
    left_out = [item for item in items if {*UNLESS_NAMED} & {mark.name for mark in item.iter_markers()} - named]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(autouse=True, scope="session")
def _small_chart_library(request: pytest.FixtureRequest) -> Iterator[None]:
    """To bundle the library takes three seconds of each process, and 900 kB in every page; browsers need it."""
    with pytest.MonkeyPatch.context() as patch:
        if not any(item.get_closest_marker("real") for item in request.session.items):
            patch.setattr("vl_convert.javascript_bundle", lambda *_, **__: "let vega;")
        yield


@pytest.fixture(autouse=True)
def _no_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory) -> None:
    if request.node.get_closest_marker("real") is not None:
        return

    def refuse(*arguments, **_):
        raise AssertionError(f"a unit test wanted to start a process: {arguments[:1]}")

    # the class stays one: a module that is imported meanwhile may name Popen[bytes]
    monkeypatch.setattr(subprocess.Popen, "__init__", lambda _, *arguments, **named: refuse(*arguments, **named))
    for name in FORBIDDEN:
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path_factory.getbasetemp() / "caches" / str(next(NUMBERS))))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))
    for state in ("_values", "_offered", "_digests"):  # a test is as a process that has just begun
        monkeypatch.setattr(secret_values, state, {})
    # no made-up run has to outlive a power cut: waiting for the disk was half of the time of their tests
    monkeypatch.setattr(database, "SETTINGS", [each.replace("=FULL", "=OFF") for each in database.SETTINGS])


@pytest.fixture
def immutable(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """Folders that cannot be removed while they are in this set, as with a file in each that is immutable."""
    folders: set[Path] = set()
    rmdir = os.rmdir

    def refusing(name: str, *, dir_fd: int) -> None:
        if Path(f"/proc/self/fd/{dir_fd}").readlink() / name in folders:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), name)
        rmdir(name, dir_fd=dir_fd)

    monkeypatch.setattr(deletion, "os", SimpleNamespace(**{**vars(os), "rmdir": refusing}))
    return folders
