"""nginx-vegeta: its options, its command line, what its program prints, and whose fault it is when it fails."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sentences import raises_sentence
from weighbridge.analysis.remarks.flags import figure_ranges, kind_of
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Broke, ProgramFailed, Unparseable
from weighbridge.report.text.trial_flags import flag_kind_text
from weighbridge.statistics.histogram import Histogram
from weighbridge.workloads.nginx_vegeta import PLUGIN, NginxVegetaOptions

from .captured import AT, data, ended, parse

KIND = "nginx-vegeta"
GOOD = json.loads(data("vegeta-rate.json"))["attack"]
AT_500: dict[str, Any] = {"rate": 500, "duration": "2s"}
SEARCH: dict[str, Any] = {
    "objective": "30ms", "percentile": "95%", "search_from": 1000, "search_to": 50_000, "duration": "500ms",
}  # fmt: skip


def _options(**given: Any) -> NginxVegetaOptions:
    return PLUGIN.options.model_validate(given)


FAST = {
    "rate": 1_000_000, "planned": 1_000_000, "sent": 80_421, "answered": 80_421, "counted": 1_000_000,
    "lag_p50_ns": 400_000, "behind_ns": 0, "errors": GOOD["errors"] | {"unsent": 919_579},
}  # fmt: skip
"""Far more than a generator can send: most of it was never sent."""


def _told(options: dict[str, Any] | None = None, **changes: Any) -> dict[str, float]:
    """What is read of the good attack with some of its numbers changed."""
    line = json.dumps({"attack": GOOD | changes})
    return {each.metric.name: each.value for each in parse(KIND, options or AT_500, line.encode())}


def _errors(**changes: int) -> dict[str, int]:
    return GOOD["errors"] | changes


# -- options and command lines -----------------------------------------------------------------------------------


def test_without_anything_it_is_a_rate():
    assert _options().rate == 1000
    assert _options().objective is None
    assert _options(objective="10ms").rate is None
    assert PLUGIN.load(PLUGIN.options()) == "rate"


def test_a_rate():
    client = PLUGIN.command("client", _options(rate=2500, duration="1500ms", connections=20), AT)
    assert " ".join(client.argv) == (
        "weighbridge-vegeta -url http://192.0.2.7:15201/page.html -duration 1500ms -timeout 2000ms -connections 20"
        " -rate 2500"
    )
    warm_up = PLUGIN.warm_up(_options(rate=2500), AT)
    assert "-duration 1000ms" in " ".join(warm_up.argv)
    assert warm_up.argv[-2:] == ("-rate", "2500")


def test_a_search():
    options = _options(objective="10ms", percentile="99.9%", search_from=500, content="picture", duration="20s")
    client = PLUGIN.command("client", options, AT)
    assert " ".join(client.argv) == (
        "weighbridge-vegeta -url http://192.0.2.7:15201/picture.jpg -duration 20000ms -timeout 2000ms"
        " -connections 4000 -objective 10000us -share 0.999 -from 500 -to 100000"
    )
    assert PLUGIN.warm_up(options, AT).argv[-2:] == ("-rate", "500")
    assert client.deadline_s > options.most_attacks * 20 > PLUGIN.expected_s(options) > 10 * 20
    assert [metric.name for metric in PLUGIN.metrics(options)] == ["rate_at_objective"]


def test_a_search_with_the_options_of_its_captured_output_makes_no_more_attacks_than_it_may():
    attacks = len(data("vegeta-search.json").splitlines()) - 1
    assert attacks <= _options(**SEARCH).most_attacks


def test_the_headline_is_the_tail():
    assert PLUGIN.metrics(_options())[0].name == "latency_p99"


@given(
    st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0.5, 0.9999), st.floats(0.5, 3600), st.floats(0.01, 60)
)
def test_a_deadline_outlasts_the_longest_search(low: int, high: int, share: float, duration: float, timeout: float):
    given_ = {
        "objective": "1ms", "percentile": f"{100 * share:.6f}%", "search_from": low, "search_to": high,
        "duration": f"{duration:.3f}s", "timeout": f"{timeout:.3f}s",
    }  # fmt: skip
    try:
        options = _options(**given_)
    except ValidationError:
        return
    rate, attacks = float(low), 2
    while rate < high:  # each rate misses once before it is met, but for the last, which misses twice
        rate, attacks = min(2 * rate, high), attacks + 2
    found, missed = rate / 2, rate
    while missed > 1.05 * found and missed > found + 1:
        missed, attacks = (found + missed) / 2, attacks + 2
    assert attacks <= options.most_attacks
    deadline_s = PLUGIN.command("client", options, AT).deadline_s
    assert deadline_s > attacks * (options.duration + 2 * options.timeout + 0.3)
    assert PLUGIN.expected_s(options) < deadline_s


# -- what is printed -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rate", "stall", "connections", "timeouts"])
def test_the_histogram_holds_every_request_and_the_percentiles_are_its_own(name: str):
    stdout = data(f"vegeta-{name}.json")
    rate = json.loads(stdout)["attack"]["rate"]
    options = _options(rate=rate, duration="2s")
    result = PLUGIN.parse(options, {"client": ended(stdout)})
    histogram = Histogram.decode(result.histograms["latency"])
    found = {each.metric.name: each.value for each in result.measurements}
    assert histogram.count == rate * 2
    for percent in (50, 95, 99):
        assert histogram.percentile(percent) / 1e6 == pytest.approx(found[f"latency_p{percent}"], rel=2e-3)
    assert histogram.maximum / 1e6 == pytest.approx(found["latency_max"], rel=2e-3)
    assert histogram.mean / 1e6 == pytest.approx(found["latency_mean"], rel=2e-3)


def test_a_stall_of_200_ms_is_in_the_tail_and_not_in_the_median():
    """At a constant rate a tenth of the requests of two seconds fall into it, and wait 100 ms on average."""
    stalled = {each.metric.name: each.value for each in parse(KIND, AT_500, data("vegeta-stall.json"))}
    assert stalled["latency_max"] > 200 and stalled["latency_p99"] > 180
    assert stalled["latency_p95"] == pytest.approx(100, abs=15)
    assert stalled["latency_p50"] < 1
    assert stalled["latency_mean"] == pytest.approx(0.1 * 100, abs=3)


LATE, WAITED = FlagCode.GENERATOR_LATE, FlagCode.CONNECTION_WAIT


def test_flags():
    def flags(file: str, **options: Any) -> list[tuple[str, float | None]]:
        found = PLUGIN.parse(_options(**options), {"client": ended(data(file))})
        return [(flag.code, flag.figures.get("share")) for flag in found.flags]

    assert flags("vegeta-stall.json", **AT_500) == [(LATE, pytest.approx(0.055, abs=5e-4))]
    assert flags("vegeta-connections.json", **AT_500) == [
        (LATE, pytest.approx(0.052, abs=5e-4)), (WAITED, pytest.approx(0.157, abs=5e-4)),
    ]  # fmt: skip
    assert flags("vegeta-search.json", **SEARCH) == []
    to = SEARCH | {"objective": "50ms", "search_from": 200, "search_to": 400}
    assert flags("vegeta-search-to.json", **to) == [(FlagCode.SEARCH_TO, None)]


def test_the_report_has_words_for_the_flags():
    late, later = (Flag(LATE, figures={"share": share}) for share in (0.027, 0.1))
    waited = Flag(WAITED, figures={"share": 0.186})
    said = flag_kind_text(kind_of(late), figure_ranges([late, later]))
    assert said == "the load generator sent 2.7 to 10% of the requests late (flagged above 1%)"
    assert flag_kind_text(kind_of(waited), figure_ranges([waited])).startswith(
        "19% of the requests waited for a free connection"
    )


# -- what went wrong, and whose fault it is ----------------------------------------------------------------------


def test_half_of_the_requests_is_a_measurement_and_less_is_not():
    counts = {"planned": 1000, "answered": 500, "counted": 500, "errors": _errors(read=500)}
    with raises_sentence(Unparseable):
        _told(**counts)
    with raises_sentence(Broke):
        _told(planned=1000, answered=499, counted=499, errors=_errors(read=501))


def test_a_generator_that_is_behind_at_its_end_did_not_keep_its_rate():
    assert _told(behind_ns=99_000_000)
    with raises_sentence(ProgramFailed):
        _told(behind_ns=150_000_000)
    assert _told(lag_p50_ns=9_000_000)
    with raises_sentence(ProgramFailed):
        _told(lag_p50_ns=11_000_000)
    with raises_sentence(ProgramFailed):
        _told(lag_p50_ns=400_000, behind_ns=150_000_000)
    with pytest.raises(ProgramFailed) as caught:
        parse(KIND, AT_500 | {"rate": 1_000_000}, json.dumps({"attack": GOOD | FAST}).encode())
    assert str(caught.value) == (
        "the generator could not keep 1000000 requests/s: it sent 80421 of 1000000; "
        "use a lower rate, or give the client more CPU"
    )
    unsent = {"answered": 990, "errors": _errors(unsent=10)}
    with raises_sentence(ProgramFailed):
        _told(**unsent)
    assert _told(**unsent, unsent_by_queue=True)["errors_unsent"] == 10


@pytest.mark.parametrize(
    "changes",
    [
        {"answered": 999}, {"planned": 1001}, {"planned": 0}, {"sent": 1001}, {"counted": 10}, {"seconds": 0},
        {"seconds": None}, {"rate": -1}, {"mean_ns": True}, {"errors": None}, {"errors": {}},
        {"histogram": "HIST"}, {"histogram": None}, {"max_ns": float("inf")},
        {"lag_p99_ns": float("nan")}, {"errors": {**GOOD["errors"], "read": 0.5}},
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_unparseable(changes: dict[str, Any]):
    with pytest.raises(Unparseable):
        _told(**changes)


def test_a_search_must_follow_from_its_attacks():
    lines = data("vegeta-search.json").decode().splitlines()
    for changed in (lines[1:], lines[:-2] + lines[-1:], [*lines[:-1], lines[-1].replace("3500", "3600")]):
        with raises_sentence(Unparseable):
            parse(KIND, SEARCH, "\n".join(changed).encode())
    with pytest.raises(Unparseable):
        parse(KIND, SEARCH, "\n".join([*lines[:-1], lines[-1].replace("server", "nobody")]).encode())


@given(st.sampled_from(sorted(set(GOOD) - {"said", "errors", "histogram"})), st.floats(0, 1e15))
def test_a_changed_number_is_followed_or_refused(key: str, value: float):
    try:
        found = _told(**{key: value})
    except (Unparseable, ProgramFailed, Broke):
        return
    if key == "seconds":
        assert found["requests"] == pytest.approx(GOOD["answered"] / value)
    elif f"latency_{key.removesuffix('_ns')}" in found:
        assert found[f"latency_{key.removesuffix('_ns')}"] == pytest.approx(value / 1e6)
    else:
        assert found == _told()


def test_the_work_is_what_was_answered():
    options = _options(rate=200, duration="2s")
    completed = {"client": ended(data("vegeta-timeouts.json"))}
    work = PLUGIN.parse(options, completed).work
    assert work is not None
    assert (work.amount, work.unit) == (pytest.approx(0.33), "1000_transactions")
    search = PLUGIN.parse(_options(**SEARCH), {"client": ended(data("vegeta-search.json"))})
    assert search.work is None and search.work_s == ended().duration_s, "a search works as long as it runs"
