"""k6: HTTP requests per second and their latency, from its summary as JSON."""

from typing import Literal

from weighbridge.adapters._http import LATENCIES, REQUESTS, SUCCESS
from weighbridge.adapters._json import at, number, read_document
from weighbridge.model.adapter import Adapter, AdapterOptions
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed
from weighbridge.model.text import one_line

_USAGE = "k6 run --quiet --summary-export=/tmp/k6.json SCRIPT >&2; cat /tmp/k6.json"
_WHAT = "k6"
_READ = {"mean": "avg", "p50": "med", "p90": "p(90)", "p95": "p(95)"}


class K6Options(AdapterOptions):
    """It has no options."""

    kind: Literal["k6"] = "k6"

    def metrics(self) -> tuple[Metric, ...]:
        """Return requests per second, mean and percentiles of their duration in ms, and the share of success in %."""
        return (REQUESTS, *(LATENCIES[key] for key in _READ), SUCCESS)

    def read(self, stdout: bytes, stderr: bytes) -> tuple[Measurement, ...]:
        """Return the metrics in the summary. Raises ProgramFailed if no request succeeded."""
        document = read_document(stdout, _WHAT, _USAGE)
        failed = number(document, _WHAT, "metrics", "http_req_failed", "value")
        if failed >= 1:
            count = at(document, "metrics", "http_reqs", "count")
            raise ProgramFailed(f"k6: none of {one_line(count, 20)} requests succeeded")
        latencies = (
            Measurement(LATENCIES[key], number(document, _WHAT, "metrics", "http_req_duration", name))
            for key, name in _READ.items()
        )
        rate = Measurement(REQUESTS, number(document, _WHAT, "metrics", "http_reqs", "rate"))
        return (rate, *latencies, Measurement(SUCCESS, 100 * (1 - failed)))


class K6(Adapter):
    """Reads the JSON of ``--summary-export``, which must be printed instead of k6's own report."""

    kind = "k6"
    summary = "k6: HTTP requests per second, latency and success"
    options = K6Options
    usage = _USAGE


PLUGIN = K6()
