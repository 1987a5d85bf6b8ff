"""The ladder of a study: environments that each add one step to another."""

from collections.abc import Collection, Sequence
from typing import NamedTuple


class Rung(NamedTuple):
    """An environment of a ladder and the environment to which it adds a step; the lowest has no ``base``."""

    name: str
    base: str | None = None


def rungs_written(rungs: Sequence[Rung]) -> list[str | dict[str, str]]:
    """Return the rungs in the form that `rungs_as_written` reads, each with its base."""
    return [rung.name if rung.base is None else {rung.name: rung.base} for rung in rungs]


def nearest_base(rungs: Sequence[Rung], name: str, present: Collection[str]) -> str | None:
    """Return the nearest environment below ``name`` that is ``present``; None if there is none."""
    bases = dict(rungs)
    base = bases.get(name)
    for _ in rungs:  # a damaged run can contain a circle
        if base is None or base in present:
            return base
        base = bases.get(base)
    return None
