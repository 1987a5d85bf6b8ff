"""An engine that is to run during some trials alone must not run already."""

import pytest

from weighbridge import registry
from weighbridge.environments import native
from weighbridge.model.environment import Needs
from weighbridge.model.plugin import Readiness
from weighbridge.study.contradictions import needs_of
from weighbridge.study.loader import check
from weighbridge.study.source import parse

from .kinds import traits

NATIVE = registry.environments()["native"]
STUDY = """study: s
question: What does an idle engine cost?
hosts: {a: {kind: testbed}, b: {kind: local}}
placement: {server: a, client: b}
baseline: native
environments: {native: {kind: native}, idle: {kind: native, engine: idle}}
workloads: {tcp: {kind: iperf3}}
"""


def _ready_otherwise(monkeypatch: pytest.MonkeyPatch, *, answers: bool) -> None:
    monkeypatch.setattr(native, "_engine_answers", lambda: answers)
    monkeypatch.setattr(native, "output", lambda _: "")
    monkeypatch.setattr(native.user_namespaces, "refusal", lambda: None)
    monkeypatch.setattr(native.client, "readiness", lambda: Readiness(True))


@pytest.mark.parametrize(
    ("kind", "answers", "option", "lacks"),
    [
        ("local", True, "idle", True),
        ("local", False, "idle", False),
        ("local", True, None, False),
        ("testbed", True, "idle", False),
    ],
)
def test_an_engine_that_runs_already(monkeypatch: pytest.MonkeyPatch, kind: str, answers: bool, option, lacks: bool):
    _ready_otherwise(monkeypatch, answers=answers)
    state = NATIVE.ready(NATIVE.options.model_validate({"engine": option}), Needs(hosts=traits(kind)))
    assert state.ready is not lacks
    if lacks:
        assert state.detail.startswith("'engine: idle' needs a host without a running Docker engine")
        assert state.remedy == "stop the engine, or use testbed hosts"


def test_a_host_that_has_no_site_of_it_may_have_an_engine(monkeypatch: pytest.MonkeyPatch):
    _ready_otherwise(monkeypatch, answers=True)
    study = check(parse(STUDY, "s.yaml"))
    needs = needs_of(study.file, [], "b", study.baseline)
    assert [*needs.holding] == ["testbed"] and [*needs.hosts] == ["testbed", "local"]
    assert NATIVE.ready(NATIVE.options.model_validate({"engine": "idle"}), needs).ready
