"""Our end of a launcher's stream, against a launcher that a test plays."""

import errno
import struct
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.errors import Cancelled, EnvironmentLost, Interrupted, Unavailable
from weighbridge.launcher import frames, launch
from weighbridge.launcher.frames import Frame, FrameReader, Kind
from weighbridge.launcher.launch import Launcher
from weighbridge.linux.cancellation import Cancellation
from weighbridge.model.command import Command
from weighbridge.model.secret import SecretName
from weighbridge.secret_values import keep

from .test_frames import left

HELLO = Frame(Kind.HELLO, 0, struct.pack("<IIQ", frames.VERSION, 42, 1024))


class Played:
    """A stream whose other end is ``act``: the frames that answer each one sent. Implements ``Stream``."""

    def __init__(self, act: Callable[[Frame], Iterator[Frame]], greeting: Frame | None = HELLO) -> None:
        self.sent: list[Frame] = []
        self._act, self._reader = act, FrameReader()
        self._pieces: SimpleQueue[bytes] = SimpleQueue()
        self._pieces.put(greeting.pack() if greeting else b"")

    def send(self, data: bytes) -> None:
        for frame in self._reader.feed(data):
            self.sent.append(frame)
            for answer in self._act(frame):
                self._pieces.put(answer.pack())

    def receive(self) -> bytes:
        return self._pieces.get()

    def end(self) -> None:
        self._pieces.put(b"")


def number(value: int) -> bytes:
    return struct.pack("<i", value)


def obliging(frame: Frame) -> Iterator[Frame]:
    """A program that ends at once, with code 3."""
    if frame.kind is Kind.START:
        yield Frame(Kind.BEGAN, frame.number, number(0) + number(77))
        yield Frame(Kind.ENDED, frame.number, number(3 << 8))
    if frame.kind is Kind.STOP:
        yield Frame(Kind.RESULT, frame.number, left(3 << 8, stdout=b"out").body)
    if frame.kind is Kind.READ:
        yield Frame(Kind.DATA, frame.number, number(errno.EACCES))
    if frame.kind is Kind.WRITE:
        yield Frame(Kind.DONE, frame.number, number(errno.ENOSPC))
    if frame.kind is Kind.ALONE:
        yield Frame(Kind.DATA, frame.number, number(1))
    if frame.kind is Kind.LISTENING:
        yield Frame(Kind.DATA, frame.number, b"\x01" * (len(frame.body) // 4 - 1))


def made(
    act: Callable[[Frame], Iterator[Frame]] = obliging, greeting: Frame | None = HELLO
) -> tuple[Launcher, Played]:
    stream = Played(act, greeting)
    return Launcher(stream, "native", lambda: "its launcher was killed", {"PATH": "/bin"}), stream


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ([b"hello\n"], "hello"),
        ([b"h", b"i\n"], "hi"),
        ([b"hello\n" + HELLO.pack()], "hello"),
        ([b"y\n" * 5000], "y"),
        ([b"\x1b[31m" + b"x" * 99], "\ufffd[31m" + "x" * 55),
    ],
    ids=["line", "piece by piece", "before a greeting", "flood", "control characters"],
)
def test_what_a_wrapper_prints_before_the_greeting_is_told(printed: list[bytes], told: str):
    stream = Played(obliging, None)
    stream._pieces = SimpleQueue()
    for piece in printed:
        stream._pieces.put(piece)
    with pytest.raises(Unavailable) as raised:
        Launcher(stream, "box", lambda: "its launcher was killed", {}, starter="the wrapper")
    assert str(raised.value) == f"box: the wrapper printed '{told}' on standard output, which must stay free"


@pytest.mark.parametrize("greeting", [HELLO, Frame(Kind.REFUSED, 0, number(1) + b"/srv" * 1000)], ids=["hello", "no"])
def test_each_beginning_of_a_greeting_can_greet(greeting: Frame):
    data = greeting.pack()
    assert all(frames.can_greet(data[:size]) for size in range(len(data) + 1))


@pytest.mark.parametrize(("flags", "asks"), [(frames.ALONE, 1), (0, 2)])
def test_a_result_says_whether_a_site_is_empty_until_the_next_program_starts(flags: int, asks: int):
    def act(frame: Frame) -> Iterator[Frame]:
        if frame.kind is Kind.STOP:
            yield Frame(Kind.RESULT, frame.number, left(0, flags=flags).body)
        else:
            yield from obliging(frame)

    launcher, stream = made(act)
    launcher.run(Command(("true",)))
    assert launcher.alone()
    launcher.start(Command(("sleep",)))
    assert launcher.alone()
    assert sum(frame.kind is Kind.ALONE for frame in stream.sent) == asks


