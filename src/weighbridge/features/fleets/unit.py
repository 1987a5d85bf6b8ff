"""Names of the run directories of a fleet, and the purpose of each."""

from enum import StrEnum

JOINT = "--"
"""Between the parts of such a name."""


class Purpose(StrEnum):
    """The purpose of a run of a fleet."""

    TOGETHER = "together"
    """One of the runs of a round."""
    AGAIN = "again"
    """The second measurement of a suspect."""
    ALONE = "alone"
    """A control: a pair that is measured without any other pair."""


def unit_of(name: str) -> tuple[Purpose, tuple[str, ...]]:
    """Return what a run directory is for and the machines that its name gives: ``alone--A--B`` is a control."""
    for purpose in (Purpose.ALONE, Purpose.AGAIN):
        if name.startswith(f"{purpose}{JOINT}"):
            return purpose, _two(name.removeprefix(f"{purpose}{JOINT}"))
    return Purpose.TOGETHER, _two(name)


def _two(unit: str) -> tuple[str, ...]:
    client, _, server = unit.partition(JOINT)
    return (client, server) if client and server and JOINT not in server else (unit,)
