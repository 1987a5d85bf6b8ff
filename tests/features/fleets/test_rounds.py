"""Rounds of disjoint pairs, whoever asks for how many, and names of units that can be read back."""

import re
from collections import Counter
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.features.fleets.machine_provider import MACHINE_NAME
from weighbridge.features.fleets.rounds import (
    FleetUnit,
    again,
    rounds_of,
    unit_named,
)

NAMES = st.from_regex(re.compile(MACHINE_NAME, re.ASCII), fullmatch=True).filter(lambda name: "\n" not in name)
FLEETS = st.integers(0, 24).map(lambda number: [f"n{each}" for each in range(number)])
SEEDS = st.integers(0, 2**31)


def _pairs(machines: list[str], partners: int | None, seed: int) -> list[tuple[FleetUnit, ...]]:
    return [*rounds_of(machines, pairs=True, partners=partners, controls=0, seed=seed)]


@given(FLEETS, st.none() | st.integers(1, 30), SEEDS)
def test_pairs_of_a_round_are_disjoint_and_no_pair_is_measured_twice(
    machines: list[str], partners: int | None, seed: int
):
    rounds = _pairs(machines, partners, seed)
    waves = len(machines) - 1 + len(machines) % 2 if len(machines) > 1 else 0
    assert len(rounds) == min(4 if partners is None else partners, waves)
    met = Counter(frozenset(unit.machines) for units in rounds for unit in units)
    assert set(met.values()) <= {1} and all(len(pair) == 2 for pair in met)
    for units in rounds:
        busy = [machine for unit in units for machine in unit.machines]
        assert len({*busy}) == len(busy) == len(machines) - len(machines) % 2


@given(FLEETS, SEEDS)
def test_all_rounds_together_have_every_pair(machines: list[str], seed: int):
    met = {frozenset(unit.machines) for unit in chain(*_pairs(machines, 100, seed))}
    assert met == {frozenset(pair) for pair in combinations(machines, 2)}


@given(FLEETS, st.integers(1, 30), SEEDS)
def test_each_machine_has_as_many_partners_as_rounds_but_those_of_an_odd_number_that_pause(
    machines: list[str], partners: int, seed: int
):
    rounds = _pairs(machines, partners, seed)
    had = Counter(machine for unit in chain(*rounds) for machine in unit.machines)
    least = len(rounds) - len(machines) % 2
    assert all(least <= had[machine] <= len(rounds) for machine in machines)


@given(FLEETS, st.integers(1, 30), SEEDS)
def test_each_machine_is_the_client_about_as_often_as_not(machines: list[str], partners: int, seed: int):
    rounds = _pairs(machines, partners, seed)
    clients = Counter(unit.machines[0] for unit in chain(*rounds))
    servers = Counter(unit.machines[1] for unit in chain(*rounds))
    assert all(abs(clients[machine] - servers[machine]) <= 2 + len(rounds) // 3 for machine in machines)


@given(FLEETS, SEEDS, st.randoms())
def test_the_same_machines_and_seed_give_the_same_rounds(machines: list[str], seed: int, random):
    mixed = random.sample(machines, len(machines))
    assert _pairs(machines, None, seed) == _pairs(mixed, None, seed)


def test_the_order_is_the_seed_s():
    assert len({tuple(_pairs([f"n{each}" for each in range(10)], None, seed)) for seed in range(20)}) == 20


@given(FLEETS, SEEDS)
def test_single_machines_are_one_round(machines: list[str], seed: int):
    rounds = rounds_of(machines, pairs=False, partners=None, controls=None, seed=seed)
    assert [[unit.machines for unit in units] for units in rounds] == (
        [[(m,) for m in sorted(machines)]] if machines else []
    )


@given(FLEETS, st.none() | st.integers(0, 9), SEEDS)
def test_controls_are_pairs_of_the_rounds_each_alone(machines: list[str], controls: int | None, seed: int):
    rounds = rounds_of(machines, pairs=True, partners=None, controls=controls, seed=seed)
    together = [units for units in rounds if not units[0].reason]
    alone = [unit for units in rounds for unit in units if unit.reason]
    pairs = {unit.machines for units in together if len(units) > 1 for unit in units}
    assert rounds == (*together, *((unit,) for unit in alone))
    assert {unit.machines for unit in alone} <= pairs and len({*alone}) == len(alone)
    assert len(alone) == min(2 if controls is None else controls, len(pairs))
    if len(alone) == 2 and len(machines) > 3:
        assert not {*alone[0].machines} & {*alone[1].machines}


def test_two_or_three_machines_have_no_control():
    for number in (2, 3):
        rounds = rounds_of("abc"[:number], pairs=True, partners=None, controls=None, seed=1)
        assert [unit.reason for unit in chain(*rounds)] == [""] * (1 if number == 2 else 3)


@given(FLEETS, st.integers(0, 8), SEEDS)
def test_suspects_are_measured_again_once_with_a_good_partner(machines: list[str], number: int, seed: int):
    suspects, good = machines[:number], machines[number:]
    measured = [unit.machines for unit in chain(*_pairs(machines, None, seed))]
    rounds = again(suspects, machines, measured, pairs=True, seed=seed)
    had = Counter(machine for unit in chain(*rounds) for machine in unit.machines if machine in suspects)
    assert had == (Counter(suspects) if good else Counter())
    for units in rounds:
        busy = [machine for unit in units for machine in unit.machines]
        assert len({*busy}) == len(busy) and all(len({*unit.machines} & {*good}) == 1 for unit in units)


def test_a_partner_that_a_suspect_has_not_met_comes_first():
    (units,) = again(["a"], ["b", "c", "d"], [("a", "b"), ("d", "a")], pairs=True, seed=3)
    assert {*units[0].machines} == {"a", "c"} and units[0].reason == "again"
    (units,) = again(["a"], ["b"], [("a", "b")], pairs=True, seed=3)
    assert {*units[0].machines} == {"a", "b"}


def test_single_suspects_need_no_partner():
    assert again(["a", "b"], [], [], pairs=False, seed=1) == (
        (FleetUnit(("a",), "again"), FleetUnit(("b",), "again")),
    )
    assert again([], [], [], pairs=False, seed=1) == ()


@given(st.lists(NAMES, min_size=1, max_size=2, unique=True), st.sampled_from(["", "alone", "again"]))
def test_the_name_of_a_unit_says_what_it_is(machines: list[str], why):
    unit = FleetUnit(tuple(machines), why)
    assert unit_named(unit.name) == unit


@pytest.mark.parametrize("name", ["", "--", "a--", "--a", "a--b--c", "alone--", "again--a--b--c"])
def test_another_name_is_no_unit_s(name: str):
    assert unit_named(name) is None
