"""The JSON Schema says the same as the loader: editors and `weighbridge plan` agree."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from weighbridge.cli.init import TEMPLATE
from weighbridge.study.schema import json_schema
from weighbridge.study.source import bundled

from .texts import LINES, changed, loaded

VALIDATOR = Draft202012Validator(json_schema())


def _accepts(text: str) -> bool:
    data: Any = YAML(typ="safe", pure=True).load(text)
    return VALIDATOR.is_valid(data)


def test_it_is_a_schema():
    Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("name", bundled())
def test_it_accepts_the_bundled_studies(name: str):
    data = YAML(typ="safe", pure=True).load(bundled()[name])
    assert [error.message for error in VALIDATOR.iter_errors(data)] == []


def test_it_accepts_what_init_writes():
    assert _accepts(TEMPLATE.format(file="a.yaml", name="a"))


GOOD = [
    ("clients: 20", "clients: [10, 50]"),
    ("network: bridge", "network: [bridge, host]"),
    ("{blocks: 10}", "{rounds: 10}"),
    ("{blocks: 10}", "{target: 2%, min: 10, max: 60, budget: 2h}"),
    ("pin: spread", "pin: {server: '0', client: '0-1'}"),
    ("seed: 7", "aa: false"),
    ("clients: 20", "tests: 'set,get'"),
    ("clients: 20", "tests: [set, get]"),
    ("network: bridge", "network: bridge, storage: [layer, {kind: volume}]"),
]


@pytest.mark.parametrize(("old", "new"), GOOD)
def test_it_accepts_what_loads(old: str, new: str):
    text = changed(old, new)
    assert loaded(text)
    assert _accepts(text)


BAD = [
    ("seed: 7", "sed: 7"), ("cpus: 1", "cpu: 1"), ("clients: 20", "clints: 20"),
    ("network: bridge", "netwrk: bridge"), ("network: bridge", "network: brige"), ("kind: docker", "kind: dokcer"),
    ("kind: iperf3", "kind: iperv"), ("kind: docker, ", ""), ("512MiB", "512"), ("512MiB", "512mib"), ("3%", "3"),
    ("{blocks: 10}", "{blocks: 0}"), ("{blocks: 10}", "{rounds: 0}"), ("[server]", "[sever]"), ("[server]", "[]"),
    ("clients: 20", "clients: []"), ("clients: 20", "clients: 0"),
    ("cpu: {kind: sysbench-cpu, duration: 1s}", "cpu: hello"), ("cpu: {kind", "my cpu: {kind"),
    ("seed: 7", "seed: -1"), ("pin: spread", "pin: spred"), ("study: small", "study: 2017"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), BAD)
def test_it_refuses_what_does_not_load(old: str, new: str):
    assert not _accepts(changed(old, new))


@pytest.mark.parametrize("key", ["study", "question", "baseline", "environments", "workloads"])
def test_it_asks_for_what_must_be_said(key: str):
    data = YAML(typ="safe", pure=True).load(LINES)
    del data[key]
    assert not VALIDATOR.is_valid(data)
