"""Two finished runs of real studies: a few figures that stay, the schema of what they give, and their pages.

What else the numbers of a document hold to one another is in test_derived_verdicts.py.
"""

import pytest

from documents import fits
from weighbridge.analysis.limits import judge
from weighbridge.analysis.requirement import LIMIT, parse_requirement
from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.features.replication.comparison import replication
from weighbridge.features.replication.document import replication_json
from weighbridge.features.replication.published import published
from weighbridge.report.export.json import report_json
from weighbridge.report.export.limits import limits_json
from weighbridge.report.html import write_html

from .conftest import FINISHED

WHOLE = {"docker-networks": (276, 0, True, 1), "first-look": (356, 88, True, 1)}
"""Costs, steps, whether the run is trusted, and looks."""
COSTS = {
    "docker-networks": {
        ("latency", "docker-overlay", "rate"): (29.23, 19.12, 36.44, "significant"),
        ("latency", "docker-host", "rate"): (-3.101, -21.60, 8.309, "undecided"),
        ("datagram", "docker-overlay", "throughput"): (3.504, 3.367, 3.603, "significant"),
        ("datagram", "docker-bridge", "throughput"): (0.08134, 0.0, 0.1831, "hidden"),
        ("datagram", "native-again", "throughput"): (0.08153, -0.04077, 0.6839, None),
    },
    "first-look": {
        ("tcp", "docker-published", "throughput"): (13.73, 10.92, 16.72, "significant"),
        ("latency", "docker-host", "rate"): (-2.134, -11.10, 1.343, "undecided"),
        ("cpu", "docker-bridge", "events"): (0.04721, -2.941, 3.326, "equivalent"),
        ("redis", "own-namespace", "set_throughput"): (-5.006, -16.88, 6.910, "undecided"),
    },
}
"""By workload, environment and metric (of clients here, where they are elsewhere too): the cost in percent."""


@pytest.mark.parametrize("name", FINISHED)
def test_figures_of_a_finished_run_stay(finished_run, name):
    document = finished_run(name).document
    whole = len(document["costs"]), len(document["ladder"]), document["control_passed"], document["looks"]
    assert whole == WHOLE[name]
    rows = {
        (row["workload"], row["environment"], row["metric"]): row
        for row in document["costs"]
        if row["level"].get("client") != "elsewhere"
    }
    for place, (*figures, verdict) in COSTS[name].items():
        row = rows[place]
        assert [row["cost"], row["cost_low"], row["cost_high"]] == pytest.approx(figures, rel=1e-3), place
        assert (row["verdict"], row["rounds"], row["cost_unit"]) == (verdict, 10, "%"), place


@pytest.mark.parametrize("name", FINISHED)
def test_what_a_finished_run_gives_has_its_schema(finished_run, name):
    store, analysis, document = finished_run(name)
    fits(SchemaDocument.REPORT, document)
    limit = parse_requirement("*.{workload}.{metric} > 1%".format_map(document["costs"][0]), LIMIT)
    limits = limits_json(analysis, judge([limit], analysis))
    with_limits = report_json(store, analysis, limits)
    assert len(with_limits["limits"]) == len(limits) > 0
    fits(SchemaDocument.REPORT, with_limits)
    if name == "docker-networks":
        fits(SchemaDocument.REPLICATE, replication_json(replication(analysis, published(analysis.study), [])))


@pytest.mark.parametrize("name", FINISHED)
def test_a_finished_run_has_a_page(finished_run, tmp_path, name):
    store, analysis, _ = finished_run(name)
    assert write_html(store, tmp_path / "page.html", analysis).read_text().rstrip().endswith("</html>")
