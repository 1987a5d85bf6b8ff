"""SQLite's commits: what is asked of it, and what it has to have printed."""

from weighbridge.workloads.sqlite import PLUGIN, SqliteOptions

from .captured import AT

OPTIONS = SqliteOptions(commits=3000, sync="off")


def test_each_row_is_a_transaction_of_its_own() -> None:
    asked = PLUGIN.command("solo", OPTIONS, AT).stdin.decode()
    assert asked.count("INSERT") == 3000 and "BEGIN" not in asked and "PRAGMA synchronous=off;" in asked


def test_what_is_not_synced_is_not_durable() -> None:
    assert (PLUGIN.durability(OPTIONS), PLUGIN.durability(SqliteOptions())) == ("none", "synchronous")
