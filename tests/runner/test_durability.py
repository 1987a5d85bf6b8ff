"""What is read back after a power cut, when no power can be cut, and what becomes of a killed host's context."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.durability import runner as durability
from weighbridge.features.durability.records import RECORD, read_back, read_committed, record
from weighbridge.features.durability.runner import (
    CheckedServer,
    _first_error,
    _query,
    checkable,
    checks,
    cut_and_read_back,
    userland_of_checks,
)
from weighbridge.model.choices import Promise
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import Capabilities
from weighbridge.model.power_cut import DurabilityVerdict, Ledger, PowerCut, power_cut_facts, power_cut_of
from weighbridge.model.site import Mount
from weighbridge.model.workload import Endpoint
from weighbridge.study.loader import check
from weighbridge.study.source import parse
from weighbridge.workloads.pgbench import PLUGIN

TOKEN = "0123456789abcdef"
HOLE = bytes(RECORD)
STATES = st.sampled_from(["whole", "hole", "torn", "another"])


def stored(number: int, state: str) -> bytes:
    whole = record(TOKEN, number)
    return {
        "whole": whole, "hole": HOLE, "torn": whole[: RECORD // 2] + HOLE[RECORD // 2 :],
        "another": record(TOKEN, number + 1),
    }[state]  # fmt: skip


@given(st.lists(STATES, max_size=20), st.integers(0, 5))
def test_each_acknowledged_record_is_found_whole_and_in_its_place_or_lost(states: list[str], unacknowledged: int):
    content = b"".join(stored(number, state) for number, state in enumerate(states))
    content += b"".join(record(TOKEN, len(states) + each) for each in range(unacknowledged))
    back = read_back(content, TOKEN, len(states))
    lost = [number for number, state in enumerate(states) if state != "whole"]
    assert (back.found, back.lost, back.first_lost) == (len(states) - len(lost), len(lost), min(lost, default=None))
    assert (back.torn, back.displaced) == (states.count("torn"), states.count("another"))


@given(st.integers(0, 10 * RECORD), st.integers(0, 12))
def test_of_a_short_file_what_is_behind_its_end_is_lost(size: int, acknowledged: int):
    content = b"".join(record(TOKEN, number) for number in range(10))[:size]
    back = read_back(content, TOKEN, acknowledged)
    assert back.found == min(acknowledged, size // RECORD)
    assert back.torn == (size % RECORD > 0 and acknowledged > size // RECORD)


@given(st.sets(st.integers(0, 30)), st.integers(1, 25))
def test_each_acknowledged_commit_is_among_what_the_server_prints_or_lost(there: set[int], acknowledged: int):
    back = read_committed("".join(f"{number}\n" for number in there), acknowledged)
    lost = sorted({*range(acknowledged)} - there)
    assert (back.found, back.lost) == (acknowledged - len(lost), len(lost))
    assert back.first_lost == (lost[0] if lost else None)


@given(st.text(max_size=200))
def test_whatever_a_server_prints_commits_are_found_or_lost(printed: str):
    back = read_committed(printed, 5)
    assert back.found + back.lost == 5


def made(promise: Promise, claimed: str, lost: int) -> PowerCut:
    first = 10 - lost if lost else None
    return PowerCut("bind", promise, "directory", claimed, "lab", 10, 10 - lost, lost, first, 0, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("promise", "claimed", "lost", "verdict"),
    [
        (Promise.FSYNC, "synchronous", 0, DurabilityVerdict.KEPT),
        (Promise.FSYNC, "synchronous", 1, DurabilityVerdict.OVERCLAIMED),
        (Promise.O_DSYNC, "synchronous", 10, DurabilityVerdict.OVERCLAIMED),
        (Promise.FSYNC, "asynchronous", 3, DurabilityVerdict.LOST),
        (Promise.FSYNC, "none", 10, DurabilityVerdict.LOST),
        (Promise.WRITE, "synchronous", 10, DurabilityVerdict.LOST),
        (Promise.WRITE, "none", 0, DurabilityVerdict.KEPT),
        (Promise.COMMIT, "synchronous", 1, DurabilityVerdict.OVERCLAIMED),
        (Promise.COMMIT, "asynchronous", 10, DurabilityVerdict.LOST),
    ],
)
def test_only_what_was_synced_and_claimed_to_be_kept_is_overclaimed(promise, claimed, lost, verdict):
    assert made(promise, claimed, lost).verdict is verdict


def test_a_run_keeps_a_check_of_each_database():
    checks = [replace(made(Promise.COMMIT, "synchronous", 0), workload=each) for each in ("one", "two")]
    facts = power_cut_facts(checks)
    assert list(facts) == ["bind/commit of one", "bind/commit of two"]
    assert [power_cut_of(fact) for fact in facts.values()] == checks


# -- the cut -------------------------------------------------------------------------------------------


@dataclass
class Machine:
    """A host that is its own power: what a guest host is to a check."""

    disk: bytes | None = b""
    name: str = "lab"
    data: str = "/data"
    layers: tuple = ()
    is_on: bool = True
    elsewhere: bool = False
    """Whether its data are on another disk."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(power=self)  # type: ignore[arg-type]

    def run(self, command: Command) -> Completed:
        if not self.is_on:
            raise EnvironmentLost("host lab is lost")
        said, code = b"", 0
        if command.argv[3] == "find" and not self.elsewhere:
            said = f"/data/srv/{command.argv[-1]}\n".encode()
        if command.argv[3] == "pack":
            code = 3 if self.disk is None else 0
            said = gzip.compress(self.disk or b"")
        return Completed(command.argv, code, said, b"", 0.1)

    def cut(self) -> None:
        self.is_on = False

    @contextmanager
    def restored(self) -> Iterator["Machine"]:
        assert not self.is_on
        yield Machine(self.disk)


