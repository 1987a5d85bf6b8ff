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


def test_both_ends_are_told_of_tcp():
    assert _line("server") == "sockperf server -i 0.0.0.0 -p 15201"
    assert _line("server", protocol="tcp") == "sockperf server -i 0.0.0.0 -p 15201 --tcp"
    assert PLUGIN.command("server", _options(), AT).listens == (("udp", 15201),)
    assert PLUGIN.command("server", _options(protocol="tcp"), AT).listens == (("tcp", 15201),)
    assert _line("client", protocol="tcp", duration="1min") == (
        "sockperf ping-pong --full-rtt -i 192.0.2.7 -p 15201 --tcp -m 64 -t 60"
    )


def test_a_load_has_a_rate_and_answers():
    client = "sockperf under-load --full-rtt -i 192.0.2.7 -p 15201 -m"
    assert _line("client", **LOAD, message_size="1468B") == f"{client} 1468 -t 10 --mps 5000 --reply-every 10"
    assert _line("client", **LOAD, reply_every=1).endswith("--mps 5000 --reply-every 1")


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
