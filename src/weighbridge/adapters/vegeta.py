"""vegeta: answers per second and their latency, from its JSON report."""

from typing import Literal

from weighbridge.adapters._http import LATENCIES, REQUESTS, SUCCESS
from weighbridge.adapters._json import at, number, read_document
from weighbridge.model.adapter import Adapter, AdapterOptions
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed
from weighbridge.model.text import one_line

_USAGE = "vegeta attack ... | vegeta report -type=json"
_WHAT = "vegeta"
_READ = {"mean": "mean", "p50": "50th", "p90": "90th", "p95": "95th", "p99": "99th"}
_MS = 1e-6


class VegetaOptions(AdapterOptions):
    """It has no options."""

    kind: Literal["vegeta"] = "vegeta"

    def metrics(self) -> tuple[Metric, ...]:
        """Return successful answers per second, mean and percentiles in ms, and the share of success in %."""
        return (REQUESTS, *(LATENCIES[key] for key in _READ), SUCCESS)

    def read(self, stdout: bytes, stderr: bytes) -> tuple[Measurement, ...]:
        """Return the metrics. vegeta prints times in nanoseconds. Raises ProgramFailed if no request was answered."""
        document = read_document(stdout, _WHAT, _USAGE)
        success = number(document, _WHAT, "success")
        if success == 0:
            errors = at(document, "errors")
            reason = errors[0] if isinstance(errors, list) and errors else "no reason given"
            raise ProgramFailed(f"vegeta: no request succeeded: {one_line(reason, 200)}")
        latencies = (
            Measurement(LATENCIES[key], number(document, _WHAT, "latencies", name, scale=_MS))
            for key, name in _READ.items()
        )
        rate = Measurement(REQUESTS, number(document, _WHAT, "throughput"))
        return (rate, *latencies, Measurement(SUCCESS, 100 * success))


class Vegeta(Adapter):
    """What ``vegeta report -type=json`` prints."""

    kind = "vegeta"
    summary = "vegeta: responses per second, latency and success"
    options = VegetaOptions
    usage = _USAGE


PLUGIN = Vegeta()
