"""Starting containers on overlay networks: what an engine had no time for is tried again, with the network held."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from docker.errors import APIError

from weighbridge.engines.swarm import Swarm
from weighbridge.errors import Unavailable

LATE = APIError("500", explanation="attaching to network failed, ... check manager logs: context deadline exceeded")
REFUSED = APIError("500", explanation="no such image")


RUNS = {"Status": {"State": "running"}}
REJECTED = {"Status": {"State": "rejected", "Err": "No such image: weighbridge:1"}}


def started(
    *outcomes: Exception | None, tasks: Sequence[dict[str, Any]] = (RUNS,), private: bool = True
) -> tuple[MagicMock, MagicMock]:
    """Start a container whose attempts end so: the container, and the services of its manager."""
    said: list[str] = []
    swarm = Swarm(SimpleNamespace(id="r", say=said.append), None)  # type: ignore[arg-type]
    engine: Any = MagicMock(private=private)
    engine.host.name = "lab"
    engine.client.services.create.return_value.tasks.return_value = list(tasks)
    swarm._members["lab"] = engine
    container = MagicMock()
    container.start.side_effect = outcomes
    swarm.start(engine, "net", container)
    return container, engine.client.services


def test_one_that_starts_has_no_service_beside_it():
    container, services = started(None)
    assert container.start.call_count == 1 and not services.create.called


def test_one_that_was_late_starts_on_a_network_that_is_held_only_meanwhile():
    container, services = started(LATE, LATE, None)
    assert container.start.call_count == 3 and services.create.call_count == 1
    assert services.create.call_args.kwargs["networks"] == ["net"]
    assert services.create.return_value.remove.call_count == 1


def test_what_is_refused_is_not_tried_again():
    with pytest.raises(APIError, match="500"):
        started(REFUSED)


def test_one_that_is_always_late_is_refused():
    with pytest.raises(APIError):
        started(LATE, LATE, LATE, LATE)


def test_a_network_that_is_never_made_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("weighbridge.engines.swarm._HELD_S", 0.0)
    with pytest.raises(Unavailable, match="host lab: its engine has not made the overlay network in 0 s"):
        started(LATE, None, tasks=[{"Status": {"State": "preparing"}}])
    with pytest.raises(Unavailable, match="overlay network in 0 s: No such image: weighbridge:1"):
        started(LATE, None, tasks=[REJECTED])


def test_a_network_that_cannot_be_held_is_told_at_once():
    with pytest.raises(Unavailable, match="has not made the overlay network: No such image"):
        started(LATE, None, tasks=[REJECTED, REJECTED, REJECTED])
    container, _ = started(LATE, None, tasks=[REJECTED, REJECTED, REJECTED, RUNS])
    assert container.start.call_count == 2


def test_no_service_is_made_on_an_engine_that_is_not_ours():
    with pytest.raises(APIError):
        started(LATE, None, private=False)
