"""The records of a check of durability, and the search for them after the power cut. Pure."""

from dataclasses import dataclass

RECORD = 4096
"""The bytes of a record."""
TOKEN = 16
"""The number of characters that identify the records of one check."""
_PART = 32
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