@dataclass
class Writer:
    """A site whose program has acknowledged so many records, and which writes them to its host's disk."""

    host: Machine
    acknowledged: int = 3
    ended: bool = False
    layers: tuple = ()
    kept: range | None = None
    file_system: str = "ext4"
    started: list[tuple[str, ...]] = field(default_factory=list)

    def thaw(self) -> None:
        """It was not frozen."""

    def start(self, command: Command) -> "Writer":
        self.started.append(command.argv)
        if self.host.disk is not None:
            numbers = range(self.acknowledged) if self.kept is None else self.kept
            self.host.disk = b"".join(record(command.argv[3], number) for number in numbers)
        return self

    def poll(self) -> int | None:
        return 1 if self.ended else None

    def stop(self) -> Completed:
        return Completed((), 1, b"", b"weighbridge-powercut: /srv/x: No space left on device\n", 0.1)

    def read(self, path: str) -> bytes:
        if path == "/proc/self/mountinfo":
            return f"30 20 8:1 /x /srv rw - {self.file_system} /dev/vdb rw\n".encode()
        assert path == self.started[0][4] and self.host.is_on
        return b"+" * self.acknowledged


def told(site: Writer, mounts: list[Mount] | None = None):
    host, acknowledged, back = cut_and_read_back(site, mounts or [], Promise.FSYNC, 0, print)  # type: ignore[arg-type]
    return host.name, acknowledged, back.found, back.first_lost


def test_acknowledged_records_are_looked_for_after_the_cut():
    assert told(Writer(Machine())) == ("lab", 3, 3, None)
    assert told(Writer(Machine(), kept=range(2))) == ("lab", 3, 2, 2)
    assert told(Writer(Machine(disk=None))) == ("lab", 3, 0, 0)  # the file is not there any more


def test_the_power_that_is_cut_is_that_of_the_storage_s_server():
    client, server = Machine(name="client", elsewhere=True), Machine(name="server")
    site = Writer(client)
    server.disk = b"".join(record(TOKEN, number) for number in range(3))
    name, acknowledged, found, _ = told(site, [Mount("folder", "/there", servers=(server,))])  # type: ignore[arg-type]
    assert (name, acknowledged, found) == ("server", 3, 0)  # its disk has the records of another check
    assert client.is_on and not server.is_on


@pytest.mark.parametrize(
    "site",
    [Writer(Machine(elsewhere=True)), Writer(Machine(), layers=("QEMU",)), Writer(Machine(), ended=True)],
    ids=["another disk", "a guest inside", "no space"],
)
def test_what_cannot_be_looked_for_is_refused_while_the_power_is_on(site: Writer):
    with raises_sentence(Unavailable):
        told(site)
    assert site.host.is_on


def test_a_host_whose_power_cannot_be_cut_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Machine, "capabilities", Capabilities())
    with raises_sentence(Unavailable):
        told(Writer(Machine()))


# -- the study -----------------------------------------------------------------------------------------

STUDY = """study: power
question: What is kept?
hosts: {lab: {kind: guest%s}}
baseline: native
environments: {native: {kind: native, storage: directory}}
workloads: {cpu: {kind: sysbench-cpu}}
repetitions: {blocks: 3}
"""


@pytest.fixture
def everything_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durability, "hosts_readiness", lambda _: {})
    monkeypatch.setattr(durability, "require_userland", lambda *_, **__: None)


@pytest.mark.parametrize(
    ("written", "checked"),
    [("", "volatile"), (", write_cache: kept", "volatile"), (", write_cache: unsafe", "unsafe")],
)
def test_a_disk_whose_cache_would_be_kept_loses_it_in_a_check(everything_is_there, written: str, checked: str):
    study = check(parse(STUDY % written, "power.yaml"))
    assert checkable(study).file.hosts["lab"].write_cache == checked  # type: ignore[attr-defined]


