"""Two runs compared: the rows of ``compare --json``, with the words of the glossary."""

from pathlib import Path

import pytest

import weighbridge
from sentences import raises_sentence
from weighbridge.analysis.run_result import VERDICT_CODES
from weighbridge.cli import feature
from weighbridge.features.gate.compare_command import compared
from weighbridge.features.gate.compare_json import compare_json

from .conftest import KEPT


def test_changes_are_those_of_the_command(runs: Path):
    places = [runs / "weigh-server", runs / "weigh-server-later"]
    changes = weighbridge.compare(weighbridge.load(places[0]), places[1])
    (pair,) = compare_json(compared(places, 0.01, None, []))["pairs"]
    assert len(changes) == len(pair["costs"]) > 10
    for change, row in zip(changes, pair["costs"], strict=True):
        assert (change.environment, change.metric, change.primary) == (
            row["environment"],
            row["metric"],
            row["headline"],
        )
        assert change.verdict == VERDICT_CODES[row["verdict"]]
        assert (change.before, change.after) == (row["before"]["cost"], row["after"]["cost"])
        if row["change"] is not None and row["change"]["allowed_low"] is not None:
            assert (change.change, change.allowed_low) == (row["change"]["change"], row["change"]["allowed_low"])


def test_runs_of_different_studies_are_refused(runs: Path):
    with raises_sentence(weighbridge.WeighbridgeError):
        weighbridge.compare(runs / "weigh", runs / "weigh-server")


def test_an_archive_is_named_and_not_its_temporary_copy():
    with raises_sentence(weighbridge.WeighbridgeError):
        weighbridge.compare(KEPT / "weigh.sqlite.xz", KEPT / "weigh-server.sqlite.xz")


def test_without_the_gate_there_is_no_comparison(runs: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("weighbridge.api.comparing.features", lambda: (feature.Feature(),))
    with raises_sentence(weighbridge.WeighbridgeError):
        weighbridge.compare(runs / "weigh-server", runs / "weigh-server-later")
