"""What is asked of the two ends of a probe, what is read from them, and what is no result."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.errors import EnvironmentLost
from weighbridge.facts.path import LARGEST, SMALLEST, DatagramPath, parse, probe, probe_command
from weighbridge.linux import probing
from weighbridge.model.command import Command, Completed
from weighbridge.model.study import Role
from weighbridge.model.workload import Endpoint

AT: dict[Role, Endpoint] = {
    "server": Endpoint(listen="0.0.0.0", address="192.0.2.7", port=15201),
    "client": Endpoint(listen="0.0.0.0", address="192.0.2.7", port=25201),
}
FOUND = b"payload=1472 from=192.0.2.1\n"


def ended(stdout: bytes = b"", returncode: int = 0) -> Completed:
    return Completed(("probe",), returncode, stdout, b"", 0.1)


@dataclass
class Receiver:
    """The answering end."""

    code: int | None = None
    stopped: int = 0

    def poll(self) -> int | None:
        return self.code

    def wait(self, timeout_s: float) -> bool:
        return self.code is not None

    def stop(self, *, timed_out: bool = False) -> Completed:
        self.stopped += 1
        return ended()


@dataclass
class Place:
    """As much of a site as a probe needs."""

    answer: Any = None
    listens_after: int = 0
    receiver: Receiver = field(default_factory=Receiver)
    commands: list[Command] = field(default_factory=list)

    def start(self, command: Command) -> Receiver:
        self.commands.append(command)
        return self.receiver

    def run(self, command: Command) -> Completed:
        self.commands.append(command)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def listening(self, ports: Any, within_s: float = 0.0) -> bool:
        assert ports == (("udp", AT["server"].port),)
        self.listens_after -= 1
        return self.listens_after < 0


def test_both_ends_are_the_launcher():
    answer, ask = probe_command("answer", "0.0.0.0", 15201), probe_command("ask", "192.0.2.7", 15201)
    assert answer.argv == ("/proc/self/exe", "probe-datagrams", "answer", "0.0.0.0", "15201", "20")
    assert ask.argv == ("/proc/self/exe", "probe-datagrams", "ask", "192.0.2.7", "15201", "20")
    assert ask.deadline_s > 20, "it ends by itself, before it is killed"


def test_what_was_found_and_that_the_answering_end_is_stopped():
    server, client = Place(listens_after=3), Place(answer=ended(FOUND))
    assert probe(server, client, AT) == DatagramPath(1472, "192.0.2.1")
    assert [command.argv[2:5] for command in server.commands] == [("answer", "0.0.0.0", "15201")]
    assert [command.argv[2:5] for command in client.commands] == [("ask", "192.0.2.7", "25201")]
    assert server.receiver.stopped == 1


@pytest.mark.parametrize("answer", [ended(), ended(b"no answer\n"), ended(FOUND, -14), ended(FOUND, 255)])
def test_an_asking_end_that_found_nothing_is_no_result(answer: Completed):
    server = Place()
    assert probe(server, Place(answer=answer), AT) is None
    assert server.receiver.stopped == 1


def test_a_port_that_is_taken_is_no_result():
    server, client = Place(listens_after=1, receiver=Receiver(code=98)), Place()
    assert probe(server, client, AT) is None
    assert not client.commands
    assert server.receiver.stopped == 1


def test_an_answering_end_that_never_listens_is_no_result(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(probing, "READY_S", 0.01)
    server = Place(listens_after=10**9)
    assert probe(server, Place(), AT) is None
    assert server.receiver.stopped == 1


def test_the_answering_end_is_stopped_when_an_environment_goes():
    server = Place()
    with pytest.raises(EnvironmentLost):
        probe(server, Place(answer=EnvironmentLost("gone")), AT)
    assert server.receiver.stopped == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("payload=1422 from=10.0.0.2\n", DatagramPath(1422, "10.0.0.2")),
        ("payload=65507 from=127.0.0.1\n", DatagramPath(65507, "127.0.0.1")),
        ("payload=16 from=10.0.0.2\n", DatagramPath(16, "10.0.0.2")),
        ("payload=15 from=10.0.0.2\n", None),
        ("payload=65508 from=10.0.0.2\n", None),
        ("payload=1472 from=10.0.0.2", None),
        ("payload=1472\n", None),
        ("payload= from=\n", None),
        ("payload=-1 from=10.0.0.2\n", None),
        ("payload=nan from=10.0.0.2\n", None),
        ("payload=1472 from=10.0.0\n", None),
        ("payload=1472 from=10.0.0.2\npayload=1 from=10.0.0.2\n", None),
        ("payload=\u0661\u0664\u0667\u0662 from=10.0.0.2\n", None),
        ("", None),
        ("\n", None),
        ("mtu", None),
    ],
)
def test_what_the_asking_end_printed(text: str, found: DatagramPath | None):
    assert parse(text) == found


@given(st.integers(SMALLEST, LARGEST))
def test_every_result_is_read_and_none_that_is_cut_off(payload: int):
    text = f"payload={payload} from=10.0.0.2\n"
    assert parse(text) == DatagramPath(payload, "10.0.0.2")
    assert not any(parse(text[:length]) for length in range(len(text)))


@given(st.text())
def test_other_text_is_no_result(text: str):
    assert parse(text) is None
