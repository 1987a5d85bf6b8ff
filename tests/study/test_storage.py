"""What a study says of storage, and what is told of mistakes in it."""

import pytest
from jsonschema import Draft202012Validator

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.study.loader import check
from weighbridge.study.schema import json_schema
from weighbridge.study.source import parse

TEXT = """\
study: kept
question: What does storage cost?
baseline: native
environments:
  native: {kind: native, NATIVE}
  box: {kind: docker, DOCKER}
workloads: {cpu: {kind: sysbench-cpu, duration: 1s}}
repetitions: {blocks: 1}
"""


def study(native: str, docker: str):
    text = TEXT.replace(", NATIVE", "" if native == "aa" else f", {native}").replace("DOCKER", docker)
    return parse(text, "kept.yaml")


def arms(native: str = "aa", docker: str = "storage: volume"):
    return {arm.name: arm.options for arm in check(study(native, docker)).arms}


def schema_allows(native: str = "aa", docker: str = "storage: volume") -> bool:
    return Draft202012Validator(json_schema()).is_valid(study(native, docker).data)


@pytest.mark.parametrize("written", ["storage: volume", "storage: {kind: volume}"])
def test_a_kind_with_or_without_options(written: str):
    assert arms(docker=written)["box"].storage.kind == "volume"
    assert arms(docker=written)["native"].storage is None


@pytest.mark.parametrize("written", ["overlay", "container", "{kind: overlay}", "{kind: container, disk: null}"])
def test_other_names_of_a_containers_layer(written: str):
    assert arms(docker=f"storage: {written}")["box"].storage.kind == "layer"
    assert schema_allows(docker=f"storage: {written}")


@pytest.mark.parametrize("written", ["xfs", "{filesystem: xfs}", "{filesystem: xfs, size: 4GiB}"])
def test_a_disk_is_its_file_system_or_more(written: str):
    native = arms(native=f"storage: {{kind: bind, disk: {written}}}")["native"]
    assert (native.storage.disk.filesystem, native.storage.disk.size) == ("xfs", 2**32)
    assert schema_allows(native=f"storage: {{kind: bind, disk: {written}}}")


@pytest.mark.parametrize(
    ("native", "docker"),
    [
        ("aa", "storage: volum"),
        ("aa", "storage: {size: 3}"),
        ("aa", "storage: {kind: volume, size: 3}"),
        ("aa", "storage: {kind: bind, size: 3}"),
        ("aa", "storage: [volume, volume]"),
        ("storage: volume", "storage: volume"),
        ("aa", "storage: 3"),
    ],
)
def test_mistakes_are_told_in_one_line(native: str, docker: str):
    with raises_sentence(StudyError):
        arms(native, docker)
