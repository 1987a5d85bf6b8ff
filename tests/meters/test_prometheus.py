"""A Prometheus server's series of a trial: what it answers (captured from Prometheus 2.42), and whatever else."""

import http.client
import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.errors import StudyError, Unavailable
from weighbridge.meters import prometheus, prometheus_api
from weighbridge.meters.meter import MeterFailed
from weighbridge.meters.prometheus import MOST_SERIES, Watched
from weighbridge.meters.prometheus_api import (
    QueryRefused,
    Span,
    clock,
    connection,
    fresh_series,
    over_time,
    read,
    reason,
)
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.level import Level
from weighbridge.model.measurement import Measurement, Metric, Outcome
from weighbridge.model.study import Prometheus
from weighbridge.model.trial import PROMETHEUS, Series, Trial, TrialRecord

DATA = Path(__file__).parent / "data" / "prometheus"
URL = "http://127.0.0.1:9090"
BEGAN = 1795277000.25
MEASURED = (Measurement(Metric("speed", "x/s", "higher"), 42.0),)
OWN = Series("host local", "cpu_user_share", (1.0,), (0.5,))
EVER, TEN = Span(0.0, 2e9, 1.0), Span(0.0, 10.0, 1.0)
SCRAPED = "max(timestamp(up))"
Answer = tuple[int, bytes] | Exception


def captured(name: str) -> bytes:
    return (DATA / f"{name}.json").read_bytes()


def matrix(*series: tuple[Mapping[str, str], Mapping[float, str]], began: float = BEGAN) -> bytes:
    """An answer over time: labels, and values by the second of the trial."""
    result = [
        {"metric": dict(labels), "values": [[began + at, value] for at, value in values.items()]}
        for labels, values in series
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


STEAL = Flag(FlagCode.STEAL, figures={"share": 0.03})


def _gap(text: str) -> Flag:
    return Flag(FlagCode.PROMETHEUS, text=text)


def trial(lasted: float = 5.0) -> TrialRecord:
    return TrialRecord(
        Trial(1, 0, "cpu", Level(), "native"), Outcome.OK, BEGAN, lasted, lasted - 0.5, measurements=MEASURED,
        flags=(STEAL,), series=(OWN,),
    )  # fmt: skip


class Server:
    """Answers what it is told to, by the query; and notes what it was asked for."""

    def __init__(self, ahead_s: float = 0.0, **answers: Answer) -> None:
        self.ahead_s, self.answers = ahead_s, answers
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self.closed = 0

    @contextmanager
    def open(self, url: str) -> Iterator[prometheus_api.Ask]:
        assert url == URL
        try:
            yield self.ask
        finally:
            self.closed += 1

    def ask(self, path: str, parameters: Mapping[str, str]) -> tuple[int, bytes]:
        self.asked.append((path, parameters))
        query = parameters["query"]
        answer = self.answers.get(query)
        if answer is None and (query == SCRAPED or query.startswith("timestamp(")):
            return 200, captured("empty")  # an age that is not known leaves every value
        if answer is None and parameters["query"] == "time()":
            now = time.time() + self.ahead_s
            data = {"resultType": "scalar", "result": [now, str(now)]}
            return 200, json.dumps({"status": "success", "data": data}).encode()
        assert answer is not None
        if isinstance(answer, Exception):
            raise answer
        return answer


def watched(server: Server, *queries: str, step: str = "1s", unit: str = "B/s") -> Watched:
    """A study's Prometheus server; each query has the name of its text."""
    asked = {name: {"query": name, "unit": unit} for name in queries or server.answers}
    return Watched(Prometheus.model_validate({"url": URL, "queries": asked, "step": step}), server.open)


# -- answers -------------------------------------------------------------------------------------------


def test_series_by_label():
    found = over_time(lambda *_: (200, captured("by_mode")), "q", EVER)
    as_sent = json.loads(captured("by_mode"))["data"]["result"]
    assert len(found) == len(as_sent) > 1
    for each, sent in zip(found, as_sent, strict=True):
        assert each.labels == sent["metric"] and set(each.labels) == {"mode"}
        assert list(each.values.items()) == [(at, float(value)) for at, value in sent["values"]]


def test_the_clock():
    assert clock(lambda *_: (200, captured("clock"))) == json.loads(captured("clock"))["data"]["result"][0]


def test_an_empty_answer_has_no_series():
    assert over_time(lambda *_: (200, captured("empty")), "q", EVER) == []


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [("parse_error", 400, "parse error"), ("no_range", 400, "invalid expression type"),
     ("many_to_many", 422, "many-to-many matching not allowed")],
)  # fmt: skip
def test_a_refused_query_is_told_in_the_server_s_own_words(name: str, status: int, words: str):
    with pytest.raises(QueryRefused) as caught:
        over_time(lambda *_: (status, captured(name)), "q", TEN)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_not_finite_or_of_another_time_is_no_sample():
    values = {-99.0: "1", 0.0: "NaN", 1.0: "+Inf", 2.0: "-Inf", 3.0: "7", 99.0: "1"}
    (found,) = over_time(lambda *_: (200, matrix(({}, values))), "q", Span(BEGAN, BEGAN + 5, 1.0))
    assert found.values == {BEGAN + 3: 7.0}


