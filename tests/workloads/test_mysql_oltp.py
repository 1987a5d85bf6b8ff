"""mysql-oltp: its commands, what a server's refusals become, and reports that do not agree with themselves."""

import re
import signal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.errors import StudyError, UserlandError
from weighbridge.model.measurement import Broke, ProgramFailed, TrialFailure, Unparseable
from weighbridge.model.study import Study
from weighbridge.model.userland import UserlandSpec
from weighbridge.model.workload import Endpoint
from weighbridge.runner.userlands import userland_of
from weighbridge.study.loader import check
from weighbridge.study.source import parse as parse_study
from weighbridge.userland.build import key_of
from weighbridge.userland.sources.packages import suite_of
from weighbridge.workloads._sysbench_latency import latencies
from weighbridge.workloads.mysql_oltp import PLUGIN, MysqlOltpOptions, figures, mysql

from .captured import AT, data, ended
from .test_sysbench_latency import COUNTS, printed, taken

STOPPED = ended(returncode=-mysql.STOP)
"""A server that lived until it was stopped."""


def _options(**options: Any) -> MysqlOltpOptions:
    return PLUGIN.options.model_validate(options)


def test_the_server():
    server = PLUGIN.command("server", _options(), AT)
    assert " ".join(server.argv) == (
        "mariadbd --defaults-file=/run/weighbridge-my.cnf --datadir=/srv/mysql --bind-address=0.0.0.0 --port=15201"
        " --max-connections=1500 --innodb-buffer-pool-size=134217728 --innodb-flush-log-at-trx-commit=1"
    )
    assert server.listens == (("tcp", 15201),)
    assert server.stop_signal not in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
    assert PLUGIN.needs_data(_options())
    assert b"skip-log-bin" in PLUGIN.files("server", _options(), AT)["/run/weighbridge-my.cnf"]


@pytest.mark.parametrize(
    ("durability", "flush", "class_"),
    [("synced", 1, "synchronous"), ("written", 2, "asynchronous"), ("buffered", 0, "asynchronous")],
)
def test_durability(durability: str, flush: int, class_: str):
    options = _options(durability=durability)
    assert f"--innodb-flush-log-at-trx-commit={flush}" in PLUGIN.command("server", options, AT).argv
    assert PLUGIN.durability(options) == class_


@pytest.mark.parametrize("script", ["oltp_read_only", "oltp_point_select"])
def test_what_commits_nothing_keeps_nothing(script: str):
    options = _options(script=script)
    assert PLUGIN.durability(options) is None and PLUGIN.ledger(options, AT) is None


def test_every_trial_asks_for_the_same_rows():
    """What sysbench takes without a seed is the time."""
    first, again = (PLUGIN.command("client", _options(), AT).argv for _ in range(2))
    assert first == again and any(each.startswith("--rand-seed=") and each != "--rand-seed=0" for each in first)


def test_transactions_end_it():
    argv = PLUGIN.command("client", _options(threads=50, count=700), AT).argv
    assert {"--time=0", "--events=700"} < set(argv)
    warm_up = PLUGIN.warm_up(_options(count=700, warm_up="5s"), AT)
    assert warm_up is not None and {"--time=5", "--events=0"} < set(warm_up.argv)


def test_the_warm_up_has_few_threads():
    warm_up = PLUGIN.warm_up(_options(threads=2000, warm_up="5s"), AT)
    assert {"--threads=8", "--time=5"} < set(warm_up.argv)
    assert "--threads=3" in PLUGIN.warm_up(_options(threads=3), AT).argv
    assert PLUGIN.warm_up(_options(warm_up="0s"), AT) is None


def test_data_is_prepared_once_for_all_that_use_the_same():
    made = PLUGIN.prepare(_options(), AT)
    for same in ({"threads": 99}, {"script": "oltp_read_only"}, {"durability": "written"}, {"buffer_pool": "1GiB"}):
        assert PLUGIN.prepare(_options(**same), AT).argv == made.argv
    folders = {PLUGIN.prepare(_options(**other), AT).argv[4] for other in ({}, {"tables": 2}, {"table_size": 10**4})}
    assert len(folders) == 3
    assert all(folder.startswith("/srv/mariadb-") for folder in folders)
    for options in (_options(), _options(tables=2)):
        folder = PLUGIN.prepare(options, AT).argv[4]
        assert PLUGIN.restore(options, AT).argv[-2:] == (folder, "/srv/mysql")


