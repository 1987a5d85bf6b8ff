"""One of the runs that are compared with one another: its analysis, and what it keeps beside that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.comparisons import Key, grouped
from weighbridge.analysis.conditions import Fact
from weighbridge.analysis.overload import standing_values
from weighbridge.analysis.results import Analysis
from weighbridge.model.level import Level
from weighbridge.store.run import RunStore, Value

SETTINGS_APART = frozenset({
    "study", "question", "baseline", "environments", "workloads", "repetitions", "equivalence", "seed", "ladder",
    "prometheus", "meters",
})  # fmt: skip
"""Parts of a study file that are compared elsewhere, or that do not change what is measured."""


@dataclass(frozen=True, slots=True)
class Described:
    """An environment, or a workload at a level, as the study has it."""

    kind: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run, read once. ``name`` is what the user calls it (its folder)."""

    name: str
    analysis: Analysis
    created: float
    """When it was begun, in seconds since the epoch; 0 where it is not known."""
    version: str
    """The version of Weighbridge that made it."""
    facts: Sequence[Fact] = field(repr=False)
    environments: Mapping[str, Described]
    """Without the A/A arm, which is the baseline again."""
    cells: Mapping[tuple[str, Level], Described]
    """By workload and level."""
    own_options: Mapping[tuple[str, str, Level], Mapping[str, Any]]
    """By environment, workload and level: the options that a workload has in one environment alone."""
    settings: Mapping[str, Any] | None
    """The rest of the study file, with its defaults; None of a run from before it was kept as data."""
    values: Mapping[Key, Sequence[Value]] = field(repr=False)

    @property
    def margin(self) -> float | None:
        """The study's margin of equivalence, as a fraction."""
        return self.analysis.equivalence


def read_run(store: RunStore, name: str = "") -> ComparedRun:
    """Read a run for `weighbridge.analysis.between_runs.compare_runs`.

    Raises RunDirectoryError where the store cannot be read or is damaged.
    """
    analysis, info, study = analyse(store), store.info(), store.study()
    own = {
        (arm.name, each.workload, each.level): each.options
        for arm in (study.arms if study is not None else ())
        for each in arm.workloads
    }
    settings = None
    if study is not None:
        file = study.file.model_dump(mode="json")
        settings = {key: value for key, value in file.items() if key not in SETTINGS_APART}
    return ComparedRun(
        name=name or str(store.directory),
        analysis=analysis,
        created=float(info.get("created", 0.0)),
        version=info.get("version", ""),
        facts=store.facts(),
        environments={n: Described(kind, options) for n, kind, options, aa_of in store.environments() if not aa_of},
        cells={(workload, level): Described(kind, options) for workload, level, kind, _, options in store.cells()},
        own_options=own,
        settings=settings,
        values=grouped(standing_values(store.values(), analysis.trials)),
    )
