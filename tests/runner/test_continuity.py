"""A run is not continued where its numbers would be others."""

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


def test_a_new_run_and_an_unchanged_machine_pass(store: RunStore):
    require_same(store, HOST, PACKAGES, {})
    begun(store)
    require_same(store, HOST | {"memory": "8 GiB"}, PACKAGES, {})


def test_another_kernel_is_refused_by_name(store: RunStore):
    begun(store)
    with raises_sentence(RunDirectoryError):
        require_same(store, HOST | {"kernel": "Linux 6.2"}, PACKAGES, {})


def test_idle_cpus_do_the_same_in_every_session(store: RunStore):
    store.add_facts("host", HOST | {IDLE_CPUS: "poll (as an older version said it)"})
    require_same(store, HOST | {IDLE_CPUS: POLL}, {}, {})
    with raises_sentence(RunDirectoryError):
        require_same(store, HOST | {IDLE_CPUS: HALT}, {}, {})


def test_all_of_a_run_is_timed_by_one_launcher(store: RunStore):
    begun(store)
    require_same(store, HOST | {LAUNCHER: "new"}, PACKAGES, {})  # runs from before this was a fact
    store.add_facts("host", {LAUNCHER: "old"})
    with raises_sentence(RunDirectoryError):
        require_same(store, HOST | {LAUNCHER: "new"}, PACKAGES, {})


def test_measured_programs_stay_the_files_that_they_were(store: RunStore):
    begun(store)
    require_same(store, HOST, PACKAGES, {"./own": "1"})  # a run from before they were noted
    store.add_facts("programs", {"./own": "1", "python3": "2"})
    require_same(store, HOST, PACKAGES, {"./own": "1", "python3": "2", "added": "3"})
    with raises_sentence(RunDirectoryError):
        require_same(store, HOST, PACKAGES, {"./own": "7", "python3": "2"})
    with raises_sentence(RunDirectoryError):
        require_same(store, HOST, PACKAGES, {"./own": "1"})


def test_a_run_from_before_launchers_were_noted_is_known_as_one(store: RunStore):
    assert not launcher_unknown(store)  # a new run
    begun(store)
    assert launcher_unknown(store)
    store.add_facts("host", {LAUNCHER: "new"})
    assert not launcher_unknown(store)


def test_it_is_the_first_session_that_counts(store: RunStore):
    begun(store)
    store.add_facts("host", HOST | {"kernel": "Linux 6.2"})
    require_same(store, HOST, PACKAGES, {})


def test_other_programs_are_refused_by_name(store: RunStore):
    begun(store)
    with raises_sentence(RunDirectoryError):
        require_same(store, HOST, {"userland packages": {**VERSIONS, "iperf3": "3.13-1", "netperf": "2.7"}}, {})


def test_the_programs_of_clients_are_told_by_their_own_userland(store: RunStore):
    begun(store)
    store.add_facts("client userland packages", {"curl": "7.88"})
    require_same(store, HOST, PACKAGES | {"client userland packages": {"curl": "7.88"}}, {})
    with raises_sentence(RunDirectoryError):
        require_same(store, HOST, PACKAGES | {"client userland packages": {"curl": "8.0"}}, {})


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
