"""Queries one Prometheus server over HTTP (stable API v1)."""

import contextlib
import http.client
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode, urlsplit

from weighbridge.meters.meter import MeterFailed
from weighbridge.model.measurement import LARGEST

ANSWER_S = 2.0
"""The time limit for one answer, in seconds."""
LARGEST_ANSWER = 16 * 2**20
_DAMAGED = (LookupError, TypeError, ValueError, ArithmeticError)


class QueryRefused(MeterFailed):
    """The server refuses the query. The message is from the server."""


@dataclass(frozen=True, slots=True)
class QueriedSeries:
    """One series of an answer: its labels, and its values by time (seconds since the epoch), finite ones only."""

    labels: Mapping[str, str]
    values: Mapping[float, float]


Ask = Callable[[str, Mapping[str, str]], tuple[int, bytes]]
"""Sends a path of the API with parameters, and returns an HTTP status and a body. Raises MeterFailed."""


@contextlib.contextmanager
def connection(url: str) -> Iterator[Ask]:
    """Yield the function that asks the server at this address, over one connection.

    It uses no proxy, follows no redirection and sends no password, so only this server is asked.
    """
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    line = kind(parts.hostname or "", parts.port, timeout=ANSWER_S)

    def ask(path: str, parameters: Mapping[str, str]) -> tuple[int, bytes]:
        deadline = time.monotonic() + ANSWER_S
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        try:
            line.request("POST", f"{parts.path}/api/v1/{path}", urlencode(parameters), form)
            with line.getresponse() as response:
                return response.status, read(response.read1, deadline)
        except MeterFailed:
            line.close()  # otherwise, the next query would receive the rest of this answer
            raise
        except (OSError, http.client.HTTPException, UnicodeError) as error:  # the last is an invalid host name
            line.close()
            raise MeterFailed(f"the server does not answer ({reason(error)})") from error

    try:
        yield ask
    finally:
        line.close()


def read(some: Callable[[int], bytes], deadline: float) -> bytes:
    """Read all until the deadline (time.monotonic). Raises MeterFailed if an answer is too long or too slow."""
    body = bytearray()
    while part := some(2**16):
        body += part
        if len(body) > LARGEST_ANSWER:
            raise MeterFailed(f"the answer is longer than {LARGEST_ANSWER // 2**20} MiB")
        if time.monotonic() > deadline:
            raise MeterFailed(f"the answer takes longer than {ANSWER_S:g} s")
    return bytes(body)


def reason(error: Exception) -> str:
    """Return the reason of a connection's failure, in a few words."""
    if isinstance(error, TimeoutError):
        return f"no answer within {ANSWER_S:g} s"
    if isinstance(error, http.client.HTTPException) and not isinstance(error, OSError):
        return "it does not speak HTTP"
    return str(getattr(error, "strerror", None) or error).strip(".") or type(error).__name__


def clock(ask: Ask) -> float:
    """Return the server's time in seconds since the epoch. Raises MeterFailed."""
    data = _data(*ask("query", {"query": "time()"}))
    try:
        return float(data["result"][1])
    except _DAMAGED as error:
        raise MeterFailed("the answer is not from a Prometheus server") from error


@dataclass(frozen=True, slots=True)
class Span:
    """The times of a query's values: each ``step`` from ``start`` to ``end``, in seconds since the epoch."""

    start: float
    end: float
    step: float


def over_time(ask: Ask, query: str, span: Span) -> list[QueriedSeries]:
    """Return every series of a query. The server repeats a sample until the next one, for at most five minutes.

    Raises QueryRefused, MeterFailed.
    """
    start, end, step = span.start, span.end, span.step
    parameters = {
        "query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}", "timeout": f"{ANSWER_S:g}"
    }  # fmt: skip
    data = _data(*ask("query_range", parameters))
    try:
        if data["resultType"] != "matrix":
            raise MeterFailed("the answer to a range query is not a range")
        return [_queried_series(each, start - step, end + step) for each in data["result"]]
    except (*_DAMAGED, AttributeError) as error:
        raise MeterFailed("the answer is not from a Prometheus server") from error


def last_scrape(ask: Ask, span: Span) -> Mapping[float, float]:
    """Return the time of the server's last scrape at each moment, or nothing if the server does not scrape."""
    last: dict[float, float] = {}
    for each in over_time(ask, "max(timestamp(up))", span):
        last |= {at: max(moment, last.get(at, moment)) for at, moment in each.values.items()}
    return last


def fresh_series(ask: Ask, query: str, span: Span, scraped: Mapping[float, float]) -> list[QueriedSeries]:
    """Return every series of a query, without values that repeat a sample from more than two steps before.

    A sample of a metric has a time. A computed value is as old as the server's last scrape.
    Raises QueryRefused, MeterFailed.
    """
    series = over_time(ask, query, span)
    try:
        written = {_key(each): each.values for each in over_time(ask, f"timestamp({query}\n)", span)}
    except QueryRefused:  # a number without a metric has no time
        written = {}

    def age(each: QueriedSeries, at: float) -> float:
        return at - min(written.get(_key(each), {}).get(at, at), scraped.get(at, at))

    limit = 2 * span.step
    return [
        replace(each, values={at: value for at, value in each.values.items() if age(each, at) <= limit})
        for each in series
    ]


def _key(series: QueriedSeries) -> frozenset[tuple[str, str]]:
    return frozenset(item for item in series.labels.items() if item[0] != "__name__")


def _queried_series(series: Mapping[str, Any], first: float, last: float) -> QueriedSeries:
    labels = {str(key): str(value) for key, value in series["metric"].items()}
    values = {float(moment): float(value) for moment, value in series.get("values", ())}  # none: native histograms
    return QueriedSeries(
        labels, {at: value for at, value in values.items() if first <= at <= last and abs(value) <= LARGEST}
    )


def _data(status: int, body: bytes) -> Any:
    """Return the data of an answer of the API. Raises QueryRefused, MeterFailed."""
    try:
        envelope = json.loads(body)
        state = envelope["status"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        what = {401: "it requires a password", 403: "it forbids this request"}.get(
            status, "is this a Prometheus server?"
        )
        raise MeterFailed(f"the answer is not from a Prometheus server (HTTP {status}: {what})") from error
    if state == "success" and "data" in envelope:
        return envelope["data"]
    message = " ".join(str(envelope.get("error") or f"HTTP {status}").split())[:500]
    if envelope.get("errorType") in ("bad_data", "execution"):
        raise QueryRefused(message)
    raise MeterFailed(message)
