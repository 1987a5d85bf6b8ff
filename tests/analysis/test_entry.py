"""The two costs of a sandbox are told apart where `weigh` measured both, and nowhere else."""

from types import SimpleNamespace
from typing import Any

import pytest

from weighbridge.analysis.remarks.entry import EntryAndSteady, _entry_and_steady
from weighbridge.model.address import ArmId, CellId
from weighbridge.model.level import NO_LEVEL

COMMAND, ENTRY = CellId("command", NO_LEVEL), CellId("entry", NO_LEVEL)


def remarks(
    *,
    study: str | None = "weigh-dd",
    cells: tuple[CellId, ...] = (COMMAND, ENTRY),
    unit: str = "s",
    aa: bool = False,
    cell: CellId = COMMAND,
    starts: dict[str, list[float]] | None = None,
    value: float | None = 1.05,
) -> list[Any]:
    known = {"native": [0.010, 0.014, 0.012], "srt": [0.7, 0.9, 0.712]} if starts is None else starts

    def of_arm(arm: ArmId) -> list[Any]:
        assert arm.cell == ENTRY
        failed = SimpleNamespace(values={})
        return [failed, *(SimpleNamespace(values={"time_to_ready": each}) for each in known.get(arm.environment, []))]

    context = SimpleNamespace(
        study=None if study is None else SimpleNamespace(study=study), cells=cells, of_arm=of_arm, baseline="native"
    )
    comparison: Any = SimpleNamespace(
        context=context,
        report=SimpleNamespace(cell=cell, headline=True, unit=unit),
        row=SimpleNamespace(aa=aa, value=value, baseline_value=1.0, environment="srt"),
        sides=("native", "srt"),
    )
    return [*_entry_and_steady(comparison)]


def test_both_costs_are_differences_of_medians():
    (remark,) = remarks()
    assert remark == EntryAndSteady("srt", pytest.approx(0.7), pytest.approx(0.05))


@pytest.mark.parametrize(
    "changed",
    [
        {"study": "sandboxes"}, {"study": None},
        {"cells": (COMMAND,)}, {"unit": "1/s"}, {"aa": True}, {"cell": ENTRY},
        {"starts": {}}, {"starts": {"native": [0.01]}}, {"value": None},
    ],
    ids=str,
)  # fmt: skip
def test_nothing_is_said_where_one_of_them_was_not_measured(changed: dict[str, Any]):
    assert remarks(**changed) == []