def test_commits_are_those_of_each_workload_with_a_server_that_has_some(everything_is_there):
    workloads = """
  cpu: {kind: sysbench-cpu}
  one: {kind: pgbench, clients: [7, 3]}
  two: {kind: mysql-oltp}
repetitions:"""
    text = STUDY.replace("workloads: {cpu: {kind: sysbench-cpu}}\nrepetitions:", f"workloads:{workloads}")
    study = check(parse(text % "", "power.yaml"))
    found = list(checks(study, study.arms[0], [Promise.FSYNC, Promise.COMMIT]))
    assert [(promise, cell and cell.workload) for promise, cell in found] == [
        (Promise.FSYNC, None), (Promise.COMMIT, "one"), (Promise.COMMIT, "two"),
    ]  # fmt: skip
    one = found[1][1]
    assert one is not None and one.options.model_dump()["clients"] == 7
    packages = {*userland_of_checks(study, [Promise.COMMIT]).packages}
    assert {"postgresql-15", "mariadb-server-core"} <= packages
    assert not userland_of_checks(study, [Promise.FSYNC]).packages


@pytest.mark.parametrize("kind", ["local", "testbed"])
def test_a_study_without_a_host_whose_power_can_be_cut_is_refused(everything_is_there, kind: str):
    study = check(parse(STUDY.replace("guest%s", kind), "power.yaml"))
    with raises_sentence(Unavailable):
        checkable(study)


def test_what_cannot_be_closed_of_a_host_that_was_killed_is_no_failure(
    everything_is_there, monkeypatch: pytest.MonkeyPatch
):
    found = made(Promise.FSYNC, "synchronous", 0)

    def gone() -> None:
        raise EnvironmentLost("host lab is lost")

    def checked(study, arm, promise, cell, seconds, run, userland) -> PowerCut:
        run.stack.callback(gone)
        return found

    monkeypatch.setattr(durability, "_checked", checked)
    monkeypatch.setattr(durability, "ensure", lambda *_, **__: None)
    monkeypatch.setattr(durability.clean.registry, "cleanups", lambda: ())
    monkeypatch.setattr(durability.run_lock, "base", lambda: power_cut_folder)
    power_cut_folder = durability.cache_folder() / "runs"
    study = check(parse(STUDY % "", "power.yaml"))
    told: list[PowerCut] = []
    assert durability.check_durability(study, [Promise.FSYNC], 1, print, told.append).checked == [found] == told

    def refused(*_) -> PowerCut:
        raise Unavailable("there is no room")

    monkeypatch.setattr(durability, "_checked", refused)
    with raises_sentence(Unavailable):
        durability.check_durability(study, [Promise.FSYNC], 1, print, told.append)


# -- a server whose commits are counted ------------------------------------------------------------


AT = Endpoint("127.0.0.1", "127.0.0.1", 5432)
SERVER = CheckedServer(PLUGIN, PLUGIN.options(), AT, Ledger(Command(("write",)), Command(("read",))))


@dataclass
class Recovering:
    """A site whose server refuses so many times; ``dies`` after the first."""

    refusals: int
    dies: bool = False
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, command: Command) -> Completed:
        self.asked.append(command.argv)
        if len(self.asked) <= self.refusals:
            return Completed(command.argv, 2, b"", b"FATAL:  the database system is starting up\n", 0.0)
        return Completed(command.argv, 0, b"0\n1\n", b"", 0.0)

    def poll(self) -> int | None:
        return 1 if self.dies else None

    def stop(self) -> Completed:
        said = b"FATAL:  the database system is starting up\nPANIC:  could not locate a checkpoint\nHINT:  none\n"
        return Completed(("postgres",), 1, b"", said, 0.0)


def ask(site: Recovering) -> tuple[str, str]:
    programs = SERVER.programs(site)  # type: ignore[arg-type]
    programs.server = site  # type: ignore[assignment]
    return _query(site, SERVER, programs)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(durability, "_AGAIN_S", 0.0)


def test_one_that_refuses_for_good_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(durability, "_RECOVER_S", 0.01)
    assert ask(Recovering(10**6)) == ("", "FATAL:  the database system is starting up")


def test_one_that_ends_is_told_with_its_error():
    site = Recovering(10**6, dies=True)
    assert ask(site) == ("", "PANIC:  could not locate a checkpoint")
    assert len(site.asked) == 1


@pytest.mark.parametrize(
    ("said", "told"), [(b"[ERROR] InnoDB: page\n[ERROR] Aborting\n", "ERROR] InnoDB: page"), (b"", "")]
)
def test_the_first_error_is_the_reason(said: bytes, told: str):
    programs = SERVER.programs(Recovering(0))  # type: ignore[arg-type]
    programs.completed["server"] = Completed(("mariadbd",), 1, b"", said, 0.0)
    assert _first_error(programs) == told
