"""What ``--set`` changes in a study, and what it says where it cannot."""

import pytest

from weighbridge.errors import StudyError
from weighbridge.study import profiles
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


def test_a_profile_may_be_changed_too():
    study = with_settings(profiles.load("kubernetes-network", "one-node"), ["hosts.a.node=worker-1"])
    assert [*study.file.hosts] == ["a"]


@pytest.mark.parametrize(("setting", "problem"), [
    ("hosts.a.node", "write KEY=VALUE"),
    ("=x", "write KEY=VALUE"),
    ("hosts.c.node=x", r"there is no 'c' in hosts"),
    ("host.a.node=x", r"there is no 'host'.*hosts"),
    ("hosts.a.node=[", "not YAML"),
    ("hosts.a.nod=x", "nod"),
    ("hosts.a.node.x=y", "node"),
    ("hosts.a.image.load=kind", "image"),
    ("study=other", "cannot change 'study'"),
])  # fmt: skip
def test_what_cannot_be_set_is_said(setting: str, problem: str):
    with pytest.raises(StudyError, match=problem):
        with_settings(load("kubernetes-network"), [setting])
