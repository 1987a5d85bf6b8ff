"""fio: its report as JSON with histograms, which has to agree with itself, and why it failed."""

import json
import re
from typing import TYPE_CHECKING, Any

from weighbridge.model.command import Completed
from weighbridge.model.measurement import Metric, ProgramFailed, Unparseable, is_plausible

if TYPE_CHECKING:
    from weighbridge.statistics.histogram import Histogram

REPORT = "--output-format=json+", "--eta=never", "--group_reporting=1"
"""One report for all processes of a job, with histograms."""
JOB = "data"
PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
_LONGEST_NS = 10**12
_FIO_S_OWN = re.compile(r"^fio: (?!pid=)(.+)$", re.MULTILINE)
_ROUNDED = 0.02
"""How far figures that fio rounds to milliseconds, or to its bins, may be from one another."""


def jobs(completed: Completed) -> dict[str, dict[str, Any]]:
    """The jobs of a report, by name. Raises ProgramFailed in fio's own words, or Unparseable."""
    if completed.returncode != 0:
        complaint = _FIO_S_OWN.search(f"{completed.stderr.decode(errors='replace')}\n{completed.text}")
        why = complaint[1] if complaint else completed.last_words
        raise ProgramFailed(f"fio exited with code {completed.returncode}: {why}")
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
    """A job's figures of one kind of request: "read", "write" or "sync"; ``clock`` is which latency of fio's."""

    def __init__(self, job: dict[str, Any], name: str, clock: str = "lat_ns") -> None:
        """Raise Unparseable where the report does not agree with itself."""
        try:
            part = job[name]
            self.count = int(part[clock]["N"])  # of fdatasync alone fio 3.33 counts none in total_ios
            self.mean_ms = float(part[clock]["mean"]) / 1e6
            self.rate = float(part.get("iops", 0.0))
            self.bytes_per_s = float(part.get("bw_bytes", 0))
            self.runtime_s = float(part.get("runtime", 0)) / 1000
            self.bins = {int(ns): int(count) for ns, count in part[clock].get("bins", {}).items()}
            short = int(part.get("short_ios", 0))
            total_ns = sum(float(ns) * count for ns, count in self.bins.items())
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise Unparseable(f"fio's report has no figures for its {name} requests") from error
        if not all(map(is_plausible, (self.mean_ms, self.rate, self.bytes_per_s, self.runtime_s))):
            raise Unparseable(f"fio's report has impossible figures for its {name} requests")
        if short or sum(self.bins.values()) != self.count:
            raise Unparseable(
                f"fio's report has {self.count} {name} requests ({short} short), and its histogram "
                f"{sum(self.bins.values())}"
            )
        if self.count:
            self._check_mean(name, total_ns / self.count / 1e6)

    def _check_mean(self, name: str, mean_ms: float) -> None:
        if not abs(self.mean_ms - mean_ms) <= _ROUNDED * mean_ms + 1e-4:
            raise Unparseable(
                f"fio's report has a mean of {self.mean_ms:g} ms for {name}, its histogram {mean_ms:g} ms"
            )
        if self.runtime_s and not abs(self.rate * self.runtime_s - self.count) <= _ROUNDED * self.count:
            raise Unparseable(f"fio's report has {self.rate:g} {name} requests/s, but {self.count} in all")

    def moved_blocks_of(self, size: int, name: str) -> None:
        """Raise Unparseable where its bytes per second are not its requests of ``size`` bytes."""
        if not abs(self.bytes_per_s - self.rate * size) <= _ROUNDED * self.rate * size:
            raise Unparseable(
                f"fio's report has {self.bytes_per_s} bytes/s for {self.rate:g} {name} requests/s of {size} bytes"
            )

    def latencies(self) -> tuple[tuple[float, ...], str]:
        """Mean and `PERCENTILES` in ms, and the histogram encoded as `weighbridge.statistics` reads it."""
        histogram = self._histogram()
        percentiles = [value / 1e6 for value in histogram.percentiles(list(PERCENTILES.values()))]
        return (self.mean_ms, *percentiles), histogram.encode()

    def _histogram(self) -> "Histogram":
        """In nanoseconds; a bin of fio's is about 1.5 % wide. Without requests it is empty."""
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
    """The metrics of `RequestFigures.latencies`, in its order: ``NAME_mean`` and so on."""
    return tuple(Metric(f"{name}_{which}", "ms", "lower") for which in ("mean", *PERCENTILES))
