"""The keys of what is measured."""

import pytest
from pydantic import TypeAdapter, ValidationError

from weighbridge.model.address import ArmId, CellId, MetricId, grouped
from weighbridge.model.level import NO_LEVEL, Level

CELL = CellId("redis", Level({"clients": "50"}.items()))


def test_equal_parts_make_one_key():
    again = CellId("redis", Level([("clients", "50")]))
    assert {CELL: 1, MetricId(CELL, "p99"): 2, ArmId(CELL, "docker"): 3} == {
        again: 1, MetricId(again, "p99"): 2, ArmId(again, "docker"): 3
    }  # fmt: skip
    assert CellId("redis", NO_LEVEL) != CELL


def test_labels_name_every_part():
    labels = [CELL.label, MetricId(CELL, "p99").label, ArmId(CELL, "docker").label, CellId("redis", NO_LEVEL).label]
    assert labels == ["redis (clients=50)", "redis (clients=50) p99", "redis (clients=50) in docker", "redis"]


def test_cells_are_ordered_by_workload_and_level():
    cells = [CellId("tcp", NO_LEVEL), CELL, CellId("redis", NO_LEVEL)]
    assert sorted(cells) == [cells[2], cells[1], cells[0]]


def test_an_arm_is_kept_as_three_texts():
    arms, adapter = (ArmId(CELL, "docker"),), TypeAdapter(tuple[ArmId, ...])
    assert adapter.dump_json(arms) == rb'[["redis","{\"clients\": \"50\"}","docker"]]'
    assert adapter.validate_json(adapter.dump_json(arms)) == adapter.validate_python(arms) == arms
    with pytest.raises(ValidationError):
        adapter.validate_json('[["redis","clients=50","docker"]]')


def test_groups_and_their_items_keep_their_order():
    assert list(grouped([3, 1, 5, 2, 4], lambda number: number % 2 == 1).items()) == [
        (True, [3, 1, 5]), (False, [2, 4])
    ]  # fmt: skip
