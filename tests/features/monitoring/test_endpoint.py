"""What the endpoint tells of a run, in the format that Prometheus reads; nothing of it needs a network."""

import errno
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sentences import raises_sentence
from weighbridge.errors import Unavailable
from weighbridge.features.monitoring import server
from weighbridge.features.monitoring.families import Families
from weighbridge.features.monitoring.fanout import ProgressFanout
from weighbridge.features.monitoring.server import address_of, serving
from weighbridge.features.monitoring.snapshot import Live
from weighbridge.model.isolation import Layer, SiteLayers
from weighbridge.model.level import Level
from weighbridge.model.measurement import Measurement, Metric, Outcome
from weighbridge.model.trial import RoleRecord, Series, Trial, TrialRecord
from weighbridge.runner.estimate import Forecast
from weighbridge.runner.precision import PrecisionStatus

LEFT = Forecast(60.0, 10, 60.0, 10, "blocks")
KVM = Layer("QEMU, KVM")
NATIVE = Trial(3, 1, "net", Level([("clients", "50"), ("size", "1KiB")]), "native")
ONE = Trial(3, 0, "cpu", Level(), "one")
SPEED, DELAY = Metric("speed", "x/s", "higher"), Metric("latency_p99", "ms", "lower")
BARE = {"layers": "", "emulated": "false"}
AT = {"workload": "net", "level": "clients=50, size=1KiB", "environment": "native", **BARE}


def ended(trial: Trial = NATIVE, outcome: Outcome = Outcome.OK, speed: float = 42.0, **further) -> TrialRecord:
    return TrialRecord(
        trial, outcome, 1e9, 2.5, 2.0, measurements=(Measurement(SPEED, speed), Measurement(DELAY, 0.25)),
        roles=(RoleRecord("client", ("x",), 0, 2.0, b"x" * 1000, b""),), **further,
    )  # fmt: skip


def scraped(live: Live) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Each metric's labels and values, as Prometheus reads them."""
    registry = CollectorRegistry(auto_describe=True)
    registry.register(Families(live.now, "made-up"))
    text = generate_latest(registry).decode()
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.name.startswith("weighbridge_")
        for sample in family.samples:
            found.setdefault(sample.name.removeprefix("weighbridge_"), []).append((sample.labels, sample.value))
    return found


def test_before_the_first_trial_there_is_only_what_is_known():
    found = scraped(Live())
    assert found["info"][0][0]["study"] == "made-up"
    assert found["trials_planned"] == found["trials_done"] == found["block"] == [({}, 0.0)]
    assert {labels["outcome"]: value for labels, value in found["trials_total"]} == dict.fromkeys(Outcome, 0.0)
    for nothing in (
        "trial_info",
        "trial_start_time_seconds",
        "measurement",
        "sample",
        "meter_mean",
        "precision_ratio",
    ):
        assert nothing not in found


def test_the_trial_that_runs():
    live = Live()
    live.trial_started(NATIVE, 7, 24, LEFT)
    found = scraped(live)
    assert (found["trials_done"], found["trials_planned"], found["block"]) == ([({}, 7)], [({}, 24)], [({}, 3)])
    assert found["trial_info"] == [({**AT, "block": "3", "attempt": "1"}, 1.0)]
    ((labels, began),) = found["trial_start_time_seconds"]
    assert labels == {**AT, "block": "3"}
    assert began >= found["run_start_time_seconds"][0][1] > 1.7e9
    live.trial_finished(ended())
    assert "trial_info" not in scraped(live) and "trial_start_time_seconds" not in scraped(live)


def test_what_a_trial_measured_and_how_it_ended():
    live = Live()
    live.trial_started(NATIVE, 0, 2, LEFT)
    live.trial_finished(ended(speed=41.0))
    live.trial_started(ONE, 1, 2, LEFT)
    live.trial_finished(ended(ONE, Outcome.BROKE))
    live.trial_started(NATIVE, 2, 2, LEFT)
    live.trial_finished(ended())
    found = scraped(live)
    assert found["trials_done"] == found["trials_planned"] == [({}, 3)], "a repeated block: more than was planned"
    counts = {labels["outcome"]: value for labels, value in found["trials_total"]}
    assert (counts["ok"], counts["broke"], sum(counts.values())) == (2, 1, 3)
    values = {(labels["workload"], labels["metric"]): (labels, value) for labels, value in found["measurement"]}
    assert values["net", "speed"] == ({**AT, "metric": "speed", "unit": "x/s"}, 42.0), "the last one"
    assert values["cpu", "latency_p99"][1] == 0.25 and values["cpu", "speed"][0]["level"] == ""
    assert [value for _, value in found["trial_duration_seconds"]] == [2.5, 2.5]
    assert (AT, 2.0) in found["trial_measured_seconds"]


