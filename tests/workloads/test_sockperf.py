"""sockperf: whole round trips, colours, and failures that end with code 0."""

from typing import Any

from sentences import raises_sentence
from weighbridge.model.measurement import ProgramFailed
from weighbridge.workloads.sockperf import PLUGIN, SockperfOptions

from .captured import AT, data, parse

LOAD = {"test": "under-load", "rate": 5000}


def _options(**options: Any) -> SockperfOptions:
    return PLUGIN.options.model_validate(options)


def _line(role: Any, **options: Any) -> str:
    return " ".join(PLUGIN.command(role, _options(**options), AT).argv)


def test_too_few_answers_are_a_failure():
    whole = data("sockperf-ping-pong-udp.txt")
    cut = whole[: whole.index(b"sockperf: [Valid")]
    with raises_sentence(ProgramFailed):
        parse("sockperf", {}, cut + b"sockperf: No valid observations found. Try tune parameters: --time\n")


def test_colours_change_nothing():
    stdout = data("sockperf-under-load-loss.txt")
    plain = stdout.replace(b"\x1b[2;35m", b"").replace(b"\x1b[0;31m", b"").replace(b"\x1b[0m", b"")
    assert plain != stdout
    assert parse("sockperf", LOAD, plain) == parse("sockperf", LOAD, stdout)
