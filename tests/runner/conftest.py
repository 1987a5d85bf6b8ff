"""The fake world in place of the plug-ins."""

import pytest

from weighbridge import registry
from weighbridge.linux import cpus
from weighbridge.runner import routes

from .world import World, usual


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A fresh world on two CPUs, whose environments and workloads are the only ones."""
    made = World(act=usual)
    monkeypatch.setattr(registry, "environments", lambda: made.environments)
    monkeypatch.setattr(registry, "workloads", lambda: made.workloads)
    monkeypatch.setattr(cpus, "cpus_online", lambda: [0, 1])
    monkeypatch.setattr("weighbridge.runner.stage.cpus_online", lambda: [0, 1])
    monkeypatch.setattr(routes, "connection", lambda server, client, at, transport: made.path)
    return made
