"""The acknowledged records that a power cut left, and the verdict about them. Pure."""

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

    ``write`` commits numbered records, one after the other from 0 on, until it is ended. For each acknowledged record
    it appends a line with the number to `ACKNOWLEDGED`. ``read`` prints a line with the number of each stored record.
    """

    write: Command
    read: Command


SCOPE = "durability checked"
"""The scope of the checks of a run: "ENVIRONMENT/PROMISE" (of a commit, and workload) -> a `PowerCut` as JSON."""
RECORD = 4096
"""The bytes of a record."""
TOKEN = 16
"""The number of characters that identify the records of one check."""
_PART = 32
_Count = Annotated[int, Field(ge=0, le=2**53)]
_DIGITS = 19


def record(token: str, number: int) -> bytes:
    """Return the record of that number, as ``userland/projects/powercut`` writes it. Each part has the number."""
    return f"{token}{number:016x}".encode() * (RECORD // _PART)


@dataclass(frozen=True, slots=True)
class ReadBack:
    """The acknowledged records after the cut: ``found`` are complete and in their place, the others are ``lost``.

    ``first_lost`` is the number of the first lost record. Of the lost records, ``torn`` are partly there, and in the
    place of ``displaced`` ones there is another complete record.
    """

    found: int
    lost: int
    first_lost: int | None
    torn: int
    displaced: int


def read_back(content: bytes, token: str, acknowledged: int) -> ReadBack:
    """Look for the first ``acknowledged`` records in a file; later records were never acknowledged."""
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
    """Look for the first ``acknowledged`` numbers among lines; a line without a number is ignored."""
    numbers = {int(line) for line in printed.split() if line.isdecimal() and len(line) < _DIGITS}
    lost = [number for number in range(acknowledged) if number not in numbers]
    return ReadBack(acknowledged - len(lost), len(lost), lost[0] if lost else None, 0, 0)


def _is_another(slot: bytes, token: str) -> bool:
    try:
        return slot == record(token, int(slot[TOKEN:_PART], 16))
    except ValueError:
        return False


class DurabilityVerdict(StrEnum):
    """The verdict on a storage's claim. ``LOST``: acknowledged records without a claim were lost."""

    KEPT = "kept"
    LOST = "lost"
    OVERCLAIMED = "claims more than it keeps"


@dataclass(frozen=True, slots=True)
class PowerCut:
    """One check: the records that were acknowledged before the power of ``host`` was cut, and those found after it.

    ``storage`` is its kind, ``claimed`` its claim for synced data; the rest is as in `ReadBack`. For a commit,
    ``workload`` names the workload of the server, ``claimed`` is the claim of server and storage together, and
    ``failure`` has the reason if the server returned nothing after the cut: all records are lost then.
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
        """The verdict: a storage that claims ``synchronous`` must keep synced data; a plain write has no claim."""
        if not self.lost:
            return DurabilityVerdict.KEPT
        promised = self.promise is not Promise.WRITE and self.claimed == "synchronous"
        return DurabilityVerdict.OVERCLAIMED if promised else DurabilityVerdict.LOST


def power_cut_facts(checked: Iterable[PowerCut]) -> dict[str, str]:
    """Return the facts that a run stores about checks, in `SCOPE`."""
    return {_key(each): _JSON.dump_json(each).decode() for each in checked}


def _key(cut: PowerCut) -> str:
    return f"{cut.environment}/{cut.promise}" + (f" of {cut.workload}" if cut.workload else "")


def power_cut_of(fact: str) -> PowerCut:
    """Return a check that a run has stored. Raises ValidationError."""
    return _JSON.validate_json(fact)


_JSON = TypeAdapter(PowerCut)
