"""nginx under wrk: the configuration, wrk's command line, its line of JSON, and what counts as broken."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.model.measurement import Broke, ProgramFailed, ServerDied, ServerNotReady, Unparseable
from weighbridge.study.loader import check
from weighbridge.study.source import parse as read
from weighbridge.workloads import _nginx
from weighbridge.workloads.nginx_wrk import ERRORS, LATENCIES, PLUGIN, NginxWrkOptions

from .captured import AT, GOOD, Case, data, ended, parse

PAGE, PICTURE = "http://192.0.2.7:15201/page.html", "http://192.0.2.7:15201/picture.jpg"
STUDY = "study: s\nquestion: q\nbaseline: n\nenvironments: {n: {kind: native}}\n"
WORDS = "  2 threads and 50 connections\nRequests/sec:      1.00\n"
LINE = {
    "requests": 1000, "duration_us": 2_000_000, "bytes": 5_000_000, "connect": 0, "read": 0, "write": 0, "status": 0,
    "timeout": 0, "ports": 28232, "out_of_files": 0,
    "mean_us": 1500.25, "p50_us": 1000, "p95_us": 3000, "p99_us": 9000,
}  # fmt: skip


def _options(**options: Any) -> NginxWrkOptions:
    return PLUGIN.options.model_validate(options)


def _printed(**changed: object) -> bytes:
    return (WORDS + json.dumps(LINE | changed) + "\n").encode()


def _values(stdout: bytes, options: dict[str, Any] | None = None, server: bytes = b"") -> dict[str, float]:
    aside = {"server": server}
    return {m.metric.name: m.value for m in parse("nginx-wrk", options or {}, stdout, others={}, aside=aside)}


def test_the_server_reads_its_own_configuration():
    server = PLUGIN.command("server", _options(), AT)
    assert " ".join(server.argv) == "nginx -e stderr -p /tmp -c /tmp/nginx.conf"
    assert server.listens == (("tcp", 15201),)
    assert set(PLUGIN.files("server", _options(), AT)) == {"/tmp/nginx.conf", "/tmp/page.html", "/tmp/picture.jpg"}


def test_the_configuration_has_the_published_settings():
    text = PLUGIN.files("server", _options(), AT)["/tmp/nginx.conf"].decode()
    said = {line.strip() for line in text.splitlines()}
    assert said >= {
        "daemon off;", "worker_processes auto;", "worker_connections 4096;", "sendfile on;", "access_log off;",
        "keepalive_timeout 65000ms;", "keepalive_requests 1000;", "listen 0.0.0.0:15201 backlog=65535;",
    }  # fmt: skip
    assert "$" not in text


def test_the_configuration_has_the_studys_settings():
    options = _options(
        worker_processes=3, worker_connections=512, sendfile=False, keepalive_timeout="1.5s", keepalive_requests=7,
        backlog=128,
    )  # fmt: skip
    said = {line.strip() for line in _nginx.configuration(options, AT).splitlines()}
    assert said >= {
        "worker_processes 3;", "worker_connections 512;", "sendfile off;", "keepalive_timeout 1500ms;",
        "keepalive_requests 7;", "listen 0.0.0.0:15201 backlog=128;",
    }  # fmt: skip


def test_nginx_writes_only_where_a_site_can_be_written():
    text = _nginx.configuration(_options(), AT)
    paths = re.findall(r"(?<=\s)/[^\s;]+", re.sub(r"#.*|location = \S+", "", text))
    assert len(paths) == 8
    assert all(path.startswith("/tmp/") and path.count("/") == 2 for path in paths), "no folder has to be made"


def test_the_client():
    client = PLUGIN.command("client", _options(), AT)
    assert " ".join(client.argv) == f"wrk -s /dev/stdin -t 2 -c 50 -d 10s --timeout 2s --latency {PAGE}"
    assert b"function done(summary, latency)" in client.stdin
    options = _options(content="picture", connections=6, threads=3, duration="180s", timeout="5s")
    client = PLUGIN.command("client", options, AT)
    assert " ".join(client.argv) == f"wrk -s /dev/stdin -t 3 -c 6 -d 180s --timeout 5s --latency {PICTURE}"


def test_wrk_is_interrupted_within_a_second():
    """Its own time is then one that it must not reach: an interruption that its main thread missed."""
    argv = PLUGIN.command("client", _options(duration="0.3s"), AT).argv
    assert argv[: argv.index("wrk")] == ("timeout", "--foreground", "--preserve-status", "--signal=INT", "0.3")
    assert argv[argv.index("-d") + 1] == "6s"
    for duration_us in (300_000, 5_999_999):
        parsed = PLUGIN.parse(_options(duration="0.3s"), {"client": ended(_printed(duration_us=duration_us))})
        assert parsed.measurements[0].value == pytest.approx(1000 / (duration_us / 1e6))
    with raises_sentence(ProgramFailed):
        PLUGIN.parse(_options(duration="0.3s"), {"client": ended(_printed(duration_us=6_000_000))})


@pytest.mark.parametrize(("connections", "used"), [(1, "1"), (2, "2"), (5000, "2")])
def test_no_thread_is_without_a_connection(connections: int, used: str):
    argv = PLUGIN.command("client", _options(connections=connections), AT).argv
    assert argv[argv.index("-t") + 1] == used


@pytest.mark.parametrize(("connections", "warming"), [(1, "1"), (10, "10"), (5000, "16")])
def test_the_warm_up_is_light(connections: int, warming: str):
    warm_up = PLUGIN.warm_up(_options(connections=connections, warm_up="2s"), AT)
    assert warm_up is not None
    assert warm_up.argv[warm_up.argv.index("-c") + 1] == warming
    assert warm_up.argv[warm_up.argv.index("-d") + 1] == "2s"
    assert PLUGIN.warm_up(_options(warm_up="0s"), AT) is None


@pytest.mark.parametrize(
    "written",
    [
        "connections: 0",
        "connections: [50, 1000000]",
        "picture: /nowhere/p.jpg",
        "connections: 51",
    ],
)
def test_a_study_with_a_mistake_is_told_in_one_sentence(written: str):
    text = f"{STUDY}workloads: {{w: {{kind: nginx-wrk, {written}}}}}\n"
    with raises_sentence(StudyError) as caught:
        check(read(text, "study.yaml"))
    assert "\n" not in str(caught.value)


def test_page_and_picture_are_levels_of_a_factor():
    text = f"{STUDY}workloads: {{w: {{kind: nginx-wrk, content: [page, picture], connections: [1, 50]}}}}\n"
    assert [cell.options.content for cell in check(read(text, "study.yaml")).cells] == [
        "page",
        "page",
        "picture",
        "picture",
    ]


@pytest.mark.parametrize("size", [1000, 500_000, 1_000_001])
def test_the_generated_picture_is_the_same_everywhere(size: int):
    picture = PLUGIN.files("server", _options(picture_size=f"{size}B"), AT)["/tmp/picture.jpg"]
    assert len(picture) == size
    assert picture[:4] == b"\xff\xd8\xff\xe0" and picture[-2:] == b"\xff\xd9"
    assert picture[20:28].hex() == "6e78e27d79ec5e4a"


def test_a_picture_of_ones_own(tmp_path: Path):
    path = tmp_path / "mine.jpg"
    path.write_bytes(b"a picture")
    options = _options(picture=str(path))
    assert PLUGIN.files("server", options, AT)["/tmp/picture.jpg"] == b"a picture"
    path.write_bytes(b"")
    with raises_sentence(ValidationError):
        _options(picture=str(path))
    path.unlink()
    with raises_sentence(ServerNotReady):
        PLUGIN.files("server", options, AT)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o660, 0o773])
def test_only_a_picture_that_everybody_may_read_is_served(tmp_path: Path, mode: int):
    path = tmp_path / "mine.jpg"
    path.write_bytes(b"a secret")
    path.chmod(0o644)
    options = _options(picture=str(path))
    path.chmod(mode)  # root, who may run this, can still read it
    with raises_sentence(ServerNotReady):
        PLUGIN.files("server", options, AT)
    text = f"{STUDY}workloads: {{w: {{kind: nginx-wrk, picture: '{path}'}}}}\n"
    with raises_sentence(StudyError):
        check(read(text, "a.yaml"))


def test_a_pipe_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with raises_sentence(ValidationError):
        _options(picture=str(tmp_path / "pipe"))


@given(line=st.fixed_dictionaries({
    "requests": st.integers(10**6, 10**9), "duration_us": st.integers(1, 10**11), "bytes": st.integers(0, 10**14),
    **{key: st.integers(0, 1000) for key in ERRORS},
    **{f"{key}_us": st.floats(0, 1e8).map(lambda value: round(value, 3)) for key in LATENCIES},
}))  # fmt: skip
def test_the_values_are_those_that_wrk_printed(line: dict[str, float]):
    values = _values(_printed(**line))
    seconds = line["duration_us"] / 1e6
    assert values["requests"] == pytest.approx(line["requests"] / seconds)
    assert values["transfer"] == pytest.approx(line["bytes"] / 1e6 / seconds)
    assert {key: values[f"latency_{key}"] for key in LATENCIES} == pytest.approx(
        {key: line[f"{key}_us"] / 1000 for key in LATENCIES}
    )
    assert {key: values[f"errors_{key}"] for key in ERRORS} == {key: line[key] for key in ERRORS}


SAID = {
    "requests": (r"^Requests/sec: +([0-9.]+)$", 1, 0.005),
    "transfer": (r"^Transfer/sec: +([0-9.]+MB)$", 2**20 / 1e6, 0.006),
    "latency_mean": (r"^    Latency +(\S+)", 1, 0.005),
    "latency_p50": (r"^     50% +(\S+)$", 1, 0.005),
    "latency_p99": (r"^     99% +(\S+)$", 1, 0.005),
    "errors_read": (r"Socket errors: connect 0, read (\d+), write 0, timeout 0$", 1, 0),
}
"""wrk's own lines above the script's: the pattern of a figure, its unit in ours, and half of its last digit."""
SCALE = {"us": 1e-3, "ms": 1.0, "s": 1e3, "MB": 1.0, "": 1.0}


@pytest.mark.parametrize("case", [case for case in GOOD if case.kind == "nginx-wrk"], ids=str)
def test_wrk_says_the_same_in_its_own_lines(case: Case):
    text = case.stdout.decode()
    found = {measured.metric.name: measured.value for measured in case.parse(case.stdout)}
    for name, (pattern, unit, rounding) in SAID.items():
        match = re.search(pattern, text, re.MULTILINE)
        if match is None:
            assert name == "errors_read" and found[name] == 0
            continue
        number, suffix = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", match[1]).groups()  # type: ignore[union-attr]
        scale = SCALE[suffix] * unit
        assert found[name] == pytest.approx(float(number) * scale, abs=rounding * scale * 1.001), name


def test_wrk_adds_samples_of_its_own_to_its_latencies():
    """In a closed loop the mean latency is at most connections / rate; wrk's is more. See the plug-in's docstring."""
    found = _values(data("wrk-page.txt"))
    assert found["latency_mean"] > 1.3 * 1000 * 50 / found["requests"]


@pytest.mark.parametrize("key", LINE)
@pytest.mark.parametrize("value", [None, "1", -2, True, [1], float("nan"), float("inf")])
def test_a_number_that_is_none_is_unparseable(key: str, value: object):
    with pytest.raises(Unparseable, match=key):
        _values(_printed(**{key: value}))


def test_no_time_is_unparseable():
    with raises_sentence(Unparseable):
        _values(_printed(duration_us=0))


def test_some_errors_are_a_measurement():
    values = _values(_printed(read=100, timeout=200, status=200, connect=1))
    assert values["errors_read"] == 100
    assert values["errors_connect"] == 1
    assert values["errors_write"] == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"status": 501},
        {"timeout": 600, "connect": 10},
        {"read": 2000, "write": 1},
        {"requests": 0},
        {"requests": 0, "connect": 50},
    ],
)
def test_a_server_whose_answers_fail_has_broken(changed: dict[str, int]):
    with raises_sentence(Broke):
        _values(_printed(**changed))


def test_a_limit_that_nginx_met_has_broken_it():
    said = data("nginx-worker-connections.stderr")
    with raises_sentence(Broke):
        _values(_printed(read=100), server=said)
    with raises_sentence(Broke):
        _values(_printed(requests=0), server=said)
    assert _values(_printed(), server=said)["requests"] == 500, "nobody noticed"


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        (b"", ""),
        (b"nginx: [warn] 50000 worker_connections exceed open file resource limit: 20000\n", ""),
        (
            b"2026/11/21 16:00:00 [alert] 7#7: worker process 9 exited on signal 9\n",
            "worker process 9 exited on signal 9",
        ),
    ],
)
def test_what_else_nginx_says(said: bytes, limit: str):
    assert _nginx.limit_met(ended(stderr=said)) == limit
    assert _nginx.limit_met(None) == ""


def test_wrk_that_runs_out_of_files_or_ports_has_failed_itself():
    with raises_sentence(ProgramFailed):
        _values(_printed(connect=45, out_of_files=1))
    with raises_sentence(ProgramFailed):
        _values(_printed(connect=45, ports=5))
    assert _values(_printed(out_of_files=1))["requests"] == 500
    assert _values(_printed(ports=5))["requests"] == 500
    assert _values(_printed(connect=45, ports=-1))["errors_connect"] == 45


def test_the_cost_is_that_of_a_thousand_requests():
    work = PLUGIN.parse(_options(duration="2s"), {"client": ended(_printed(duration_us=2_500_000))}).work
    assert work is not None
    assert (work.amount, work.unit) == (LINE["requests"] / 1000, "1000_transactions"), "however long it took"


@pytest.mark.parametrize("number", [9, 15])
def test_a_worker_that_somebody_kills_has_not_broken(number: int):
    said = f"2026/11/21 20:00:00 [alert] 7#7: worker process 9 exited on signal {number}\n".encode()
    with raises_sentence(ServerDied) as told:
        _values(_printed(read=3), server=said)
    assert told.value.killed
