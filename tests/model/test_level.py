"""A level is the same however its factors were written, and is kept in two forms."""

import json

import pytest
from pydantic import BaseModel, ValidationError

from weighbridge.model.level import NO_LEVEL, Level, LevelText

LEVEL = Level([("size", "1KiB"), ("clients", "50")])


def test_levels_with_the_same_factors_are_equal():
    assert (
        Level([("clients", "50"), ("size", "1KiB")]) == LEVEL == Level([("clients", "50")]).with_value("size", "1KiB")
    )
    assert {LEVEL: 1}[Level.from_text(LEVEL.text)] == 1
    assert LEVEL.without("size").without("clients") == NO_LEVEL and not NO_LEVEL


def test_what_it_says():
    assert (LEVEL.value_of("size"), LEVEL.value_of("threads")) == ("1KiB", None)
    assert LEVEL.factors == {"clients": "50", "size": "1KiB"}
    assert LEVEL.label == "clients=50, size=1KiB" and NO_LEVEL.label == ""


class Both(BaseModel):
    pairs: Level
    text: LevelText


def test_it_is_kept_as_pairs_or_as_a_text():
    kept = Both(pairs=LEVEL, text=LEVEL).model_dump_json()
    text = '{"clients": "50", "size": "1KiB"}'
    assert json.loads(kept) == {"pairs": [["clients", "50"], ["size", "1KiB"]], "text": text} and LEVEL.text == text
    read = Both.model_validate_json(kept)
    assert (read.pairs, read.text, type(read.pairs), type(read.text)) == (LEVEL, LEVEL, Level, Level)


@pytest.mark.parametrize("text", ["", "1", "[1]", '{"clients": 50}', "{", '[["clients", "50"]]'])
def test_what_is_no_level_is_refused(text: str):
    with pytest.raises(ValueError):
        Level.from_text(text)
    with pytest.raises(ValidationError):
        Both(pairs=LEVEL, text=text)