def test_a_native_histogram_has_no_values():
    data = {"resultType": "matrix", "result": [{"metric": {"a": "b"}, "histograms": [[1, {"count": "1"}]]}]}
    body = json.dumps({"status": "success", "data": data}).encode()
    (found,) = over_time(lambda *_: (200, body), "q", TEN)
    assert found.values == {}


GARBAGE: list[tuple[int, bytes, str]] = [
    (200, b"", "not from a Prometheus server (HTTP 200: is this a Prometheus server?)"),
    (404, b"<html>nothing here</html>", "HTTP 404"),
    (401, b"no", "it requires a password"),
    (403, b"no", "it forbids this request"),
    (302, b"", "HTTP 302"),
    (200, b"[1]", "not from"),
    (200, b'"success"', "not from"),
    (200, b"\xff\xfe", "not from"),
    (200, b"[" * 100_000, "not from"),
    (200, b'{"status":"success"}', "HTTP 200"),
    (200, b'{"status":"success","data":[]}', "not from"),
    (200, b'{"status":"success","data":{"resultType":"vector","result":[]}}', "not a range"),
    (200, b'{"status":"success","data":{"resultType":"matrix","result":[1]}}', "not from"),
    (200, b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":[]}]}}', "not from"),
    (200, b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1]]}]}}', "not from"),
    (200, b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"x"]]}]}}', "not"),
    (503, b'{"status":"error","errorType":"unavailable","error":"not\\n ready"}', "not ready"),
    (500, b'{"status":"error"}', "HTTP 500"),
]


@pytest.mark.parametrize(("status", "body", "words"), GARBAGE)
def test_garbage_is_a_sentence(status: int, body: bytes, words: str):
    with pytest.raises(MeterFailed) as caught:
        over_time(lambda *_: (status, body), "q", TEN)
    assert words in str(caught.value) and "\n" not in str(caught.value)


@given(st.integers(100, 599), st.binary(max_size=200))
def test_any_bytes_are_a_sentence(status: int, body: bytes):
    for asked in (lambda ask: over_time(ask, "q", TEN), clock):
        with pytest.raises(MeterFailed):
            asked(lambda *_: (status, body))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metric", "values", "resultType", "result", "x"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON, st.booleans())
def test_any_data_is_series_or_a_sentence(data: object, whole: bool):
    inner = data if whole else {"resultType": "matrix", "result": [{"metric": {}, "values": data}]}
    body = json.dumps({"status": "success", "data": inner}).encode()
    server = Server(reads=(200, body))
    record = watched(server).completed(trial())
    assert record.measurements == MEASURED and len(record.flags) in (1, 2)
    with pytest.raises(MeterFailed):
        clock(lambda *_: (200, b'{"status":"success","data":' + json.dumps({"result": 10**400}).encode() + b"}"))


# -- a trial -------------------------------------------------------------------------------------------


def full(lasted: int = 5, step: int = 1) -> dict[float, str]:
    return {float(at): str(at * 2) for at in range(0, lasted + 1, step)}


