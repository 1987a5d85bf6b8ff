"""The change of each cost between two runs, for the Python API."""

from collections.abc import Iterator, Sequence
from typing import Any

from weighbridge.analysis.run_result import VERDICT_CODES
from weighbridge.api.rows import ComparedCost
from weighbridge.features.gate.compare_command import comparison_of, readable
from weighbridge.features.gate.compare_json import ChangeJson, changed_costs
from weighbridge.store.run import RunStore


def compared_costs(first: RunStore, second: RunStore, names: Sequence[str]) -> Iterator[ComparedCost]:
    """Yield the change of every cost that both runs have. Raises RunDirectoryError if they cannot be compared."""
    runs = [readable(store, name) for store, name in zip((first, second), names, strict=True)]
    (pair,) = comparison_of(runs).pairs
    for row in changed_costs(pair):
        before, after = row.before, row.after
        yield ComparedCost(
            environment=row.environment, workload=row.workload, level=row.level, metric=row.metric, unit=row.unit,
            better=row.better, primary=row.headline, resource_use=row.resource_use, control=row.aa,
            before=before.cost, before_low=before.cost_low, before_high=before.cost_high, after=after.cost,
            after_low=after.cost_low, after_high=after.cost_high, cost_unit=before.cost_unit,
            **_change(row.change), verdict=VERDICT_CODES[row.verdict],
        )  # fmt: skip


_OF_CHANGE = ("change", "change_low", "change_high", "allowed_low", "allowed_high", "change_unit", "adjusted_p")


def _change(change: ChangeJson | None) -> dict[str, Any]:
    return {name: None if change is None else getattr(change, name) for name in _OF_CHANGE}
