"""Freezing a container: what Docker may refuse once, and what it refuses for good; and the stream to one.

The stream comes from a server that answers as the engine does: over its socket, and upgraded.
"""

import gc
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker
import pytest
from docker.errors import APIError

from sentences import raises_sentence
from weighbridge.engines import container
from weighbridge.engines.container import LAUNCHER, Attached
from weighbridge.errors import Unavailable

BUSY = "Cannot pause container b1: OCI runtime pause failed: unable to freeze: unknown"


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the engine still refuses with, the last first; time passes by sleeping alone."""
    now = SimpleNamespace(t=0.0)
    clock = SimpleNamespace(monotonic=lambda: now.t, sleep=lambda s: setattr(now, "t", now.t + s))
    monkeypatch.setattr(container, "time", clock)
    return []


def api(refusals: list[str], asked: list[str]) -> SimpleNamespace:
    def pause(name: str) -> None:
        asked.append(name)
        if refusals:
            raise APIError("500 Server Error", explanation=refusals.pop())

    return SimpleNamespace(pause=pause)


def test_what_runc_could_not_freeze_is_tried_again(refusals: list[str]):
    refusals += [BUSY, BUSY]
    asked: list[str] = []
    container.pause(api(refusals, asked), "b1", "bridge")
    assert asked == ["b1"] * 3


def test_for_some_seconds(refusals: list[str]):
    refusals += [BUSY] * 1000
    with raises_sentence(Unavailable):
        container.pause(api(refusals, []), "b1", "bridge")
    assert refusals


def test_any_other_refusal_is_final(refusals: list[str]):
    refusals += ["it is paused already"]
    asked: list[str] = []
    with raises_sentence(Unavailable):
        container.pause(api(refusals, asked), "b1", "bridge")
    assert asked == ["b1"]


UPGRADED = (
    b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"
    b"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
)
"""What dockerd 20.10 and 28 answer to the SDK's request to attach."""


def frame(kind: int, piece: bytes) -> bytes:
    return bytes([kind, 0, 0, 0]) + len(piece).to_bytes(4, "big") + piece


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Any]:
    """The SDK's client of a server whose containers print a warning, and what they are sent."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket"))
    listener.listen()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(4096)
            connection.sendall(UPGRADED)
            while sent := connection.recv(4096):
                connection.sendall(frame(2, b"a warning") + frame(1, sent))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with listener:
        client = docker.DockerClient(base_url=f"unix://{tmp_path / 'socket'}", version="1.44")
        yield client
        client.close()
        thread.join(5)
    assert not thread.is_alive(), "the connection is still open"


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Python would print as "Exception ignored"."""
    errors: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda about: errors.append(repr(about.exc_value)))
    return errors


def test_a_stream_that_ends_is_closed_without_a_word(engine: Any, unraisable: list[str]):
    attached = Attached(engine, "0" * 12)
    attached.send(b"go")
    assert attached.receive(5) == b"go"
    assert attached.errors == b"a warning"
    attached.end()
    assert attached.receive(5) == attached.receive(5) == b""
    with pytest.raises(OSError):
        attached.send(b"more")
    del attached
    gc.collect()
    assert unraisable == []


def test_a_stream_that_is_given_up_is_closed_without_a_word(engine: Any, unraisable: list[str]):
    """Also where an exception's traceback, or anything else that refers to itself, keeps it."""
    kept = SimpleNamespace(attached=Attached(engine, "0" * 12))
    kept.itself = kept
    kept.attached.send(b"go")
    assert kept.attached.receive(5) == b"go"
    del kept
    gc.collect()
    assert unraisable == []


def _container(pid: int, **state: Any) -> SimpleNamespace:
    attrs = {"State": {"Pid": pid, "Running": True, **state}}
    return SimpleNamespace(id="c0ffee", attrs=attrs, reload=lambda: None)


@pytest.mark.parametrize(
    ("words", "state", "says"),
    [
        (b"", {}, ("on another machine", "too busy", "process 42", "does not exist", "DOCKER_HOST")),
        (b"runc\0init\0", {}, ("too busy", "is 'runc init'")),
        (
            b"",
            {"Running": False, "ExitCode": 127, "Error": "no such file"},
            ("exited immediately with code 127", "no such file"),
        ),
    ],
)
def test_a_container_that_is_not_here_is_told_by_what_is_known_after_a_second(
    refusals: list[str], words: bytes, state: dict[str, Any], says: tuple[str, ...]
):
    def read(path: str) -> bytes:
        if words and path == "/proc/42/cmdline":
            return words
        raise FileNotFoundError(path)

    with pytest.raises(Unavailable) as told:
        container.must_be_there(SimpleNamespace(host=SimpleNamespace(read=read)), _container(42, **state))
    assert all(each in str(told.value) for each in says), told.value


def test_a_container_that_becomes_the_launcher_in_time_is_there(refusals: list[str]):
    seen = iter([b"runc\0init\0", f"{LAUNCHER}\0".encode()])
    engine = SimpleNamespace(host=SimpleNamespace(read=lambda _: next(seen)))
    container.must_be_there(engine, _container(42))
