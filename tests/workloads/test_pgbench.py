"""pgbench: its commands, percentiles against the log itself, what a server's refusals become."""

import re
from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge.model.measurement import Unparseable
from weighbridge.model.power_cut import ACKNOWLEDGED
from weighbridge.model.trial import TrialResult
from weighbridge.workloads.pgbench import PLUGIN, PgbenchOptions, postgres

from .captured import AT, data, ended

STOPPED = ended(returncode=-postgres.STOP)
"""A server that lived until it was stopped."""


def _options(**options: Any) -> PgbenchOptions:
    return PLUGIN.options.model_validate(options)


def _parse(stdout: bytes, stderr: bytes = b"", code: int = 0, server: Any = STOPPED) -> TrialResult:
    return PLUGIN.parse(_options(), {"client": ended(stdout, stderr, code), "server": server})


@pytest.mark.parametrize(
    ("durability", "settings", "class_"),
    [
        ("synced", set(), "synchronous"),
        ("buffered", {"synchronous_commit=off"}, "asynchronous"),
        ("unsafe", {"synchronous_commit=off", "fsync=off"}, "none"),
    ],
)
def test_durability_is_what_the_server_is_told(durability: str, settings: set[str], class_: str):
    options = _options(durability=durability)
    words = PLUGIN.command("server", options, AT).argv
    assert {word for word in words if word.startswith(("synchronous_commit", "fsync"))} == settings
    assert PLUGIN.durability(options) == class_


def test_what_commits_nothing_keeps_nothing():
    options = _options(script="select-only")
    assert PLUGIN.durability(options) is None and PLUGIN.ledger(options, AT) is None


def test_the_server_is_not_root_s_and_listens_where_it_is_told():
    server = PLUGIN.command("server", _options(max_connections=77, shared_buffers="64MiB"), AT)
    assert server.argv[:2] == ("setpriv", "--reuid=postgres")
    assert {"listen_addresses=0.0.0.0", "port=15201", "max_connections=77", "shared_buffers=65536kB"} <= {
        *server.argv
    }
    assert server.listens == (("tcp", 15201),)


def test_the_client_has_no_more_threads_than_clients():
    assert {"--client=1", "--jobs=1"} <= {*PLUGIN.command("client", _options(clients=1, threads=4), AT).argv}
    warm_up = PLUGIN.warm_up(_options(clients=50, warm_up="3s"), AT)
    assert warm_up is not None and {"--client=8", "--time=3"} <= {*warm_up.argv}
    assert PLUGIN.warm_up(_options(warm_up="0s"), AT) is None


@pytest.mark.parametrize("file", ["pgbench-1.txt", "pgbench-4.txt", "pgbench-select-only.txt"])
def test_latencies_are_those_of_the_log(file: str):
    text = data(file).decode()
    counted = re.findall(r"^(\d+) (\d+)$", text, re.MULTILINE)
    times = sorted(int(us) for count, us in counted for _ in range(int(count)))
    found = {measured.metric.name: measured.value for measured in _parse(text.encode()).measurements}
    for share in (95, 99):
        rank = len(times) * share // 100
        assert times[rank - 1] / 1000 * 0.998 <= found[f"latency_p{share}"] <= times[rank] / 1000 * 1.002
    own = re.search(r"latency average = ([0-9.]+) ms", text)  # with the time between transactions
    assert own is not None and found["latency_mean"] == pytest.approx(float(own[1]), rel=0.03)


def test_a_log_of_other_transactions_than_the_report_s_is_no_result():
    text = data("pgbench-4.txt")
    with raises_sentence(Unparseable):
        _parse(text.replace(b"processed: 2642", b"processed: 2643"))
    with pytest.raises(Unparseable):
        _parse(text.removesuffix(b"end of log\n"))


def test_the_ledger_s_writer_and_reader_are_one_client():
    ledger = PLUGIN.ledger(_options(), AT)
    assert ledger.write.argv[-len(ledger.read.argv) :] == ledger.read.argv
    assert ACKNOWLEDGED in ledger.write.argv and f"--port={AT.port}" in ledger.read.argv
