"""Redis under load: its log is on a disk, its limits are results, and what kills it or its generator is a failure."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.analysis.conditions import by_label, durabilities
from weighbridge.errors import TrialsFailed
from weighbridge.model.command import Command
from weighbridge.model.trial import TrialRecord
from weighbridge.model.userland import Userland
from weighbridge.report.text.conditions import MEANING, durability_words
from weighbridge.runner import rounds
from weighbridge.runner.run import run_study
from weighbridge.store.run import RunStore
from weighbridge.study.loader import load
from weighbridge.userland.build import cache_folder

from .machine import Machine, processes
from .test_faults import Quiet, Waits, meanwhile
from .weighing import DOCKER, NATIVE, run_id, trials, write_study

LOGS = "logs: {kind: redis-benchmark, tests: set, requests: 1000, clients: 10, appendonly: [no, always, everysec]}"
KILLED = "killed: {kind: redis-benchmark, tests: set, requests: 60000, clients: 5}"
ABSENT = "absent: {kind: waits, role: [client, server]}"


class Absent(Waits):
    """A server or a generator that is in no userland."""

    class options(Waits.options):
        role: str = "client"

    def command(self, role, options, at):
        if role != options.role:
            return super().command(role, options, at)
        return Command(("no-such-program",), listens=(("tcp", at.port),) if role == "server" else ())


class Looks(Quiet):
    """Keeps every trial, and looks at its log at its end, while its site is still open."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[TrialRecord] = []
        self.logs: dict[tuple[str, str], list[int]] = {}
        self.told = ""
        self.labels: dict[str, str] = {}

    def of(self, workload: str) -> list[TrialRecord]:
        return [record for record in self.records if record.trial.workload == workload]

    def trial_finished(self, record: TrialRecord) -> None:
        self.records.append(record)
        if record.trial.workload != "logs":
            return
        where = (record.trial.environment, dict(record.trial.level)["appendonly"])
        inside = "data-*native*" if where[0] == "native" else "engine/data/volumes/*/_data"
        found = list((cache_folder() / "engines").glob(f"*/{inside}/redis/appendonlydir/*.incr.aof"))
        self.logs[where] = [log.read_bytes().count(b"\nSET\r\n") for log in found]


def kill_each_server_once(run: Path) -> Callable[[], bool]:
    """Of the clients that measure; a Redis server overwrites its variables, but shows its port."""
    killed: set[bytes] = set()

    def act() -> bool:
        with contextlib.suppress(OSError, ValueError):
            for pid, owner, name in processes():
                argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if name == "redis-benchmark" and owner == run_id(run) and b"60000" in argv:
                    kill(argv[argv.index(b"-p") + 1])
        return len(killed) == 2

    def kill(port: bytes) -> None:
        for pid, _, name in processes():
            shown = Path(f"/proc/{pid}/cmdline").read_bytes().strip(b"\0")
            if name == "redis-server" and shown.endswith(b":" + port) and port not in killed:
                killed.add(port)
                os.kill(pid, signal.SIGKILL)

    return act


@pytest.fixture(scope="module")
def both(userland: Userland, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looks]:
    """What was seen of one run, natively and in a container: starting an engine takes longer than its trials."""
    watched, looks, folder = Machine.as_it_is(), Looks(), tmp_path_factory.mktemp("both")
    known = {**registry.workloads(), "waits": Absent()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "workloads", lambda: known)
        patch.setattr(rounds, "REPEATS", 0)
        text = write_study(folder, environments=(NATIVE, DOCKER), workloads=(LOGS, KILLED, ABSENT), blocks=1)
        with meanwhile(kill_each_server_once(folder / "run")), pytest.raises(TrialsFailed) as told:
            run_study(load(str(text)), folder / "run", looks, lambda _: None)
    looks.told = str(told.value)
    with RunStore(folder / "run") as store:
        kept = by_label(durabilities(store.facts()))
        looks.labels = {label: durability_words(kinds) for label, kinds in kept.items()}
    yield looks
    watched.must_be_unchanged()


def test_a_log_is_on_the_disk_and_begins_afresh(both: Looks):
    assert [record.outcome for record in both.of("logs")] == ["ok"] * 6
    logged = {where: logs for where, logs in both.logs.items() if where[1] != "no"}
    assert logged == {(name, policy): [1100] for name in ("native", "bridge") for policy in ("always", "everysec")}, (
        "the warm-up's writes and those of one trial"
    )


def test_what_it_keeps_is_labelled(both: Looks):
    kinds = {"always": "synchronous", "everysec": "asynchronous", "no": "none"}
    wanted = {f"logs (appendonly={policy})": kind for policy, kind in kinds.items()} | {"killed": "none"}
    assert {label: kept for label, kept in both.labels.items() if MEANING[wanted[label]] not in kept} == {}
    assert both.labels.keys() == wanted.keys()


def test_a_server_that_somebody_kills_has_not_broken(both: Looks):
    """Also in a container, whose client outside ends before the server is missed."""
    assert {record.trial.environment: record.outcome for record in both.of("killed")} == {
        "native": "server died", "bridge": "server died"}  # fmt: skip
    assert all("code -9" in record.message for record in both.of("killed"))


def test_a_program_that_is_not_in_the_userland(both: Looks):
    assert {(record.trial.environment, record.outcome.value) for record in both.of("absent")} == {
        (name, outcome) for name in ("native", "bridge") for outcome in ("program failed", "server not ready")
    }
    assert {record.message for record in both.of("absent")} == {
        "the program no-such-program is not in the root filesystem: add it, or check its name"
    }
    assert both.told.startswith("no round of killed, absent (role=client), absent (role=server) could be completed")


def test_limits_of_the_server_are_results(machine: Machine, tmp_path: Path):
    full = "full: {kind: redis-benchmark, tests: set, requests: 60000, keyspace: 1000000, maxmemory: 3MiB}"
    many = "many: {kind: redis-benchmark, tests: set, requests: 2000, clients: [10, 100], maxclients: 60}"
    study = load(str(write_study(tmp_path, workloads=(full, many), blocks=1)))
    run_study(study, tmp_path / "run", Quiet(), lambda _: None)
    rows = trials(tmp_path / "run")
    assert len(rows) == 3, "a result is not repeated"
    told = {(row["workload"], "100" in row["level"]): (row["outcome"], row["message"]) for row in rows}
    assert told["many", False] == ("ok", "")
    assert told["many", True] == ("broke", "the server refused a client (max number of clients reached)")
    outcome, message = told["full", False]
    assert outcome == "broke"
    assert message.endswith("reached maxmemory (OOM command not allowed)")
