"""oha: requests per second and their latency."""

from typing import Literal

from weighbridge.adapters._http import LATENCIES, REQUESTS, SUCCESS
from weighbridge.adapters._json import at, number, read_document
from weighbridge.model.adapter import Adapter, AdapterOptions
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed
from weighbridge.model.text import one_line

_USAGE = "oha --no-tui --output-format json URL"
_WHAT = "oha"
_READ = ("p50", "p90", "p95", "p99")
_MS = 1e3


class OhaOptions(AdapterOptions):
    """It has no options."""

    kind: Literal["oha"] = "oha"

    def metrics(self) -> tuple[Metric, ...]:
        """Return requests per second, mean and percentiles in ms, and the share of success in %."""
        return (REQUESTS, LATENCIES["mean"], *(LATENCIES[key] for key in _READ), SUCCESS)

    def read(self, stdout: bytes, stderr: bytes) -> tuple[Measurement, ...]:
        """Return the metrics. oha prints times in seconds. Raises ProgramFailed if no request was answered."""
        document = read_document(stdout, _WHAT, _USAGE)
        success = number(document, _WHAT, "summary", "successRate")
        errors = at(document, "errorDistribution")
        if success == 0 or at(document, "summary", "average") is None:
            reason = next(iter(errors)) if isinstance(errors, dict) and errors else "no reason given"
            raise ProgramFailed(f"oha: no request was answered: {one_line(reason, 200)}")
        return (
            Measurement(REQUESTS, number(document, _WHAT, "summary", "requestsPerSec")),
            Measurement(LATENCIES["mean"], number(document, _WHAT, "summary", "average", scale=_MS)),
            *(
                Measurement(LATENCIES[key], number(document, _WHAT, "latencyPercentiles", key, scale=_MS))
                for key in _READ
            ),
            Measurement(SUCCESS, 100 * success),
        )


class Oha(Adapter):
    """What ``--output-format json`` prints."""

    kind = "oha"
    summary = "oha: requests per second, latency and success"
    options = OhaOptions
    usage = _USAGE


PLUGIN = Oha()
