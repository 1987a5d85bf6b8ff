"""The agent and our end of the connection to it, joined by a socket pair: no process is started."""

import contextlib
import errno
import hashlib
import io
import os
import queue
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge.engines import engine_socket as engine
from weighbridge.errors import EnvironmentLost, Unavailable, UserlandError
from weighbridge.facts.differences import about_hosts
from weighbridge.hosts import ssh
from weighbridge.hosts.agent import frames, operations, userlands
from weighbridge.hosts.agent.main import Agent, Wire, _Terminated
from weighbridge.hosts.agent.sweep import RunOwner, sweep
from weighbridge.hosts.local import LocalHost
from weighbridge.hosts.options import SshOptions
from weighbridge.hosts.remote.channel import ANSWER_S, REMOVE_S, AgentReply, Channel
from weighbridge.hosts.remote.processes import RemoteSocket
from weighbridge.hosts.remote.start import clock_offset, start_agent
from weighbridge.linux.cleanup import DataFolders, processes_of
from weighbridge.linux.process import mounted_by
from weighbridge.model.cleanup import Cleanup, Leftover, OrphanedRun, RunFolders

WHOSE = RunOwner("0123456789ab", "far", False)


@pytest.fixture
def far() -> Iterator[tuple[Channel, socket.socket]]:
    """A channel to an agent in a thread, and the agent's end of the connection."""
    near, end = socket.socketpair()
    agent = Agent(Wire(end.makefile("wb"), lambda code: None), WHOSE, lambda line: None)
    serving = threading.Thread(target=_serve, args=(agent, end), daemon=True)
    serving.start()
    channel = Channel("far", near, near.makefile("rb"), lambda: "it was cut")
    yield channel, end
    channel.close()
    for one in (end, near):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
    serving.join(5)
    for thread in threading.enumerate():  # one that watched on would end the test's own process later
        if thread.name == "silence":
            thread.join(5)
            assert not thread.is_alive()


def _serve(agent: Agent, end: socket.socket) -> None:
    with contextlib.suppress(OSError, ValueError):
        agent.serve(end.makefile("rb"))


def test_questions_are_answered(far: tuple[Channel, socket.socket], tmp_path: Path):
    channel, _ = far
    (tmp_path / "file").write_bytes(b"\0some\xff")
    assert channel.call("read", path=str(tmp_path / "file")).data == b"\0some\xff"
    assert channel.call("free_port", taken=[]).fields["value"] % 2 == 0
    assert channel.call("namespaces").fields["value"] == LocalHost(WHOSE.run).namespaces()
    offset = clock_offset(channel, 3)
    assert abs(offset.ahead_s) <= offset.within_s + 0.01 and offset.within_s < 5


@pytest.mark.parametrize("ahead_s", [-90.0, 0.0, 60.0])
def test_a_clock_that_is_wrong_over_there_is_a_difference_of_the_hosts(
    far: tuple[Channel, socket.socket], monkeypatch: pytest.MonkeyPatch, ahead_s: float
):
    monkeypatch.setitem(operations.TABLE, "time", lambda *_: ({"value": time.time() + ahead_s}, b""))
    monkeypatch.setitem(operations.TABLE, "facts", lambda *_: ({"value": {"kernel": "6.1"}}, b""))
    hello = {"root": True, "pid": 1, "cpus": [0], "server": "10.0.0.2", "interfaces": {}, "python": "3.11"}
    options = SshOptions(kind="ssh", destination="far")
    unused: Any = None
    found = about_hosts({"far": ssh.SshHost("far", options, unused, unused, hello, far[0])})
    assert "clock" in found["host far"]
    told = found.get("host differences", {})
    assert set(told) == ({"clock of far"} if ahead_s else set())


