"""SQLite's commits: what is asked of it, and what it has to have printed."""

import pytest

from weighbridge.model.measurement import ProgramFailed, Unparseable
from weighbridge.workloads.sqlite import PLUGIN, SqliteOptions

from .captured import AT, data, ended

OPTIONS = SqliteOptions(commits=3000, sync="off")


def test_each_row_is_a_transaction_of_its_own() -> None:
    asked = PLUGIN.command("solo", OPTIONS, AT).stdin.decode()
    assert asked.count("INSERT") == 3000 and "BEGIN" not in asked and "PRAGMA synchronous=off;" in asked


def test_a_folder_that_there_is_not() -> None:
    with pytest.raises(ProgramFailed):
        PLUGIN.parse(OPTIONS, {"solo": ended(stderr=data("sqlite-no-folder.stderr"), returncode=1)})


@pytest.mark.parametrize(
    "printed", ["wal\n1795813979321\n1795813985595\n3000\n", "delete\n1795813979321\n1795813979321\n3000\n"]
)
def test_another_journal_or_no_time(printed: str) -> None:
    with pytest.raises(Unparseable):
        PLUGIN.parse(OPTIONS, {"solo": ended(printed.encode())})


def test_what_is_not_synced_is_not_durable() -> None:
    assert (PLUGIN.durability(OPTIONS), PLUGIN.durability(SqliteOptions())) == ("none", "synchronous")
