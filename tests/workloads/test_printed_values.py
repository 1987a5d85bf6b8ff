"""Parsed values are what the tools printed: read a second time by other means, and with the printed digits changed.

A kind whose figures stand in `figures.FIGURES` is tested here with every captured output that it has.
"""

import re
from collections.abc import Iterator
from random import Random

import pytest

from usual_options import usual_options
from weighbridge import registry
from weighbridge.model.measurement import TrialFailure

from .captured import DATA, GOOD, Case, data, ended
from .figures import FIGURES, Figure, Figures, figure

DGT_DOCKER, DGT_A, DGT_B = (f"printed/dgt{name}.stderr" for name in ("-docker-listener", "2-A", "2-B"))
MORE = [
    Case("netperf", "printed/netperf-TCP_RR-keyval.txt", {}, {"request_size": "1468B"}),
    Case("netperf", "printed/netperf-UDP_RR-keyval.txt", {}, {"test": "UDP_RR"}),
    Case("nuttcp", "printed/nuttcp-tcp-parse.txt", {}),
    Case(
        "iperf", "printed/iperf2-server-yC.txt", {}, {"duration": "2s", "parallel": 2},
        "server", {"client": "iperf-tcp-parallel.client.csv"},
    ),
    *(
        Case("datagram-test", file, {}, {"packets": count, "report_interval": step}, role="server", stream="stderr")
        for file, step in ((DGT_DOCKER, 100_000), (DGT_A, 20_000), (DGT_B, 20_000))
        for count in (step, 3 * step)
    ),
]  # fmt: skip
"""Captured outputs of programs that others ran, beside those of our own commands."""
READ = [case for case in [*GOOD, *MORE] if case.kind in FIGURES]
TOGETHER = {
    "netperf": {"rate", "latency_mean", "one_way_latency"},
    "sockperf": {"rate", "loss"},
    "iperf": {"loss"},
    "datagram-test": {"throughput", "packets_per_second", "success_rate", "error_rate"},
    "coherence-put": {"rate", "objects", "latency_mean"},
    "sysbench-threads": {"events"},
    "sysbench-mutex": {"time"},
    "sysbench-fileio": {"reads", "writes", "fsyncs", "read_throughput", "write_throughput", "latency_mean"},
    "dd": {"throughput"},
    "sqlite": {"commits"},
    "linpack": {"flops"},
    "nuttcp-udp-blocked.txt": {"throughput"},
}
"""Figures that have to fit together, or may not be zero: changed they may be refused, but never be read wrong."""
HISTOGRAM = {"coherence-put": {"latency_p50", "latency_p99"}, "sysbench-fileio": {"latency_p95", "latency_p99"}}
"""What is not printed, but taken from a histogram."""
WHICH = pytest.mark.parametrize("case", READ, ids=lambda case: f"{case.file} {case.options}")


def figures_of(case: Case) -> Figures:
    return FIGURES[case.kind](case)


def parsed(case: Case, text: str) -> dict[str, float]:
    return {measured.metric.name: measured.value for measured in case.parse(text.encode())}


def read(figures: Figures, text: str) -> dict[str, float]:
    return {name: each.read(text) for name, each in figures.items()}


def test_every_kind_of_the_table_has_outputs():
    assert set(FIGURES) == {case.kind for case in READ}


@WHICH
def test_parsed_values_are_the_printed_ones(case: Case):
    text, figures = case.stdout.decode(), figures_of(case)
    found = parsed(case, text)
    assert {name: found[name] for name in figures} == pytest.approx(read(figures, text), rel=1e-12)
    assert set(found) - set(figures) == HISTOGRAM.get(case.kind, set()) & set(found), (
        "every metric stands in the text"
    )


