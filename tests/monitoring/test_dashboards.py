"""The dashboards: whole, and drawing only what the exporters and the run's own endpoint really serve."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .reading import (
    CAPTURED,
    DASHBOARDS,
    Query,
    as_rates,
    common,
    exposed,
    filled,
    kinds,
    labels,
    load,
    made_labels,
    metrics,
    panels,
    queries,
)

ALL = pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
ADDED = {"instance", "job"}
"""Labels that Prometheus adds to every series."""


def test_there_is_a_dashboard_for_each_captured_text():
    assert [path.stem for path in DASHBOARDS] == sorted(CAPTURED)
    uids = [load(path)["uid"] for path in DASHBOARDS]
    assert len(set(uids)) == len(uids)


@ALL
def test_every_panel_is_whole(path):
    dashboard = load(path)
    identities = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(identities)) == len(identities)
    titles = [panel["title"] for panel in panels(dashboard)]
    assert len(set(titles)) == len(titles)
    for panel in panels(dashboard):
        assert panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["targets"], panel["title"]
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references), panel["title"]
        overridden = {override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]}
        assert overridden <= set(references), panel["title"]
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])


@ALL
def test_no_two_panels_overlap_and_none_is_wider_than_the_page(path):
    places = [(panel["title"], panel["gridPos"]) for panel in load(path)["panels"]]
    for title, at in places:
        assert at["x"] >= 0 and at["w"] > 0 and at["h"] > 0 and at["x"] + at["w"] <= 24, title
    for (one, a), (other, b) in itertools.combinations(places, 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        above = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        assert beside or above, f"{one} and {other}"


@ALL
def test_trials_or_runs_are_marked(path):
    (marks,) = [each for each in load(path)["annotations"]["list"] if each.get("builtIn") != 1]
    named = metrics(marks["target"]["expr"])
    runs = {"weighbridge_result_start_time_seconds", "weighbridge_result_info"}
    assert marks["enable"] and named == (runs if path.stem == "costs" else {"weighbridge_trial_info"})
    known = set.union(*(exposed("weighbridge.txt", "weighbridge-costs.txt")[name] for name in named))
    assert labels(Query("", "", marks["titleFormat"] + marks["textFormat"])) <= known
    assert set(marks["tagKeys"].split(",")) <= known
    assert marks["useValueForTime"] == (path.stem == "costs"), "a run is marked when it began"


@pytest.mark.parametrize(
    "path", [each for each in DASHBOARDS if each.stem in {"costs", "run"}], ids=lambda path: path.stem
)
def test_a_figure_of_an_environment_is_shown_with_its_hypervisors(path):
    """In a legend, or in a table, which has a column for each label."""
    known = exposed(*CAPTURED[path.stem])
    drawn = 0
    for panel in panels(load(path)):
        for target in panel["targets"]:
            if any("environment" in known[metric] for metric in metrics(target["expr"])):
                drawn += 1
                assert all({"layers", "emulated"} <= known[metric] for metric in metrics(target["expr"]))
                if panel["type"] == "table":
                    hidden = panel["transformations"][-1]["options"]["excludeByName"]
                    assert not {"environment", "layers", "emulated"} & set(hidden), panel["title"]
                else:
                    assert "{{environment}} {{layers}} {{how}}" in target["legendFormat"], panel["title"]
                    assert target["expr"].endswith(', "how", "emulated", "emulated", "true")'), panel["title"]
    assert drawn > 9


@ALL
def test_every_variable_is_used_and_every_used_one_is_there(path):
    dashboard = load(path)
    names = {variable["name"] for variable in dashboard["templating"]["list"]}
    text = " ".join(query.expr for query in queries(dashboard)) + " ".join(p["title"] for p in panels(dashboard))
    for name in names - {"datasource"}:
        assert f"${name}" in text, name
    for query in queries(dashboard):
        assert "$" not in filled(query.expr).replace('"$1"', ""), query.where
    assert {panel["repeat"] for panel in panels(dashboard) if "repeat" in panel} <= names


@ALL
def test_every_query_names_only_what_is_served(path):
    served = exposed(*CAPTURED[path.stem])
    everywhere = served | exposed("weighbridge.txt")
    for query in queries(load(path)):
        known = everywhere if query.where.startswith("annotation") else served
        named = metrics(query.expr)
        assert named, query.where
        assert named <= set(known), f"{query.where}: {named - set(known)}"
        has = set().union(*(known[metric] for metric in named))
        missing = labels(query) - has - common(*CAPTURED[path.stem]) - ADDED - made_labels(query.expr)
        assert not missing, f"{query.where}: no such label {missing}"


@ALL
def test_rates_are_of_counters_and_of_nothing_else(path):
    kind = kinds(*CAPTURED[path.stem])
    for query in queries(load(path)):
        rates = as_rates(query.expr)
        assert {kind.get(metric, kind.get(metric.removesuffix("_total"))) for metric in rates} <= {
            "counter",
            "untyped",
        }
        if not query.where.startswith(("variable", "annotation")) and path.stem != "run":
            levels = metrics(query.expr) - rates
            counters = {metric for metric in levels if kind.get(metric) == "counter"}
            assert counters <= {"node_cpu_seconds_total"}, query.where  # there only to count the CPUs


def test_queries_are_read_right():
    expr = (
        'label_replace(sum by (id, name) (rate(a_total{id=~"$group",id!="/"}[$__rate_interval])) / scalar(b > 0),'
        ' "who", "$1", "id", "(.*)") and on (id) node_load1 == 1 or (time() - 3)'
    )
    assert metrics(expr) == {"a_total", "b", "node_load1"}
    assert labels(Query("", expr, "{{who}} {{ name }}")) == {"id", "name", "who"}
    assert made_labels(expr) == {"who"}
    assert 'a_total{id=~".*",id!="/"}[15s]' in filled(expr)


@given(st.from_regex(r"[a-z_][a-z0-9_]{3,20}", fullmatch=True).filter(lambda name: "__" not in name))
def test_a_name_is_found_wherever_it_stands(name):
    if name in {"offset", "bool", "without", "unless", "ignoring", "group_left", "group_right"}:
        return
    assert metrics(f'sum by (x) (rate({name}{{a="(b)"}}[1m])) / {name}') == {name}
