"""No unit test starts a process or touches the user's cache: only those marked ``real`` may."""

import itertools
import os
import secrets
import subprocess

import pytest
from hypothesis import settings

from weighbridge.store import database

settings.register_profile("shared-machine", deadline=None)  # how long an example takes says nothing on one
settings.load_profile("shared-machine")

NUMBERS = itertools.count(1)
FORBIDDEN = ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=2, help="how often tests/real/test_kill_anywhere.py kills a run")
    parser.addoption("--seed", type=int, default=secrets.randbelow(10**6), help="for the moments of these kills")
    parser.addoption("--keep-reports", action="store_true", help="see tests/report/test_finished_runs.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("measures"):
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=2))


@pytest.fixture(autouse=True)
def _no_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory) -> None:
    if request.node.get_closest_marker("real") is not None:
        return

    def refuse(*arguments, **_):
        raise AssertionError(f"a unit test wanted to start a process: {arguments[:1]}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    for name in FORBIDDEN:
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path_factory.getbasetemp() / "caches" / str(next(NUMBERS))))
    # no made-up run has to outlive a power cut: waiting for the disk was half of the time of their tests
    monkeypatch.setattr(database, "SETTINGS", ("foreign_keys=ON", "journal_mode=WAL", "synchronous=OFF"))
