"""Where each figure stands in what a tool printed: a reading of its own, in regular expressions, beside the parsers'.

A kind is added with a function in ``FIGURES``: from a case to the figures by the metric's name.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .captured import Case


def last(numbers: list[float]) -> float:
    """The one that counts, where a tool prints intervals before it."""
    return numbers[-1]


@dataclass(frozen=True)
class Figure:
    """A value from what stands in the text: each pattern has one group, the number as printed."""

    patterns: tuple[str, ...]
    value: Callable[..., float] = last

    def read(self, text: str) -> float:
        """The value; every match of a pattern is given to the formula, in order."""
        return self.value(*([float(found[1]) for found in self.found(at, text)] for at in range(len(self.patterns))))

    def found(self, at: int, text: str) -> list[re.Match[str]]:
        """The matches of one of its patterns."""
        return list(re.finditer(self.patterns[at], text, re.MULTILINE))


Figures = Mapping[str, Figure]


def figure(pattern: str, factor: float = 1.0) -> Figure:
    """One number times a factor."""
    return Figure((pattern,), lambda numbers: last(numbers) * factor)


def iperf3(case: Case) -> Figures:
    def key(name: str, section: str) -> str:
        return rf'"{section}":\s*\{{[^}}]*"{name}":\s*([0-9.]+)'

    def one_way(way: str, suffix: str) -> dict[str, Figure]:
        sent, received = f"sum_sent{way}", f"sum_received{way}"
        found = {f"throughput{suffix}": figure(key("bits_per_second", received), 1e-6)}
        if case.options.get("protocol") == "udp":
            found[f"jitter{suffix}"] = figure(key("jitter_ms", received))
            found[f"loss{suffix}"] = figure(key("lost_percent", received))
        else:
            found[f"retransmits{suffix}"] = figure(key("retransmits", sent))
        return found

    back = one_way("_bidir_reverse", "_back") if case.options.get("bidirectional") else {}
    return {**one_way("", ""), **back}


def iperf(case: Case) -> Figures:
    def column(number: int) -> str:
        return rf"^(?:[^,\n]+,){{{number}}}([0-9.]+)(?:,|$)"

    throughput = Figure((column(8),), lambda rates: sum(rates) / 1e6)
    if case.options.get("protocol") != "udp":
        return {"throughput": throughput}
    return {
        "throughput": throughput,
        "jitter": Figure((column(9),), lambda each: sum(each) / len(each)),
        "loss": Figure((column(10), column(11)), lambda lost, total: 100 * sum(lost) / sum(total)),
        "out_of_order": Figure((column(13),), sum),
    }


def netperf(case: Case) -> Figures:
    def key(name: str) -> str:
        return rf"^{name}=([0-9.]+)$"

    if "STREAM" in str(case.options.get("test")):
        return {"throughput": figure(key("REMOTE_RECV_THROUGHPUT"))}
    names = {"latency_mean": "MEAN", "latency_p50": "P50", "latency_p90": "P90", "latency_p99": "P99"}
    figures = {
        "rate": figure(key("TRANSACTION_RATE")),
        **{metric: figure(key(f"{name}_LATENCY")) for metric, name in names.items()},
        "latency_stddev": figure(key("STDDEV_LATENCY")),
    }
    if case.options.get("test") != "TCP_CRR":  # of a connection too
        figures["one_way_latency"] = Figure((key("TRANSACTION_RATE"),), lambda rate: 1000 / last(rate) / 2)
    return figures


def nuttcp(case: Case) -> Figures:
    def key(name: str) -> str:
        return rf"\b{name}= *([0-9.]+)"

    further = ("loss", "data_loss") if case.options.get("protocol") == "udp" else ("retransmits", "retrans")
    names = {"throughput": "rate_Mbps", "sender_cpu": "tx_cpu", "receiver_cpu": "rx_cpu", further[0]: further[1]}
    return {metric: figure(key(name)) for metric, name in names.items()}


def sockperf(case: Case) -> Figures:
    valid = r"\[Valid Duration\] "
    seconds, sent, came = rf"{valid}RunTime=([0-9.]+)", rf"{valid}.*SentMessages=(\d+)", rf"{valid}.*Messages=(\d+)$"
    levels = {"latency_p50": "50.000", "latency_p90": "90.000", "latency_p99": "99.000", "latency_p99_9": "99.900"}
    found = {metric: figure(rf"percentile {re.escape(level)} = *([0-9.]+)") for metric, level in levels.items()}
    found["latency_mean"] = figure(r"avg-rtt=([0-9.]+)")
    if case.options.get("test") == "under-load":
        found["rate"] = Figure((sent, seconds), lambda count, time: last(count) / last(time))
        if case.options.get("protocol") != "tcp":
            lost = r"# dropped messages = (\d+)"
            found["loss"] = Figure((lost, came), lambda no, yes: 100 * last(no) / (last(no) + last(yes)))
    return found


def redis_benchmark(case: Case) -> Figures:
    columns = {"throughput": 0, "mean": 1, "p50": 3, "p95": 4, "p99": 5}
    return {
        f"{test}_{metric}": figure(rf'^"{test.upper()}",(?:"[^"]*",){{{column}}}"([0-9.]+)"')
        for test in case.options.get("tests", "set,get").split(",")
        for metric, column in columns.items()
    }


def sysbench_cpu(case: Case) -> Figures:
    return {"events": figure(r"^ +events per second: +([0-9.]+)$")}


def sysbench_memory(case: Case) -> Figures:
    return {"bandwidth": figure(r"transferred \(([0-9.]+) MiB/sec\)")}


def sysbench_threads(case: Case) -> Figures:
    counted, total_s = r"^ +total number of events: +(\d+)$", r"^ +total time: +([0-9.]+)s$"
    return {"events": Figure((counted, total_s), lambda events, seconds: last(events) / last(seconds))}


def sysbench_mutex(case: Case) -> Figures:
    return {"time": figure(r"^ +total time: +([0-9.]+)s$")}


def sysbench_fileio(case: Case) -> Figures:
    """But for the percentiles, which only the histogram has."""
    labels = {
        "reads": "reads/s",
        "writes": "writes/s",
        "fsyncs": "fsyncs/s",
        "read_throughput": "read, MiB/s",
        "write_throughput": "written, MiB/s",
    }
    found = {name: figure(rf"^ +{label}: +([0-9.]+)$") for name, label in labels.items()}
    total, events = r"^ +sum: +([0-9.]+)$", r"^ +total number of events: +(\d+)$"
    found["latency_mean"] = Figure((total, events), lambda ms, count: last(ms) / last(count))
    return {name: each for name, each in found.items() if name in case.values}


def dd(case: Case) -> Figures:
    patterns = (r"^(\d+) bytes ", r" copied, ([0-9.]+) s, ")
    return {"throughput": Figure(patterns, lambda sizes, times: last(sizes) / 2**20 / last(times))}


def sqlite(case: Case) -> Figures:
    patterns = (r"^(\d{13})$", r"^(\d{4})$")
    return {"commits": Figure(patterns, lambda times, rows: last(rows) / ((times[1] - times[0]) / 1000))}


def allocations(case: Case) -> Figures:
    patterns = (r'"allocations": (\d+)', r'"nanoseconds": (\d+)')
    return {"rate": Figure(patterns, lambda counts, times: last(counts) / last(times) * 1e9)}


def syscalls(case: Case) -> Figures:
    def call(name: str) -> Figure:
        count, ns = rf'"{name}", "count": (\d+)', rf'"{name}", .*"nanoseconds": (\d+)'
        return Figure((count, ns), lambda counts, times: last(counts) / last(times) * 1e9)

    return {name: call(name) for name in case.values}


def agent_session(case: Case) -> Figures:
    def step(name: str) -> Figure:
        return Figure((rf'"step": "{name}", .*"nanoseconds": (\d+)',), lambda ns: sum(ns) / len(ns) / 1e6)

    every = Figure((r'"nanoseconds": (\d+)',), lambda ns: sum(ns) / case.options.get("sessions", 2) / 1e9)
    return {"session": every} | {name: step(name) for name in case.values if name != "session"}


def stream(case: Case) -> Figures:
    def mean(name: str) -> Figure:
        patterns = (rf'"{name}", "bytes": (\d+)', rf'"{name}", .*"nanoseconds": (\d+)')
        return Figure(patterns, lambda sizes, times: last(sizes) * runs / last(times) * 1e3)

    runs = case.options.get("rounds", 10) - 1
    best = (r'"triad", "bytes": (\d+)', r'"triad", .*"best_nanoseconds": (\d+)')
    means = {f"{name}_mean": mean(name) for name in ("copy", "scale", "add", "triad")}
    return means | {"triad_best": Figure(best, lambda sizes, times: last(sizes) / last(times) * 1e3)}


def linpack(case: Case) -> Figures:
    speed = r"^WR11C2R4 .* ([0-9.]+e[+-]\d+)$"
    return {"flops": Figure((speed,), lambda speeds: len(speeds) / sum(1 / each for each in speeds))}


def datagram_test(case: Case) -> Figures:
    packets = case.options["packets"]

    def line(pattern: str) -> str:
        """In the report over the life of the listener that counts so many."""
        before, after = r"^Lifetime:\n(?:[^\n]+\n)*?", r"(?:[^\n]*\n)(?:[^\n]+\n)*?"
        counted = rf"\s+received: {packets} of (?:\d+)\n"
        if pattern == "sent":
            return rf"{before}\s+received: {packets} of (\d+)\n"
        if pattern in ("elapsed", "packet size"):
            return rf"{before}\s+{pattern}: (\d+){after}{counted}"
        return rf"{before}{counted}(?:[^\n]+\n)*?\s*{pattern}: (\d+)\n"

    milliseconds, size, sent = line("elapsed"), line("packet size"), line("sent")
    success = Figure((sent,), lambda each: 100 * packets / last(each))
    return {
        "throughput": Figure((milliseconds, size), lambda ms, b: packets * last(b) / 2**20 / (last(ms) / 1000)),
        "packets_per_second": Figure((milliseconds,), lambda ms: packets / (last(ms) / 1000)),
        "success_rate": success,
        "error_rate": Figure(success.patterns, lambda each: 100 - 100 * packets / last(each)),
        "missing": figure(line("missing")),
        "out_of_order": figure(line("out of order")),
    }


def coherence_put(case: Case) -> Figures:
    """But for the percentiles, which only the histogram has."""
    objects, seconds = r'"objects": (\d+)', r'"seconds": ([0-9.]+)'
    return {
        "rate": Figure((objects, seconds), lambda count, time: last(count) / last(time)),
        "objects": figure(objects),
        "latency_mean": figure(r'"latency_mean_ns": ([0-9.]+)', 1e-3),
    }


FIGURES: dict[str, Callable[[Case], Figures]] = {
    "iperf3": iperf3,
    "iperf": iperf,
    "netperf": netperf,
    "nuttcp": nuttcp,
    "sockperf": sockperf,
    "redis-benchmark": redis_benchmark,
    "sysbench-cpu": sysbench_cpu,
    "sysbench-memory": sysbench_memory,
    "sysbench-threads": sysbench_threads,
    "sysbench-mutex": sysbench_mutex,
    "sysbench-fileio": sysbench_fileio,
    "dd": dd,
    "sqlite": sqlite,
    "agent-session": agent_session,
    "allocations": allocations,
    "syscalls": syscalls,
    "stream": stream,
    "linpack": linpack,
    "datagram-test": datagram_test,
    "coherence-put": coherence_put,
}
