"""The conversation with the sampler: a made-up host answers as the real one does, or breaks in every way."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.meters import kernel
from weighbridge.meters.kernel import KernelMeter
from weighbridge.meters.meter import MeterFailed
from weighbridge.meters.opened import meters
from weighbridge.meters.sampler import SamplingSession
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import Capabilities
from weighbridge.model.study import Meters


class Sampling:
    """A process that answers at once, with the sampler's own session. Implements ``HostProcess`` and ``Stream``."""

    pid = 1

    def __init__(self) -> None:
        self.said = b""
        self.orders: list[dict] = []
        self.session: SamplingSession | None = None
        self.code: int | None = None
        self.stopped = 0
        self.answer: Callable[[dict], bytes] = self.usual

    def usual(self, order: dict) -> bytes:
        if order["do"] == "begin":
            self.session = SamplingSession(order)
            return b'{"begun": true}\n'
        assert self.session is not None
        return json.dumps(self.session.end()).encode() + b"\n"

    def send(self, data: bytes) -> None:
        if self.code is not None:
            raise BrokenPipeError(32, "Broken pipe")
        self.orders.append(json.loads(data))
        self.said += self.answer(self.orders[-1])

    def receive(self, timeout_s: float | None = None) -> bytes:
        said, self.said = self.said, b""
        if not said and self.code is None:
            time.sleep(timeout_s or 0)
            raise TimeoutError
        return said

    def end(self) -> None:
        pass

    def poll(self) -> int | None:
        return self.code

    def stop(self) -> Completed:
        self.stopped += 1
        self.code = -15 if self.code is None else self.code
        return Completed(("python3",), self.code, b"", b"Killed", 0.0)


class SomeHost:
    """Implements what of ``Host`` a meter uses."""

    name, capabilities = "a", Capabilities()

    def __init__(self, python: str = sys.executable, refuses: Exception | None = None) -> None:
        self.python, self.refuses = python, refuses
        self.started: list[tuple[Command, Sampling]] = []

    def talk(self, command: Command) -> tuple[Sampling, Sampling]:
        if self.refuses is not None:
            raise self.refuses
        self.started.append((command, Sampling()))
        return self.started[-1][1], self.started[-1][1]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "ANSWER_S", 0.05)


def test_a_trial(tmp_path: Path):
    (tmp_path / "usage").write_text("1000000000\n")
    host = SomeHost()
    meter = KernelMeter(host, 10.0)
    since = time.monotonic() - 5
    for _ in range(2):
        meter.begin({"server": {"cpuacct.usage": str(tmp_path / "usage")}})
        time.sleep(0.06)
        taken = meter.end(since)
        (cpu,) = [each for each in taken.series if each.place == "server"]
        assert {*cpu.values} == {0.0}
        assert all(5 < at_s < time.monotonic() - since for at_s in cpu.at_s)
        assert {each.place for each in taken.series} == {"server", "host a"}
        assert taken.own_cpu_s is not None
    meter.close()
    ((command, process),) = host.started
    assert command.argv[1:4] == ("-I", "-S", "-c")
    assert process.stopped == 1
    assert [order["do"] for order in process.orders] == ["begin", "end"] * 2
    assert process.orders[0]["hz"] == 10.0


def test_a_host_that_cannot_start_it():
    for refuses in (Unavailable("the program 'python3' is not installed"), EnvironmentLost("gone"), OSError("no")):
        meter = KernelMeter(SomeHost(refuses=refuses), 1.0)
        with pytest.raises(MeterFailed, match=str(refuses)):
            meter.begin({})
        with raises_sentence(MeterFailed):
            meter.end(0.0)
        meter.close()


@pytest.mark.parametrize("answer", [b"", b'{"beg'])
def test_one_that_does_not_answer(answer: bytes):
    host = SomeHost()
    meter = KernelMeter(host, 1.0)
    host.started[0][1].answer = lambda _: answer
    with raises_sentence(MeterFailed):
        meter.begin({})
    meter.begin({})
    assert len(host.started) == 2, "the next trial has a new one, that gives no answer of the last one's"
    meter.close()
    assert [process.stopped for _, process in host.started] == [1, 1]


def test_one_that_says_something_else():
    host = SomeHost()
    meter = KernelMeter(host, 1.0)
    host.started[0][1].answer = lambda _: b"Traceback\n"
    with pytest.raises(MeterFailed, match="Traceback"):
        meter.begin({})


def test_one_that_was_killed_in_a_trial():
    host = SomeHost()
    meter = KernelMeter(host, 1.0)
    meter.begin({})
    host.started[0][1].code = -9
    with raises_sentence(MeterFailed):
        meter.end(0.0)
    meter.begin({})
    assert meter.end(0.0).series


def test_one_that_ends_instead_of_answering():
    host = SomeHost()
    meter = KernelMeter(host, 1.0)
    process = host.started[0][1]

    def die(_: dict) -> bytes:
        process.code = 1
        return b""

    process.answer = die
    with raises_sentence(MeterFailed):
        meter.begin({})


def test_the_meters_of_a_session():
    hosts = [SomeHost(), SomeHost()]
    hosts[1].name = "b"
    with meters(Meters(), 5.0) as made:
        assert made.of(hosts).keys() == {"a", "b"}
        assert made.of(hosts[:1]).keys() == {"a"}
        assert made.of(hosts)["b"] is made.of(hosts)["b"]
    assert [[process.stopped for _, process in host.started] for host in hosts] == [[1], [1]]
    with meters(Meters(source="off"), 1.0) as made:
        assert made.of([SomeHost(refuses=Unavailable("no"))]) == {}
    with meters(Meters(), 1.0) as made, pytest.raises(MeterFailed):
        made.of([SomeHost(refuses=Unavailable("no"))])["a"].begin({})
