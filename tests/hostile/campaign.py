"""Which cases are tried: each a base, a mutation of it, and a command."""

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .commands import OF_DRIVEN_FLEETS, OF_FLEETS, OF_RUNS, WRITING
from .mutations import Mutation, places_of_fleet, places_of_run

_THOROUGH = ("run.value[run_id]", "environment.name[all]", "environment.name[first]", "cell.workload[all]")
"""Places that become names of folders, groups and processes: each value is tried with each command that writes."""
_SHARES = {"study": 8, "fleet": 4, "weigh": 4, "old": 2, "driven": 1}
"""How many cases of each base come in a turn."""
FLEETS = {"fleet": OF_FLEETS, "driven": OF_DRIVEN_FLEETS}
"""The bases that are fleets, and what is tried of each."""


@dataclass(frozen=True)
class Case:
    """One thing to try."""

    base: str
    mutation: Mutation
    command: str

    @property
    def name(self) -> str:
        """What a failure prints, and what repeats it."""
        return f"{self.base}:{self.mutation.name}:{self.command}"

    @property
    def line(self) -> str:
        """The command's words."""
        return _lines(self.base)[self.command]


def chosen(bases: Mapping[str, Path], count: int, seed: int) -> list[Case]:
    """Choose cases: of a long campaign the thorough ones first, then one value of each place in turn."""
    order = random.Random(seed)
    by_base = {base: _cases_of(base, _places(base, bases), order) for base in _SHARES}
    cases: dict[str, Case] = {}
    if count >= 5000:
        for value in _places("study", bases)["run.value[run_id]"]:
            cases |= {case.name: case for case in (Case("study", value, command) for command in OF_RUNS)}
        for place in _THOROUGH:
            for value in _places("study", bases)[place]:
                cases |= {case.name: case for case in (Case("study", value, command) for command in WRITING)}
    while len(cases) < count:
        for base, share in _SHARES.items():
            for _ in range(share):
                case = next(by_base[base])
                cases[case.name] = case
    return [*cases.values()][:count]


def named(bases: Mapping[str, Path], name: str) -> Case:
    """Return the case with this name. Raises KeyError."""
    base, _, rest = name.partition(":")
    mutation, _, command = rest.rpartition(":")
    for values in _places(base, bases).values():
        for each in values:
            if each.name == mutation:
                return Case(base, each, command)
    raise KeyError(name)


def matching(bases: Mapping[str, Path], pattern: str) -> list[Case]:
    """Return every case whose name matches a regular expression from its start."""
    cases = (
        Case(base, mutation, command)
        for base in _SHARES
        for values in _places(base, bases).values()
        for mutation in values
        for command in _lines(base)
    )
    return [case for case in cases if re.match(pattern, case.name)]


def _places(base: str, bases: Mapping[str, Path]) -> dict[str, list[Mutation]]:
    return places_of_fleet(bases[base]) if base in FLEETS else places_of_run(bases[base])


def _cases_of(base: str, places: Mapping[str, list[Mutation]], order: random.Random) -> Iterator[Case]:
    """Yield cases of a base without end: of each place in turn one value, with one command after the other."""
    lines = _lines(base)
    names = [*places]
    order.shuffle(names)
    values = {name: order.sample(places[name], len(places[name])) for name in names}
    commands = [*lines]
    order.shuffle(commands)
    number = turn = 0
    while True:
        for name in names:
            mutation = values[name][turn % len(values[name])]
            yield Case(base, mutation, commands[number % len(commands)])
            number += 1
        turn += 1
        number += 1  # the number of places may be a multiple of that of commands


def _lines(base: str) -> dict[str, str]:
    return FLEETS.get(base, OF_RUNS)
