"""What a study says of storage, and what is told of mistakes in it."""

import pytest

from weighbridge import registry
from weighbridge.errors import StudyError
from weighbridge.study.loader import check
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

KNOWN = ", ".join(name for kind, each in registry.storage().items() for name in (kind, *each.aliases))


def arms(native: str = "aa", docker: str = "storage: volume"):
    text = TEXT.replace(", NATIVE", "" if native == "aa" else f", {native}").replace("DOCKER", docker)
    return {arm.name: arm.options for arm in check(parse(text, "kept.yaml")).arms}


@pytest.mark.parametrize("written", ["storage: volume", "storage: {kind: volume}"])
def test_a_kind_with_or_without_options(written: str):
    assert arms(docker=written)["box"].storage.kind == "volume"
    assert arms(docker=written)["native"].storage is None


def test_the_former_name_of_a_containers_layer():
    assert arms(docker="storage: overlay")["box"].storage.kind == "layer"


def test_it_is_swept():
    assert {"box[storage=volume]", "box[storage=layer]"} <= set(arms(docker="storage: [volume, layer]"))


def test_it_is_written_with_its_kind():
    assert '"storage":{"kind":"directory","disk":null}' in arms("storage: directory")["native"].model_dump_json()


@pytest.mark.parametrize(
    ("native", "docker", "told"),
    [
        ("aa", "storage: volum", "storage: unknown kind 'volum'; did you mean 'volume'?"),
        ("aa", "storage: {size: 3}", f"storage: a storage needs a kind (known: {KNOWN})"),
        ("aa", "storage: {kind: volume, size: 3}", "unknown key 'size'"),
        ("aa", "storage: [volume, volume]", "listed twice"),
        (
            "storage: volume",
            "storage: volume",
            "native: storage: its sites cannot have a volume; they can have",
        ),
        ("aa", "storage: 3", "unknown kind '3'"),
    ],
)
def test_mistakes_are_told_in_one_line(native: str, docker: str, told: str):
    with pytest.raises(StudyError) as caught:
        arms(native, docker)
    (line,) = str(caught.value).splitlines()
    assert told in line