def test_a_trial_that_was_not_measured_has_no_measured_time():
    live = Live()
    live.trial_finished(replace(ended(outcome=Outcome.ENVIRONMENT_LOST), measured_s=None))
    found = scraped(live)
    assert [value for _, value in found["trial_duration_seconds"]] == [2.5] and "trial_measured_seconds" not in found


def test_readings_are_those_of_the_last_trial_alone():
    live = Live()
    series = (Series("host local", "cpu_user_share", (1.0, 2.0), (0.5, 0.7)), Series("server", "pids_count", (), ()))
    live.trial_finished(ended(samples=(("server", "cpu_s", 1.5), ("host", "busy_s", 2.0)), series=series))
    found = scraped(live)
    assert found["meter_mean"] == [({**AT, "place": "host local", "name": "cpu_user_share"}, pytest.approx(0.6))]
    assert {(labels["place"], labels["name"]): value for labels, value in found["sample"]} == {
        ("server", "cpu_s"): 1.5, ("host", "busy_s"): 2.0,
    }  # fmt: skip
    live.trial_finished(ended(ONE, samples=(("solo", "cpu_s", 0.5),)))
    assert [labels["workload"] for labels, _ in scraped(live)["sample"]] == ["cpu"]


def test_looks_at_the_precision():
    live = Live()
    live.precision_checked(
        10, [PrecisionStatus("net", "one", 0.031, False, 22), PrecisionStatus("net", "two", float("inf"), True, None)]
    )
    live.precision_checked(13, [PrecisionStatus("net", "one", 0.019, True, None)])
    found = scraped(live)
    assert found["precision_blocks"] == [({}, 13)]
    assert found["precision_ratio"] == [({"cell": "net", "environment": "one", **BARE}, 0.019)], (
        "infinite is no width"
    )
    assert {labels["environment"]: value for labels, value in found["precision_reached"]} == {"one": 1, "two": 1}
    assert "precision_predicted_blocks" not in found


def test_every_figure_of_an_environment_names_its_hypervisors():
    tcg, xen = Layer("QEMU, TCG", emulated=True), Layer("Xen PVH")
    live = Live()
    live.layers_known({"native": (SiteLayers("lab", (tcg,), (xen,)),), "kvm": (SiteLayers("here", (), (KVM,)),)})
    live.trial_started(NATIVE, 0, 4, LEFT)
    series = (Series("server", "cpu_share", (1.0,), (0.5,)),)
    live.trial_finished(ended(samples=(("server", "cpu_s", 1.5),), series=series))
    live.precision_checked(
        10, [PrecisionStatus("net", "native", 0.03, False, 22), PrecisionStatus("net", "one", 0.03, True, 22)]
    )
    live.trial_started(NATIVE, 1, 4, LEFT)
    found = [(name, labels) for name, rows in scraped(live).items() for labels, _ in rows if "environment" in labels]
    assert {name for name, _ in found} >= {"trial_info", "trial_start_time_seconds", "measurement", "sample",
                                           "meter_mean", "trial_duration_seconds", "trial_measured_seconds",
                                           "precision_ratio", "precision_reached"}  # fmt: skip
    emulated = {"layers": "Xen PVH inside QEMU, TCG", "emulated": "true"}
    for name, labels in found:
        wanted = emulated if labels["environment"] == "native" else BARE
        assert wanted.items() <= labels.items(), name


def test_what_is_in_hardware_virtualization_is_not_emulated():
    live = Live()
    live.layers_known({"one": (SiteLayers("here", (), (KVM,)),)})
    live.trial_finished(ended(ONE))
    labels, _ = scraped(live)["measurement"][0]
    assert (labels["layers"], labels["emulated"]) == ("QEMU, KVM", "false")


def test_outputs_are_not_kept():
    live = Live()
    live.trial_finished(ended())
    last = live.now().last
    assert last is not None and last.roles == ()


