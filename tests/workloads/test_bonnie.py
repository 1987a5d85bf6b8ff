"""bonnie: what bonnie++ cannot tell is no figure, and a line about something else is none either."""

import pytest
from pydantic import ValidationError

from sentences import raises_sentence
from weighbridge.model.measurement import ProgramFailed, Unparseable
from weighbridge.workloads.bonnie import PLUGIN, BonnieOptions

from .captured import AT, data, parse


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("bonnie-too-fast.csv", {"file_size": "64MiB", "files": 2}),
        ("bonnie-synced.csv", {"file_size": "256MiB", "files": 0, "sync_small": True}),
    ],
)
def test_a_run_that_was_too_fast_in_every_part_is_no_result(file: str, options: dict[str, object]):
    with raises_sentence(Unparseable):
        parse("bonnie", options, data(file))


def test_a_line_about_other_files_or_with_a_zero_is_no_result():
    line = data("bonnie-some.csv")
    with raises_sentence(Unparseable):
        parse("bonnie", {}, line)
    with raises_sentence(Unparseable):
        parse("bonnie", {"file_size": "1GiB", "files": 2}, line)
    for cut in (b"", line[:40], line.rstrip()):
        with pytest.raises(Unparseable):
            parse("bonnie", {"file_size": "1GiB", "files": 64}, cut)
    with raises_sentence(Unparseable):
        parse("bonnie", {"file_size": "1GiB", "files": 64}, line.replace(b",929737,", b",0,"))
    with raises_sentence(Unparseable):
        parse("bonnie", {"file_size": "1GiB", "files": 64}, line.replace(b"1.98,", b"1.97,", 1))


def test_a_full_disk():
    with raises_sentence(ProgramFailed):
        parse("bonnie", {}, b"", data("bonnie-full.stderr"), 1)


def test_the_command():
    argv = PLUGIN.command("solo", BonnieOptions.model_validate({"file_size": "512MiB", "files": 0}), AT).argv
    assert argv[argv.index("-s") + 1] == "512M:8192" and argv[argv.index("-n") + 1] == "0" and "-b" not in argv
    assert "-b" in PLUGIN.command("solo", BonnieOptions(sync_small=True), AT).argv
    assert [metric.name for metric in PLUGIN.metrics(BonnieOptions(files=0))][-1] == "seeks"


@pytest.mark.parametrize(
    ("given", "why"),
    [({"file_size": "1048577B"}, "whole number of MiB"), ({"block_size": "5000B"}, "not a power of two")],
)
def test_what_bonnie_cannot_take(given: dict[str, str], why: str):
    with pytest.raises(ValidationError, match=why):
        BonnieOptions.model_validate(given)
