"""Keys for the things that a run measures: a workload at a level, one of its metrics, an environment there."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from weighbridge.model.level import Level, LevelText

_Item = TypeVar("_Item")
_Group = TypeVar("_Group", bound=Hashable)
_Trial = TypeVar("_Trial", bound="_InArm")


@dataclass(frozen=True, slots=True, order=True)
class CellId:
    """Identify a workload at a level."""

    workload: str
    level: Level

    @property
    def label(self) -> str:
        """Return the label that reports show: ``redis (clients=50)``."""
        return f"{self.workload} ({self.level.label})" if self.level else self.workload


@dataclass(frozen=True, slots=True, order=True)
class MetricId:
    """Identify a metric of a workload at a level."""

    cell: CellId
    metric: str

    @property
    def label(self) -> str:
        """Return the label that reports show: ``redis (clients=50) throughput``."""
        return f"{self.cell.label} {self.metric}"


@dataclass(frozen=True, slots=True, order=True)
class ArmId:
    """Identify one environment of a workload at a level. Runs keep it as a list of three texts."""

    cell: CellId
    environment: str

    @property
    def label(self) -> str:
        """Return the label that reports show: ``redis (clients=50) in docker``."""
        return f"{self.cell.label} in {self.environment}"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        texts = handler.generate_schema(tuple[str, LevelText, str])
        read = core_schema.no_info_after_validator_function(lambda each: cls(CellId(*each[:2]), each[2]), texts)
        return core_schema.no_info_wrap_validator_function(
            lambda raw, read: raw if isinstance(raw, cls) else read(raw),
            read,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda arm: (arm.cell.workload, arm.cell.level.text, arm.environment)
            ),
        )


class HasCell:
    """Add the property `cell` to a dataclass that has a workload and a level."""

    __slots__ = ()
    workload: str
    level: Level

    @property
    def cell(self) -> CellId:
        """Return the workload and level as one key."""
        return CellId(self.workload, self.level)

    @property
    def label(self) -> str:
        """Return the label of the workload and level that reports show: ``redis (clients=50)``."""
        return self.cell.label


class HasArm(HasCell):
    """Add the property `arm` to a dataclass that has a workload, a level and an environment."""

    __slots__ = ()
    environment: str

    @property
    def arm(self) -> ArmId:
        """Return the workload, level and environment as one key."""
        return ArmId(self.cell, self.environment)


class HasMetricId:
    """Add the parts of `metric_id` as properties to a dataclass with this field."""

    __slots__ = ()
    metric_id: MetricId

    @property
    def cell(self) -> CellId:
        """Return the workload and level as one key."""
        return self.metric_id.cell

    @property
    def workload(self) -> str:
        """Return the name of the workload."""
        return self.metric_id.cell.workload

    @property
    def level(self) -> Level:
        """Return the swept factors."""
        return self.metric_id.cell.level

    @property
    def label(self) -> str:
        """Return the label of the workload and level that reports show: ``redis (clients=50)``."""
        return self.metric_id.cell.label

    @property
    def metric(self) -> str:
        """Return the name of the metric."""
        return self.metric_id.metric


def grouped(items: Iterable[_Item], key: Callable[[_Item], _Group]) -> dict[_Group, list[_Item]]:
    """Return the items in lists by their keys. Keys and items stay in their order."""
    groups: dict[_Group, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


class _InArm(Protocol):
    @property
    def arm(self) -> ArmId: ...


def grouped_by_arm(items: Iterable[_Trial]) -> dict[ArmId, list[_Trial]]:
    """Return the items in lists by their arms. Only one key is created per arm, because each takes long to hash."""
    groups = grouped(items, attrgetter("workload", "level", "environment"))
    return {group[0].arm: group for group in groups.values()}
