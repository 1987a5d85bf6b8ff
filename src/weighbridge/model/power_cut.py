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
_Count = Annotated[int, Field(ge=0, le=2**53)]


class DurabilityVerdict(StrEnum):
    """The verdict on a storage's claim. ``LOST``: acknowledged records without a claim were lost."""

    KEPT = "kept"
    LOST = "lost"
    OVERCLAIMED = "claims more than it keeps"


@dataclass(frozen=True, slots=True)
class PowerCut:
    """One check: the records that were acknowledged before the power of ``host`` was cut, and those found after it.

    ``storage`` is its kind, ``claimed`` its claim for synced data. ``found`` records are complete and in their place,
    the others are ``lost``: some are partly there (``torn``), and others replaced by another record (``displaced``).
    For a commit, ``workload`` names the server's workload, and ``claimed`` is the claim of server and storage
    together. ``failure`` has the reason if the server returned nothing: all records are lost then.
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
