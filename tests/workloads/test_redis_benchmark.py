"""redis-benchmark: its options as arguments, and failures that look like outputs."""

import signal
from typing import Any

import pytest
from pydantic import ValidationError

from weighbridge.model.measurement import ProgramFailed, Unparseable
from weighbridge.workloads.redis_benchmark import PLUGIN, RedisBenchmarkOptions

from .captured import AT, data, parse


def _options(**options: Any) -> RedisBenchmarkOptions:
    return PLUGIN.options.model_validate(options)


def test_the_server_saves_nothing_and_is_killed():
    server = PLUGIN.command("server", _options(), AT)
    assert " ".join(server.argv) == (
        "redis-server --bind 0.0.0.0 --port 15201 --protected-mode no --save  --appendonly no --daemonize no"
    )
    assert server.argv[server.argv.index("--save") + 1] == ""
    assert server.stop_signal == signal.SIGKILL
    assert server.listens == (("tcp", 15201),)


def test_the_client():
    client = "redis-benchmark -h 192.0.2.7 -p 15201 --csv -t"
    assert " ".join(PLUGIN.command("client", _options(), AT).argv) == f"{client} set,get -n 100000 -c 50 -d 3 -P 1"
    options = _options(tests="get", requests=5000, clients=2, value_size="1KiB", pipeline=16, keyspace=1000)
    argv = " ".join(PLUGIN.command("client", options, AT).argv)
    assert argv == f"{client} get -n 5000 -c 2 -d 1024 -P 16 -r 1000"


@pytest.mark.parametrize(
    ("options", "requests"), [({}, 10_000), ({"requests": 1000, "clients": 500}, 500), ({"tests": "get"}, 10_000)]
)
def test_the_warm_up_is_a_tenth_and_always_sets(options: dict[str, Any], requests: int):
    argv = PLUGIN.warm_up(_options(**options), AT).argv
    assert argv[argv.index("-n") + 1] == str(requests)
    assert argv[argv.index("-t") + 1] == "set,get"


def test_more_work_is_expected_to_take_longer():
    assert PLUGIN.expected_s(_options(requests=200_000)) > PLUGIN.expected_s(_options()) > 1
    assert PLUGIN.expected_s(_options(clients=1)) > PLUGIN.expected_s(_options())
    assert PLUGIN.expected_s(_options(value_size="1MiB")) > PLUGIN.expected_s(_options())
    assert PLUGIN.expected_s(_options(pipeline=16)) < PLUGIN.expected_s(_options())


@pytest.mark.parametrize("tests", ["set,get", " get , set ", ["set", "get"], ("get",)])
def test_tests_are_written_with_commas(tests: object):
    assert set(_options(tests=tests).tests) <= {"set", "get"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tests": ""}, "'set' or 'get'"),
        ({"tests": []}, "at least 1 item"),
        ({"tests": "set,set"}, "named twice"),
        ({"tests": "lpush"}, "'set' or 'get'"),
        ({"requests": 10}, "greater than or equal to 1000"),
        ({"requests": 1000, "clients": 2000}, "some clients would send nothing"),
        ({"requests": 1000, "pipeline": 100}, "some clients would send nothing"),
        ({"value_size": "1GiB"}, "less than or equal to"),
        ({"value_size": 3}, "has no unit"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], words: str):
    with pytest.raises(ValidationError, match=words):
        _options(**options)


@pytest.mark.parametrize(
    ("file", "returncode", "words"),
    [
        ("redis-benchmark-refused.stderr", 0, "Connection refused"),
        ("redis-benchmark-refused.stderr", -9, "Connection refused"),
        ("redis-benchmark-server-killed.stderr", 1, "Connection reset by peer"),
        ("redis-benchmark-auth.stderr", 1, "NOAUTH Authentication required"),
    ],
)
def test_a_header_without_rows_is_a_failure_in_its_own_words(file: str, returncode: int, words: str):
    with pytest.raises(ProgramFailed, match=words):
        parse("redis-benchmark", {}, data("redis-benchmark-no-rows.csv"), data(file), returncode)


def test_a_warning_beside_whole_rows_is_no_failure():
    whole = data("redis-benchmark.csv")
    warning = b"WARNING: Could not fetch server CONFIG\n"
    assert parse("redis-benchmark", {}, whole, warning) == parse("redis-benchmark", {}, whole)


def test_a_run_too_short_for_its_clock_is_no_measurement():
    with pytest.raises(Unparseable, match="rps is 'inf'"):
        parse("redis-benchmark", {}, data("redis-benchmark-inf.csv"))


@pytest.mark.parametrize("file", ["redis-benchmark-no-rows.csv", "redis-benchmark-set.csv"])
def test_a_missing_row_is_unparseable(file: str):
    with pytest.raises(Unparseable, match="no whole row for"):
        parse("redis-benchmark", {}, data(file))
