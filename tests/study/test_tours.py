"""The bundled studies that put many kinds of isolation side by side: what they must have in common, and how long."""

import pytest

from weighbridge.study.loader import load

TOUR, DEVICES, AGENTS = "isolation-tour", "vm-network-devices", "agent-sandboxes"


@pytest.mark.parametrize("name", [TOUR, DEVICES, AGENTS])
def test_only_the_baseline_must_be_there(name: str):
    study = load(name)
    required = [arm for arm in study.arms if not arm.optional]
    assert {arm.aa_of or arm.name for arm in required} == {study.baseline.name}


def test_every_environment_of_the_tour_is_a_step_of_its_ladder():
    study = load(TOUR)
    assert study.file.ladder is not None
    assert {rung.name for rung in study.file.ladder} == {arm.name for arm in study.arms if not arm.aa_of}


def test_the_tour_has_every_kind_of_isolation_that_this_machine_can_hold():
    kinds = [arm.kind for arm in load(TOUR).arms if not arm.aa_of]
    assert set(kinds) == {"native", "netns", "bubblewrap", "lxc", "nspawn", "podman", "docker", "qemu"}


def test_devices_differ_in_one_option_from_the_baseline():
    study = load(DEVICES)
    same = study.baseline.options.model_dump()
    for arm in study.arms:
        if arm.kind == "qemu" and not arm.aa_of:
            changed = {key for key, value in arm.options.model_dump().items() if value != same[key]}
            assert len(changed) == (arm.name != "virtio"), arm.name


def test_the_sandboxes_of_agents_are_measured_in_ten_minutes():
    study = load(AGENTS)
    assert study.file.repetitions.budget is not None
    assert study.file.repetitions.budget <= 480
    (cell,) = study.cells
    assert cell.options.sessions == 1