def test_a_program_runs_with_the_site_s_variables_and_its_own():
    launcher, stream = made()
    assert (launcher.pid, launcher.open_files) == (42, 1024)
    done = launcher.run(Command(("true",), env={"A": "b"}, stop_signal=10))
    assert (done.returncode, done.stdout, done.duration_s, done.timed_out) == (3, b"out", 2.0, False)
    assert done.usage is not None and done.outside_s is not None and done.outside_s >= 0
    started, stopped = stream.sent
    assert started.body.endswith(b"true\0PATH=/bin\0A=b\0") and stopped.body == struct.pack("<II", 10, 2000)


def test_a_secret_is_in_what_is_sent_alone():
    keep(SecretName("PW"), "canary")
    launcher, stream = made()
    command = Command(("serve", "--pass=${secret:PW}"), env={"TOKEN": "x${secret:PW}"})
    done = launcher.run(command)
    assert stream.sent[0].body.endswith(b"serve\0--pass=canary\0PATH=/bin\0TOKEN=xcanary\0")
    assert done.argv == command.argv and "canary" not in repr((done, command))

    refused, _ = made(lambda frame: iter([Frame(Kind.BEGAN, frame.number, number(errno.ENOENT) + number(0))]))
    assert b"canary" not in refused.run(command).stderr


def test_what_it_has_printed_so_far():
    def printing(frame: Frame) -> Iterator[Frame]:
        if frame.kind is Kind.PRINTED:
            yield Frame(Kind.DATA, frame.number, struct.pack("<iQ", 0, 3) + b"outerr")
        elif frame.kind is Kind.START:
            yield Frame(Kind.BEGAN, frame.number, number(0) + number(77))

    assert made(printing)[0].start(Command(("serve",))).printed() == (b"out", b"err")
    gone, _ = made(lambda frame: iter([Frame(Kind.DATA, frame.number, struct.pack("<iQ", errno.ESRCH, 0))]))
    assert gone.start(Command(("serve",))).printed() == (b"", b"")
    running = made()[0].start(Command(("true",)))
    running.stop()
    assert running.printed() == (b"out", b"")


def test_stopping_twice_is_harmless():
    launcher, stream = made()
    running = launcher.start(Command(("true",)))
    assert running.wait(5) and running.poll() == 3
    assert running.stop() is running.stop()
    assert [frame.kind for frame in stream.sent] == [Kind.START, Kind.STOP]


def test_a_program_that_cannot_be_started():
    def refusing(frame: Frame) -> Iterator[Frame]:
        yield Frame(Kind.BEGAN, frame.number, number(errno.ENOENT) + number(0))

    launcher, stream = made(refusing)
    running = launcher.start(Command(("nothing",)))
    assert running.wait(5) and running.poll() == 127
    done = running.stop()
    assert (done.error, done.returncode, done.last_words) == (errno.ENOENT, 127, "nothing: No such file or directory")
    assert len(stream.sent) == 1, "there is nothing to end"


def test_one_that_goes_on_is_waited_for_and_no_longer():
    launcher, _ = made(lambda frame: iter([Frame(Kind.BEGAN, frame.number, number(0) + number(7))]))
    running = launcher.start(Command(("sleep", "9")))
    assert not running.wait(0.01) and running.poll() is None


def test_one_that_is_interrupted_is_ended(monkeypatch: pytest.MonkeyPatch):
    def interrupted(self: launch.Launched, timeout_s: float) -> bool:
        raise Interrupted(2)

    monkeypatch.setattr(launch.Launched, "wait", interrupted)
    launcher, stream = made()
    with pytest.raises(Interrupted):
        launcher.run(Command(("sleep", "9")))
    assert [frame.kind for frame in stream.sent] == [Kind.START, Kind.STOP]


@pytest.mark.parametrize("kinds", [(Kind.START,), (Kind.START, Kind.STOP)])
def test_a_launcher_that_goes_is_told_at_once(kinds: tuple[Kind, ...]):
    def going(frame: Frame) -> Iterator[Frame]:
        if frame.kind in kinds and frame.kind is not kinds[-1]:
            yield Frame(Kind.BEGAN, frame.number, number(0) + number(7))
        else:
            stream.end()

    launcher, stream = made(going)
    running = launcher.start(Command(("sleep", "9")))
    if kinds[-1] is Kind.START:
        assert running.wait(5) and running.poll() == -9
    with raises_sentence(EnvironmentLost):
        running.stop()
    with pytest.raises(EnvironmentLost):
        launcher.run(Command(("true",)))
    with pytest.raises(EnvironmentLost):
        launcher.alone()


