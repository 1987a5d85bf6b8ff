"""What ``--set`` changes in a study, and what it says where it cannot."""

import pytest

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.study.loader import load
from weighbridge.study.settings import with_settings


def test_a_value_is_set_and_stands_in_the_studys_text():
    study = with_settings(load("kubernetes-network"), ["hosts.a.node=worker-1", "workloads.tcp.duration=3s"])
    assert study.file.hosts["a"].node == "worker-1"  # type: ignore[attr-defined]
    assert "worker-1" in study.text and study.cells[0].options.duration == 3  # type: ignore[attr-defined]
    assert with_settings(study, []) is study
    assert with_settings(study, ["hosts.b={kind: kubernetes, node: w2}"]).file.hosts["b"].node == "w2"  # type: ignore[attr-defined]


def test_a_key_below_one_that_the_study_has_not_is_made():
    study = with_settings(load("kubernetes-limits"), ["hosts.a.images.load=kind"])
    assert study.file.hosts["a"].images.load == ("kind",)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "setting",
    [
        "hosts.a.node",
        "=x",
        "hosts.c.node=x",
        "host.a.node=x",
        "hosts.a.node=[",
        "hosts.a.nod=x",
        "hosts.a.node.x=y",
        "hosts.a.image.load=kind",
        "study=other",
    ],
)  # fmt: skip
def test_what_cannot_be_set_is_said(setting: str):
    with raises_sentence(StudyError):
        with_settings(load("kubernetes-network"), [setting])
