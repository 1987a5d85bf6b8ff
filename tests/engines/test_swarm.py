"""Starting containers on overlay networks, which are held where an engine would have no time to make them."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from docker.errors import APIError, NotFound

from sentences import raises_sentence
from weighbridge.engines.swarm import Swarm
from weighbridge.errors import Unavailable
from weighbridge.model.isolation import Layer

LATE = APIError("500", explanation="attaching to network failed, ... check manager logs: context deadline exceeded")
RUNS = {"Status": {"State": "running"}}
REJECTED = {"Status": {"State": "rejected", "Err": "No such image: weighbridge:1"}}


class World:
    """Two members of a swarm, with a container to be started on the first one's host."""

    def __init__(self, *, emulated: bool = True, there: Sequence[str] = (), on_peer: Sequence[str] | None = None):
        self.swarm = Swarm(SimpleNamespace(id="r", say=lambda _: None), None)  # type: ignore[arg-type]
        self.lab, peer = (self._member(name, emulated=emulated) for name in ("lab", "peer"))
        self._is_on(self.lab, there)
        self._is_on(peer, on_peer)
        self.services = self.lab.client.services
        self.will(RUNS)
        self.container = MagicMock(id="c")
        self.container.attrs = {"Image": "i", "NetworkSettings": {"Networks": {"net": {"IPAddress": "10.0.1.4"}}}}

    def _member(self, name: str, *, emulated: bool) -> Any:
        engine: Any = MagicMock()
        engine.host.name = name
        engine.host.layers = (Layer("QEMU, TCG", emulated),)
        self.swarm._members[name] = engine
        return engine

    def _is_on(self, engine: Any, addresses: Sequence[str] | None) -> None:
        if addresses is None:
            engine.client.networks.get.side_effect = NotFound("no such network")
        else:
            at = {f"c{number}": {"IPv4Address": f"{address}/24"} for number, address in enumerate(addresses)}
            engine.client.networks.get.return_value.attrs = {"Containers": at}

    def will(self, *tasks: dict[str, Any]) -> None:
        """What becomes of the service's tasks."""
        self.services.create.return_value.tasks.return_value = list(tasks)

    def start(self) -> None:
        self.swarm.start(self.lab, "net", self.container)


def test_only_an_emulated_host_s_first_container_needs_the_network_held_and_only_meanwhile():
    for world in World(emulated=False), World(there=["10.0.1.3"]):
        world.start()
        assert world.container.start.call_count == 1 and not world.services.create.called
    first = World()
    first.start()
    assert first.services.create.call_args.kwargs["networks"] == ["net"]
    assert first.services.create.return_value.remove.call_count == 1


def test_one_that_is_late_is_refused_and_detached():
    world = World()
    world.container.start.side_effect = LATE
    with pytest.raises(APIError, match="500"):
        world.start()
    assert world.services.create.return_value.remove.call_count == 1
    assert world.container.client.api.attach_socket.return_value._sock.shutdown.called


def test_two_hosts_containers_never_have_one_address():
    World(on_peer=["10.0.1.3"]).start()
    with raises_sentence(Unavailable):
        World(on_peer=["10.0.1.3", "10.0.1.4"]).start()


def test_a_network_that_is_never_made_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("weighbridge.engines.swarm._HELD_S", 0.0)
    world = World()
    for task in {"Status": {"State": "preparing"}}, REJECTED:
        world.will(task)
        with raises_sentence(Unavailable):
            world.start()


def test_a_network_that_cannot_be_held_is_told_at_once():
    world = World()
    world.will(REJECTED, REJECTED, REJECTED)
    with raises_sentence(Unavailable):
        world.start()
    assert not world.container.start.called
    world.will(REJECTED, REJECTED, REJECTED, RUNS)
    world.start()
