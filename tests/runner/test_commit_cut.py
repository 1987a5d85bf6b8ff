"""A server that is started again after a power cut: it is asked until it answers, and its errors are told."""

from dataclasses import dataclass, field

import pytest

from weighbridge.model.command import Command, Completed
from weighbridge.model.power_cut import Ledger
from weighbridge.model.workload import Endpoint
from weighbridge.runner import commit_cut
from weighbridge.runner.commit_cut import Server, _asked, _first_error
from weighbridge.workloads.pgbench import PLUGIN

AT = Endpoint("127.0.0.1", "127.0.0.1", 5432)
SERVER = Server(PLUGIN, PLUGIN.options(), AT, Ledger(Command(("write",)), Command(("read",))))


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
    return _asked(site, SERVER, programs)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(commit_cut, "_AGAIN_S", 0.0)


def test_a_server_at_its_recovery_is_asked_again():
    site = Recovering(3)
    assert ask(site) == ("0\n1\n", "")
    assert site.asked == [("read",)] * 4


def test_one_that_refuses_for_good_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(commit_cut, "_RECOVER_S", 0.01)
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
