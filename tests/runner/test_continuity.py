"""A run is not continued where its numbers would be others."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge.errors import RunDirectoryError
from weighbridge.model.facts import HALT, IDLE_CPUS, POLL, layers_json
from weighbridge.model.isolation import SCOPE, Layer, SiteLayers
from weighbridge.model.level import Level
from weighbridge.model.measurement import Outcome
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.runner.continuity import (
    LAUNCHER,
    launcher_unknown,
    layers_of_run,
    require_same,
    require_same_layers,
    require_same_supporting_services,
)
from weighbridge.store.run import RunStore

HOST = {"CPU": "a", "kernel": "Linux 6.1", "memory": "4 GiB"}
VERSIONS = {"iperf3": "3.12-1", "redis-server": "7.0"}
PACKAGES = {"userland packages": VERSIONS}


@pytest.fixture
def store(tmp_path: Path):
    with RunStore(tmp_path / "run", writable=True) as made:
        yield made


def begun(store: RunStore) -> None:
    store.add_facts("host", HOST)
    store.add_facts("userland packages", VERSIONS)


PROGRAMS = {"./own": "1", "python3": "2"}
CLIENTS = {"client userland packages": {"curl": "7.88"}}
Facts = Mapping[str, Mapping[str, str]]
SAME: dict[str, tuple[Facts, Mapping[str, str], Facts, Mapping[str, str]]] = {
    "more memory": ({}, HOST | {"memory": "8 GiB"}, PACKAGES, {}),
    "CPUs that poll, in an older version's words": (
        {"host": {IDLE_CPUS: "poll (as an older version said it)"}}, HOST | {IDLE_CPUS: POLL}, {}, {},
    ),
    "from before launchers were noted": ({}, HOST | {LAUNCHER: "new"}, PACKAGES, {}),
    "from before programs were noted": ({}, HOST, PACKAGES, {"./own": "1"}),
    "a further program": ({"programs": PROGRAMS}, HOST, PACKAGES, PROGRAMS | {"added": "3"}),
    "another kernel in a later session": ({"host": HOST | {"kernel": "Linux 6.2"}}, HOST, PACKAGES, {}),
    "programs of clients": (CLIENTS, HOST, PACKAGES | CLIENTS, {}),
}  # fmt: skip
"""What a run that began with HOST and PACKAGES kept besides; then the host, the packages and the programs now."""
OTHER: dict[str, tuple[Facts, Mapping[str, str], Facts, Mapping[str, str]]] = {
    "another kernel": ({}, HOST | {"kernel": "Linux 6.2"}, PACKAGES, {}),
    "CPUs that halt": ({"host": {IDLE_CPUS: POLL}}, HOST | {IDLE_CPUS: HALT}, {}, {}),
    "another launcher": ({"host": {LAUNCHER: "old"}}, HOST | {LAUNCHER: "new"}, PACKAGES, {}),
    "a changed program": ({"programs": PROGRAMS}, HOST, PACKAGES, PROGRAMS | {"./own": "7"}),
    "a program that has gone": ({"programs": PROGRAMS}, HOST, PACKAGES, {"./own": "1"}),
    "other packages": ({}, HOST, {"userland packages": VERSIONS | {"iperf3": "3.13-1", "netperf": "2.7"}}, {}),
    "other packages of clients": (CLIENTS, HOST, PACKAGES | {"client userland packages": {"curl": "8.0"}}, {}),
}


@pytest.mark.parametrize("case", [*SAME, *OTHER])
def test_a_run_goes_on_where_its_numbers_would_be_the_same(store: RunStore, case: str):
    kept, *now = (SAME | OTHER)[case]
    require_same(store, *now)  # a new run
    begun(store)
    for scope, facts in kept.items():
        store.add_facts(scope, facts)
    if case in SAME:
        require_same(store, *now)
    else:
        with raises_sentence(RunDirectoryError):
            require_same(store, *now)


def test_a_run_from_before_launchers_were_noted_is_known_as_one(store: RunStore):
    assert not launcher_unknown(store)  # a new run
    begun(store)
    assert launcher_unknown(store)
    store.add_facts("host", {LAUNCHER: "new"})
    assert not launcher_unknown(store)


def test_companions_stay_what_they_were(store: RunStore):
    require_same_supporting_services(store, {"redis": "sha256:1", "redis:/etc/r": "2"})
    store.add_facts("companions", {"redis": "sha256:1", "redis:/etc/r": "2"})
    require_same_supporting_services(store, {"redis": "sha256:1", "redis:/etc/r": "2"})
    with raises_sentence(RunDirectoryError):
        require_same_supporting_services(store, {"redis": "sha256:1", "redis:/etc/r": "3"})


def test_a_site_stays_in_its_hypervisors(store: RunStore):
    kvm, tcg = ({"vm/server": layers_json(SiteLayers("here", (), (Layer(name),)))} for name in ("KVM", "TCG"))
    require_same_layers(store, kvm)
    store.add_facts(SCOPE, kvm)
    require_same_layers(store, tcg)  # nothing has been measured yet
    store.save(TrialRecord(Trial(1, 0, "tcp", Level(), "vm"), Outcome.OK, 1.0, 1.0, 1.0))
    require_same_layers(store, kvm)
    with raises_sentence(RunDirectoryError):
        require_same_layers(store, tcg)
    with raises_sentence(RunDirectoryError):
        require_same_layers(store, {})


def test_the_hypervisors_of_each_environment(store: RunStore):
    here = SiteLayers("here", (), (Layer("KVM"),))
    lab = SiteLayers("lab", (Layer("QEMU, TCG", emulated=True),))
    assert layers_of_run(store, ["native", "vm"]) == {}
    store.add_facts(SCOPE, {"vm/server": layers_json(here), "vm/client": layers_json(here)})
    assert layers_of_run(store, ["native", "vm"]) == {"vm": (here,)}
    store.add_facts(SCOPE, {"outside/client": layers_json(lab)})
    assert layers_of_run(store, ["native", "vm"]) == {"native": (lab,), "vm": (here, lab)}
    store.add_facts(SCOPE, {"vm/server": "{"})
    with raises_sentence(RunDirectoryError):
        layers_of_run(store, ["native", "vm"])