def test_a_moment_does_not_change_afterwards():
    live = Live()
    live.trial_finished(ended())
    before = live.now()
    live.trial_finished(ended(ONE))
    assert (before.finished, len(before.measurements)) == (1, 2)


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_in_a_label_is_read_back(level: str, unit: str):
    live = Live()
    trial = Trial(1, 0, "net", Level([("n", level)]), "native")
    live.trial_finished(
        TrialRecord(trial, Outcome.OK, 1e9, 1, 1, measurements=(Measurement(Metric("m", unit, "lower"), 1.0),))
    )
    registry = CollectorRegistry()
    registry.register(Families(live.now))
    text = generate_latest(registry).decode("utf-8", "strict")
    if not {"\\", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"} & set(level + unit):
        families = {family.name: family for family in text_string_to_metric_families(text)}
        (sample,) = families["weighbridge_measurement"].samples
        assert (sample.labels["level"], sample.labels["unit"]) == (f"n={level}", unit)


def test_several_are_told_the_same():
    first, second = Live(), Live()
    both = ProgressFanout(first, second)
    both.say("hello")
    both.trial_started(NATIVE, 0, 1, LEFT)
    both.trial_finished(ended())
    both.precision_checked(10, [PrecisionStatus("net", "one", 0.1, False, None)])
    for live in (first, second):
        moment = live.now()
        assert (moment.finished, moment.planned, moment.looked_after, len(moment.statuses)) == (1, 1, 10, 1)


# -- the address ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:9464", ("127.0.0.1", 9464)), ("localhost:0", ("127.0.0.1", 0)), ("[::1]:80", ("::1", 80)),
     ("127.1.2.3:65535", ("127.1.2.3", 65535))],
)  # fmt: skip
def test_an_address(text: str, address: tuple[str, int]):
    assert address_of(text) == address


@pytest.mark.parametrize(
    ("text", "words"),
    [("0.0.0.0:9464", "'0.0.0.0' is not a loopback address"), ("192.0.2.1:9464", "not a loopback address"),
     (":9464", "not a loopback address"), ("[::]:9464", "not a loopback address"),
     ("example.org:80", "not a loopback address"),
     ("9464", "not an address with a port"), ("127.0.0.1", "not an address"), ("127.0.0.1:", "not an address"),
     ("127.0.0.1:http", "not an address"), ("127.0.0.1:65536", "port 65536 is too large"),
     ("::1:80", "not an address"),
     ("127.0.0.1:-1", "not an address"), ("", "not an address"), ("http://127.0.0.1:9464", "not an address"),
     ("127.0.0.1:٣", "not an address")],
)  # fmt: skip
def test_no_address(text: str, words: str):
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:9464") as caught:
        address_of(text)
    assert words in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_a_loopback_address_or_a_sentence(text: str):
    try:
        host, port = address_of(text)
    except ValueError as error:
        assert "\n" not in str(error).replace(text, "")
    else:
        assert host.startswith("127.") or ":" in host
        assert 0 <= port <= 65535


class Served:
    """Stands in for the server, which listens on a real port, and for its thread."""

    server_port = 4711

    def __init__(self) -> None:
        self.did: list[str] = []

    def shutdown(self) -> None:
        self.did.append("ended")

    def server_close(self) -> None:
        self.did.append("closed")

    def join(self) -> None:
        self.did.append("joined")


def test_it_is_served_and_ended(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    served, made = Served(), []

    def start(*arguments):
        made.append(arguments)
        return served, served

    monkeypatch.setattr(server, "start_http_server", start)
    live = Live()
    with pytest.raises(KeyError), serving(("::1", 0), live) as url:
        assert url == "http://[::1]:4711/metrics"
        ((port, host, registry),) = made
        assert (port, host) == (0, "::1")
        body = generate_latest(registry)
        assert b"weighbridge_block 0.0" in body and b"python_info" not in body, "a registry of its own"
        live.trial_started(NATIVE, 0, 1, LEFT)
        assert b"weighbridge_block 3.0" in generate_latest(registry)
        served.handle_error(None, ("::1", 1))  # somebody hung up
        raise KeyError
    assert served.did == ["ended", "closed", "joined"]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "number",
    [errno.EADDRINUSE, errno.EACCES,
     errno.EADDRNOTAVAIL],
)  # fmt: skip
def test_an_address_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch, number: int):
    def make(*_: object) -> None:
        raise OSError(number, "Cannot assign requested address")

    monkeypatch.setattr(server, "start_http_server", make)
    with raises_sentence(Unavailable), serving(("127.0.0.1", 80), Live()):
        pass


# -- scrapes -------------------------------------------------------------------------------------------


def test_a_second_scrape_in_one_trial_computes_nothing():
    live = Live()
    families = Families(live.now)
    live.trial_started(NATIVE, 0, 1, LEFT)
    first = families.collect()
    assert families.collect() is first
    live.trial_finished(ended())
    second = families.collect()
    assert second is not first and {"weighbridge_measurement"} <= {family.name for family in second}
    live.precision_checked(10, [])
    assert families.collect() is not second