def test_a_trial_gets_the_series_of_its_time():
    server = Server(reads=(200, matrix(({"device": "sda", "__name__": "r"}, full()), ({"device": "sdb"}, full()))))
    record = watched(server).completed(trial())
    assert record.flags == (STEAL,) and record.series[0] == OWN and record.measurements == MEASURED
    assert [(each.place, each.name) for each in record.series[1:]] == [
        (PROMETHEUS, 'reads{device="sda"} B/s'), (PROMETHEUS, 'reads{device="sdb"} B/s'),
    ]  # fmt: skip
    assert record.series[1].at_s == (0, 1, 2, 3, 4, 5) and record.series[1].values == (0, 2, 4, 6, 8, 10)
    assert [parameters["query"] for _, parameters in server.asked] == [SCRAPED, "reads", "timestamp(reads\n)"]
    path, parameters = server.asked[1]
    assert path == "query_range"
    assert (parameters["start"], parameters["end"]) == ("1795277000.250", "1795277005.250")
    assert (parameters["step"], parameters["timeout"]) == ("1", "2")
    assert server.closed == 1


def test_without_labels_the_name_is_the_query_s():
    record = watched(Server(load=(200, matrix(({}, full())))), unit="1").completed(trial())
    assert record.series[1].name == "load 1"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [([], "in this trial"), ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], ""), ([0, 1, 2, 3, 5, 6, 7, 9, 10], ""),
     ([0, 1, 2, 6, 7, 8, 9, 10], "between 3 s and 5 s"), ([3, 4, 5, 6, 7, 8, 9, 10], "between 0 s and 2 s"),
     ([0, 1, 2, 3, 4, 5, 6], "between 7 s and 10 s"), ([0, 4, 8], "between 1 s and 3 s, between 5 s and 7 s, "
      "between 9 s and 10 s"), ([0, 10], "between 1 s and 9 s")],
)  # fmt: skip
def test_gaps_are_flags(seconds: list[int], told: str):
    record = watched(Server(reads=(200, matrix(({}, dict.fromkeys(seconds, "1")))))).completed(trial(10.4))
    assert record.flags[1:] == ((_gap(f"no samples of reads {told}"),) if told else ())
    assert len(record.series) == (2 if seconds else 1)
    assert record.measurements == MEASURED


def test_many_gaps_are_one_short_flag():
    record = watched(Server(reads=(200, matrix(({}, dict.fromkeys(range(0, 40, 3), "1")))))).completed(trial(36.2))
    (flag,) = record.flags[1:]
    assert flag.text.endswith("between 7 s and 8 s, and in 9 more gaps")


def test_one_series_may_have_what_another_one_lacks():
    values = dict.fromkeys(range(3), "1"), dict.fromkeys(range(3, 6), "1")
    record = watched(
        Server(reads=(200, matrix(*(({"n": str(n)}, each) for n, each in enumerate(values)))))
    ).completed(trial())
    assert record.flags == (STEAL,) and len(record.series) == 3


def captured_trial(name: str) -> TrialRecord:
    """A trial that lasted as long as a captured answer."""
    moments = [float(at) for each in json.loads(captured(name))["data"]["result"] for at, _ in each["values"]]
    began, last = min(moments), max(moments)
    return TrialRecord(Trial(1, 0, "cpu", Level(), "native"), Outcome.OK, began, last - began, 1.0)


def test_captured_answers_of_an_exporter_that_was_gone_for_a_while():
    record = captured_trial("gap")
    done = watched(Server(seen=(200, captured("gap")), gone=(200, captured("empty")))).completed(record)
    (series,) = done.series
    sent = json.loads(captured("gap"))["data"]["result"][0]["values"]
    assert len(series.values) == len(sent) and series.at_s[-1] == pytest.approx(record.duration_s, abs=1e-3)
    assert done.flags[0].text.startswith("no samples of seen between ")
    assert done.flags[1] == _gap("no samples of gone in this trial")