def _changed(chance: Random, printed: str) -> Iterator[str]:
    """Other digits in the same places: numbers as long, and no exponent of their own. The least, the most, others."""
    number, exponent = re.fullmatch(r"([0-9.]+)(.*)", printed).groups()
    least = 1 if len(number.split(".")[0]) > 1 else 0
    for digits in ("0", "9", *["0123456789"] * 4):
        drawn = [each if each == "." else chance.choice(digits) for each in number]
        drawn[0] = str(max(least, int(drawn[0]))) if drawn[0] != "." else "."
        yield "".join(drawn) + exponent


@WHICH
def test_a_changed_figure_is_followed(case: Case):
    """Each number that one is made of, in three of its places."""
    chance = Random(case.file)
    text, figures = case.stdout.decode(), figures_of(case)
    for name, each in figures.items():
        may_be_refused = name in TOGETHER.get(case.kind, set()) | TOGETHER.get(case.file, set())
        for pattern in range(len(each.patterns)):
            places = each.found(pattern, text)
            for at in dict.fromkeys([places[0], places[-1], chance.choice(places)]):
                for number in _changed(chance, at[1]):
                    changed = text[: at.start(1)] + number + text[at.end(1) :]
                    try:
                        found = parsed(case, changed)
                    except TrialFailure:
                        assert may_be_refused, (name, number)
                        continue
                    assert {it: found[it] for it in figures} == pytest.approx(read(figures, changed), rel=1e-9)


# -- what the tools print of the same a second time, rounded ---------------------------------------


AGAIN: list[tuple[str, str, str, Figure, float]] = [
    (kind, part, metric, again, within)
    for kind, part, metrics in (
        ("netperf", "_RR-keyval", {
            "rate": (figure(r"^THROUGHPUT=([0-9.]+)$"), 1e-6),
            "one_way_latency": (figure(r"^RT_LATENCY=([0-9.]+)$", 1e-3 / 2), 1e-4),
        }),
        ("nuttcp", "nuttcp-tcp", {
            "throughput": (
                Figure((r"megabytes= *([0-9.]+)", r"real_sec(?:onds)?= *([0-9.]+)"),
                       lambda mib, s: mib[-1] * 2**20 * 8 / s[-1] / 1e6), 4e-3)}),
        ("sockperf", "ping-pong", {"latency_mean": (figure(r"Summary: Round trip is ([0-9.]+) usec"), 1e-9)}),
        ("sysbench-cpu", "", {
            "events": (Figure((r"total number of events: +(\d+)", r"total time: +([0-9.]+)s"),
                              lambda count, s: count[0] / s[0]), 1e-2)}),  # with the start of its threads
        ("sysbench-memory", "", {
            "bandwidth": (Figure((r"Total operations: \d+ \( *([0-9.]+) per second", r"block size: (\d+)KiB"),
                                 lambda rate, kib: rate[0] * kib[0] / 1024), 1e-5)}),
        ("iperf3", "iperf3-tcp", {
            "throughput": (Figure((r'"sum_received":\s*\{[^}]*"bytes":\s*(\d+)',
                                   r'"sum_received":\s*\{[^}]*"seconds":\s*([0-9.]+)'),
                                  lambda count, s: count[0] * 8 / s[0] / 1e6), 1e-6)}),
    )
    for metric, (again, within) in metrics.items()
]  # fmt: skip


@pytest.mark.parametrize(("kind", "part", "metric", "again", "within"), AGAIN)
def test_the_tool_says_the_same_elsewhere(kind: str, part: str, metric: str, again: Figure, within: float):
    """As exactly as it is printed there."""
    cases = [case for case in READ if case.kind == kind and part in case.file and metric in figures_of(case)]
    assert cases
    for case in cases:
        text = case.stdout.decode()
        assert parsed(case, text)[metric] == pytest.approx(again.read(text), rel=within), case.file