def test_what_is_killed_together_with_its_site_has_not_failed():
    def dying(frame: Frame) -> Iterator[Frame]:
        if frame.kind is Kind.START:
            yield Frame(Kind.BEGAN, frame.number, number(0) + number(7))
            yield Frame(Kind.ENDED, frame.number, number(9))
        else:
            yield Frame(Kind.RESULT, frame.number, left(9).body)
            threading.Timer(0.02, stream.end).start()

    launcher, stream = made(dying)
    running = launcher.start(Command(("client",)))
    assert running.wait(5)
    with pytest.raises(EnvironmentLost):
        running.stop()


def test_files_and_listeners():
    launcher, stream = made()
    with pytest.raises(PermissionError):
        launcher.read("/etc/shadow")
    with pytest.raises(OSError) as full:
        launcher.put("/tmp/x", b"data")
    assert (full.value.errno, full.value.filename) == (errno.ENOSPC, "/tmp/x")
    assert stream.sent[-1].body == struct.pack("<II", 0o644, 0) + b"/tmp/x\0data"
    assert launcher.listening((("tcp", 80), ("udp", 81))) and launcher.alone()


@given(st.integers(0, 5), st.integers(0, 3))
def test_files_are_written_in_pieces(whole: int, rest: int):
    written = bytearray()

    def writing(frame: Frame) -> Iterator[Frame]:
        mode, more = struct.unpack_from("<II", frame.body)
        assert mode == 0o600 and frame.body[8:].startswith(b"/run/x\0")
        if not more:
            written.clear()
        written.extend(frame.body[8 + len(b"/run/x\0") :])
        yield Frame(Kind.DONE, frame.number, number(0))

    launcher, _ = made(writing)
    written += b"of before"
    data = bytes(range(256)) * 4 * 256 * whole + b"x" * rest
    launcher.put("/run/x", data, 0o600)
    assert bytes(written) == data


def test_one_that_could_not_make_its_site():
    refusal = Frame(Kind.REFUSED, 0, number(errno.EPERM) + b"a namespace")
    with raises_sentence(Unavailable):
        made(greeting=refusal)
    with raises_sentence(Unavailable):
        made(greeting=None)
    with raises_sentence(Unavailable):
        made(greeting=Frame(Kind.HELLO, 0, struct.pack("<IIQ", 99, 1, 1)))


def test_no_answer_is_a_loss(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(launch, "ANSWER_S", 0.01)
    launcher, _ = made(lambda _: iter(()))
    with raises_sentence(EnvironmentLost):
        launcher.alone()


def test_garbage_is_a_loss():
    launcher, stream = made()
    stream._pieces.put(b"HTTP/1.1 500 Oops\r\n\r\n")
    assert launcher.closed.wait(5)
    with pytest.raises(EnvironmentLost):
        launcher.run(Command(("true",)))


def test_a_wait_for_an_answer_can_be_cancelled():
    stop = Cancellation()

    def silent(frame: Frame) -> Iterator[Frame]:
        stop.request()
        yield from ()

    launcher, _ = made(silent)
    with launcher, stop.heeded(), pytest.raises(Cancelled):
        launcher.listening((("tcp", 80),))
    stop.close()


class Narrow(Played):
    """A line that holds ``size`` bytes, and loses what is sent beyond. Its reader takes what is there in between."""

    def __init__(self, size: int) -> None:
        super().__init__(obliging)
        self.size, self.on_the_way, self.most = size, 0, 0

    def send(self, data: bytes) -> None:
        self.on_the_way += len(data)
        self.most = max(self.most, self.on_the_way)
        super().send(data)
        threading.Timer(0.0, self._take).start()

    def _take(self) -> None:
        taken, self.on_the_way = self.on_the_way, 0
        if taken:
            self._pieces.put(Frame(Kind.TAKEN, 0, number(taken)).pack())


def test_no_more_is_sent_over_a_line_than_it_holds():
    stream = Narrow(64)
    launcher = Launcher(stream, "uml", lambda: "gone", {}, window=64)
    with pytest.raises(OSError, match="No space"):  # as the launcher that is played says of every file
        launcher.put("/tmp/file", bytes(1000))
    assert 0 < stream.most <= 64
    assert sum(len(frame.body) for frame in stream.sent) > 1000


def test_who_waits_for_room_on_a_line_is_told_that_it_is_closed():
    stream = Played(obliging)
    launcher = Launcher(stream, "uml", lambda: "its guest ended", {}, window=64)
    threading.Timer(0.05, stream.end).start()
    with pytest.raises(EnvironmentLost, match="its guest ended"):
        launcher.put("/tmp/file", bytes(1000))