def test_captured_answers_of_a_server_that_was_gone_for_a_while():
    """It repeats the last sample; its time gives it away, and so does that of the last scrape."""
    repeated = json.loads(captured("repeated"))["data"]["result"][0]["values"]
    whole = captured_trial("repeated")
    ages = {"timestamp(load\n)": (200, captured("repeated_written"))}
    scraped = {SCRAPED: (200, captured("repeated_scraped"))}
    for known in (ages, scraped):
        done = watched(Server(load=(200, captured("repeated")), **known), "load").completed(whole)
        (series,) = done.series
        assert len(series.values) < len(repeated)
        (flag,) = done.flags
        assert flag.text.startswith("no samples of load between ")
    unknown = watched(Server(load=(200, captured("repeated"))), "load").completed(whole)
    assert len(unknown.series[0].values) == len(repeated) and unknown.flags == ()


def test_a_number_by_itself_has_no_age():
    server = Server(**{"1": (200, matrix(({}, {0.0: "1"}))), "timestamp(1\n)": (400, captured("parse_error"))})
    (found,) = fresh_series(server.ask, "1", Span(BEGAN, BEGAN + 1, 1.0), {})
    assert found.values == {BEGAN: 1.0}


def test_a_server_that_is_gone_is_a_flag_for_each_query():
    gone = MeterFailed("the server does not answer (Connection refused)")
    record = watched(Server(reads=gone, writes=(200, matrix(({}, full()))))).completed(trial())
    assert record.flags[1:] == (_gap(f"no samples of reads: {gone}"),)
    assert [each.name for each in record.series[1:]] == ["writes B/s"] and record.measurements == MEASURED


def test_a_slow_server_is_not_waited_for_longer_than_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(prometheus, "ALL_QUERIES_S", -1.0)
    server = Server(reads=(200, b""), writes=(200, b""))
    record = watched(server).completed(trial())
    assert record.flags[1:] == (
        _gap("no samples of reads: the server was too slow"),
        _gap("no samples of writes: the server was too slow"),
    )
    assert server.asked == []


def test_a_long_trial_is_asked_for_in_longer_steps():
    server = Server(reads=(200, captured("empty")))
    watched(server, step="100ms").completed(trial(5000.0))
    assert float(server.asked[0][1]["step"]) == pytest.approx(0.5)


def test_more_series_than_are_kept_are_a_flag():
    many = [({"n": str(n)}, full()) for n in range(MOST_SERIES + 3)]
    record = watched(Server(reads=(200, matrix(*many)))).completed(trial())
    assert len(record.series) == 1 + MOST_SERIES
    assert record.flags[1:] == (_gap(f"{MOST_SERIES + 3} series of reads; only {MOST_SERIES} are kept"),)


# -- before a run --------------------------------------------------------------------------------------


def test_a_good_server_is_ready():
    server = Server(reads=(200, matrix(({}, full()), began=time.time() - 9)), nothing=(200, captured("empty")))
    assert watched(server).require() == ["Prometheus currently has no samples of nothing"]
    asked = [parameters["query"] for _, parameters in server.asked]
    assert asked == ["time()", "reads", "timestamp(reads\n)", "nothing", "timestamp(nothing\n)"]


@pytest.mark.parametrize(
    "answer", [MeterFailed("the server does not answer (Connection refused)"), (404, b"<html>"), (200, b"{}")]
)
def test_a_server_that_is_none_is_refused(answer: Answer):
    with raises_sentence(Unavailable):
        watched(Server(**{"time()": answer}), "reads").require()


def test_a_wrong_query_is_refused_in_the_server_s_words():
    server = Server(reads=(200, matrix(({}, full()))), wrong=(400, captured("parse_error")))
    with raises_sentence(StudyError):
        watched(server).require()


def test_too_many_series_are_refused():
    many = [({"n": str(n)}, full()) for n in range(MOST_SERIES + 1)]
    with raises_sentence(StudyError):
        watched(Server(reads=(200, matrix(*many)))).require()


@pytest.mark.parametrize("ahead", [30.4, -30.4])
def test_another_clock_is_refused(ahead: float):
    with raises_sentence(Unavailable):
        watched(Server(ahead, reads=(200, b"")), "reads").require()
    assert watched(Server(ahead, reads=(200, captured("empty"))), "reads", step="1min").require()


# -- the connection ------------------------------------------------------------------------------------


