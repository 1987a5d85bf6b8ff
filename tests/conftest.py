"""No unit test starts a process or touches the user's cache: only those marked ``real`` may."""

import os
import subprocess

import pytest
from hypothesis import settings

settings.register_profile("shared-machine", deadline=None)  # how long an example takes says nothing on one
settings.load_profile("shared-machine")

FORBIDDEN = ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system")


@pytest.fixture(autouse=True)
def _no_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory) -> None:
    if request.node.get_closest_marker("real") is not None:
        return

    def refuse(*arguments, **_):
        raise AssertionError(f"a unit test wanted to start a process: {arguments[:1]}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    for name in FORBIDDEN:
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path_factory.mktemp("cache", numbered=True)))
