"""Randomised complete blocks, the same for the same seed."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from weighbridge.model.study import Arm, Cell, Study
from weighbridge.study.schedule import block

from .texts import FIRST_LOOK, LINES, loaded

SMALL, LARGE = loaded(LINES), loaded(FIRST_LOOK)
SEEDS = st.integers(0, 2**63 - 1)
NUMBERS = st.integers(1, 1000)


def _seeded(study: Study, seed: int) -> Study:
    return study.model_copy(update={"file": study.file.model_copy(update={"seed": seed})})


@given(st.integers(1, 5), st.integers(1, 5), SEEDS, NUMBERS, st.integers(0, 2))
def test_a_block_is_complete_and_keeps_each_cell_together(
    arms: int, cells: int, seed: int, number: int, attempt: int
):
    study = _seeded(SMALL, seed).model_copy(
        update={
            "arms": tuple(Arm(name=f"a{i}", kind="native", options=None) for i in range(arms)),
            "cells": tuple(Cell(workload="w", kind="x", level=(("n", str(i)),), options=None) for i in range(cells)),
        }
    )
    trials = block(study, number, attempt=attempt)
    assert Counter((t.level, t.environment) for t in trials) == Counter(
        (c.level, a.name) for c in study.cells for a in study.arms
    )
    assert {(t.block, t.attempt) for t in trials} == {(number, attempt)}
    levels = [t.level for t in trials]
    assert levels == sorted(levels, key=levels.index), "what is compared lies close in time"
    assert len(set(trials)) == len(trials)


def test_the_schedule_of_a_seed_stays_the_same_in_every_version():
    order = [f"{t.workload}/{t.environment}" for t in block(SMALL, 1)]
    assert order == ["redis/native-again", "redis/bridge", "redis/native", "cpu/bridge", "cpu/native-again",
                     "cpu/native", "tcp/native-again", "tcp/native", "tcp/bridge"]  # fmt: skip


def _orders(study: Study, seeds: range, numbers: range) -> set[tuple[str, ...]]:
    return {
        tuple(f"{t.workload}/{t.environment}" for t in block(_seeded(study, seed), number))
        for seed in seeds
        for number in numbers
    }


def test_other_seeds_blocks_and_attempts_give_other_orders():
    assert len(_orders(LARGE, range(20), range(1, 2))) == 20
    assert len(_orders(LARGE, range(1), range(1, 21))) == 20
    orders = {tuple((t.workload, t.environment) for t in block(LARGE, 1, attempt=attempt)) for attempt in range(3)}
    assert len(orders) == 3


def test_every_environment_comes_first_about_equally_often():
    firsts = Counter(block(SMALL, number)[0].environment for number in range(1, 601))
    assert len(firsts) == 3
    assert all(150 < count < 250 for count in firsts.values()), firsts


@given(SEEDS, NUMBERS, st.data())
def test_a_restricted_block_keeps_the_order(seed: int, number: int, data: st.DataObject):
    study = _seeded(LARGE, seed)
    cells = data.draw(st.lists(st.sampled_from(study.cells), unique_by=lambda cell: cell.label))
    arms = data.draw(st.lists(st.sampled_from([arm.name for arm in study.arms]), unique=True))
    names = {(cell.workload, cell.level) for cell in cells}
    whole = block(study, number)
    assert block(study, number, cells=cells) == [t for t in whole if (t.workload, t.level) in names]
    assert block(study, number, arms=arms) == [t for t in whole if t.environment in arms]
    assert block(study, number, cells=cells, arms=arms) == [
        t for t in whole if (t.workload, t.level) in names and t.environment in arms
    ]


def test_levels_are_in_random_order_inside_each_block_like_environments():
    study = loaded(LINES.replace("clients: 20", "clients: [10, 20, 40, 80]"))
    orders = []
    for number in range(1, 401):
        trials = [t for t in block(study, number) if "clients" in dict(t.level)]
        orders.append(tuple(dict.fromkeys(dict(t.level)["clients"] for t in trials)))
    assert all(sorted(order, key=int) == ["10", "20", "40", "80"] for order in orders)
    assert len(set(orders)) == 24, "every order occurs"
    firsts = Counter(order[0] for order in orders)
    assert all(70 < count < 130 for count in firsts.values()), firsts
