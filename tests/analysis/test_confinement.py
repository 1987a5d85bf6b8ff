"""A confinement that no option asked for is a confounder, and nothing is said of what the environment is."""

from collections.abc import Mapping

from weighbridge.analysis.remarks import OtherValue, confounders
from weighbridge.model.facts import ASKED_CONFINEMENT

NATIVE = {"seccomp": "off", "capabilities": "all", "new privileges": "allowed", ASKED_CONFINEMENT: ""}
DOCKER = {
    "seccomp": "filter",
    "capabilities": "chown kill",
    "new privileges": "allowed",
    ASKED_CONFINEMENT: "capabilities, AppArmor profile, namespaces, seccomp",
}


def told(docker: Mapping[str, str], native: Mapping[str, str] = NATIVE) -> list[tuple[str, str, str]]:
    places = {"native/server": native, "docker/server": docker}
    facts = [(place, key, value, 0.0) for place, known in places.items() for key, value in known.items()]
    remarks = confounders(facts, "native", ["native", "docker"])
    assert all(isinstance(each, OtherValue) for each in remarks)
    return [(each.fact, each.value, each.baseline_value) for each in remarks if isinstance(each, OtherValue)]


def test_what_the_kind_and_its_options_ask_for_is_the_cost():
    assert told(DOCKER) == []


def test_what_nothing_asked_for_is_a_confounder():
    assert told(DOCKER | {"new privileges": "never"}) == [("new privileges", "never", "allowed")]
    unconfined = DOCKER | {ASKED_CONFINEMENT: "capabilities, AppArmor profile, namespaces"}
    assert told(unconfined) == [("seccomp", "filter", "off")]


def test_a_run_of_before_these_facts_says_nothing_of_them():
    """Docker's fact was then the option, which is no mode of the kernel."""
    assert told({"seccomp": "default", "new privileges": "never"}, {"seccomp": "off"}) == []
