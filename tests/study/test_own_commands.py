"""A study's own commands: what is a sweep and what is a word, and what is shown before anything starts."""

from typing import Any

import pytest
from ruamel.yaml import YAML

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.model.options import External
from weighbridge.model.study import Study
from weighbridge.study.external import external_resources

from .texts import LINES, loaded


def study(entry: str, environment: str = "") -> Study:
    """The small study with one workload of its own, and what the environment ``bridge`` says of it."""
    head, _, rest = LINES.partition("workloads:\n")
    tail = rest[rest.index("repetitions:") :]
    if environment:
        head = head.replace("network: bridge}", f"network: bridge, workloads: {{fib: {environment}}}}}")
    return loaded(f"{head}workloads:\n  fib: {entry}\n{tail}")


@pytest.mark.parametrize(
    "entry",
    [
        "{kind: command, run: 'pack {a}', parameters: {a: [1, 1]}}",
        "{kind: command, run: 'pack {a}', parameters: {a: [1, '1.0', 1.0]}}",
        "{kind: command, run: 'pack {sites}', parameters: {sites: [1, 2]}}",
        "{kind: command, run: 'pack {a}', parameters: {a: [true, 2]}}",
        "{kind: command, run: 'pack {a}', parameters: {a: []}}",
        "{kind: command, run: 'pack {a', parameters: {a b: 1}}",
        "{kind: command, run: 'pack {b}'}",
        "{kind: command, rum: pack}",
        "{kind: command, run: a, adapter: hyperfin}",
        "{kind: command, run: a, adapter: {kind: jmh, mod: avgt}}",
        "{kind: command, run: a, metrics: {m: {jsn: $.a, unit: s, better: lower}}}",
        "{kind: command, run: a, metrics: {m: {json: $.a, unit: s, better: lowr}}}",
        "{kind: command, run: a, ready: {line: up}}",
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(entry: str):
    with raises_sentence(StudyError):
        study(entry)


def test_an_environment_has_parameters_of_its_own_on_top_of_the_level():
    found = study("{kind: command, run: 'pack {a} {b}', parameters: {a: [1, 2], b: x}}", "{parameters: {b: y}}")
    own = next(arm for arm in found.arms if arm.name == "bridge").workloads
    assert [options.parameters for options in own.values()] == [{"a": "1", "b": "y"}, {"a": "2", "b": "y"}]  # type: ignore[attr-defined]


def test_what_is_started_is_shown():
    found = study(
        "{kind: command, run: 'pack {a}', parameters: {a: [1, 2]}, check: [grep, 'a b'],"
        " files: {/tmp/hosts: /etc/hosts}}"
    )
    shown = [(each.kind, each.place, each.value) for each in external_resources(found)]
    place = "workloads.fib"
    assert sorted(shown) == sorted([
        (External.COMMAND, f"{place}.run", "pack {a}"),
        (External.ARGUMENT, f"{place}.parameters.a", "1"),
        (External.ARGUMENT, f"{place}.parameters.a", "2"),
        (External.COMMAND, f"{place}.check", "grep 'a b'"),
        (External.FILE, f"{place}.files./tmp/hosts", "/etc/hosts"),
    ])  # fmt: skip


def test_the_schema_takes_a_list_as_words_and_as_values_of_a_parameter():
    from jsonschema import Draft202012Validator

    from weighbridge.study.schema import json_schema

    text = study(
        "{kind: command, run: [pack, '{a}'], parameters: {a: [1, 2]}, adapter: {kind: jmh, mode: avgt},"
        " metrics: {m: {json: $.a, unit: s, better: lower}}}"
    ).text
    data: Any = YAML(typ="safe", pure=True).load(text)
    assert [error.message for error in Draft202012Validator(json_schema()).iter_errors(data)] == []
    assert not Draft202012Validator(json_schema()).is_valid(
        YAML(typ="safe", pure=True).load(text.replace("jmh", "jhm"))
    )


def test_the_only_port_of_a_server_is_of_every_environment():
    entry = "{kind: command, server: s, client: c, port: 8000}"
    assert study(entry, "{deadline: 4min}").cells
    with raises_sentence(StudyError):
        study(entry, "{port: 8001}")
