"""fio: its JSON report with histograms, and the reason if it failed."""

import json
import re
from typing import TYPE_CHECKING, Any

from weighbridge.model.command import Completed
from weighbridge.model.measurement import Metric, ProgramFailed, Unparseable, is_plausible, require_success

if TYPE_CHECKING:
    from weighbridge.statistics.histogram import Histogram

REPORT = "--output-format=json+", "--eta=never", "--group_reporting=1"
"""One report for all processes of a job, with histograms."""
JOB = "data"
PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
_LONGEST_NS = 10**12
_FIO_ERROR = re.compile(r"^fio: (?!pid=)(.+)$", re.MULTILINE)


def jobs(completed: Completed) -> dict[str, dict[str, Any]]:
    """Return the jobs of a report by name. Raises ProgramFailed with fio's own words, or Unparseable."""
    complaint = _FIO_ERROR.search(f"{completed.error_text}\n{completed.text}")
    require_success(completed, "fio", complaint[1] if complaint else "")
    text = completed.text
    try:
        report = json.loads(text[text.index("{") :])
        job_by_name = {str(job["jobname"]): job for job in report["jobs"]}
        failed = [job["error"] for job in job_by_name.values() if job["error"] != 0]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unparseable("fio's report is not the JSON of its jobs") from error
    if failed:
        raise ProgramFailed(f"fio's report has error {failed[0]}")
    return job_by_name


class RequestFigures:
    """The figures of one kind of request of a job ("read", "write" or "sync"). ``clock`` names one of fio's
    latencies."""

    def __init__(self, job: dict[str, Any], name: str, clock: str = "lat_ns") -> None:
        """Raise Unparseable if the report has no complete figures, or if its histogram misses a request."""
        try:
            part = job[name]
            self.count = int(part[clock]["N"])  # of fdatasync alone fio 3.33 counts none in total_ios
            self.mean_ms = float(part[clock]["mean"]) / 1e6
            self.rate = float(part.get("iops", 0.0))
            self.bytes_per_s = float(part.get("bw_bytes", 0))
            self.runtime_s = float(part.get("runtime", 0)) / 1000
            self.bins = {int(ns): int(count) for ns, count in part[clock].get("bins", {}).items()}
            short = int(part.get("short_ios", 0))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise Unparseable(f"fio's report has no figures for its {name} requests") from error
        if not all(map(is_plausible, (self.mean_ms, self.rate, self.bytes_per_s, self.runtime_s))):
            raise Unparseable(f"fio's report has impossible figures for its {name} requests")
        if short or sum(self.bins.values()) != self.count:
            raise Unparseable(
                f"fio's report has {self.count} {name} requests ({short} short), and its histogram "
                f"{sum(self.bins.values())}"
            )

    def latencies(self) -> tuple[tuple[float, ...], str]:
        """Return the mean and `PERCENTILES` in ms, and the histogram as `weighbridge.statistics` encodes it."""
        histogram = self._histogram()
        percentiles = [value / 1e6 for value in histogram.percentiles(list(PERCENTILES.values()))]
        return (self.mean_ms, *percentiles), histogram.encode()

    def _histogram(self) -> "Histogram":
        """Return the histogram in nanoseconds. It is empty if there were no requests. A bin of fio is about 1.5%
        wide."""
        from weighbridge.statistics.histogram import Histogram

        histogram = Histogram(1, _LONGEST_NS, 3)
        for ns, count in self.bins.items():
            if count > 0:
                try:
                    histogram.record(max(1, min(ns, _LONGEST_NS)), count)
                except ValueError as error:
                    raise Unparseable(f"fio's report has an impossible histogram: {error}") from error
        return histogram


def latency_metrics(name: str) -> tuple[Metric, ...]:
    """Return the metrics of `RequestFigures.latencies` in their order: ``NAME_mean`` and so on."""
    return tuple(Metric(f"{name}_{which}", "ms", "lower") for which in ("mean", *PERCENTILES))
