"""An engine that is to run during some trials alone must not run already."""

import pytest

from weighbridge import registry
from weighbridge.environments import native
from weighbridge.model.plugin import Needs

from .kinds import traits

NATIVE = registry.environments()["native"]


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
    monkeypatch.setattr(native, "_engine_answers", lambda: answers)
    lacking = NATIVE.unmet(NATIVE.options.model_validate({"engine": option}), needs=Needs(hosts=traits(kind)))
    assert (lacking is not None) is lacks
    if lacking is not None:
        assert not lacking.ready and lacking.detail.startswith(
            "'engine: idle' needs a host on which no Docker engine"
        )
        assert lacking.remedy == "stop it, or use testbed hosts"