def test_only_loopback_private_networks_and_the_client_may_connect():
    hosts = PLUGIN.prepare(_options(), AT).argv[7:]
    assert AT.client in hosts
    assert not {"%", "0.0.0.0", ""} & set(hosts)
    assert {"198.18.%", "198.19.%"} <= set(hosts)  # of own network namespaces and of the run's bridges
    public = {"9.", "11.", "172.15.", "172.32.", "8.8.", "192.0.", "198.17.", "198.20."}
    assert not [host for host in hosts if host != AT.client and host.startswith(tuple(public))]
    assert "" not in PLUGIN.prepare(_options(), Endpoint("127.0.0.1", "127.0.0.1", 1)).argv


def test_more_threads_and_tables_take_longer_to_begin():
    assert PLUGIN.expected_s(_options(threads=1000)) > PLUGIN.expected_s(_options()) > 10
    assert PLUGIN.expected_s(_options(duration="180s", warm_up="0s")) > 180


def _failure(stdout: bytes, returncode: int = 1, server: int = -mysql.STOP, **options: Any) -> TrialFailure:
    """How a trial fails whose client printed this."""
    with pytest.raises(TrialFailure) as caught:
        completed = {"server": ended(returncode=server), "client": ended(stdout, returncode=returncode)}
        PLUGIN.parse(_options(**options), completed)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"error 2004: Can't create TCP/IP socket (24)", "error 2004"),
        (b"error 2002: Can't connect to server on '127.0.0.1' (99)", "(99)"),
        (b"error 2003: Can't connect to MySQL server on '10.0.0.1' (113)", "(113)"),
    ],
)
def test_a_generator_without_means_is_no_broken_server(line: bytes, words: str):
    printed = data("sysbench-oltp-too-many.txt").replace(b"error 1040: Too many connections", line)
    failure = _failure(printed)
    assert type(failure) is ProgramFailed
    assert words in str(failure)


def test_a_refusal_tells_more_than_the_time_that_it_took():
    failure = _failure(data("sysbench-oltp-no-answer.txt") + data("sysbench-oltp-too-many.txt"), 2)
    assert str(failure) == "too many connections at 10 threads (error 1040: Too many connections)"


def _report(**changes: bytes) -> bytes:
    """A whole report with some figures put in place of others."""
    text = data("sysbench-oltp-read-write.txt")
    for old, new in changes.items():
        label = old.replace("_", " ").encode()
        lines = [line for line in text.splitlines(keepends=True) if line.strip().startswith(label + b":")]
        assert len(lines) == 1
        text = text.replace(lines[0], b"    " + label + b": " + new + b"\n")
    return text


def test_a_server_that_fails_more_than_it_does_has_broken():
    failure = _failure(_report(ignored_errors=b"1526      (800.00 per sec.)"), 0)
    assert type(failure) is Broke
    assert str(failure) == "1526 of 3051 transactions failed at 10 threads"
    assert type(_failure(_report(transactions=b"0      (0.00 per sec.)"), 0)) is Broke
    few = PLUGIN.parse(_options(), {"client": ended(_report(ignored_errors=b"1525   (800.00 per sec.)"))})
    assert few.measurements[-2].value == 1525


@pytest.mark.parametrize("script", ["read-write", "read-only", "write-only", "point-select"])
def test_the_mean_and_the_percentile_are_the_printed_ones_with_more_digits(script: str):
    text = data(f"sysbench-oltp-{script}.txt").decode()
    printed = {
        label: float(re.search(rf"\n +{label}: +([0-9.]+)\n", text)[1]) for label in ("avg", "99th percentile")
    }
    found = {m.metric.name: m.value for m in PLUGIN.parse(_options(), {"client": ended(text.encode())}).measurements}
    assert found["latency_mean"] == pytest.approx(printed["avg"], abs=0.00501)
    assert found["latency_p99"] == pytest.approx(printed["99th percentile"], abs=0.00551)


def test_the_95th_percentile_is_the_one_that_sysbench_takes():
    text = data("sysbench-oltp-percentile-95.txt").decode()
    assert "95th percentile:                        6.91\n" in text
    assert latencies(text, 1438).percentile(95) == pytest.approx(6.91, abs=0.0055)


@pytest.mark.parametrize(
    ("file", "transactions", "queries", "errors", "reconnects"),
    [
        ("sysbench-mariadb-oltp_rw.txt", 734.78, 14695.53, 0, 0),
        ("sysbench-mysql9-oltp_rw.txt", 538.12, 10762.47, 0, 0),
        ("sysbench-mysql9-incontainer-socket.txt", 630.90, 12621.45, 1, 0),
    ],
)
def test_rates_of_runs_without_a_histogram(
    file: str, transactions: float, queries: float, errors: int, reconnects: int
):
    found = {metric.name: value for metric, value in figures(data(f"printed/{file}").decode()).items()}
    assert found == {
        "transactions": transactions, "queries": queries, "errors": errors, "reconnects": reconnects
    }  # fmt: skip
    assert type(_failure(data(f"printed/{file}"), 0)) is Unparseable


