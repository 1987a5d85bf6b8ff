"""Environments that may be left out: how a study says so, and how a run keeps it."""

from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.model.stored_study import StoredStudy, study_json
from weighbridge.model.study import Study
from weighbridge.study.frozen import first_difference, thaw
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


def test_a_run_keeps_which_are_optional():
    study = loaded()
    again = thaw(StoredStudy.model_validate_json(study_json(study)), TEXT, Path("run"))
    assert again == study
    strict = loaded(TEXT.replace(", optional: true", ""))
    assert first_difference(study, strict) == "environments.inner[network=bridge]"


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
