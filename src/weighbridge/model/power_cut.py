"""What a power cut left of acknowledged records, and how that is judged. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field, TypeAdapter

from weighbridge.model.choices import Promise
from weighbridge.model.command import Command
from weighbridge.model.plugin import Durability

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


SCOPE = "durability checked"
"""Scope of the checks that a run keeps: "ENVIRONMENT/PROMISE" (of a commit, and workload) -> a `PowerCut`, JSON."""
RECORD = 4096
"""Bytes of a record."""
TOKEN = 16
"""Characters that tell the records of a check from those of another."""
_PART = 32
_Count = Annotated[int, Field(ge=0, le=2**53)]
_DIGITS = 19


def record(token: str, number: int) -> bytes:
    """The record of that number, as ``userland/projects/powercut`` writes it: each part of it names it."""
    return f"{token}{number:016x}".encode() * (RECORD // _PART)


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What was read back of acknowledged records: ``found`` are whole and in their place, the others are ``lost``.

    ``first_lost``: the number of the first of these. Of the lost ones ``torn`` are there in part, and where
    ``displaced`` ones should be is the whole of another.
    """

    found: int
    lost: int
    first_lost: int | None
    torn: int
    displaced: int


def read_back(content: bytes, token: str, acknowledged: int) -> ReadBack:
    """Look for the first ``acknowledged`` records in a file; what follows them was promised to nobody."""
    lost: list[int] = []
    torn = displaced = 0
    for number in range(acknowledged):
        slot = content[number * RECORD : (number + 1) * RECORD]
        if slot == record(token, number):
            continue
        lost.append(number)
        if _is_another(slot, token):
            displaced += 1
        elif slot.strip(b"\0"):
            torn += 1
    return ReadBack(acknowledged - len(lost), len(lost), lost[0] if lost else None, torn, displaced)


def read_committed(printed: str, acknowledged: int) -> ReadBack:
    """Look for the first ``acknowledged`` numbers among lines; a line that is none is ignored."""
    numbers = {int(line) for line in printed.split() if line.isdecimal() and len(line) < _DIGITS}
    lost = [number for number in range(acknowledged) if number not in numbers]
    return ReadBack(acknowledged - len(lost), len(lost), lost[0] if lost else None, 0, 0)


def _is_another(slot: bytes, token: str) -> bool:
    try:
        return slot == record(token, int(slot[TOKEN:_PART], 16))
    except ValueError:
        return False


class DurabilityVerdict(StrEnum):
    """What a check says of a storage's claim. ``LOST``: acknowledged records, for which nothing was claimed."""

    KEPT = "kept"
    LOST = "lost"
    OVERCLAIMED = "claims more than it keeps"


@dataclass(frozen=True, slots=True)
class PowerCut:
    """One check: what was acknowledged in an environment before the power of ``host`` was cut, and found after it.

    ``storage`` is its kind, ``claimed`` what that claims to keep of what was synced; the rest is as in `ReadBack`.
    Of a commit there is the ``workload`` whose server it was of, ``claimed`` is of both together, and ``failure``
    says why that server did not give back what it has: all is lost then.
    """

    environment: str
    promise: Promise
    storage: str
    claimed: Durability
    host: str
    acknowledged: _Count
    found: _Count
    lost: _Count
    first_lost: _Count | None
    torn: _Count
    displaced: _Count
    workload: str = ""
    failure: str = ""

    @property
    def adds_up(self) -> bool:
        """Whether the found and the lost records are together the acknowledged ones."""
        parts = self.torn + self.displaced <= self.lost and (self.first_lost is None) == (self.lost == 0)
        return parts and self.found + self.lost == self.acknowledged

    @property
    def verdict(self) -> DurabilityVerdict:
        """A storage that claims ``synchronous`` must have kept what was synced; a plain write promises nothing."""
        if not self.lost:
            return DurabilityVerdict.KEPT
        promised = self.promise is not Promise.WRITE and self.claimed == "synchronous"
        return DurabilityVerdict.OVERCLAIMED if promised else DurabilityVerdict.LOST


def power_cut_facts(checked: Iterable[PowerCut]) -> dict[str, str]:
    """Return the facts that a run keeps of checks, in `SCOPE`."""
    return {_key(each): _JSON.dump_json(each).decode() for each in checked}


def _key(cut: PowerCut) -> str:
    return f"{cut.environment}/{cut.promise}" + (f" of {cut.workload}" if cut.workload else "")


def power_cut_of(fact: str) -> PowerCut:
    """A check that a run has kept. Raises ValidationError."""
    return _JSON.validate_json(fact)


_JSON = TypeAdapter(PowerCut)
