"""The schedule of a fleet: waves of disjoint pairs, in an order that is random by a seed."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from weighbridge.features.fleets.unit import JOINT, Purpose, unit_of

USUAL_PARTNERS = 4
"""The default number of waves of pairs, if there are as many partners."""
USUAL_CONTROLS = 2
"""The default number of pairs that are measured again alone."""
RepeatReason = Literal["", "alone", "again"]
"""Why a unit is measured: "" regularly, ``alone`` as a control of parallel pairs, ``again`` as a suspect."""
_WHY: dict[Purpose, RepeatReason] = {Purpose.TOGETHER: "", Purpose.ALONE: "alone", Purpose.AGAIN: "again"}


@dataclass(frozen=True, slots=True)
class FleetUnit:
    """One run of a fleet: on one machine, or on a pair, the client's machine first."""

    machines: tuple[str, ...]
    reason: RepeatReason = ""

    @property
    def name(self) -> str:
        """Return the name of its run directory: ``A``, ``A--B``, ``alone--A--B``, ``again--A--B``."""
        return JOINT.join((*((self.reason,) if self.reason else ()), *self.machines))


Round = tuple[FleetUnit, ...]
"""Units that run at the same time, on disjoint machines."""


def rounds_of(
    machines: Iterable[str], *, pairs: bool, partners: int | None, controls: int | None, seed: int
) -> tuple[Round, ...]:
    """Return the waves of a fleet in order, those of its controls last.

    Single machines are one wave. Pairs have ``partners`` waves (None: `USUAL_PARTNERS`), at most as many as each
    machine needs to meet every other one; of an odd number of machines, one pauses in each wave. ``controls`` pairs
    (None: `USUAL_CONTROLS`) are measured again alone, unless no two pairs ran together. The same machines and seed
    give the same waves, in whatever order the machines are named.
    """
    names = sorted({*machines})
    if not pairs:
        return (tuple(FleetUnit((name,)) for name in names),) if names else ()
    random = Random(seed)  # noqa: S311 - a reproducible order
    together = _circle(names, random)
    together = together[: USUAL_PARTNERS if partners is None else partners]
    several = [unit for units in together if len(units) > 1 for unit in units]
    alone = _spread(several, USUAL_CONTROLS if controls is None else controls, random)
    return (*together, *((FleetUnit(unit.machines, "alone"),) for unit in alone))


def _circle(names: Sequence[str], random: Random) -> list[Round]:
    """Return all waves of the circle method: one place stays, the others rotate from wave to wave.

    Each pair meets once. The client is chosen so that each machine is client and server about equally often.
    """
    order: list[str | None] = [*names]
    random.shuffle(order)
    if len(order) % 2:
        order.append(None)  # a machine paired with None pauses
    rounds: list[Round] = []
    was_client: Counter[str] = Counter()
    for _ in range(len(order) - 1 if len(names) > 1 else 0):
        units = []
        for one, other in zip(order[: len(order) // 2], reversed(order), strict=False):
            if one is None or other is None:
                continue
            pair = [one, other]
            random.shuffle(pair)
            client, server = sorted(pair, key=was_client.__getitem__)
            was_client[client] += 1
            was_client[server] -= 1
            units.append(FleetUnit((client, server)))
        rounds.append(tuple(units))
        order = [order[0], order[-1], *order[1:-1]]
    return rounds


def _spread(units: Sequence[FleetUnit], number: int, random: Random) -> list[FleetUnit]:
    left = [*units]
    random.shuffle(left)
    chosen: list[FleetUnit] = []
    while left and len(chosen) < number:
        taken = {machine for unit in chosen for machine in unit.machines}
        unit = next((each for each in left if not taken & {*each.machines}), left[0])
        left.remove(unit)
        chosen.append(unit)
    return chosen


def again(
    suspects: Sequence[str], good: Collection[str], measured: Collection[tuple[str, ...]], *, pairs: bool, seed: int
) -> tuple[Round, ...]:
    """Return the waves that measure suspects a second time, each with a good partner.

    A partner is preferred if a suspect was not ``measured`` with it yet. No suspect is measured twice, and none if no
    machine is good.
    """
    if not pairs:
        return (tuple(FleetUnit((name,), "again") for name in dict.fromkeys(suspects)),) if suspects else ()
    random = Random(seed)  # noqa: S311
    met = {frozenset(pair) for pair in measured}
    waiting, rounds = [*dict.fromkeys(suspects)], []
    partners = sorted({*good} - {*suspects})
    while waiting and partners:
        free, units = [*partners], []
        random.shuffle(free)
        for suspect in waiting[: len(partners)]:
            partner = next((each for each in free if frozenset((suspect, each)) not in met), free[0])
            free.remove(partner)
            pair = [suspect, partner]
            random.shuffle(pair)
            units.append(FleetUnit((pair[0], pair[1]), "again"))
        waiting = waiting[len(units) :]
        rounds.append(tuple(units))
    return tuple(rounds)


def unit_named(name: str) -> FleetUnit | None:
    """Return the unit whose run directory has this name, or None."""
    purpose, machines = unit_of(name)
    if not all(machines) or any(JOINT in each for each in machines):
        return None
    return FleetUnit(machines, _WHY[purpose])
