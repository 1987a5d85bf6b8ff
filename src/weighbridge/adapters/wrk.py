"""wrk: requests per second, and with --latency their percentiles."""

import re
from typing import Annotated, Literal

from pydantic import Field

from weighbridge.adapters._http import LATENCIES, REQUESTS
from weighbridge.model.adapter import Adapter, AdapterOptions
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed, Unparseable
from weighbridge.model.text import one_line

_USAGE = "wrk --latency URL"
ERRORS = Metric("errors", "count", "lower")
_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}
_PERCENTILES = {"p50": "50", "p90": "90", "p99": "99"}
_TIME = r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(us|ms|s|m|h)"
_SOCKET = re.compile(
    r"^  Socket errors: connect (\d{1,15}), read (\d{1,15}), write (\d{1,15}), timeout (\d{1,15})$", re.MULTILINE
)
_STATUS = re.compile(r"^  Non-2xx or 3xx responses: (\d{1,15})$", re.MULTILINE)


class WrkOptions(AdapterOptions):
    """Options of wrk's output."""

    kind: Literal["wrk"] = "wrk"
    latency: Annotated[bool, Field(description="Whether wrk ran with --latency, which prints percentiles")] = True

    def metrics(self) -> tuple[Metric, ...]:
        """Return requests per second, the mean in ms, the printed percentiles, and errors of all kinds."""
        percentiles = (LATENCIES[key] for key in _PERCENTILES) if self.latency else ()
        return (REQUESTS, LATENCIES["mean"], *percentiles, ERRORS)

    def read(self, stdout: bytes, stderr: bytes) -> tuple[Measurement, ...]:
        """Return the metrics. The last line of the output is the transfer."""
        text = stdout.decode(errors="replace")
        if failed := re.search(r"^unable to .*", text, re.MULTILINE):
            raise ProgramFailed(f"wrk: {one_line(failed[0], 200)}")
        if not re.search(r"^Transfer/sec: +[0-9.]+[KMGT]?B\n", text, re.MULTILINE):
            raise Unparseable(f"wrk's report is incomplete: run it as '{_USAGE}'")
        measurements = [
            Measurement(REQUESTS, _number(text, r"^Requests/sec: +([0-9]{1,12}\.[0-9]{2})\n", "requests/s"))
        ]
        measurements.append(Measurement(LATENCIES["mean"], _time(text, rf"^    Latency +{_TIME}", "mean latency")))
        for key, level in _PERCENTILES.items() if self.latency else ():
            measurements.append(
                Measurement(LATENCIES[key], _time(text, rf"^ +{level}% +{_TIME}\n", f"{level}th percentile"))
            )
        socket, status = _SOCKET.search(text), _STATUS.search(text)
        errors = sum(map(int, socket.groups())) if socket else 0  # wrk prints no line if there are none
        return (*measurements, Measurement(ERRORS, float(errors + (int(status[1]) if status else 0))))


def _number(text: str, pattern: str, what: str) -> float:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise Unparseable(f"wrk's report has no {what}: run it as '{_USAGE}'")
    return float(match[1])


def _time(text: str, pattern: str, what: str) -> float:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise Unparseable(f"wrk's report has no {what}: run it as '{_USAGE}'")
    return float(match[1]) * _MS[match[2]]


class Wrk(Adapter):
    """The text that wrk prints."""

    kind = "wrk"
    summary = "wrk: requests per second, latency and errors"
    options = WrkOptions
    usage = _USAGE


PLUGIN = Wrk()
