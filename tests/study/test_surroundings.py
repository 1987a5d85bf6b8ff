"""Limits, /dev/shm and settings of the kernel of one environment alone."""

import json

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.model.stored_study import StoredStudy, study_json
from weighbridge.study.contradictions import needs_of
from weighbridge.study.frozen import first_difference, thaw
from weighbridge.study.schema import json_schema

from .texts import changed, loaded

BRIDGE = "bridge: {kind: docker, network: bridge}"
NATIVE = "native: {kind: native}"


def own(environment: str, keys: str, more: str = "") -> str:
    """The small study with keys of an environment's own."""
    return changed(environment, f"{environment[:-1]}, {keys}}}") + more


def arm_of(text: str, name: str):
    study = loaded(text)
    return study, next(arm for arm in study.arms if arm.name == name)


def test_limits_of_an_environment_are_over_those_of_the_study():
    """What it does not name stays, and null lifts a limit; the A/A arm is as its baseline."""
    study, native = arm_of(own(NATIVE, "resources: {cpus: null, memory: 1GiB}"), "native")
    resources = study.resources_of("native")
    assert (resources.cpus, resources.memory, resources.pin) == (None, 2**30, "spread")
    assert study.resources_of("native-again") == resources
    assert study.resources_of("bridge") == study.resources_of("outside") == study.file.resources
    assert needs_of(study.file, list(study.cells), "local", native).resources == resources
    assert [*study.all_resources] == ["resources", "environments: native: resources"]


def test_half_a_cpu_against_none_is_one_study():
    text = changed("resources: {cpus: 1, memory: 512MiB, pin: spread}\n", "")
    study = loaded(text.replace(BRIDGE, f"{BRIDGE}\n  half: {{kind: native, resources: {{cpus: 0.5}}}}"))
    assert [study.resources_of(name).cpus for name in ("native", "half", "bridge")] == [None, 0.5, None]


def test_what_its_sites_are_given_is_kept_with_the_run():
    keys = (
        "shm_size: 256MiB, sysctls: {net.core.somaxconn: 1024, kernel.sem: '250 32000 100 128'}, resources: {cpus: 2}"
    )
    study, bridge = arm_of(own(BRIDGE, keys), "bridge")
    assert bridge.shm_size == 256 * 2**20
    assert bridge.sysctls == {"net.core.somaxconn": "1024", "kernel.sem": "250 32000 100 128"}
    again = thaw(StoredStudy.model_validate_json(study_json(study)), study.text, None)  # type: ignore[arg-type]
    assert again == study
    plain = json.loads(study_json(loaded(changed(BRIDGE, BRIDGE))))
    assert not {"resources", "shm_size", "sysctls"} & {*plain["arms"][1]}, "as runs of before had it"
    other = loaded(own(BRIDGE, keys.replace("256", "128")))
    assert first_difference(study, other) == "environments.bridge"


WRONG = {
    "of a kind that has a network of the host's": own(NATIVE, "sysctls: {net.core.somaxconn: 1}"),
    "of the machine": own(BRIDGE, "sysctls: {vm.swappiness: 1}"),
    "of a host's network": changed(BRIDGE, "bridge: {kind: docker, network: host, sysctls: {net.core.somaxconn: 1}}"),
    "of gVisor": own(BRIDGE, "runtime: runsc, sysctls: {net.core.somaxconn: 1}"),
    "of a guest's memory": changed(BRIDGE, "bridge: {kind: qemu, shm_size: 1GiB}"),
    "without a unit": own(BRIDGE, "shm_size: 64"),
    "no size": own(BRIDGE, "shm_size: 1KiB"),
    "no limit": own(BRIDGE, "resources: {cpu: 1}"),
    "more CPUs than there are": own(BRIDGE, "resources: {cpus: 9999}"),
    "where it does not belong": own(BRIDGE, "cpus: 1"),
    "a truth": own(BRIDGE, "sysctls: {net.ipv4.ip_forward: true}"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_has_a_sentence(case: str):
    with raises_sentence(StudyError):
        loaded(WRONG[case])


def test_the_schema_knows_the_keys():
    validator = Draft202012Validator(json_schema())

    def accepts(keys: str) -> bool:
        return validator.is_valid(YAML(typ="safe", pure=True).load(own(BRIDGE, keys)))

    assert accepts("resources: {cpus: 0.5, memory: null}, shm_size: 256MiB, sysctls: {net.core.somaxconn: 1024}")
    for wrong in ("resources: {cpu: 1}", "shm_size: 256", "sysctls: {vm.swappiness: 1}", "sysctls: {}"):
        assert not accepts(wrong), wrong
