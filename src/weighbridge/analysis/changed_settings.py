"""Whether two runs ask the same question: where their studies differ, and what only one of them has."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from weighbridge.analysis.compared_run import ComparedRun, Described
from weighbridge.analysis.plan import KIND, differing
from weighbridge.model.level import Level


class Part(StrEnum):
    """Which part of a study."""

    STUDY = "study"
    ENVIRONMENT = "environment"
    WORKLOAD = "workload"
    METRIC = "metric"


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that is not the same in both studies; ``name`` is the environment's or the workload's, or ""."""

    part: Part
    name: str
    setting: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class OnlyIn:
    """What one run has and the other has not; ``second``: whether it is the second that has it."""

    part: Part
    name: str
    second: bool


class OtherQuestionError(ValueError):
    """Two runs cannot be compared: one sentence for people."""


def require_one_question(first: ComparedRun, second: ComparedRun) -> None:
    """Raise OtherQuestionError where the runs have another baseline, or nothing to compare in common."""
    one, other = first.analysis, second.analysis
    names = f"'{first.name}' and '{second.name}'"
    if one.baseline != other.baseline:
        raise OtherQuestionError(
            f"{names} ask different questions: the baseline of one is '{one.baseline}', of the other "
            f"'{other.baseline}', and a cost against one says nothing of a cost against the other"
        )
    kinds = [run.environments[run.analysis.baseline].kind for run in (first, second)]
    if kinds[0] != kinds[1]:
        raise OtherQuestionError(
            f"{names} ask different questions: the baseline '{one.baseline}' of one is of kind {kinds[0]}, "
            f"of the other of kind {kinds[1]}"
        )
    if not {*first.environments} & {*second.environments} - {one.baseline}:
        raise OtherQuestionError(f"{names} have no environment in common beside the baseline '{one.baseline}'")
    if not first.cells.keys() & second.cells.keys():
        raise OtherQuestionError(f"{names} have no workload in common")


def changed_settings(first: ComparedRun, second: ComparedRun) -> tuple[SettingChange, ...]:
    """Give each setting that differs: of the study, of environments and of workloads that both have."""
    found: list[SettingChange] = []
    titles = (first.analysis.study, second.analysis.study)
    if titles[0] != titles[1]:
        found.append(SettingChange(Part.STUDY, "", "study", *titles))
    if first.margin != second.margin:
        found.append(SettingChange(Part.STUDY, "", "equivalence", first.margin, second.margin))
    if first.settings is not None and second.settings is not None:
        found += _changes(Part.STUDY, "", first.settings, second.settings)
    for name in (each for each in first.environments if each in second.environments):
        found += _described(Part.ENVIRONMENT, name, first.environments[name], second.environments[name])
    labels = _labels(first)
    for cell in (each for each in first.cells if each in second.cells):
        found += _described(Part.WORKLOAD, labels[cell], first.cells[cell], second.cells[cell])
    if first.settings is not None and second.settings is not None:
        found += _own_options(first, second, labels)
    return tuple(dict.fromkeys(found))


def _own_options(
    first: ComparedRun, second: ComparedRun, labels: Mapping[tuple[str, Level], str]
) -> Iterable[SettingChange]:
    """What differs of the options that a workload has in one environment alone; without any it has its own."""
    for name, workload, level in dict.fromkeys((*first.own_options, *second.own_options)):
        cell = workload, level
        if all(cell in run.cells and name in run.environments for run in (first, second)):
            one, other = (
                run.own_options.get((name, workload, level), run.cells[cell].options) for run in (first, second)
            )
            yield from _changes(Part.WORKLOAD, f"{labels[cell]} in {name}", one, other)


def only_in(first: ComparedRun, second: ComparedRun) -> tuple[OnlyIn, ...]:
    """Give the environments, workloads and metrics that only one of the runs has."""
    found: list[OnlyIn] = []
    for part, one, other in (
        (Part.ENVIRONMENT, _environments(first), _environments(second)),
        (Part.WORKLOAD, _named_cells(first), _named_cells(second)),
        (Part.METRIC, _metrics(first, second), _metrics(second, first)),
    ):
        found += [OnlyIn(part, name, second=False) for name in one if name not in other]
        found += [OnlyIn(part, name, second=True) for name in other if name not in one]
    return tuple(found)


def _environments(run: ComparedRun) -> list[str]:
    """Every environment with a trial of its own, the A/A arm too, by which both are judged."""
    return [name for name in run.analysis.environments if name != run.analysis.baseline]


def _labels(run: ComparedRun) -> dict[tuple[str, Level], str]:
    return dict(zip(run.cells, run.analysis.labels, strict=True))


def _named_cells(run: ComparedRun) -> list[str]:
    return list(run.analysis.labels)


def _metrics(run: ComparedRun, other: ComparedRun) -> list[str]:
    """The metrics of the workloads that both have measured."""
    measured = {report.label for report in other.analysis.metrics}
    return [f"{report.label} {report.metric}" for report in run.analysis.metrics if report.label in measured]


def _described(part: Part, name: str, before: Described, after: Described) -> list[SettingChange]:
    if before.kind != after.kind:
        return [SettingChange(part, name, KIND, before.kind, after.kind)]
    return _changes(part, name, before.options, after.options)


def _changes(part: Part, name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[SettingChange]:
    """What differs of the settings that both know: every default is kept, so one is missing in an older version."""
    common = before.keys() & after.keys()
    one, other = ({key: value for key, value in each.items() if key in common} for each in (before, after))
    return [
        SettingChange(part, name, each.setting, _plain(each.before), _plain(each.now))
        for each in differing(one, other)
    ]


def _plain(value: object) -> object:
    """A value that can be kept in a set: lists as tuples, maps as their items."""
    if isinstance(value, Mapping):
        return tuple((str(key), _plain(each)) for key, each in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return tuple(_plain(each) for each in value)
    return value
