"""The stream to a pod's launcher: whatever its connections do, every byte comes once, in order."""

import contextlib
import socket
import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes import session as sessions
from weighbridge.features.kubernetes.session import ConnectionLoss, SessionStream, StreamState
from weighbridge.linux.process import SocketStream
from weighbridge.model.command import Completed


class Ends:
    """Two ends of a session, and what is on its way between them."""

    def __init__(self) -> None:
        self.ends = (StreamState(), StreamState())
        self.wires = (bytearray(), bytearray())
        self.got = (bytearray(), bytearray())
        self.connect()

    def connect(self) -> None:
        for end, wire in zip(self.ends, self.wires, strict=True):
            wire.clear()
            end.resume()
        self.ends[1].beat()  # who listens speaks first

    def carry(self, at_most: int) -> int:
        """Carry so many bytes, one way and then the other; how many these were."""
        carried = 0
        for number, end in enumerate(self.ends):
            while record := end.due():
                self.wires[number].extend(record)
            piece = bytes(self.wires[number][: at_most - carried])
            del self.wires[number][: len(piece)]
            carried += len(piece)
            self.got[1 - number].extend(self.ends[1 - number].feed(piece))
        return carried

    def settle(self) -> None:
        while self.carry(2**22):
            pass


@given(
    st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=40)), max_size=6),
    st.lists(st.integers(0, 150), max_size=12),
)
def test_a_cut_at_any_byte_loses_and_doubles_none(sent: list[tuple[bytes, bytes]], cuts: list[int]):
    both = Ends()
    for pair in sent:
        for end, data in zip(both.ends, pair, strict=True):
            end.send(data)
        if cuts:
            both.carry(cuts.pop())
            both.connect()
    for cut in cuts:
        both.carry(cut)
        both.connect()
    both.settle()
    for number in (0, 1):
        assert both.got[1 - number] == b"".join(pair[number] for pair in sent)
        assert not both.ends[number].damaged


def test_a_cut_at_every_byte_of_a_conversation():
    whole = 0
    for cut in range(400):
        both = Ends()
        both.settle()
        both.ends[0].send(b"what is asked")
        both.ends[1].send(b"what is told")
        whole += both.carry(cut) == cut
        both.connect()
        both.ends[0].send(b"!")
        both.settle()
        assert both.got == (b"what is told", b"what is asked!")
    assert whole > 60, "it was cut in the middle of records"


@given(st.integers(0, 24 + 5 - 1), st.integers(1, 255))
def test_a_changed_byte_is_seen_and_sent_again(at: int, change: int):
    both = Ends()
    both.settle()
    both.ends[0].send(b"bytes")
    record = bytearray(both.ends[0].due())
    record[at] ^= change
    both.got[1].extend(both.ends[1].feed(bytes(record) + bytes(2**16 + 24)))
    assert both.ends[1].damaged and not both.got[1]
    both.connect()
    both.settle()
    assert both.got[1] == b"bytes"


def test_what_is_not_acknowledged_is_limited_and_goes_on():
    both, data = Ends(), bytes(range(256)) * 2**14
    both.settle()
    both.ends[0].send(data)
    on_its_way = 0
    while record := both.ends[0].due():
        on_its_way += len(record)
        both.wires[0].extend(record)
    assert 2**20 <= on_its_way < 2**20 + 2**10
    both.settle()
    assert both.got[1] == data


def test_the_end_comes_behind_what_was_sent():
    both = Ends()
    both.settle()
    both.ends[1].send(b"last")
    both.carry(2**20)
    both.ends[1].end()
    both.settle()
    assert both.got[0] == b"last" and both.ends[0].ended and not both.ends[1].ended


class Carrier:
    """Stands for kubectl."""

    def __init__(self, returncode: int = 0) -> None:
        self.returncode, self.stopped = returncode, False

    def wait(self, timeout_s: float) -> bool:
        return True

    def poll(self) -> int | None:
        return self.returncode

    def stop(self) -> Completed:
        self.stopped = True
        return Completed(("kubectl",), self.returncode, b"", b"", 0.0)


class Far:
    """The pod's end: it echoes what comes, over whatever connection is there."""

    def __init__(self, cut_after: list[int]) -> None:
        self.cut_after, self.session = cut_after, StreamState()
        self.carriers: list[Carrier] = []

    def connect(self) -> tuple[Carrier, SocketStream]:
        ours, theirs = socket.socketpair()
        threading.Thread(target=self.echo, args=(theirs,), daemon=True).start()
        self.carriers.append(Carrier())
        return self.carriers[-1], SocketStream(ours)

    def echo(self, connection: socket.socket) -> None:
        left = self.cut_after.pop(0) if self.cut_after else 2**40
        self.session.resume()
        self.session.beat()
        with connection, contextlib.suppress(BrokenPipeError):  # the near end may have ended first
            while left > 0:
                while record := self.session.due():
                    connection.sendall(record)
                if not (piece := connection.recv(min(left, 4096))):
                    return
                left -= len(piece)
                self.session.send(self.session.feed(piece))
                if self.session.ended:
                    self.session.end()


