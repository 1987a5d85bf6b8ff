"""The claims of a published study next to a run: as a table for people, as LaTeX and as CSV."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from csv_rows import csv_rows
from report.latex_text import is_plain_table
from report.made_up_runs import Workload
from report.test_html import HOSTILE
from sentences import assert_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.features.replication.claims import claims, claims_csv, claims_document, claims_latex
from weighbridge.features.replication.comparison import SIZES, Replication, replication, size_of
from weighbridge.features.replication.document import replication_json
from weighbridge.features.replication.published import published
from weighbridge.model.facts import layers_json
from weighbridge.model.isolation import SCOPE, Layer, SiteLayers
from weighbridge.model.measurement import Metric
from weighbridge.report.document import Table
from weighbridge.statistics import Interval

COSTS = {"docker-host": 1.0, "docker-bridge": 1.131, "docker-macvlan": 1.03, "docker-overlay": 3.0}
LATENCY = Workload("latency", [(Metric("one_way_latency", "ms", "lower"), 0.05, 0.002)])


def found_in(run, **recipe):
    made = {"costs": COSTS, "workloads": [LATENCY], "study": "docker-networks"} | recipe
    return replication(analyse(run(**made)), published("docker-networks"))


@pytest.mark.parametrize(
    ("value", "interval", "size"),
    [
        (1.0, None, "inside"), (2.0, None, "inside"), (1.5, Interval(1.5, 0.0, 9.0), "inside"),
        (0.999, None, "outside"), (2.001, None, "outside"),
        (0.9, Interval(0.9, 0.8, 1.0), "overlaps"), (2.5, Interval(2.5, 1.9, 3.0), "overlaps"),
        (0.9, Interval(0.9, 0.8, 0.99), "outside"), (2.5, Interval(2.5, 2.1, 3.0), "outside"),
    ],
)  # fmt: skip
def test_where_a_published_value_lies(value: float, interval: Interval | None, size: str):
    assert size_of(value, interval, (1.0, 2.0)) == size


def test_each_claim_is_a_row_of_the_table(run):
    found = found_in(run)
    measured = [each for each in claims(found) if each.measured]
    assert {each.row.size for each in measured} == {"inside", "overlaps", "outside"}
    assert_sentence("\n".join(" | ".join(each.cells) for each in measured))
    document = claims_document(found)
    shown = [row for block in document.blocks if isinstance(block, Table) for row in block.rows]
    assert [tuple(document.text(cell.parts) for cell in row) for row in shown] == [each.cells for each in measured]
    absent = next(each for each in claims(found) if not each.measured)
    assert absent.cells[2:] == ("not measured", "", "") and absent.row.size == "not measured"


def test_sizes_are_compared_only_if_they_can_be(run):
    emulated = layers_json(SiteLayers("here", (), (Layer("QEMU, TCG", emulated=True),)))
    for recipe in ({"facts": {SCOPE: {"docker-bridge/server": emulated}}}, {"blocks": 1}):
        rows = [each.row for each in claims(found_in(run, **recipe)) if each.row.name.startswith("docker-bridge")]
        assert {row.size for row in rows if row.measured is not None} == {"not compared"}


def test_a_kept_run_has_the_same_claims_in_every_format(finished_run, tmp_path: Path):
    _, analysis, _ = finished_run("docker-networks")
    found = replication(analysis, published("docker-networks"))
    document = json.loads(json.dumps(replication_json(found), allow_nan=False))
    (tmp_path / "claims.csv").write_text(claims_csv(found))
    rows = csv_rows(tmp_path / "claims.csv")
    of_rows = [row for row in rows if row["kind"] == "comparison"]
    assert len(of_rows) == len(document["rows"]) and {row["size"] for row in rows} <= {*SIZES}
    for row, told in zip(of_rows, document["rows"], strict=True):
        assert (row["table"], row["direction"], row["size"]) == (told["table"], told["direction"], told["size"])
        assert [row[f"published{end}"] for end in ("", "_low", "_high")] == numbers(told["published"])
        assert [row[f"measured{end}"] for end in ("", "_low", "_high")] == numbers(told["measured"])
        assert told["size"] == size_by_definition(told), told
    assert [row["size"] for row in rows if row["kind"] == "coefficient of variation"] == [
        each["size"] for each in document["spreads"]
    ]
    assert is_plain_table(claims_latex(found))
    assert claims_latex(found).count(r"\\") >= len(rows)


def numbers(estimate: dict[str, Any] | None) -> list[float | None]:
    return [None] * 3 if estimate is None else [estimate[key] for key in ("estimate", "low", "high")]


def size_by_definition(row: dict[str, Any]) -> str:
    """Say where the published value of a row of ``replicate --json`` lies."""
    measured, told = row["measured"], row["published"]
    if measured is None:
        return "not measured"
    units = measured["scale"] == row["scale"] and (row["scale"] == "ratio" or measured["unit"] == row["unit"])
    if measured["emulated"] or measured["low"] is None or not units:
        return "not compared"
    low, high = measured["low"], measured["high"]
    if low <= told["estimate"] <= high:
        return "inside"
    ends = (told["low"], told["high"]) if told["low"] is not None else (told["estimate"],) * 2
    return "outside" if ends[1] < low or ends[0] > high else "overlaps"


def test_a_paired_difference_has_its_interval_and_no_size(run):
    study = published("volume-vs-nfs")
    measured = study.pairs[0].measured
    workload = Workload(
        measured.workload, [(Metric(measured.metric, "1/s", "higher"), 200.0, 0.01)], tuple(measured.level.items())
    )
    made = run(costs={"volume": 1.1, "nfs-sync": 1.3, "nfs-async": 1.2}, workloads=[workload], study="volume-vs-nfs")
    found = replication(analyse(made), study)
    claim = next(each for each in claims(found) if each.row.measured)
    assert (claim.values["kind"], claim.values["unit"], claim.row.size) == ("difference", "1/s", "not compared")
    first, second = (
        [value for name, value in made_values(found) if name == environment] for environment in ("volume", "nfs-sync")
    )
    differences = [one - other for one, other in zip(first, second, strict=True)]
    expected = stats.ttest_1samp(differences, 0.0).confidence_interval(0.95)
    assert [claim.values["measured_low"], claim.values["measured_high"]] == pytest.approx([*expected])
    assert_sentence(" | ".join(claim.cells))


def made_values(found: Replication) -> Iterator[tuple[str, float]]:
    """Yield the environment and the value of each trial, round by round."""
    for trial in sorted(found.analysis.trials, key=lambda each: each.block):
        yield from ((trial.environment, value) for value in trial.values.values())


def test_names_of_a_stranger_are_text_in_latex(run):
    layers = layers_json(SiteLayers("here", (), (Layer(f"[1cm] \\input{{x}} {HOSTILE}", emulated=False),)))
    found = found_in(run, facts={SCOPE: {"docker-bridge/server": layers}})
    table = claims_latex(found)
    assert is_plain_table(table) and r"\textbackslash{}input\{x\}" in table
