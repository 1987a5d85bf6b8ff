"""Environments that may be left out: how a study says so, and how a run keeps it."""

import pytest

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.model.study import Study
from weighbridge.study.loader import check
from weighbridge.study.source import parse

TEXT = """
study: s
question: q
baseline: native
environments:
  native: {kind: native}
  inner: {kind: docker, network: [bridge, host], optional: true}
  port: {kind: docker, network: bridge, publish: true}
workloads: {cpu: {kind: sysbench-cpu}}
"""


def loaded(text: str = TEXT) -> Study:
    return check(parse(text, "s.yaml"))


def test_every_level_of_an_optional_environment_may_be_left_out():
    optional = {arm.name: arm.optional for arm in loaded().arms}
    assert optional == {
        "native": False, "inner[network=bridge]": True, "inner[network=host]": True, "port": False,
        "native-again": False,
    }  # fmt: skip
    rest = loaded().without(["port", "inner[network=host]"])
    assert [arm.name for arm in rest.arms] == ["native", "inner[network=bridge]", "native-again"]
    assert rest.file == loaded().file and rest.baseline.name == "native"


def test_neither_of_two_versions_is_optional():
    """Without one of them, the other has no comparison."""
    pair = "  base-docker: {kind: docker, optional: true}\n  head-docker: {kind: docker}"
    text = f"""
study: weigh-prog
question: q
baseline: base
environments:
  base: {{kind: native}}
  head: {{kind: native}}
{pair}
workloads: {{cpu: {{kind: sysbench-cpu}}}}
"""
    with raises_sentence(StudyError):
        loaded(text)
    assert loaded(text.replace("weigh-prog", "prog"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("native: {kind: native}", "native: {kind: native, optional: true}"),
        ("optional: true", "optional: perhaps"),
        ("optional: true", "optional: 1"),
        ("optional: true", "optionl: true"),
    ],
)
def test_mistakes(before: str, after: str):
    with raises_sentence(StudyError):
        loaded(TEXT.replace(before, after))