def test_a_folder_for_data_is_made_there_and_is_gone_afterwards(
    far: tuple[Channel, socket.socket], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(userlands, "folder", lambda: tmp_path / "userlands")
    hello = {"root": True, "pid": 1, "cpus": [0], "server": "10.0.0.2", "interfaces": {}, "python": "3.11"}
    unused: Any = None
    host = ssh.SshHost("far", SshOptions(kind="ssh", destination="far"), unused, unused, hello, far[0])
    with host.data_folder(unused, "0-native-server") as folder:
        assert folder.is_dir() and folder.parent.name == WHOSE.folder_name
        (folder / "file").touch()
    assert not folder.exists()
    with host.data_folder(unused, "1-native-server"):
        sweep(WHOSE, None, [DataFolders()])  # as at the agent's end
        assert not (tmp_path / "data").exists()


class Stuck(Cleanup):
    """What cannot be removed."""

    label = "what is stuck"
    host_knows_owner = True

    def find(self, folders: RunFolders) -> list[Leftover]:
        return []

    def remove(self, run: OrphanedRun) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")


def test_what_could_not_be_removed_over_there_is_told_here(
    far: tuple[Channel, socket.socket], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """The agent had dropped what its sweep gave, and its host looked clean."""
    monkeypatch.setattr(userlands, "folder", lambda: tmp_path / "userlands")
    failures = sweep(WHOSE, None, [Stuck(), DataFolders()])
    assert failures == ["what is stuck cannot be removed: [Errno 16] Device or resource busy"]
    channel, end = far
    heard: list[str] = []
    monkeypatch.setattr(
        ssh, "Connection", lambda *_: SimpleNamespace(open=lambda *_: (channel, {}), close=lambda: None)
    )
    monkeypatch.setattr(ssh, "SshHost", lambda *_, **__: None)
    run = SimpleNamespace(id=WHOSE.run, state=tmp_path, say=heard.append)
    with ssh.ssh_host("far", SshOptions(kind="ssh", destination="far"), run):  # type: ignore[arg-type]
        end.sendall(frames.pack({"failures": failures}))  # as at the agent's end
        end.shutdown(socket.SHUT_WR)
    assert heard == [f"host far: {failures[0]}"]


def test_many_threads_get_their_own_answers(far: tuple[Channel, socket.socket], tmp_path: Path):
    channel, _ = far
    wrong = []

    def ask(number: int) -> None:
        path = tmp_path / str(number)
        path.write_text(str(number))
        for _ in range(20):
            if channel.call("read", path=str(path)).data != str(number).encode():
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert wrong == []


def test_one_that_does_not_listen_holds_up_nobody_else(
    far: tuple[Channel, socket.socket], monkeypatch: pytest.MonkeyPatch
):
    listens = threading.Event()
    monkeypatch.setitem(operations.TABLE, "send", lambda *_, **__: ({"sent": listens.wait(20)}, b""))
    channel, _ = far
    said = channel.ask("send", b"x" * 2**20, process=1)
    assert channel.call("time", timeout_s=10).fields["value"] and not said.done.is_set()
    listens.set()
    assert channel.answer(said).fields["sent"]


def test_failures_over_there_are_raised_here(far: tuple[Channel, socket.socket]):
    channel, _ = far
    with pytest.raises(FileNotFoundError) as told:
        channel.call("read", path="/nonexistent")
    assert told.value.filename == "/nonexistent"
    with raises_sentence(EnvironmentLost):
        channel.call("output", process=7, start=0)


def test_an_answer_that_is_too_long_is_an_error_and_the_host_stays(
    far: tuple[Channel, socket.socket], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(frames, "LIMIT", 1000)
    (tmp_path / "log").write_bytes(b"x" * 2000)
    with pytest.raises(OSError, match="too large for the agent") as error:
        far[0].call("read", path=str(tmp_path / "log"), timeout_s=5)
    assert error.value.errno == errno.EFBIG
    far[0].check()


def test_a_signal_during_an_operation_ends_the_agent(monkeypatch: pytest.MonkeyPatch):
    """A scheduler sends it while a userland arrives; the agent then has to remove what it made."""

    def terminated(*_: object, **__: object) -> operations.Reply:
        raise _Terminated  # as the signal's handler does

    monkeypatch.setitem(operations.TABLE, "userland_piece", terminated)
    written = io.BytesIO()
    agent = Agent(Wire(written), WHOSE, lambda line: None)
    with pytest.raises(_Terminated):
        agent.serve(io.BytesIO(frames.pack({"do": "userland_piece", "id": 1})))
    assert written.getvalue() == b"", "it is no failure of the operation"


def test_the_agent_hears_while_an_operation_takes_long(monkeypatch: pytest.MonkeyPatch):
    """It ends after 45 s of silence: signs of life during an operation of a minute have to count."""
    began, goes_on = threading.Event(), threading.Event()
    monkeypatch.setitem(operations.TABLE, "time", lambda *_: (began.set(), ({"value": goes_on.wait(20)}, b""))[1])
    near, end = socket.socketpair()
    agent = Agent(Wire(end.makefile("wb"), lambda: None), WHOSE, lambda line: None)
    serving = threading.Thread(target=_serve, args=(agent, end), daemon=True)
    serving.start()
    near.sendall(frames.pack({"do": "time", "id": 1}))
    assert began.wait(10)
    agent._heard = 0.0
    near.sendall(frames.pack({"do": "live"}))
    deadline = time.monotonic() + 5
    while agent._heard == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    heard = agent._heard
    goes_on.set()
    near.close()
    serving.join(5)
    assert heard > 0 and not serving.is_alive()


def test_what_removes_has_half_an_hour(
    far: tuple[Channel, socket.socket], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """A site can have millions of files. A host that does not answer in time is lost with all of its sites."""
    monkeypatch.setattr(userlands, "folder", lambda: tmp_path / "userlands")
    monkeypatch.setitem(operations.TABLE, "group", lambda *_, **__: ({"procs": [], "scope": {}}, b""))
    monkeypatch.setitem(operations.TABLE, "group_do", lambda *_, **__: ({"value": True}, b""))
    waited, answer = list[float](), Channel.answer

    def noted(channel: Channel, reply: AgentReply, timeout_s: float = ANSWER_S) -> AgentReply:
        waited.append(timeout_s)
        return answer(channel, reply, timeout_s)

    monkeypatch.setattr(Channel, "answer", noted)
    hello = {"root": True, "pid": 1, "cpus": [0], "server": "10.0.0.2", "interfaces": {}, "python": "3.11"}
    unused: Any = None
    host = ssh.SshHost("far", SshOptions(kind="ssh", destination="far"), unused, unused, hello, far[0])
    with host.data_folder(unused, "0-native-server"):
        pass
    host.group("server").remove()
    assert waited == [ANSWER_S, REMOVE_S, ANSWER_S, REMOVE_S]


def test_a_lost_connection_raises_at_once_and_for_ever(far: tuple[Channel, socket.socket]):
    channel, end = far
    told: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    channel.on_end(1, told.put)
    end.shutdown(socket.SHUT_RDWR)
    for _ in range(3):
        with raises_sentence(EnvironmentLost):
            channel.call("time")
    assert told.get(timeout=10) is None


def test_an_agent_that_does_not_answer_is_lost():
    near, end = socket.socketpair()
    channel = Channel("far", near, near.makefile("rb"), lambda: "it was cut")
    with raises_sentence(EnvironmentLost):
        channel.call("time", timeout_s=0.05)
    with pytest.raises(EnvironmentLost):
        channel.check()
    end.close()


def test_once_we_have_closed_it_nobody_is_asked_why_it_ended():
    def why() -> str:
        raise ValueError("I/O operation on closed file")

    near, end = socket.socketpair()
    channel = Channel("far", near, near.makefile("rb"), why)
    channel.close()
    with raises_sentence(EnvironmentLost):
        channel.call("time")
    end.close()


def test_signs_of_life_are_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("weighbridge.hosts.remote.channel.ALIVE_S", 0.01)
    near, end = socket.socketpair()
    channel = Channel("far", near, near.makefile("rb"), lambda: "")
    end.settimeout(5)
    assert b"live" in end.recv(100)
    channel.close()
    end.close()


def test_what_a_run_started_is_told_by_its_environment(tmp_path: Path):
    ours, longer, host = (f"WEIGHBRIDGE_{rest}" for rest in ("RUN=0123456789ab", "RUN=0123456789abc", "HOST=far"))
    for pid, variables in {1: ["A=1"], 2: [ours, "B=2"], 3: [longer], 4: [host, ours]}.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "environ").write_text("".join(f"{one}\0" for one in variables))
    (tmp_path / "5").mkdir()
    (tmp_path / "6").mkdir()  # it has overwritten its environment, but not what is mounted
    (tmp_path / "6" / "environ").write_text("nginx: master process")
    (tmp_path / "6" / "mountinfo").write_text(f"1 1 0:1 / /tmp rw - tmpfs {mounted_by(WHOSE.run)} rw\n")
    assert sorted(processes_of(OrphanedRun(WHOSE.run, tmp_path, tmp_path), tmp_path)) == [2, 4, 6]
    assert processes_of(OrphanedRun(WHOSE.run, tmp_path, tmp_path, "far"), tmp_path) == [4]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(userlands, "folder", lambda: tmp_path / "userlands")
    return tmp_path / "userlands"


def test_a_userland_that_arrives_damaged_is_refused(home: Path):
    receiver = userlands.Receiver(hashlib.sha256(b"sent").hexdigest(), "run-far", 1)
    receiver.piece(zlib.compress(b"arrived"))
    assert [path.name for path in home.iterdir()] == [".receiving-run-far-1"]
    with raises_sentence(UserlandError):
        receiver.finish()
    assert list(home.iterdir()) == []


def test_a_userland_that_cannot_be_kept_is_an_error(home: Path, monkeypatch: pytest.MonkeyPatch):
    """Its place may be taken by a folder without a root, of an agent that was killed."""
    monkeypatch.setattr(userlands.Receiver, "_unpack", lambda self: (self._part / "root").mkdir())
    digest = hashlib.sha256(b"sent").hexdigest()
    (userlands.root_of(digest).parent / "file").mkdir(parents=True)
    receiver = userlands.Receiver(digest, "run-far", 1)
    receiver.piece(zlib.compress(b"sent"))
    with raises_sentence(UserlandError):
        receiver.finish()


def test_half_received_userlands_are_removed(home: Path):
    for whose in ("run-far", "run-near"):
        userlands.Receiver("0" * 64, whose, 1).piece(zlib.compress(b"half")[:4])
    userlands.remove_parts("run-far")
    assert [path.name for path in home.iterdir()] == [".receiving-run-near-1"]


def test_an_engine_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with raises_sentence(Unavailable):
        engine.find()


def test_a_lent_socket_carries_both_ways_until_each_ends(tmp_path: Path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "engine.sock"))
    listener.listen()
    lent = engine.lend(str(tmp_path / "engine.sock"), tmp_path / "lent", os.getuid())
    assert (Path(lent).stat().st_mode & 0o777, Path(lent).parent.stat().st_mode & 0o777) == (0o600, 0o700)
    asking = socket.socket(socket.AF_UNIX)
    asking.connect(lent)
    answering, _ = listener.accept()
    asking.sendall(b"question")
    asking.shutdown(socket.SHUT_WR)
    assert answering.makefile("rb").read() == b"question"
    answering.sendall(b"answer")
    answering.close()
    assert asking.makefile("rb").read() == b"answer"


def hello(**changed: object) -> dict[str, object]:
    return {"interfaces": {"lo": "127.0.0.1", "eth0": "10.0.0.7"}, "server": "10.0.0.7", **changed}


@pytest.mark.parametrize(
    ("given", "said", "place"),
    [
        ({}, {}, ("10.0.0.7", "eth0")),
        ({}, {"server": "::ffff:10.0.0.7"}, ("10.0.0.7", "eth0")),
        ({"address": "192.0.2.1"}, {}, ("192.0.2.1", "")),
        ({"interface": "lo"}, {}, ("127.0.0.1", "lo")),
        ({"interface": "br0", "address": "192.0.2.1"}, {}, ("192.0.2.1", "br0")),
        ({"address": "10.0.0.7"}, {"server": "fd00::7"}, ("10.0.0.7", "eth0")),
    ],
)
def test_where_a_host_is(given: dict[str, str], said: dict[str, object], place: tuple[str, str]):
    options = SshOptions(kind="ssh", destination="far", **given)
    assert ssh._place("far", options, hello(**said)) == place


@pytest.mark.parametrize(
    ("given", "said", "told"),
    [
        ({"interface": "eth9"}, {}, "no interface eth9 with an IPv4 address: use eth0, lo"),
        ({}, {"server": "fd00::7"}, "not reached over IPv4: set 'address'"),
        ({}, {"server": "UNKNOWN"}, "set 'address' to its IPv4 address"),
        ({}, {"server": ""}, "set 'address' to its IPv4 address"),
    ],
)
def test_where_a_host_cannot_be(given: dict[str, str], said: dict[str, object], told: str):
    options = SshOptions(kind="ssh", destination="far", **given)
    with pytest.raises(Unavailable, match=told):
        ssh._place("far", options, hello(**said))


def test_the_first_words_are_about_this_machine():
    said = operations.hello("192.0.2.1 1000 192.0.2.2 22")
    assert said["server"] == "192.0.2.2" and said["pid"] == os.getpid()
    assert operations.hello("")["server"] == ""
    assert operations.ipv4_addresses().get("lo", "127.0.0.1") == "127.0.0.1"


def test_a_connection_that_has_ended_gives_its_descriptors_back():
    near, end = socket.socketpair()
    stream = near.makefile("rb")
    channel = Channel("far", near, stream, lambda: "it was cut")
    end.close()
    deadline = time.monotonic() + 60
    while near.fileno() != -1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (near.fileno(), stream.closed) == (-1, True)
    with pytest.raises(EnvironmentLost):
        channel.call("time")


def test_a_host_without_an_agent_gives_its_descriptor_back():
    near, end = socket.socketpair()
    descriptor, inode = near.fileno(), os.fstat(near.fileno()).st_ino
    end.close()
    with pytest.raises(Unavailable) as refused:  # who keeps the failure keeps all that its frames have
        start_agent("far", near, 1.0, lambda said: "does not answer", lambda: "it was cut")
    with contextlib.suppress(OSError):  # it may be another one's by now
        assert os.fstat(descriptor).st_ino != inode, refused


def test_a_socket_that_cannot_be_reached_leaves_nothing_waiting(tmp_path: Path):
    near, end = socket.socketpair()
    channel = Channel("far", near, near.makefile("rb"), lambda: "it was cut")
    end.close()
    with pytest.raises(EnvironmentLost):
        RemoteSocket(channel, str(tmp_path / "nobody.sock"))
    assert channel._output_callbacks == {}
