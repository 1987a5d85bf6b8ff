"""Which cases are tried: each a base, a mutation of it, and a command."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .commands import OF_FLEETS, OF_RUNS, WRITING
from .mutations import Mutation, places_of_fleet, places_of_run

_THOROUGH = ("run.value[run_id]", "environment.name[all]", "environment.name[first]", "cell.workload[all]")
"""Places that become names of folders, groups and processes: each value is tried with each command that writes."""
_SHARES = {"study": 4, "fleet": 2, "weigh": 2, "old": 1}
"""How many cases of each base come in a turn."""


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
        return (OF_FLEETS if self.base == "fleet" else OF_RUNS)[self.command]


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


def _places(base: str, bases: Mapping[str, Path]) -> dict[str, list[Mutation]]:
    return places_of_fleet(bases[base]) if base == "fleet" else places_of_run(bases[base])


def _cases_of(base: str, places: Mapping[str, list[Mutation]], order: random.Random) -> Iterator[Case]:
    """Yield cases of a base without end: of each place in turn one value, with one command after the other."""
    lines = OF_FLEETS if base == "fleet" else OF_RUNS
    names = [*places]
    order.shuffle(names)
    values = {name: order.sample(places[name], len(places[name])) for name in names}
    commands = [*lines, *(name for name in WRITING if name in lines)]
    order.shuffle(commands)
    number = turn = 0
    while True:
        for name in names:
            mutation = values[name][turn % len(values[name])]
            yield Case(base, mutation, commands[number % len(commands)])
            number += 1
        turn += 1
        number += 1  # the number of places may be a multiple of that of commands
