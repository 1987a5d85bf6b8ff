"""Which cases are tried: each a base, a mutation of it, and a command."""

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .commands import OF_DRIVEN_FLEETS, OF_FLEETS, OF_KEPT_RUNS, OF_RUNS, WRITING
from .mutations import Mutation, places_of_fleet, places_of_run

_THOROUGH = ("run.value[run_id]", "environment.name[all]", "environment.name[first]", "cell.workload[all]")
"""Places that become names of folders, groups and processes: each value is tried with each command that writes."""
ALWAYS = (
    "study:run.value[run_id]=absolute:run-continue",
    "study:run.value[run_id]=grandparent:run-continue",
    "study:run.value[run_id]=empty:gate-extend",
    "study:run.value[run_id]=live-run:clean",
    "study:file lock=link-to-nothing:gate-extend",
    "study:file raw=link-to-folder:run-continue",
    "study:file raw/*=link:run-continue",
    "study:file run.sqlite=sparse:report",
    "study:run-table=endless-view:history",
    "study:trial-table=endless-trigger:run-continue",
    "study:study.document[first]:file.workloads=list:report",
    "fleet:runs/m1/study.document[first]:file.placement=absolute:fleet-report",
)
"""Cases that once did harm, never ended, or ended in a traceback."""
_SHARES = {"study": 8, "fleet": 4, "weigh": 4, "old": 2, "driven": 1, "explained": 1, "published": 1}
_KEPT = ("explained", "published")
"""Bases with so many places that a sample leaves them out."""
_LONG = 5000
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
    shares = {base: share for base, share in _SHARES.items() if count >= _LONG or base not in _KEPT}
    by_base = {base: _cases_of(base, _places(base, bases[base]), order) for base in shares}
    cases = {name: named(bases, name) for name in ALWAYS}
    if count >= _LONG:
        for value in _places("study", bases["study"])["run.value[run_id]"]:
            cases |= {case.name: case for case in (Case("study", value, command) for command in OF_RUNS)}
        for place in _THOROUGH:
            for value in _places("study", bases["study"])[place]:
                cases |= {case.name: case for case in (Case("study", value, command) for command in WRITING)}
    while len(cases) < count:
        for base, share in shares.items():
            for _ in range(share):
                case = next(by_base[base])
                cases[case.name] = case
    return [*cases.values()][:count]


def named(bases: Mapping[str, Path], name: str) -> Case:
    """Return the case with this name. Raises KeyError."""
    base, _, rest = name.partition(":")
    mutation, _, command = rest.rpartition(":")
    for values in _places(base, bases[base]).values():
        for each in values:
            if each.name == mutation:
                return Case(base, each, command)
    raise KeyError(name)


def matching(bases: Mapping[str, Path], pattern: str) -> list[Case]:
    """Return every case whose name matches a regular expression from its start."""
    cases = (
        Case(base, mutation, command)
        for base in _SHARES
        for values in _places(base, bases[base]).values()
        for mutation in values
        for command in _lines(base)
    )
    return [case for case in cases if re.match(pattern, case.name)]


@cache
def _places(base: str, path: Path) -> dict[str, list[Mutation]]:
    return places_of_fleet(path) if base in FLEETS else places_of_run(path)


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
    return OF_KEPT_RUNS if base in _KEPT else FLEETS.get(base, OF_RUNS)
