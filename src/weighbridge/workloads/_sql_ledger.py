"""Numbered rows in a database, written by a client that reads SQL from its standard input."""

from weighbridge.model.command import Command
from weighbridge.model.power_cut import ACKNOWLEDGED, Ledger

_WRITE = """acknowledged=$1; shift
echo 'CREATE TABLE weighbridge_ledger (number BIGINT PRIMARY KEY);' | "$@" || exit
seq 0 1000000000 | sed 's/.*/INSERT INTO weighbridge_ledger VALUES (&); SELECT &;/' | "$@" >"$acknowledged"
"""
"""The client sends the second statement of a line after the answer to the first, so its commit is acknowledged."""
_READ = b"SELECT number FROM weighbridge_ledger;\n"
_LONGEST_S = 900.0


def sql_ledger(*client: str) -> Ledger:
    """Return the ledger of a client that prints bare rows at once, sends single statements, and ends at an error."""
    return Ledger(
        Command(("sh", "-c", _WRITE, "ledger", ACKNOWLEDGED, *client), _LONGEST_S),
        Command(client, _LONGEST_S, stdin=_READ),
    )
