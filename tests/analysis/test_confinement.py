"""What no option and no study asked for is a confounder, and nothing is said of what the environment is."""

from collections.abc import Mapping

import pytest

from weighbridge.analysis.remarks.confounders import IoUringRefused, OtherValue, confounders
from weighbridge.model.facts import ASKED_CONFINEMENT, ASKED_FOR, IO_URING, OUTERMOST_GROUP, SHARED_MEMORY

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
    remarks = confounders(facts, dict.fromkeys(["native", "docker"], "native"))
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


def test_surroundings_that_differ_are_confounders():
    native, docker = {SHARED_MEMORY: "12000 MiB", "ulimit: stack size": "8388608"}, {SHARED_MEMORY: "64 MiB"}
    assert told(docker | {"ulimit: stack size": "unlimited"}, native) == [
        (SHARED_MEMORY, "64 MiB", "12000 MiB"),
        ("ulimit: stack size", "unlimited", "8388608"),
    ]


def test_another_place_in_the_tree_of_control_groups_is_a_confounder():
    """There programs compete with others for CPUs."""
    native, docker = {OUTERMOST_GROUP: "weighbridge"}, {OUTERMOST_GROUP: "system.slice"}
    assert told(docker, native) == [(OUTERMOST_GROUP, "system.slice", "weighbridge")]


def test_what_the_study_asked_for_is_its_question():
    """On whichever side it was asked for; what it did not ask for stays a confounder."""
    native = {"limits": "none", SHARED_MEMORY: "12000 MiB"}
    half = {"limits": "0.5 CPU", SHARED_MEMORY: "256 MiB"}
    assert told(half | {ASKED_FOR: f"limits, {SHARED_MEMORY}"}, native) == []
    assert told(half, native | {ASKED_FOR: "limits"}) == [(SHARED_MEMORY, "256 MiB", "12000 MiB")]


BY_FILTER = "refused (EPERM, seccomp)"


@pytest.mark.parametrize(
    ("docker", "native", "found"),
    [
        (BY_FILTER, "allowed", ("docker", "native")),
        ("allowed", BY_FILTER, ("native", "docker")),
        (BY_FILTER, "refused (EPERM, kernel.io_uring_disabled = 2)", None),
        ("allowed", "allowed", None),
        (BY_FILTER, "", None),
        ("", "allowed", None),
        ("not known (ENOMEM)", "allowed", None),
        ("allowed", "not known (EMFILE)", None),
    ],
)
def test_io_uring_is_a_confounder_if_one_side_refuses_it(docker: str, native: str, found: tuple[str, str] | None):
    """Runs before this fact have none of it."""
    places = {"native/server": native, "docker/server": docker}
    facts = [(place, IO_URING, state, 0.0) for place, state in places.items() if state]
    remarks = confounders(facts, dict.fromkeys(["native", "docker"], "native"))
    expected = [] if found is None else [IoUringRefused("docker", found[0], BY_FILTER, found[1])]
    assert list(remarks) == expected
