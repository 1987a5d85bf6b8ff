"""The ladder of a study: environments of which each adds one step to another one above it. It may branch."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

_FORM = "a step is written NAME, or {NAME: BASE} where it adds to another one than the step before it"


class Rung(NamedTuple):
    """One environment of a ladder and the one to which it adds a step; ``base`` is None where nothing is below it."""

    name: str
    base: str | None = None


def rungs_as_written(given: Any) -> Any:
    """The rungs of a ladder as it is written: ``NAME`` adds to the entry before it, ``{NAME: BASE}`` to BASE.

    What is no list is given back. Raises ValidationError with each entry that is neither form.
    """
    if not isinstance(given, list | tuple):
        return given
    found: list[Rung] = []
    wrong: list[InitErrorDetails] = []
    for place, entry in enumerate(given):
        match entry:
            case Rung() as made:
                found.append(made)
            case str(name):
                found.append(Rung(str(name), found[-1].name if found else None))
            case Mapping() if len(entry) == 1 and all(isinstance(each, str) for each in (*entry, *entry.values())):
                ((name, base),) = entry.items()
                found.append(Rung(str(name), str(base)))
            case _:
                error = PydanticCustomError("value_error", "{error}", {"error": _FORM})
                wrong.append(InitErrorDetails(type=error, loc=(place,), input=entry))
    if wrong:
        raise ValidationError.from_exception_data("ladder", wrong)
    return tuple(found)


def rungs_written(rungs: Sequence[Rung]) -> list[str | dict[str, str]]:
    """Return the rungs in the form that `rungs_as_written` reads, each with its base."""
    return [rung.name if rung.base is None else {rung.name: rung.base} for rung in rungs]


def nearest_base(rungs: Sequence[Rung], name: str, present: Collection[str]) -> str | None:
    """The environment nearest below ``name`` that is ``present``; None where none is."""
    bases = dict(rungs)
    base = bases.get(name)
    for _ in rungs:  # what a damaged run says may go in a circle
        if base is None or base in present:
            return base
        base = bases.get(base)
    return None
