"""Flags as they are stored, and the sentences of older runs."""

import json

import pytest

from sentences import raises_sentence
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.store.flags import flags_json, flags_of


def _share(code: FlagCode, share: float, where: str = "") -> Flag:
    return Flag(code, where, {"share": share})


SENTENCES = {
    "steal 3%": _share(FlagCode.STEAL, 0.03),
    "work outside the sites 83% of a CPU": Flag(FlagCode.OTHER_WORK, figures={"cpus": 0.83}),
    "host b: work outside the sites 120% of a CPU": Flag(FlagCode.OTHER_WORK, "host b", {"cpus": 1.2}),
    "memory pressure 10%": _share(FlagCode.MEMORY_PRESSURE, 0.1),
    "host b-2.x: io pressure 50%": _share(FlagCode.IO_PRESSURE, 0.5, "host b-2.x"),
    "client throttled 20%": _share(FlagCode.THROTTLED, 0.2, "client"),
    "solo throttled 6%": _share(FlagCode.THROTTLED, 0.06, "solo"),
    "generator saturated": Flag(FlagCode.GENERATOR_SATURATED),
    "generator took 1.3 of 2 CPUs, the server 0.4": Flag(
        FlagCode.GENERATOR_TOOK, figures={"client": 1.3, "server": 0.4, "cpus": 2.0}
    ),
    "generator late 5.5 %": _share(FlagCode.GENERATOR_LATE, 0.055),
    "generator rested 90%": _share(FlagCode.GENERATOR_RESTED, 0.9),
    "waited for a connection 15.7 %": _share(FlagCode.CONNECTION_WAIT, 0.157),
    "no rate up to search_to missed the objective": Flag(FlagCode.SEARCH_TO),
    "all connections were in use where the objective was missed": Flag(FlagCode.SEARCH_CONNECTIONS),
    "the generator, not the server, missed the objective above the rate that was found": Flag(
        FlagCode.SEARCH_GENERATOR
    ),
    "load 9.0 at the start": Flag(FlagCode.LOAD, figures={"load": 9.0}),
    "no readings of host a: it broke: twice": Flag(FlagCode.NO_READINGS, "host a", text="it broke: twice"),
    "prometheus: no samples of reads between 3 s and 9 s": Flag(
        FlagCode.PROMETHEUS, text="no samples of reads between 3 s and 9 s"
    ),
    "host b: something new": Flag(FlagCode.OTHER, text="host b: something new"),
    "": Flag(FlagCode.OTHER),
}
"""As runs before version 3 hold them."""


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_sentences_of_older_runs_are_flags(sentence: str):
    (flag,) = flags_of(json.dumps([sentence]))
    wanted = SENTENCES[sentence]
    assert (flag.code, flag.where, flag.text) == (wanted.code, wanted.where, wanted.text)
    assert flag.figures == pytest.approx(wanted.figures)


def test_flags_come_back_as_they_were():
    flags = (*SENTENCES.values(), Flag("a-plug-in", "server", {"x": 1.5}, "ü\x00"))
    assert flags_of(flags_json(flags)) == flags
    assert json.loads(flags_json(flags[:1])) == [{"code": "steal", "figures": {"share": 0.03}}]


@pytest.mark.parametrize("stored", ["[1]", "[{}]", '[{"code": "a", "figures": [1]}]', "[null]", "x"])
def test_what_is_no_flag_is_told(stored: str):
    with raises_sentence(ValueError):
        flags_of(stored)