@pytest.mark.parametrize("case", [case for case in READ if case.kind == "datagram-test"], ids=str)
def test_the_datagram_test_prints_its_own_rates_rounded(case: Case):
    text, found = case.stdout.decode(), parsed(case, case.stdout.decode())
    lines = re.search(
        r"throughput: (\d+) MB/sec\n\s+(\d+) packets/sec\n"
        rf"\s+received: {case.options['packets']} of \d+\n.*\n\s*success rate: ([0-9.]+)\n",
        text,
    )
    megabytes, packets, success = (float(number) for number in lines.groups())
    assert found["throughput"] == pytest.approx(megabytes, abs=1)
    assert found["packets_per_second"] == pytest.approx(packets, abs=1)
    assert found["success_rate"] == pytest.approx(100 * success, rel=1e-6)


def test_the_client_s_document_says_what_iperf3_s_server_printed_of_the_same_tests():
    text = data("printed/iperf3-server.txt").decode()
    tests = re.split(r"Server listening on \d+ \(test #\d+\)\n", text)[1:]
    (rate,) = re.findall(r"([0-9.]+) Gbits/sec +receiver", tests[0])
    tcp = parsed(next(case for case in GOOD if case.file == "iperf3-tcp.json"), data("iperf3-tcp.json").decode())
    assert tcp["throughput"] / 1000 == pytest.approx(float(rate), abs=0.005)
    ((rate, jitter, lost),) = re.findall(
        r"([0-9.]+) Mbits/sec +([0-9.]+) ms +\d+/\d+ \(([0-9.]+)%\) +receiver", tests[1]
    )
    udp = parsed(
        next(case for case in GOOD if case.file == "iperf3-udp-10M.json"), data("iperf3-udp-10M.json").decode()
    )
    assert udp["throughput"] == pytest.approx(float(rate), abs=0.05)
    assert udp["jitter"] == pytest.approx(float(jitter), abs=0.0005)
    assert udp["loss"] == float(lost)


# -- what is something else ------------------------------------------------------------------------

TOOLS = {
    "iperf2": "iperf", "iperf3": "iperf3", "netperf": "netperf", "nuttcp": "nuttcp", "sockperf": "sockperf",
    "redis": "redis-benchmark", "dgt": "datagram-test", "coh": "coherence-put", "sysbench-m": "mysql-oltp",
}  # fmt: skip
READABLE = {case.file for case in MORE}
OTHER_FORMATS = sorted(
    f"printed/{path.name}" for path in (DATA / "printed").iterdir() if f"printed/{path.name}" not in READABLE
)


@pytest.mark.parametrize("file", OTHER_FORMATS)
@pytest.mark.parametrize("udp", [False, True])
def test_another_format_of_the_same_tool_is_never_misread(file: str, udp: bool):
    """netperf's tables, sockperf's half round trips, the client's view of UDP: no value is better than a wrong."""
    kind = next(kind for tool, kind in TOOLS.items() if file.startswith(f"printed/{tool}"))
    workload, printed = registry.workloads()[kind], data(file)
    options = {"netperf": {"test": "UDP_RR"}, "nuttcp": {"protocol": "udp", "bitrate": "10Mbit/s"}}
    options |= {"iperf": options["nuttcp"], "iperf3": options["nuttcp"]}
    for streams in ((printed, b""), (b"", printed)):
        with pytest.raises(TrialFailure):
            read = workload.options.model_validate(options.get(kind, {}) if udp else {})
            workload.parse(read, {role: ended(*streams) for role in workload.roles(read)})


@pytest.mark.parametrize("kind", registry.workloads())
def test_the_output_of_another_tool_is_never_misread(kind: str):
    workload = registry.workloads()[kind]
    for case in GOOD:
        if case.kind == kind or set(case.workload.packages) & set(workload.packages):
            continue  # the same tool, or one with the same server
        for streams in ((case.stdout, b""), (b"", case.stdout)):
            with pytest.raises(TrialFailure):
                read = usual_options(workload)
                workload.parse(read, {role: ended(*streams) for role in workload.roles(read)})