class Line:
    """The other end of http.client's connections: to each request it says the next of its answers, then hangs up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.says: list[bytes] = []
        self.asked = b""
        self.raises: Exception | None = None
        self.threads: list[threading.Thread] = []
        self.to: list[tuple[str, int | None, float | None]] = []
        for kind in (http.client.HTTPConnection, http.client.HTTPSConnection):
            monkeypatch.setattr(kind, "connect", lambda line: self.connect(line))  # noqa: PLW0108 - a method

    def connect(self, line: http.client.HTTPConnection) -> None:
        if self.raises is not None:
            raise self.raises
        line.sock, theirs = socket.socketpair()
        line.sock.settimeout(5)
        self.to.append((line.host, line.port, line.timeout))
        self.threads.append(threading.Thread(target=self._answer, args=(theirs,)))
        self.threads[-1].start()

    def _answer(self, end: socket.socket) -> None:
        with end, end.makefile("rb") as file:
            while self.says and (head := list(itertools.takewhile(bytes.strip, file))):
                (length,) = (int(each.split(b":")[1]) for each in head if each.startswith(b"Content-Length"))
                self.asked += b"".join(head) + file.read(length)
                end.sendall(self.says.pop(0))


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    made = Line(monkeypatch)
    yield made
    for thread in made.threads:
        thread.join(5)


def said(body: bytes, *, length: bool = True) -> bytes:
    if length:
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


@pytest.mark.parametrize("length", [True, False])
def test_all_queries_go_over_one_connection(line: Line, length: bool):
    line.says = [said(b"first", length=length), said(b"second", length=length)]
    with connection("https://prometheus.example:8443/behind") as ask:
        assert ask("query", {"query": 'up{a="b"} + 1'}) == (200, b"first")
        assert ask("query_range", {"query": "x"}) == (200, b"second")
    assert line.to == [("prometheus.example", 8443, 2.0)]
    asked = line.asked
    assert b"POST /behind/api/v1/query HTTP/1.1\r\n" in asked and b"POST /behind/api/v1/query_range HTTP" in asked
    assert b"query=up%7Ba%3D%22b%22%7D+%2B+1" in asked and b"application/x-www-form-urlencoded" in asked


def test_after_an_answer_that_is_too_long_there_is_a_new_connection(line: Line, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(prometheus_api, "LARGEST_ANSWER", 3)
    line.says = [said(b"long")]
    with connection(URL) as ask:
        with raises_sentence(MeterFailed):
            ask("query", {"query": "x"})
        line.says = [said(b"ok")]
        assert ask("query", {"query": "x"}) == (200, b"ok")
    assert len(line.to) == 2


@pytest.mark.parametrize("says", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 2"])
def test_what_is_no_http_is_a_sentence(line: Line, says: bytes):
    line.says = [says]
    with connection(URL) as ask, raises_sentence(MeterFailed):
        ask("query", {"query": "x"})


def test_an_answer_that_is_cut_short_is_no_answer(line: Line):
    line.says = [b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"]
    with connection(URL) as ask, pytest.raises(MeterFailed):
        clock(ask)


@pytest.mark.parametrize(
    ("error", "words"),
    [(ConnectionRefusedError(111, "Connection refused"), "(Connection refused)"),
     (TimeoutError("timed out"), "(no answer within 2 s)"),
     (http.client.BadStatusLine("x"), "(it does not speak HTTP)"),
     (http.client.RemoteDisconnected("Remote end closed connection without response"), "(Remote end closed"),
     (UnicodeError("label too long"), "(label too long)")],
)  # fmt: skip
def test_no_connection_is_a_sentence(line: Line, error: Exception, words: str):
    line.raises = error
    with connection(URL) as ask, pytest.raises(MeterFailed) as caught:
        ask("query", {"query": "up"})
    assert words in str(caught.value)


def test_an_error_without_words_has_its_name():
    assert reason(OSError()) == "OSError"


def test_an_answer_without_end_is_not_read_to_its_end():
    with raises_sentence(MeterFailed):
        read(lambda size: b"x" * size, time.monotonic() + 60)
    with raises_sentence(MeterFailed):
        read(lambda _: b"x", time.monotonic() - 1)