def test_the_histogram_that_is_kept_is_that_of_the_run():
    from weighbridge.statistics.histogram import Histogram

    client = ended(data("sysbench-oltp-read-write.txt"))
    kept = Histogram.decode(PLUGIN.parse(_options(), {"client": client}).histograms["latency"])
    assert kept.count == 1525
    assert kept.percentile(99) == pytest.approx(22.284e6, rel=1e-3)


def test_the_work_is_the_transactions():
    completed = {"client": ended(data("sysbench-oltp-read-write.txt"))}
    work = PLUGIN.parse(_options(), completed).work
    assert work is not None
    assert (work.amount, work.unit) == (pytest.approx(1.525), "1000_transactions")


STUDY = """
study: s
question: q?
baseline: n
environments:
  n: {{kind: native}}
  m: {{kind: native{own}}}
workloads:
  a: {{kind: mysql-oltp{a}}}
  b: {{kind: mysql-oltp, script: oltp_read_only{b}}}
"""


def _study(a: str = "", b: str = "", own: str = "") -> Study:
    return check(parse_study(STUDY.format(a=a, b=b, own=own), "study.yaml"))


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ({"a": ", server: [mariadb, mysql]"}, 9),
        ({"a": ", server: mysql"}, 10),
        ({"own": ", workloads: {a: {server: mysql}}"}, 7),
    ],
)
def test_no_study_mixes_servers(written: dict[str, str], line: int):
    with raises_sentence(StudyError) as caught:
        _study(**written)
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).startswith(f"study.yaml:{line}: server: ")


def test_a_study_of_mysql_has_a_userland_of_sid():
    assert userland_of(_study()).packages == tuple(sorted(PLUGIN.packages))
    packages = userland_of(_study(a=", server: mysql", b=", server: mysql")).packages
    assert suite_of(packages) == ("sid", ["mysql-client-core", "mysql-common", "mysql-server-core", "sysbench"])
    argv = PLUGIN.command("server", _options(server="mysql"), AT).argv
    assert argv[0] == "mysqld"
    assert "--mysqlx=OFF" in argv
    assert PLUGIN.prepare(_options(server="mysql"), AT).argv[3] == "mysqld"


def test_a_userland_is_of_one_suite():
    assert suite_of(["iperf3", "sysbench"]) == ("bookworm", ["iperf3", "sysbench"])
    assert suite_of(["iperf3", "mysql-server-core/sid"]) == ("sid", ["iperf3", "mysql-server-core"])
    assert key_of(UserlandSpec.of(["sysbench"])) != key_of(UserlandSpec.of(["sysbench/sid"]))
    with raises_sentence(UserlandError):
        suite_of(["a/sid", "b/trixie", "c"])


WHOLE = st.integers(0, 10**9)
RATE = st.integers(0, 10**9).map(lambda hundredths: f"{hundredths / 100:.2f}")


def _put(text: str, label: str, line: str) -> str:
    """The report with another figure on the one line that begins with this."""
    changed, lines = re.subn(rf"(?m)^( +{label}: +).*$", lambda found: found[1] + line, text)
    assert lines == 1
    return changed


@given(counts=COUNTS, rates=st.tuples(RATE, RATE), repeated=WHOLE, reconnects=WHOLE, total=RATE)
def test_any_report_that_sysbench_may_print_is_read_as_it_is_printed(
    counts: dict[int, int], rates: tuple[str, str], repeated: int, reconnects: int, total: str
):
    events = sum(counts.values())
    errors = repeated % (events + 1)  # more would be a server that broke
    text = data("sysbench-oltp-read-write.txt").decode()
    text = printed(counts) + text[text.index("\nSQL statistics:") :]
    text = _put(text, "transactions", f"{events:<6d} ({rates[0]} per sec.)")
    text = _put(text, "queries", f"{20 * events:<6d} ({rates[1]} per sec.)")
    text = _put(text, "ignored errors", f"{errors:<6d} (0.00 per sec.)")
    text = _put(text, "reconnects", f"{reconnects:<6d} (0.00 per sec.)")
    text = _put(text, "99th percentile", f"{taken(counts, 99):10.2f}")
    text = _put(text, "sum", total)
    found = {m.metric.name: m.value for m in PLUGIN.parse(_options(), {"client": ended(text.encode())}).measurements}
    told = {"latency_p95": found.pop("latency_p95"), "latency_p99": found.pop("latency_p99")}
    assert found == {
        "transactions": float(rates[0]), "queries": float(rates[1]), "latency_mean": float(total) / events,
        "errors": errors, "reconnects": reconnects,
    }  # fmt: skip
    assert told["latency_p95"] == pytest.approx(taken(counts, 95), abs=0.000501)
    assert told["latency_p99"] == pytest.approx(taken(counts, 99), abs=0.000501)
