"""A run as tidy CSV: ``measurements.csv``, ``costs.csv`` and ``programs.csv``."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.metered import PLACES
from weighbridge.analysis.program_use import OF_SITES, UNITS
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.analysis.run_result import VERSION, finite
from weighbridge.model.address import MetricId
from weighbridge.model.text import printable
from weighbridge.report.export.json import arm_cost, limits_of, within
from weighbridge.report.export.parquet import Tables
from weighbridge.report.export.provenance import provenance
from weighbridge.report.text.remarks import coded_text
from weighbridge.report.text.trial_flags import stable_text
from weighbridge.store.run import RunStore

MEASUREMENT_COLUMNS = {
    "trial": int, "round": int, "attempt": int, "order": int, "environment": str, "workload": str, "level": str,
    "metric": str, "unit": str, "better": str, "value": float, "outcome": str, "message": str, "started_at": float,
    "duration_s": float, "flags": str, "layers": str, "emulated": bool,
}  # fmt: skip
_WRITTEN_OUT = 5
"""Zeros behind the point of the smallest numbers that are written without an exponent."""
LEFT_OUT = "left out"
"""The outcome of an environment that could not be opened."""
COST_COLUMNS = {
    "environment": str, "against": str, "workload": str, "level": str, "metric": str, "unit": str, "better": str,
    "baseline_value": float, "value": float, "cost": float, "cost_low": float, "cost_high": float, "cost_unit": str,
    "scale": str, "typical": float, "low": float, "high": float,
    "geometric": float, "arithmetic": float, "rounds": int, "exploratory": bool, "verdict": str, "adjusted_p": float,
    "noise_floor": float, "noise_low": float, "noise_high": float, "control": bool, "flags": str,
    "hidden_by": str, "hidden_share": float, "hidden_rate": float, "unresolved": str,
    "visible_cost": float, "rounds_to_settle": int, "seconds_to_settle": float,
    "version": int, "run": str, "date": str, "kernel": str, "engine": str, "layers": str, "emulated": bool,
    "baseline_emulated": bool,
}  # fmt: skip


PROGRAM_COLUMNS = {
    "trial": int, "round": int, "attempt": int, "environment": str, "workload": str, "level": str, "role": str,
    "name": str, "unit": str, "value": float, "outcome": str, "layers": str, "emulated": bool,
}  # fmt: skip


def tables(store: RunStore, analysis: Analysis) -> Tables:
    """Yield ``measurements``, ``costs`` and ``programs``: the types of the columns, and the rows."""
    yield "measurements", MEASUREMENT_COLUMNS, _measurements(store, analysis)
    yield "costs", COST_COLUMNS, _costs(store, analysis)
    yield "programs", PROGRAM_COLUMNS, _programs(store, analysis)


def write_csv(store: RunStore, directory: Path, analysis: Analysis | None = None) -> tuple[Path, Path]:
    """Write ``measurements.csv`` and ``costs.csv`` into `directory` (made where missing) and give their paths.

    Measurements: one row per measurement, one without a metric per trial that failed or broke, and one without a
    trial per environment that was left out; ``order`` is the place in the session from 1, ``flags`` are codes with
    their figures, joined by "; ": ``throttled where=server share=0.2``. Text is one line without control characters,
    and has ``'`` before it where a spreadsheet would take it for a formula. Costs: the keys of `report_json`
    (``engine``: the environment's own) beside ``scale`` (ratio, or difference in the unit, of ``typical`` and the
    means), ``adjusted_p`` (Holm) and ``noise_floor`` (fraction of the ratio); infinite limits are empty. Both:
    ``layers``, the hypervisors that the environment was measured in, the outermost first and joined by "; ", and
    whether one of them emulates; ``baseline_emulated``: whether one does of the side that a cost is against.
    """
    analysis = analysis or analyse(store)
    directory.mkdir(parents=True, exist_ok=True)
    measurements, costs = directory / "measurements.csv", directory / "costs.csv"
    _write(measurements, MEASUREMENT_COLUMNS, _measurements(store, analysis))
    _write(costs, COST_COLUMNS, _costs(store, analysis))
    return measurements, costs


def _costs(store: RunStore, analysis: Analysis) -> list[dict[str, object]]:
    origin = provenance(store)
    about = {"version": VERSION, "run": analysis.run_id, "date": origin.date, "kernel": origin.kernel}
    return [
        {**about, "engine": origin.engine.get(row.environment), **_cost_row(analysis, m, row)}
        for m in analysis.metrics
        for row in m.comparisons
    ]


def _measurements(store: RunStore, analysis: Analysis) -> list[dict[str, object]]:
    what = {value.metric_id: (value.unit, value.better) for value in store.values()}
    rows: list[dict[str, object]] = []
    for trial in analysis.trials:
        about: dict[str, object] = {
            "trial": trial.id, "round": trial.block, "attempt": trial.attempt, "order": trial.order,
            "environment": trial.environment, "workload": trial.workload, "level": trial.level.text,
            "outcome": trial.outcome, "message": trial.message, "started_at": trial.started_at,
            "duration_s": trial.duration_s, "flags": stable_text(trial.flags),
            **_within(analysis, trial.environment),
        }  # fmt: skip
        for metric, value in trial.values.items():
            unit, better = what[MetricId(trial.cell, metric)]
            rows.append({**about, "metric": metric, "unit": unit, "better": better, "value": value})
        if not trial.values:
            rows.append(about)
    return rows + [
        {"environment": each.environment, "outcome": LEFT_OUT, "message": each.reason} for each in analysis.left_out
    ]


def write_programs(store: RunStore, directory: Path, analysis: Analysis | None = None) -> Path:
    """Write ``programs.csv`` and give its path: one row for each figure of each role's program, or site, in a trial.

    The figures are those of `weighbridge.analysis.program_use`.
    """
    _write(directory / "programs.csv", PROGRAM_COLUMNS, _programs(store, analysis or analyse(store)))
    return directory / "programs.csv"


def _programs(store: RunStore, analysis: Analysis) -> list[dict[str, object]]:
    trials = {trial.id: trial for trial in analysis.trials}
    rows: list[dict[str, object]] = []
    for sample in store.samples(*UNITS, *OF_SITES):
        trial = trials.get(sample.trial)
        if trial is not None and sample.site in PLACES:
            rows.append({
                "trial": trial.id, "round": trial.block, "attempt": trial.attempt, "environment": trial.environment,
                "workload": trial.workload, "level": trial.level.text, "role": sample.site, "name": sample.name,
                "unit": UNITS.get(sample.name, "s"), "value": sample.value, "outcome": trial.outcome,
                **_within(analysis, trial.environment),
            })  # fmt: skip
    return rows


def _within(analysis: Analysis, environment: str) -> dict[str, object]:
    """The hypervisors of an environment in cells."""
    hypervisors = within(analysis, environment)
    return {"layers": "; ".join(layer.name for layer in hypervisors["layers"]), "emulated": hypervisors["emulated"]}


def _cost_row(analysis: Analysis, report: MetricReport, row: Comparison) -> dict[str, object]:
    cost = row.cost
    numbers: dict[str, object] = {}
    if cost is not None:
        numbers = {
            "typical": cost.typical, **limits_of(cost),
            "geometric": cost.geometric.estimate if cost.geometric else None,
            "arithmetic": cost.arithmetic.estimate,
        }  # fmt: skip
    limit = row.hidden
    if limit is not None:
        numbers |= {"hidden_by": limit.kind, "hidden_share": limit.share, "hidden_rate": limit.rate}
    keys = {**vars(arm_cost(analysis, report, row)), **numbers}
    return {
        **{key: finite(value) if isinstance(value, float) else value for key, value in keys.items()},
        **_within(analysis, row.environment),
        "against": row.against, "level": report.level.text, "noise_floor": report.noise_floor,
        "flags": "; ".join(map(coded_text, row.remarks)), "unresolved": "; ".join(row.unresolved),
    }  # fmt: skip


def _write(path: Path, columns: Mapping[str, type], rows: Sequence[Mapping[str, object]]) -> None:
    path.write_text(csv_text(columns, rows), encoding="utf-8")


def csv_text(columns: Mapping[str, type], rows: Sequence[Mapping[str, object]]) -> str:
    """Return a table as CSV. `columns` are the names of the columns with the types of their values."""
    lines = [",".join(columns)]
    lines += [",".join(_cell(kind, row.get(name)) for name, kind in columns.items()) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def _cell(kind: type, value: object) -> str:
    """A cell of a column of this kind: nothing for None, which an empty text (``""``) is not.

    The csv module cannot write the two apart before Python 3.12.
    """
    if value is None:
        return ""
    if kind is float:
        return _number(float(str(value)))
    if kind is bool:
        return "true" if value else "false"
    line = _harmless(str(value)) if kind is str else str(value)
    return line if line and not set(line) & set(',"') else '"' + line.replace('"', '""') + '"'


def _number(value: float) -> str:
    """A float with the fewest digits that give it back: 0.00001, 1e-6, 1e+16, NaN."""
    digits, _, exponent = repr(value).partition("e-")
    if digits == "nan":
        return "NaN"
    if not exponent:
        return digits
    if int(exponent) > _WRITTEN_OUT:
        return f"{digits}e-{int(exponent)}"
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    return f"{sign}0.{'0' * (int(exponent) - 1)}{digits.replace('.', '')}"


def _harmless(text: str) -> str:
    """Text of one line that no spreadsheet takes for a formula: what begins like one begins with ``'``."""
    line = printable(" ".join(text.splitlines())).replace("\t", " ")
    return f"'{line}" if line.lstrip().startswith(("=", "+", "-", "@")) else line
