"""The two costs of a sandbox where `weigh` measured both: each has the verdict of its own comparison."""

from typing import Any

import pytest

from report.made_up_runs import LATENCY, Workload
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.remarks.entry import EntryAndSteady
from weighbridge.analysis.results import Comparison
from weighbridge.model.measurement import Metric

RUN_TIME, START = Metric("run time", "s", "lower"), Metric("time_to_ready", "s", "lower")
COMMAND, ENTRY = Workload("command", [(RUN_TIME, 1.0, 0.002)]), Workload("entry", [(START, 0.012, 0.002)])
NOISY, NOISY_ENTRY = Workload("command", [(RUN_TIME, 1.0, 0.2)]), Workload("entry", [(START, 0.012, 0.2)])


def compared(run: Any, **recipe: Any) -> list[Comparison]:
    analysis = analyse(run(**{"study": "weigh-dd", "workloads": [COMMAND, ENTRY], "costs": {"srt": 1.5}, **recipe}))
    return [row for report in analysis.metrics for row in report.comparisons]


def remarks(rows: list[Comparison]) -> list[EntryAndSteady]:
    return [each for row in rows for each in row.remarks if isinstance(each, EntryAndSteady)]


@pytest.mark.parametrize(
    ("workloads", "decided"),
    [([COMMAND, ENTRY], [True, True]), ([NOISY, ENTRY], [False, True]), ([COMMAND, NOISY_ENTRY], [True, False])],
)
def test_each_part_has_the_interval_and_verdict_of_its_own_comparison(
    run: Any, workloads: list[Workload], decided: list[bool]
):
    """Undecided differences stood there as costs, without an interval."""
    rows = compared(run, costs={"srt": 1.04}, workloads=workloads)
    (remark,) = remarks(rows)
    mine = [row for row in rows if row.environment == "srt"]
    assert remark.environment == "srt" and [row.decided for row in mine] == decided
    for part, row in zip((remark.steady, remark.entry), mine, strict=True):
        assert row.cost is not None
        assert (part.verdict, part.cost, part.unit) == (row.verdict, row.cost.penalty, "%")
        assert (part.baseline_value, part.value) == (row.baseline_value, row.value)


@pytest.mark.parametrize("blocks", [1, 3, 5])
def test_too_few_rounds_show_neither(run: Any, blocks: int):
    """The same page said that no cost was shown."""
    assert remarks(compared(run, blocks=blocks)) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"study": "sandboxes"}, {"workloads": [COMMAND]}, {"workloads": [ENTRY]},
        {"workloads": [Workload("command", [(LATENCY, 1.0, 0.01)]), ENTRY]},
        {"absent": {("entry", "srt")}}, {"absent": {("command", "srt")}},
    ],
    ids=str,
)  # fmt: skip
def test_nothing_is_said_where_one_of_them_was_not_measured(run: Any, changed: dict[str, Any]):
    assert remarks(compared(run, **changed)) == []
