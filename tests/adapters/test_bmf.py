"""Bencher Metric Format: which measure is read, and what is no value of one."""

import json

import pytest
from pydantic import ValidationError

from sentences import raises_sentence
from weighbridge.model.measurement import Metric, TrialFailure, Unparseable

from .captured import options


def _read(printed: object, given: dict[str, object]) -> list[tuple[Metric, float]]:
    text = printed if isinstance(printed, str) else json.dumps(printed)
    return [(each.metric, each.value) for each in options("bmf", given).read(text.encode(), b"")]


@pytest.mark.parametrize(
    ("given", "metric"),
    [
        ({}, Metric("latency", "ns", "lower")),
        ({"measure": "latency"}, Metric("latency", "ns", "lower")),
        ({"measure": "throughput"}, Metric("throughput", "1/s", "higher")),
        ({"measure": "Throughput"}, Metric("throughput", "1/s", "higher")),
        ({"measure": "build-time"}, Metric("build_time", "s", "lower")),
        ({"measure": "file-size"}, Metric("file_size", "B", "lower")),
        ({"measure": "latency", "unit": "ms"}, Metric("latency", "ms", "lower")),
        ({"measure": "RSS", "unit": "MiB", "better": "lower"}, Metric("rss", "MiB", "lower")),
        ({"measure": "time", "unit": "s", "better": "lower"}, Metric("measure_time", "s", "lower")),
    ],
)
def test_what_a_measure_is(given: dict[str, object], metric: Metric):
    assert options("bmf", given).metrics() == (metric,)


@pytest.mark.parametrize(
    "given",
    [
        {"measure": "RSS"},
        {"measure": "RSS", "unit": "MiB"},
        {"measure": "RSS", "better": "lower"},
        {"measure": "LATENCY"},
        {"unit": "ms"},
        {"better": "lower"},
        {"measure": ""},
        {"measure": "日本", "unit": "s", "better": "lower"},
        {"measure": "RSS", "unit": "Mi B", "better": "lower"},
    ],
)
def test_a_measure_of_which_too_little_is_told_is_refused(given: dict[str, object]):
    with pytest.raises(ValidationError):
        options("bmf", given)


def test_the_only_measure_is_read_where_it_is_latency_alone():
    assert _read({"a": {"latency": {"value": 3}}}, {}) == [(Metric("latency", "ns", "lower"), 3)]
    assert _read({"a": {"Latency": {"value": 3}}}, {}) == [(Metric("latency", "ns", "lower"), 3)]
    with raises_sentence(Unparseable):
        _read({"a": {"throughput": {"value": 3}}}, {})
    both = {"a": {"latency": {"value": 3}}, "b": {"throughput": {"value": 3}}}
    with raises_sentence(Unparseable):
        _read(both, {})
    assert _read(both, {"benchmarks": ["a"]}) == [(Metric("a", "ns", "lower"), 3)]
    assert _read(both, {"measure": "throughput"}) == [(Metric("throughput", "1/s", "higher"), 3)]


LATENCY = [
    "",
    " \n",
    "{}",
    "[]",
    "null",
    "3",
    "running ...\n{}",
    '{"a": {}}',
    '{"a": []}',
    '{"a": {"latency": {}}}',
    '{"a": {"latency": 3}}',
    '{"": {"latency": {"value": 3}}}',
    '{"a": {"latency": {"lower_value": 3, "upper_value": 3}}}',
    '{"a": {"latency": {"value": 3}}, "a": {"latency": {"value": 4}}}',
    '{"a": {"latency": {"value": 3}, "latency": {"value": 4}}}',
    '{"a": {"latency": {"value": 3}, "Latency": {"value": 4}}}',
    '{"a": {"latency": {"value": 3}}',
    '{"a": {"latency": {"value": 3}}}\n{"a": {"latency": {"value": 3}}}',
    *(
        f'{{"a\\nb": {{"latency": {{"value": {value}}}}}}}'
        for value in ("NaN", "Infinity", "-3", "1e999", "9" * 400, "true", '"3"', "null", "[3]", "{}")
    ),
]


@pytest.mark.parametrize("printed", LATENCY)
def test_what_is_no_latency_is_a_failure_on_one_line(printed: str):
    with pytest.raises(TrialFailure) as failed:
        _read(printed, {})
    assert "\n" not in str(failed.value)


def test_only_a_measure_of_the_study_s_own_may_be_below_zero():
    cost = {"measure": "cost (%)", "unit": "%", "better": "lower"}
    assert _read({"a": {"cost (%)": {"value": -3.5}}}, cost) == [(Metric("cost", "%", "lower"), -3.5)]
    for measure in ("latency", "throughput", "build-time", "file-size"):
        with raises_sentence(Unparseable):
            _read({"a": {measure: {"value": -3.5}}}, {"measure": measure})


def test_limits_are_not_looked_at():
    assert _read({"a": {"latency": {"value": 3, "lower_value": 5, "upper_value": None}}}, {})[0][1] == 3


def test_one_benchmark_of_those_that_are_named_lacks_the_measure():
    printed = {"a": {"latency": {"value": 3}}, "b": {"throughput": {"value": 3}}, "c": {}}
    for name in ("b", "c"):
        with raises_sentence(Unparseable):
            _read(printed, {"measure": "latency", "benchmarks": ["a", name]})
