"""redis-benchmark: its options as arguments, and failures that look like outputs."""

import signal
from dataclasses import replace
from typing import Any

import pytest

from weighbridge.model.command import Completed
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import TrialFailure
from weighbridge.model.trial import TrialResult, Work
from weighbridge.study.loader import check
from weighbridge.study.source import parse as parse_study
from weighbridge.workloads.redis_benchmark import PLUGIN, RedisBenchmarkOptions

from .captured import AT, data, ended, parse

STOPPED = ended(returncode=-signal.SIGUSR1)
"""A server that lived until it was stopped."""

STUDY = (
    "study: s\nquestion: q?\nbaseline: n\nenvironments: {{n: {{kind: native}}}}\n"
    "workloads: {{w: {{kind: redis-benchmark, {}}}}}\n"
)


def _options(**options: Any) -> RedisBenchmarkOptions:
    return PLUGIN.options.model_validate(options)


def test_the_server_saves_nothing_as_published():
    server = PLUGIN.command("server", _options(), AT)
    assert " ".join(server.argv) == (
        "redis-server --bind 0.0.0.0 --port 15201 --protected-mode no --tcp-backlog 65535 --maxclients 20000"
        " --save  --daemonize no --appendonly no"
    )
    assert server.argv[server.argv.index("--save") + 1] == ""
    assert server.listens == (("tcp", 15201),)
    assert not PLUGIN.needs_data(_options())
    assert PLUGIN.restore(_options(), AT) is None


def test_the_work_is_every_request_and_the_time_that_of_the_clock():
    rows = b'"test","rps","avg_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms"\n'
    rows += b'"SET","50000.00","1","1","1","1"\n"GET","100000.00","1","1","1","1"\n'

    def read(ran_s: float = 0.35, rows: bytes = rows) -> TrialResult:
        return PLUGIN.parse(_options(requests=10_000), {"client": replace(ended(rows), duration_s=ran_s)})

    assert read().work == Work(20.0, "1000_transactions")
    assert read().active_s == pytest.approx(0.3)
    assert read().flags == ()
    assert read(ran_s=3.0).flags == (
        Flag(FlagCode.GENERATOR_RESTED, figures={"share": pytest.approx(0.9, abs=0.01)}),
    )
    idle = read(rows=rows.replace(b"50000.00", b"0.00"))
    assert idle.active_s is None and idle.flags == ()


def test_it_is_not_stopped_as_somebody_else_would_kill_it():
    for appendonly in ("no", "always"):
        server = PLUGIN.command("server", _options(appendonly=appendonly), AT)
        assert server.stop_signal not in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


@pytest.mark.parametrize(("policy", "fsync"), [("always", "always"), ("everysec", "everysec"), ("never", "no")])
def test_a_server_that_logs_begins_with_an_empty_folder_on_a_disk(policy: str, fsync: str):
    options = _options(appendonly=policy)
    server = PLUGIN.command("server", options, AT)
    assert PLUGIN.restore(options, AT).argv == ("sh", "-c", 'rm -rf "$1" && mkdir "$1"', "redis", "/srv/redis")
    assert " ".join(server.argv).endswith(f"--appendonly yes --appendfsync {fsync} --dir /srv/redis")
    assert PLUGIN.needs_data(options)


@pytest.mark.parametrize(
    ("policy", "class_"),
    [("no", "none"), ("always", "synchronous"), ("everysec", "asynchronous"), ("never", "asynchronous")],
)
def test_durability(policy: str, class_: str):
    assert PLUGIN.durability(_options(appendonly=policy)) == class_


def test_a_study_says_no_and_means_it():
    """YAML 1.2 reads the word; 1.1 and JSON have a truth value."""
    (cell,) = check(parse_study(STUDY.format("appendonly: no"), "study.yaml")).cells
    assert cell.options.appendonly == _options(appendonly=False).appendonly == "no"
    cells = check(parse_study(STUDY.format("appendonly: [no, always, everysec, never]"), "study.yaml")).cells
    assert [cell.label for cell in cells] == [f"w (appendonly={p})" for p in ("no", "always", "everysec", "never")]


@pytest.mark.parametrize(
    ("options", "requests", "clients"),
    [
        ({}, 10_000, 50),
        ({"clients": 3}, 10_000, 3),
        ({"requests": 1000, "clients": 500}, 100, 50),
        ({"requests": 1000, "clients": 100, "pipeline": 10}, 500, 50),
        ({"tests": "get"}, 10_000, 50),
    ],
)
def test_the_warm_up_is_a_tenth_of_few_clients_and_always_sets(options: dict[str, Any], requests: int, clients: int):
    argv = PLUGIN.warm_up(_options(**options), AT).argv
    assert argv[argv.index("-n") + 1] == str(requests)
    assert argv[argv.index("-c") + 1] == str(clients)
    assert argv[argv.index("-t") + 1] == "set,get"


def test_more_work_is_expected_to_take_longer():
    assert PLUGIN.expected_s(_options(requests=200_000)) > PLUGIN.expected_s(_options()) > 1
    assert PLUGIN.expected_s(_options(clients=1)) > PLUGIN.expected_s(_options())
    assert PLUGIN.expected_s(_options(value_size="1MiB")) > PLUGIN.expected_s(_options())
    assert PLUGIN.expected_s(_options(pipeline=16)) < PLUGIN.expected_s(_options())
    assert PLUGIN.expected_s(_options(appendonly="always", clients=10)) > 2 * PLUGIN.expected_s(_options(clients=10))
    assert PLUGIN.expected_s(_options(appendonly="everysec")) == PLUGIN.expected_s(_options())


def test_thousands_of_clients_take_seconds_to_connect_and_their_deadline_knows():
    """Measured: 64 connections, then a rest of 50 ms, twice with two tests; then a rate that is half as high."""
    few, many = _options(clients=50), _options(clients=5000)
    assert 10 < PLUGIN.expected_s(many) - PLUGIN.expected_s(few) < 15
    deadlines = [PLUGIN.command("client", options, AT).deadline_s for options in (few, many)]
    assert deadlines[1] > deadlines[0] + 60


@pytest.mark.parametrize("tests", ["set,get", " get , set ", ["set", "get"], ("get",)])
def test_tests_are_written_with_commas(tests: object):
    assert set(_options(tests=tests).tests) <= {"set", "get"}


def _failed(stderr: bytes, returncode: int = 1, server: Completed | None = None, **options: Any) -> TrialFailure:
    """How a trial fails whose client printed this beside a header without rows."""
    client = ended(data("redis-benchmark-no-rows.csv"), stderr, returncode)
    with pytest.raises(TrialFailure) as caught:
        PLUGIN.parse(_options(**options), {"server": server or STOPPED, "client": client})
    return caught.value


def test_thousands_of_complaints_are_one():
    failure = _failed(b"Error writing to the server: Connection reset by peer\n" * 5000)
    assert str(failure).count("Connection reset") == 1


def test_a_warning_beside_whole_rows_is_no_failure():
    whole = data("redis-benchmark.csv")
    warning = b"WARNING: Could not fetch server CONFIG\n"
    assert parse("redis-benchmark", {}, whole, warning) == parse("redis-benchmark", {}, whole)
