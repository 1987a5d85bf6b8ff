"""The noise of a machine that `doctor --noise` stored, and when it no longer counts."""

import time
from pathlib import Path
from typing import Any

import pytest

from sentences import assert_sentence
from weighbridge.cli.approval import noise_sentence
from weighbridge.runner import known_noise
from weighbridge.runner.known_noise import AGE, MADE, MOST_DAYS, KnownNoise, Outdated, known

FACTS = {"machine": "a1b2", "kernel": "6.1.0-10", "CPU": "Fast 9000", "CPUs online": "0-3"}
DAY_S = 24 * 3600


def stored(days: float = 0.0, **changes: Any) -> dict[str, Any]:
    return {
        "noise": [{"kind": "iperf3", "variation": 0.02}, {"kind": "dd", "variation": 0.05}],
        "smallest_cost": {"seconds": 600, "cost": 0.03, "by_resource": {"network": 0.01, "disk": 0.03}},
        "made": time.strftime(MADE, time.localtime(time.time() - days * DAY_S)), "facts": FACTS, **changes,
    }  # fmt: skip


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(known_noise, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(known_noise, "noise_facts", lambda: dict(FACTS))


def test_the_largest_cost_of_all_resources_is_the_machine_s():
    document = stored()
    known_noise.keep(document)
    found = known()
    assert found == KnownNoise(document["made"], {"iperf3": 0.02, "dd": 0.05}, 0.03)
    assert_sentence(noise_sentence(found).replace(document["made"], "DATE"))


def test_a_resource_without_a_cost_leaves_the_machine_without_one():
    known_noise.keep(stored(smallest_cost={"seconds": 600, "cost": None, "by_resource": {"disk": None}}))
    assert known().cost is None
    assert_sentence(noise_sentence(known()).replace(known().measured, "DATE"))


@pytest.mark.parametrize("name", FACTS)
def test_it_does_not_count_on_another_machine(name: str):
    known_noise.keep(stored(facts={**FACTS, name: "before"}))
    found = known()
    assert found.outdated == Outdated(name, "before", FACTS[name])
    assert found.cost is None and found.variations == {}
    assert_sentence(noise_sentence(found))


@pytest.mark.parametrize(("days", "outdated"), [(MOST_DAYS - 1, None), (MOST_DAYS + 2, AGE)])
def test_it_does_not_count_for_ever(days: float, outdated: str | None):
    known_noise.keep(stored(days))
    found = known()
    assert (found.outdated.what if found.outdated else None) == outdated
    assert (found.cost is None) is (outdated is not None)
    if found.outdated is not None:
        assert_sentence(noise_sentence(found))


@pytest.mark.parametrize(
    "broken", [{"facts": {}}, {"made": "today"}, {"smallest_cost": {}}, {"noise": [{"kind": "dd"}]}, {"noise": None}]
)
def test_what_cannot_be_read_is_unknown(broken: dict[str, Any]):
    known_noise.keep(stored(**broken))
    assert known() == KnownNoise()


def test_nothing_is_known_before_the_first_measurement():
    assert known() == KnownNoise()
    assert_sentence(noise_sentence(known()))