def opened(far: Far, judge: Callable[..., ConnectionLoss], said: list[str]) -> SessionStream:
    return SessionStream(far.connect, judge, said.append)  # type: ignore[arg-type]


def received(stream: SessionStream, size: int) -> bytes:
    got = b""
    while len(got) < size and (piece := stream.receive(10)):
        got += piece
    return got


def alive(_: object) -> ConnectionLoss:
    return ConnectionLoss("the stream was cut", 45)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_PAUSE_S", 0.01)


def test_a_stream_goes_on_over_new_connections():
    said, far = list[str](), Far([100, 1000, 50_000])
    stream = opened(far, alive, said)
    data = bytes(range(256)) * 500
    stream.send(data)
    assert received(stream, len(data)) == data
    assert len(far.carriers) == 4 and stream.disconnected_s > 0
    assert said[0] == "the stream was cut; reconnecting" and said[1].startswith("reconnected after")
    stream.end()
    assert stream.receive(10) == b"" and stream.why == "it was ended"
    stream.close()
    assert far.carriers[-1].stopped
    with pytest.raises(BrokenPipeError):
        stream.send(b"more")


def test_a_lost_pod_is_told_at_once_and_in_its_own_words():
    far = Far([100])
    stream = opened(far, lambda _: ConnectionLoss("OOMKilled"), [])
    stream.send(bytes(1000))
    while stream.receive(10):
        pass
    assert stream.why == "OOMKilled" and len(far.carriers) == 1


def test_why_a_pod_has_ended_may_be_known_later():
    far, asked = Far([]), list[object]()

    def judge(carrier: object) -> ConnectionLoss:
        asked.append(carrier)
        return ConnectionLoss("Evicted" if len(asked) > 2 else "", 45 * (len(asked) <= 2))

    stream = opened(far, judge, [])
    stream.send(b"x")
    assert received(stream, 1) == b"x"
    stream._session.end()
    stream._flush()  # the far end answers with its own
    assert stream.receive(10) == b"" and stream.why == "Evicted" and len(asked) == 3


def test_a_first_connection_that_fails_is_not_tried_again():
    far = Far([0])
    stream = opened(far, alive, [])
    assert stream.receive(10) == b"" and stream.why == "the stream was cut"


def test_a_first_connection_is_tried_again_where_the_api_server_is_away():
    said, far = list[str](), Far([0, 0])
    stream = opened(far, lambda _: ConnectionLoss("connection refused", 45, of_server=True), said)
    stream.send(b"x")
    assert received(stream, 1) == b"x" and len(far.carriers) == 3
    assert said[0] == "connection refused; reconnecting"


def test_a_pod_that_does_not_come_back_is_given_up():
    far = Far([100, *[0] * 10**4])
    stream = opened(far, lambda _: ConnectionLoss("the stream was cut", 0.1), [])
    stream.send(bytes(1000))
    while stream.receive(10):
        pass
    assert stream.why.startswith("the stream was cut; it did not return")


def test_kubectl_may_have_gone():
    far = Far([100])
    stream = opened(far, alive, [])

    def refuse() -> tuple[Carrier, SocketStream]:
        raise Unavailable("the program 'kubectl' is not installed")

    stream._connect = refuse  # type: ignore[assignment]
    stream.send(bytes(1000))
    while stream.receive(10):
        pass
    assert stream.why == "the program 'kubectl' is not installed"


def test_silence_is_a_broken_connection(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sessions, "SILENCE_S", 0.05)
    said, far = list[str](), Far([])
    stream = opened(far, alive, said)
    stream.send(b"x")
    assert received(stream, 1) == b"x"
    with pytest.raises(TimeoutError):
        stream.receive(0.2)
    assert len(far.carriers) >= 2 and len(said) >= 2
    stream.close()


def test_both_say_that_they_live(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sessions, "_BEAT_S", 0.01)
    far = Far([])
    stream = opened(far, alive, [])
    stream.send(b"x")
    assert received(stream, 1) == b"x"
    spoke = stream._spoke
    with pytest.raises(TimeoutError):
        stream.receive(0.1)
    assert stream._spoke > spoke
    stream.close()
