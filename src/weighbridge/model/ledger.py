"""Programs by which the commits that a server has acknowledged are counted: for checks by power cut."""

from dataclasses import dataclass

from weighbridge.model.command import Command

ACKNOWLEDGED = "/run/weighbridge-acknowledged"
"""The file in the server's site that has a line for each acknowledged commit."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Two clients of a workload's running server, in the server's own site.

    ``write`` has numbered records committed, one after the other from 0 on, until it is ended; for each that the
    server has acknowledged it appends a line with the number to `ACKNOWLEDGED`. ``read`` prints a line with the
    number of each record that is there.
    """

    write: Command
    read: Command
