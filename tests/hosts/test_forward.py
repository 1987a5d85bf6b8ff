"""Sockets of this machine that lead to a host's, through the agent, which a socket pair joins to us."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from weighbridge.hosts.agent.main import Agent, Wire
from weighbridge.hosts.agent.sweep import RunOwner
from weighbridge.hosts.remote.channel import Channel
from weighbridge.hosts.remote.forward import Forward
from weighbridge.hosts.remote.processes import RemoteSocket


@pytest.fixture
def channel() -> Iterator[Channel]:
    near, end = socket.socketpair()
    agent = Agent(
        Wire(end.makefile("wb"), lambda code: None), RunOwner("0123456789ab", "lab", False), lambda line: None
    )
    serving = threading.Thread(target=agent.serve, args=(end.makefile("rb"),), daemon=True)
    serving.start()
    made = Channel("lab", near, near.makefile("rb"), lambda: "it was cut")
    yield made
    made.close()
    serving.join(5)
    for thread in threading.enumerate():  # one that watched on would end the test's own process later
        if thread.name == "silence":
            thread.join(5)


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Path]:
    """A server that answers what it was told, backwards, when the asker has said all."""
    path = tmp_path / "there.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(8)

    def serve() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            told = b"".join(iter(lambda: near.recv(65536), b""))  # noqa: B023 - used before the next one
            near.sendall(told[::-1])
            near.close()

    threading.Thread(target=serve, daemon=True).start()
    yield path
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def _ask(path: Path, told: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as asker:
        asker.settimeout(20)
        asker.connect(str(path))
        asker.sendall(told)
        asker.shutdown(socket.SHUT_WR)  # each direction ends by itself, as a hijacked connection's
        return b"".join(iter(lambda: asker.recv(65536), b""))


def test_both_directions_are_carried_and_end_by_themselves(channel: Channel, there: Path, tmp_path: Path):
    here = tmp_path / "here.sock"
    forward = Forward(channel, here, str(there))
    told = bytes(range(256)) * 4096
    assert _ask(here, told) == told[::-1]
    assert _ask(here, b"again") == b"niaga"
    forward.close()
    assert not here.exists()


def test_where_nobody_listens_the_connection_ends(channel: Channel, tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        RemoteSocket(channel, str(tmp_path / "nobody.sock"))
    here = tmp_path / "here.sock"
    forward = Forward(channel, here, str(tmp_path / "nobody.sock"))
    with socket.socket(socket.AF_UNIX) as asker:
        asker.settimeout(20)
        asker.connect(str(here))
        with suppress(ConnectionError):  # it may have ended already
            assert asker.recv(1) == b""
    forward.close()
