"""Fleets of made-up runs: single machines, or pairs whose values are those of both machines."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from weighbridge.store.run import RunStore

from .made_up_runs import CREATED, Recipe, Workload, make_run

RECIPE = Recipe(costs={"bridge": 1.2}, blocks=10, study="uplink", question="What does the bridge cost on each node?")


def machine_facts(name: str, **more: str) -> dict[str, str]:
    """The facts of a machine that is like all others."""
    facts = {"node": name, "machine id": f"{sum(name.encode()):016x}", "firmware": "1.3 of 2025-02-01"}
    return {**facts, "kernel": "Linux 6.1", "placed by": f"job 1 on {name}", **more}


def make_unit(folder: Path, unit: str, recipe: Recipe, machines: Sequence[str], facts: Mapping[str, dict[str, str]]):
    """Write the run directory of a machine or pair."""
    own = {name: {**machine_facts(name), **facts.get(name, {})} for name in machines}
    scopes = {"host": own[machines[0]]} if len(machines) == 1 else {
        f"host {place}": own[name] for place, name in zip(("a", "b"), machines, strict=True)
    }  # fmt: skip
    hosts = () if len(machines) == 1 else ("a", "b")
    make_run(folder / unit, replace(recipe, facts={**scopes, **recipe.facts}, hosts=hosts)).close()
    with RunStore(folder / unit, writable=True) as store:
        store.set_info("created", CREATED)
    return folder / unit


def _scaled(workloads: Sequence[Workload], factor: float) -> list[Workload]:
    return [
        replace(
            each, metrics=[(m, v / factor if m.better == "higher" else v * factor, n) for m, v, n in each.metrics]
        )
        for each in workloads
    ]


def make_fleet(
    folder: Path,
    number: int,
    *,
    odd: Mapping[str, float] = {},
    slow: Mapping[str, float] = {},
    facts: Mapping[str, dict[str, str]] = {},
    spread: float = 0.01,
    recipe: Recipe = RECIPE,
    seed: int = 1,
) -> Path:
    """Write a fleet of so many single machines, n1 ...: ``odd`` ones have a larger cost, ``slow`` ones own values."""
    chance = random.Random(seed)
    runs = new_fleet(folder)
    for place in range(1, number + 1):
        name = f"n{place}"
        cost, own = (chance.lognormvariate(0, spread) for _ in range(2))
        costs = {key: factor * cost * odd.get(name, 1.0) for key, factor in recipe.costs.items()}
        workloads = _scaled(recipe.workloads, own * slow.get(name, 1.0))
        make_unit(
            runs, name, replace(recipe, costs=costs, workloads=workloads, seed=seed * 1000 + place), [name], facts
        )
    return folder


def make_pairs(
    folder: Path,
    pairs: Sequence[tuple[str, str]],
    *,
    slow: Mapping[str, float] = {},
    bad: Mapping[tuple[str, str], float] = {},
    alone: Sequence[tuple[str, str]] = (),
    together: float = 1.0,
    facts: Mapping[str, dict[str, str]] = {},
    recipe: Recipe = RECIPE,
    seed: int = 1,
) -> Path:
    """Write a fleet of pairs; ``together`` is by how much they are slower than those that are measured ``alone``."""
    chance = random.Random(seed)
    runs = new_fleet(folder)
    names = dict.fromkeys(name for pair in pairs for name in pair)
    own = {name: chance.lognormvariate(0, 0.01) * slow.get(name, 1.0) for name in names}
    units = [(pair, "", together) for pair in pairs] + [(pair, "alone--", 1.0) for pair in alone]
    for place, (pair, prefix, factor) in enumerate(units, 1):
        value = own[pair[0]] * own[pair[1]] * bad.get(pair, 1.0) * factor * chance.lognormvariate(0, 0.003)
        costs = {key: factor * chance.lognormvariate(0, 0.01) for key, factor in recipe.costs.items()}
        made = replace(recipe, costs=costs, workloads=_scaled(recipe.workloads, value), seed=seed * 1000 + place)
        make_unit(runs, f"{prefix}{'--'.join(pair)}", made, pair, facts)
    return folder


def new_fleet(folder: Path) -> Path:
    """Make an empty fleet, and return the folder of its runs."""
    (folder / "runs").mkdir(parents=True)
    (folder / "fleet.json").write_text("{}")
    return folder / "runs"


def rounds(number: int, partners: int) -> list[tuple[str, str]]:
    """Each of so many machines with some partners: those that follow it on a circle."""
    return [
        (f"n{one + 1}", f"n{(one + step) % number + 1}")
        for step in range(1, partners // 2 + 1)
        for one in range(number)
    ]
