"""Real outputs in ``data/``, each with what the tool itself printed. See data/README.md for where they come from."""

from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

from usual_options import NEEDED, RATE
from weighbridge import registry
from weighbridge.model.command import Completed
from weighbridge.model.measurement import Measurement
from weighbridge.model.options import Options
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload

DATA = Path(__file__).parent / "data"
AT = Endpoint(listen="0.0.0.0", address="192.0.2.7", port=15201, client="192.0.2.8")


def ended(stdout: bytes = b"", stderr: bytes = b"", returncode: int = 0) -> Completed:
    """A process that ended by itself."""
    return Completed(argv=("x",), returncode=returncode, stdout=stdout, stderr=stderr, duration_s=1.0)


@cache
def data(name: str) -> bytes:
    """One captured output."""
    return (DATA / name).read_bytes()


@dataclass(frozen=True)
class Case:
    """A captured output of one kind under some options, and the values that stand in it.

    ``file`` is what the role that reports them printed (by default the measured one), ``beside`` what the others did.
    ``stream`` is where that role printed it, ``lacks`` are declared metrics that this trial cannot have had.
    """

    kind: str
    file: str
    values: dict[str, float]
    options: dict[str, Any] = field(default_factory=dict)
    role: str = ""
    beside: dict[str, str] = field(default_factory=dict)
    stream: Literal["stdout", "stderr"] = "stdout"
    lacks: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.file

    @property
    def workload(self) -> Workload:
        """The plug-in."""
        return registry.workloads()[self.kind]

    @cached_property
    def read_options(self) -> Options:
        """The options as the plug-in reads them."""
        return _read(self.kind, self.options)

    @property
    def stdout(self) -> bytes:
        """What was printed."""
        return data(self.file)

    def parse(self, stdout: bytes, stderr: bytes = b"", returncode: int = 0) -> tuple[Measurement, ...]:
        """The measurements of an output under this case's options; the code is the measured role's."""
        return self.result(stdout, stderr, returncode).measurements

    def result(self, stdout: bytes, stderr: bytes = b"", returncode: int = 0) -> TrialResult:
        """What the plug-in makes of it."""
        printed = {role: data(file) for role, file in self.beside.items()} | {self.role: stdout}
        last = self.workload.roles(self.read_options)[-1]
        measured = printed.pop("", b"") or printed.pop(last, b"")
        if self.stream == "stderr" and self.role:
            aside = {self.role: printed.pop(self.role)}
            return _result(self.workload, self.read_options, measured, stderr, returncode, printed, aside)
        if self.stream == "stderr":
            return _result(self.workload, self.read_options, b"", measured + stderr, returncode, printed, {})
        return _result(self.workload, self.read_options, measured, stderr, returncode, printed, {})


def result(
    kind: str,
    options: dict[str, Any],
    stdout: bytes,
    stderr: bytes = b"",
    returncode: int = 0,
    others: dict[str, bytes] | None = None,
    aside: dict[str, bytes] | None = None,
) -> TrialResult:
    """What is made of the output of the measured role; the others printed ``others`` and, to stderr, ``aside``."""
    return _result(
        registry.workloads()[kind], _read(kind, options), stdout, stderr, returncode, others or {}, aside or {}
    )


def _read(kind: str, options: dict[str, Any]) -> Options:
    return registry.workloads()[kind].options.model_validate(NEEDED.get(kind, {}) | options)


def _result(
    workload: Workload,
    read: Options,
    stdout: bytes,
    stderr: bytes,
    returncode: int,
    others: dict[str, bytes],
    aside: dict[str, bytes],
) -> TrialResult:
    roles = workload.roles(read)
    completed = {role: ended(others.get(role, b""), aside.get(role, b"")) for role in roles}
    completed[roles[-1]] = ended(stdout, stderr, returncode)
    return workload.parse(read, completed)


def parse(
    kind: str,
    options: dict[str, Any],
    stdout: bytes,
    stderr: bytes = b"",
    returncode: int = 0,
    others: dict[str, bytes] | None = None,
    aside: dict[str, bytes] | None = None,
) -> tuple[Measurement, ...]:
    """The measurements alone."""
    return result(kind, options, stdout, stderr, returncode, others, aside).measurements


UDP = {"protocol": "udp", "bitrate": "10Mbit/s"}
TWO = {"duration": "2s"}


def iperf(name: str, values: dict[str, float], options: dict[str, Any]) -> Case:
    """What both ends of iperf 2 printed; the server's report is the one that counts."""
    return Case("iperf", f"{name}.server.csv", values, TWO | options, "server", {"client": f"{name}.client.csv"})


SMALL_FILES = {"files": 4, "file_size": "16MiB", "duration": "1s"}


def fileio(name: str, values: dict[str, float], **options: Any) -> Case:
    """A report of one second on four files of 4 MiB; latencies are the mean, and percentiles of the histogram."""
    return Case("sysbench-fileio", f"sysbench-fileio-{name}.txt", values, SMALL_FILES | options)


def compress(name: str, options: dict[str, Any]) -> Case:
    """What the programs told of their work; the time, of which the speed is made, is `ended`'s second."""
    size = 8.388608 if "size" in options else 4.194304
    return Case("compress", f"compress-{name}.stderr", {"speed": size}, options, stream="stderr")


GOOD = [
    Case(
        "command",
        "command-oha.json",
        {"rate": 83281.70802025057, "p99": 0.000729396, "time": 1.0},
        NEEDED["command"]
        | {"metrics": {"rate": RATE, "p99": {"json": "$.latencyPercentiles.p99", "unit": "s", "better": "lower"}}},
        lacks=frozenset(
            {"cpu_user", "cpu_system", "peak_memory", "context_switches", "page_faults"}
        ),  # nobody told its usage
    ),
    Case(
        "iperf3",
        "iperf3-tcp-bidirectional.json",
        {
            "throughput": 9332.118510395683,
            "retransmits": 52,
            "throughput_back": 7562.557199105252,
            "retransmits_back": 50,
        },
        {"bidirectional": True},
    ),
    Case(
        "iperf3",
        "iperf3-udp-bidirectional.json",
        {
            "throughput": 353.86896882494,
            "jitter": 0.00570337691641997,
            "loss": 82.0992332775183,
            "throughput_back": 346.7225899280576,
            "jitter_back": 0.0005295671213680256,
            "loss_back": 82.4494043769183,
        },
        UDP | {"bidirectional": True, "bitrate": "2Gbit/s"},
    ),
    iperf("iperf-tcp", {"throughput": 18226.394954}, {}),
    iperf("iperf-tcp-parallel", {"throughput": 19369.502921 + 18633.639610}, {"parallel": 2}),
    iperf("iperf-udp", {"jitter": 0, "loss": 0, "out_of_order": 0, "throughput": 10.011399}, UDP),
    iperf("iperf-udp-loss", {"jitter": 0, "loss": 7800 / 1706, "out_of_order": 0, "throughput": 9.553033}, UDP),
    iperf(
        "iperf-udp-parallel",
        {
            "jitter": 0,
            "loss": 100 * (78223 + 40705) / (252202 + 255446),
            "out_of_order": 39,
            "throughput": 1022.457929 + 1262.201157,
        },
        UDP | {"parallel": 2},
    ),
    Case(
        "netperf",
        "netperf-tcp-rr.txt",
        {
            "rate": 132548.746,
            "latency_mean": 7.51,
            "latency_p50": 7,
            "latency_p90": 7,
            "latency_p99": 30,
            "latency_stddev": 34.27,
            "one_way_latency": 500 / 132548.746,
        },
    ),
    Case(
        "netperf",
        "netperf-udp-rr.txt",
        {
            "rate": 164382.399,
            "latency_mean": 6.04,
            "latency_p50": 6,
            "latency_p90": 6,
            "latency_p99": 7,
            "latency_stddev": 10.98,
            "one_way_latency": 500 / 164382.399,
        },
        {"test": "UDP_RR"},
    ),
    Case(
        "netperf",
        "netperf-tcp-crr.txt",
        {
            "rate": 4809.264,
            "latency_mean": 207.82,
            "latency_p50": 62,
            "latency_p90": 116,
            "latency_p99": 3760,
            "latency_stddev": 1349.03,
        },
        {"test": "TCP_CRR", "count": 9619, "duration": "2s"},
    ),
    Case("netperf", "netperf-tcp-stream.txt", {"throughput": 15203.35}, {"test": "TCP_STREAM"}),
    Case("netperf", "netperf-udp-stream.txt", {"throughput": 6391.92}, {"test": "UDP_STREAM"}),
    Case("netperf", "netperf-udp-stream-blocked.txt", {"throughput": 0}, {"test": "UDP_STREAM"}),
    Case(
        "nuttcp",
        "nuttcp-tcp.txt",
        {"throughput": 17937.1472, "sender_cpu": 22, "receiver_cpu": 76, "retransmits": 0},
    ),
    Case(
        "nuttcp",
        "nuttcp-tcp-reverse.txt",
        {"throughput": 19550.4089, "sender_cpu": 17, "receiver_cpu": 80, "retransmits": 0},
        {"reverse": True},
    ),
    Case(
        "nuttcp",
        "nuttcp-udp-loss.txt",
        {"throughput": 2955.4416, "sender_cpu": 98, "receiver_cpu": 23, "loss": 1.48249},
        TWO | UDP | {"bitrate": "3Gbit/s"},
    ),
    Case(
        "nuttcp",
        "nuttcp-udp-blocked.txt",
        {"throughput": 0, "sender_cpu": 89, "receiver_cpu": 0, "loss": 100},
        TWO | UDP,
    ),
    Case(
        "sockperf",
        "sockperf-ping-pong-tcp.txt",
        {
            "latency_mean": 7.359,
            "latency_p50": 6.883,
            "latency_p90": 7.670,
            "latency_p99": 11.076,
            "latency_p99_9": 47.236,
        },
        {"protocol": "tcp"},
    ),
    Case(
        "sockperf",
        "sockperf-ping-pong-udp.txt",
        {
            "latency_mean": 6.450,
            "latency_p50": 5.825,
            "latency_p90": 6.423,
            "latency_p99": 21.778,
            "latency_p99_9": 56.926,
        },
    ),
    Case(
        "sockperf",
        "sockperf-under-load-tcp.txt",
        {
            "latency_mean": 914.253,
            "latency_p50": 58.702,
            "latency_p90": 1251.321,
            "latency_p99": 22260.541,
            "latency_p99_9": 33238.978,
            "rate": 7721 / 1.544,
        },
        {"protocol": "tcp", "test": "under-load", "rate": 5000},
    ),
    Case(
        "sockperf",
        "sockperf-under-load-loss.txt",
        {
            "latency_mean": 814.343,
            "latency_p50": 35.865,
            "latency_p90": 918.998,
            "latency_p99": 24978.678,
            "latency_p99_9": 36569.800,
            "rate": 7751 / 1.550,
            "loss": 100 * 159 / (7592 + 159),
        },
        {"test": "under-load", "rate": 5000, "reply_every": 1},
    ),
    Case(
        "iperf3", "iperf3-tcp-amount.json", {"throughput": 5400.155874906653, "retransmits": 2}, {"amount": "300MB"}
    ),
    Case("iperf3", "iperf3-tcp.json", {"throughput": 8662.6287189106846, "retransmits": 16}),
    Case(
        "iperf3", "iperf3-tcp-reverse.json", {"throughput": 17828.519047590492, "retransmits": 8}, {"reverse": True}
    ),
    Case("iperf3", "iperf3-tcp-parallel.json", {"throughput": 18081.767120538055, "retransmits": 0}, {"parallel": 2}),
    Case(
        "iperf3",
        "iperf3-udp-10M.json",
        {"throughput": 10.044661361325206, "jitter": 0.259646531314959, "loss": 0},
        UDP,
    ),
    Case(
        "iperf3",
        "iperf3-udp-loss.json",
        {"throughput": 2951.670894935876, "jitter": 0.00472988705765624, "loss": 1.601274443800786},
        UDP | {"bitrate": "3Gbit/s", "reverse": True},
    ),
    Case(
        "iperf3",
        "iperf3-udp-omit.json",
        {"throughput": 9.993964108646045, "jitter": 0.012216307382435477, "loss": 0},
        UDP | {"omit": "1s"},
    ),
    Case(
        "redis-benchmark",
        "redis-benchmark.csv",
        {
            "set_throughput": 52219.32,
            "set_mean": 0.661,
            "set_p50": 0.375,
            "set_p95": 2.463,
            "set_p99": 5.103,
            "get_throughput": 68540.09,
            "get_mean": 0.482,
            "get_p50": 0.311,
            "get_p95": 0.935,
            "get_p99": 4.991,
        },
    ),
    Case(
        "redis-benchmark",
        "redis-benchmark-set.csv",
        {"set_throughput": 118343.20, "set_mean": 0.096, "set_p50": 0.095, "set_p95": 0.143, "set_p99": 0.199},
        {"tests": "set"},
    ),
    Case(
        "redis-benchmark",
        "redis-benchmark-pipeline.csv",
        {"get_throughput": 1538461.50, "get_mean": 0.169, "get_p50": 0.167, "get_p95": 0.231, "get_p99": 0.247},
        {"tests": "get", "pipeline": 16},
    ),
    Case(
        "redis-benchmark",
        "redis-benchmark-5000-clients.csv",
        {
            "set_throughput": 11554.02,
            "set_mean": 217.135,
            "set_p50": 207.231,
            "set_p95": 338.431,
            "set_p99": 373.247,
            "get_throughput": 14419.61,
            "get_mean": 258.069,
            "get_p50": 274.175,
            "get_p95": 407.295,
            "get_p99": 476.927,
        },
        {"clients": 5000, "requests": 20_000},
    ),
    Case(
        "redis-benchmark",
        "redis-benchmark-threads.csv",
        {"set_throughput": 19531.25, "set_mean": 1.828, "set_p50": 0.463, "set_p95": 7.767, "set_p99": 16.063},
        {"tests": "set", "threads": 2},
    ),
    Case(
        "nginx-wrk",
        "wrk-page.txt",
        {
            "requests": 96288 / 2.017499,
            "transfer": 279.234825 / 2.017499,
            "latency_mean": 1.525838,
            "latency_p50": 0.75,
            "latency_p95": 5.527,
            "latency_p99": 12.263,
            "errors_connect": 0,
            "errors_read": 0,
            "errors_write": 0,
            "errors_timeout": 0,
            "errors_status": 0,
        },
    ),
    Case(
        "nginx-wrk",
        "wrk-picture.txt",
        {
            "requests": 1994 / 1.134930,
            "transfer": 998.011312 / 1.134930,
            "latency_mean": 27.411900,
            "latency_p50": 11.791,
            "latency_p95": 83.883,
            "latency_p99": 123.644,
            "errors_connect": 0,
            "errors_read": 0,
            "errors_write": 0,
            "errors_timeout": 0,
            "errors_status": 0,
        },
        {"content": "picture"},
    ),
    Case(
        "nginx-wrk",
        "wrk-limit.txt",
        {
            "requests": 62828 / 2.029262,
            "transfer": 182.201200 / 2.029262,
            "latency_mean": 5.534237,
            "latency_p50": 0.585,
            "latency_p95": 25.257,
            "latency_p99": 67.261,
            "errors_connect": 0,
            "errors_read": 11732,
            "errors_write": 0,
            "errors_timeout": 0,
            "errors_status": 0,
        },
        {"connections": 100},
    ),
    Case(
        "boot",
        "boot-docker.json",
        {
            "time_to_ready": (0.14658197200333234 + 0.13868116099911276) / 2,
            "time_to_close": (0.06268454400560586 + 0.05221972299477784) / 2,
        },
        {"sites": 2},
    ),
    Case(
        "density",
        "density-native.json",
        {
            "memory_per_site": (1.5 * 24177131520 + 0.5 * 24177119232 - 0.5 * 24177127424 - 1.5 * 24177135616)
            / 5
            / 2**20,
            "memory_in_group": (442368 + 471040 + 495616) / 3 / 2**20,
            "start_slowdown": 0.025220055002137087 / 0.01789120300236391,
        },
        {"sites": 3},
        lacks=frozenset({"sites"}),
    ),
    Case(
        "density",
        "density-docker.json",
        {
            "memory_per_site": (1.5 * 24180105216 + 0.5 * 24187064320 - 0.5 * 24357629952 - 1.5 * 24376127488)
            / 5
            / 2**20,
            "memory_in_group": (671744 + 585728 + 819200) / 3 / 2**20,
            "start_slowdown": 0.537692097001127 / 0.43689085200458067,
        },
        {"sites": 3},
        lacks=frozenset({"sites"}),
    ),
    Case("sysbench-cpu", "sysbench-cpu.txt", {"events": 1730.16}),
    Case("sysbench-cpu", "sysbench-cpu-count.txt", {"events": 1406.72}, {"count": 240}),
    Case("sysbench-cpu", "sysbench-cpu-99.txt", {"events": 1978.20}),
    Case("sysbench-memory", "sysbench-memory.txt", {"bandwidth": 5494.70}),
    Case("sysbench-memory", "sysbench-memory-read.txt", {"bandwidth": 7101.61}),
    Case("sysbench-memory", "sysbench-memory-4k.txt", {"bandwidth": 35791.55}),
    Case("sysbench-threads", "sysbench-threads.txt", {"events": 112 / 2.0590}),
    Case("sysbench-mutex", "sysbench-mutex.txt", {"time": 1.5809}),
    Case("sqlite", "sqlite.txt", {"commits": 3000 / 6.274}, {"commits": 3000, "sync": "off"}),
    Case("dd", "dd.stderr", {"throughput": 16 / 0.0271955}, {"file_size": "16MiB"}, stream="stderr"),
    Case(
        "allocations",
        "allocations.txt",
        {"rate": 3741696 / 0.322922197},
        {"threads": 2, "duration": "300ms"},
    ),
    Case(
        "syscalls",
        "syscalls.txt",
        {
            "getppid": 753664 / 0.504071197,
            "open_close": 108544 / 0.505200213,
            "read": 1376256 / 0.507650893,
            "mmap": 5120 / 0.501043911,
            "fork_exit": 768 / 0.508474122,
            "fork_exec": 656 / 0.502729102,
            "pipe": 40960 / 0.538209104,
        },
    ),
    Case(
        "stream",
        "stream.txt",
        {
            "triad_mean": 9 * 402.653184 / 0.327695487,
            "copy_mean": 9 * 268.435456 / 0.229932123,
            "scale_mean": 9 * 268.435456 / 0.229251978,
            "add_mean": 9 * 402.653184 / 0.319928003,
            "triad_best": 402.653184 / 0.034994288,
        },
    ),
    Case(
        "stream",
        "stream-quota.txt",
        {
            "triad_mean": 29 * 50.331648 / 0.041844956,
            "copy_mean": 29 * 33.554432 / 0.027766051,
            "scale_mean": 29 * 33.554432 / 0.320175521,
            "add_mean": 29 * 50.331648 / 0.043375993,
            "triad_best": 50.331648 / 0.001036965,
        },
        {"array_size": "16MiB", "rounds": 30, "threads": 4},
    ),
    Case("linpack", "linpack.txt", {"flops": 5 / (1 / 1.846 + 1 / 1.487 + 1 / 1.677 + 1 / 1.993 + 1 / 1.375)}),
    Case(
        "linpack", "linpack-300.txt", {"flops": 2 / (1 / 2.365 + 1 / 1.962)}, {"size": 300, "block": 64, "repeats": 2}
    ),
    compress("xz", {"size": "8MiB"}),
    compress("xz-test", {"size": "8MiB", "direction": "decompress"}),
    compress("pbzip2", {"size": "8MiB", "program": "pbzip2", "threads": 2}),
    compress("pbzip2-one", {"program": "pbzip2"}),
    compress("pbzip2-test", {"program": "pbzip2", "direction": "decompress"}),
    fileio(
        "rndrw",
        {
            "reads": 38028.75,
            "writes": 25352.83,
            "fsyncs": 2535.38,
            "read_throughput": 594.20,
            "write_throughput": 396.14,
            "latency_mean": 981.03 / 66241,
            "latency_p95": 0.005,
            "latency_p99": 0.361,
        },
    ),
    fileio(
        "rndrw-all",
        {
            "reads": 6468.54,
            "writes": 4312.69,
            "fsyncs": 4312.69,
            "read_throughput": 101.07,
            "write_throughput": 67.39,
            "latency_mean": 994.34 / 10822,
            "latency_p95": 0.296,
            "latency_p99": 0.342,
        },
        fsync="all",
    ),
    fileio(
        "rndrw-async",
        {
            "reads": 56054.67,
            "writes": 37505.09,
            "fsyncs": 2395.68,
            "read_throughput": 875.85,
            "write_throughput": 586.02,
        },
        io_mode="async",
        threads=2,
    ),
    fileio(
        "rndrd",
        {
            "reads": 755039.10,
            "read_throughput": 11797.49,
            "latency_mean": 861.09 / 758188,
            "latency_p95": 0.001,
            "latency_p99": 0.002,
        },
        mode="rndrd",
    ),
    fileio(
        "seqrd",
        {
            "reads": 764196.47,
            "read_throughput": 11940.57,
            "latency_mean": 872.84 / 766442,
            "latency_p95": 0.001,
            "latency_p99": 0.002,
        },
        mode="seqrd",
    ),
    fileio(
        "rndwr",
        {
            "writes": 41794.50,
            "fsyncs": 1672.78,
            "write_throughput": 653.04,
            "latency_mean": 987.15 / 43677,
            "latency_p95": 0.006,
            "latency_p99": 0.576,
        },
        mode="rndwr",
    ),
    fileio(
        "rndwr-each",
        {
            "writes": 2740.10,
            "fsyncs": 10967.38,
            "write_throughput": 42.81,
            "latency_mean": 1993.09 / 13749,
            "latency_p95": 0.252,
            "latency_p99": 2.106,
        },
        mode="rndwr",
        fsync=1,
        threads=2,
    ),
    fileio(
        "rndwr-mmap",
        {
            "writes": 1034722.02,
            "write_throughput": 16167.53,
            "latency_mean": 822.58 / 1050980,
            "latency_p95": 0.001,
            "latency_p99": 0.001,
        },
        mode="rndwr",
        io_mode="mmap",
        fsync="end",
    ),
    fileio(
        "seqwr",
        {
            "writes": 478759.72,
            "write_throughput": 7480.62,
            "latency_mean": 885.03 / 487821,
            "latency_p95": 0.001,
            "latency_p99": 0.002,
        },
        mode="seqwr",
        fsync="end",
    ),
    fileio(
        "seqrewr",
        {
            "writes": 64130.15,
            "fsyncs": 2567.20,
            "write_throughput": 1002.03,
            "latency_mean": 982.46 / 66974,
            "latency_p95": 0.006,
            "latency_p99": 0.517,
        },
        mode="seqrewr",
    ),
    Case(
        "mysql-oltp",
        "sysbench-oltp-read-write.txt",
        {
            "transactions": 755.82,
            "queries": 15116.32,
            "latency_mean": 4002.91 / 1525,
            "latency_p95": 8.277,
            "latency_p99": 22.284,
            "errors": 0,
            "reconnects": 0,
        },
    ),
    Case(
        "mysql-oltp",
        "sysbench-oltp-write-only.txt",
        {
            "transactions": 2219.57,
            "queries": 13401.18,
            "latency_mean": 15999.16 / 4452,
            "latency_p95": 7.842,
            "latency_p99": 24.827,
            "errors": 71,
            "reconnects": 0,
        },
        {"script": "oltp_write_only", "threads": 8},
    ),
    Case(
        "pgbench",
        "pgbench-1.txt",
        {
            "transactions": 1151.771030,
            "latency_mean": 1972.864 / 2297,
            "latency_p95": 1.808383,
            "latency_p99": 4.095999,
            "errors": 0,
        },
        {"clients": 1},
    ),
    Case(
        "pgbench",
        "pgbench-4.txt",
        {
            "transactions": 1327.353377,
            "latency_mean": 7931.965 / 2642,
            "latency_p95": 5.672959,
            "latency_p99": 7.577599,
            "errors": 0,
        },
        {"clients": 4},
    ),
    Case(
        "pgbench",
        "pgbench-select-only.txt",
        {
            "transactions": 14663.104717,
            "latency_mean": 9278.122 / 13958,
            "latency_p95": 1.833983,
            "latency_p99": 3.831807,
            "errors": 0,
        },
        {"script": "select-only"},
    ),
    Case(
        "fio",
        "fio-mix.json",
        {
            "reads": 8392.607393,
            "writes": 8414.585415,
            "fsyncs": 2122.877122877123,
            "read_throughput": 32.7836217880249,
            "write_throughput": 32.869473457336426,
            "read_latency_mean": 0.07528637483600001,
            "read_latency_p50": 0.058143,
            "read_latency_p95": 0.107071,
            "read_latency_p99": 0.177279,
            "read_latency_p999": 2.476031,
            "write_latency_mean": 0.003591861213,
            "write_latency_p50": 0.002801,
            "write_latency_p95": 0.007139,
            "write_latency_p99": 0.016199,
            "write_latency_p999": 0.049439,
            "fsync_latency_mean": 0.150809856471,
            "fsync_latency_p50": 0.140415,
            "fsync_latency_p95": 0.325887,
            "fsync_latency_p99": 0.489727,
            "fsync_latency_p999": 1.942527,
        },
        {"file_size": "32MiB", "duration": "1s", "fsync": 8},
    ),
    Case(
        "fio",
        "fio-each.json",
        {
            "writes": 9059.94006,
            "fsyncs": 9059.940059940061,
            "write_throughput": 35.390390396118164,
            "write_latency_mean": 0.003697620024,
            "write_latency_p50": 0.002769,
            "write_latency_p95": 0.005923,
            "write_latency_p99": 0.017295,
            "write_latency_p999": 0.048927,
            "fsync_latency_mean": 0.105528529496,
            "fsync_latency_p50": 0.092735,
            "fsync_latency_p95": 0.154751,
            "fsync_latency_p99": 0.234623,
            "fsync_latency_p999": 1.942527,
        },
        {"file_size": "32MiB", "duration": "1s", "mode": "write", "fsync": 1, "sync_mode": "fdatasync"},
    ),
    Case(
        "fio",
        "fio-deep.json",
        {
            "reads": 66192.807193,
            "read_throughput": 258.56565284729004,
            "read_latency_mean": 0.24107265705800002,
            "read_latency_p50": 0.201855,
            "read_latency_p95": 0.354559,
            "read_latency_p99": 1.238015,
            "read_latency_p999": 3.917823,
        },
        {"file_size": "32MiB", "duration": "1s", "mode": "randread", "engine": "libaio", "direct": True, "depth": 16},
    ),
    Case(
        "metadata",
        "fio-filecreate.json",
        {
            "latency_mean": 0.3721250181,
            "latency_p50": 0.164991,
            "latency_p95": 1.369087,
            "latency_p99": 4.689919,
            "latency_p999": 8.294399,
        },
        {"files": 5000, "jobs": 2},
    ),
    Case(
        "metadata",
        "fio-filestat.json",
        {
            "latency_mean": 0.0046128503000000005,
            "latency_p50": 0.001368,
            "latency_p95": 0.003153,
            "latency_p99": 0.013767,
            "latency_p999": 0.741887,
        },
        {"operation": "stat", "files": 5000, "jobs": 2},
    ),
    Case(
        "metadata",
        "fio-filedelete.json",
        {
            "latency_mean": 0.21130934810000002,
            "latency_p50": 0.173183,
            "latency_p95": 0.452863,
            "latency_p99": 0.774655,
            "latency_p999": 2.967551,
        },
        {"operation": "delete", "files": 5000, "jobs": 2},
    ),
    Case(
        "bonnie",
        "bonnie-some.csv",
        {
            "block_write": 929737 / 1024,
            "rewrite": 1309333 / 1024,
            "small_created": 22492,
            "small_deleted": 79798,
            "small_random_created": 26134,
            "small_random_deleted": 74966,
        },
        {"file_size": "1GiB", "files": 64},
        lacks=frozenset({"block_read", "seeks", "small_read", "small_random_read"}),
    ),
    Case(
        "datagram-test",
        "datagram-test-loss.listener.stderr",
        {
            "throughput": 500_000 * 1468 / 6.406 / 2**20,
            "packets_per_second": 500_000 / 6.406,
            "success_rate": 100 * 500_000 / 542_246,
            "error_rate": 100 - 100 * 500_000 / 542_246,
            "missing": 42_246,
            "out_of_order": 0,
        },
        {"packets": 500_000},
        role="server",
        stream="stderr",
    ),
    Case(
        "datagram-test",
        "datagram-test.listener.stderr",
        {
            "throughput": 300_000 * 1468 / 3.287 / 2**20,
            "packets_per_second": 300_000 / 3.287,
            "success_rate": 100 * 300_000 / 304_915,
            "error_rate": 100 - 100 * 300_000 / 304_915,
            "missing": 4915,
            "out_of_order": 0,
        },
        {"packets": 300_000},
        role="server",
        stream="stderr",
    ),
    Case(
        "coherence-put",
        "coherence-put.json",
        {
            "rate": 2135 / 3.000394072,
            "objects": 2135,
            "latency_mean": 699.5193208430914,
            "latency_p50": 326.399,
            "latency_p99": 6258.687,
        },
        {"duration": "3s"},
    ),
    Case(
        "coherence-put",
        "coherence-put-datagram.json",
        {
            "rate": 1190 / 3.000776172,
            "objects": 1190,
            "latency_mean": 1299.733468067227,
            "latency_p50": 572.415,
            "latency_p99": 10297.343,
        },
        {"duration": "3s", "transport": "datagram"},
    ),
    Case(
        "nginx-vegeta",
        "vegeta-rate.json",
        {
            "latency_p99": 23270459 / 1e6,
            "latency_p50": 507707 / 1e6,
            "latency_p95": 6575016 / 1e6,
            "latency_max": 43019395 / 1e6,
            "latency_mean": 1740134.9660000005 / 1e6,
            "requests": 1000 / 2,
            "success": 100,
            "errors_connect": 0,
            "errors_read": 0,
            "errors_status": 0,
            "errors_timeout": 0,
            "errors_unsent": 0,
            "errors_write": 0,
        },
        {"rate": 500, "duration": "2s"},
    ),
    Case(
        "nginx-vegeta",
        "vegeta-stall.json",
        {
            "latency_p99": 193151702 / 1e6,
            "latency_p50": 492571 / 1e6,
            "latency_p95": 110901209 / 1e6,
            "latency_max": 235673781 / 1e6,
            "latency_mean": 12651166.512999998 / 1e6,
            "requests": 1000 / 2,
            "success": 100,
            "errors_connect": 0,
            "errors_read": 0,
            "errors_status": 0,
            "errors_timeout": 0,
            "errors_unsent": 0,
            "errors_write": 0,
        },
        {"rate": 500, "duration": "2s"},
    ),
    Case(
        "nginx-vegeta",
        "vegeta-connections.json",
        {
            "latency_p99": 282182027 / 1e6,
            "latency_p50": 487445 / 1e6,
            "latency_p95": 205346087 / 1e6,
            "latency_max": 301715714 / 1e6,
            "latency_mean": 24821883.564000007 / 1e6,
            "requests": 1000 / 2.008615268,
            "success": 100,
            "errors_connect": 0,
            "errors_read": 0,
            "errors_status": 0,
            "errors_timeout": 0,
            "errors_unsent": 0,
            "errors_write": 0,
        },
        {"rate": 500, "duration": "2s", "connections": 4},
    ),
    Case(
        "nginx-vegeta",
        "vegeta-timeouts.json",
        {
            "latency_p99": 315033435 / 1e6,
            "latency_p50": 714074 / 1e6,
            "latency_p95": 301587191 / 1e6,
            "latency_max": 325687593 / 1e6,
            "latency_mean": 76948458.53999999 / 1e6,
            "requests": 330 / 2,
            "success": 82.5,
            "errors_connect": 0,
            "errors_read": 0,
            "errors_status": 0,
            "errors_timeout": 70,
            "errors_unsent": 0,
            "errors_write": 0,
        },
        {"rate": 200, "duration": "2s", "timeout": "300ms"},
    ),
    Case(
        "nginx-vegeta",
        "vegeta-search.json",
        {"rate_at_objective": 3500},
        {"objective": "30ms", "percentile": "95%", "search_from": 1000, "search_to": 50_000, "duration": "500ms"},
    ),
    Case(
        "nginx-vegeta",
        "vegeta-search-to.json",
        {"rate_at_objective": 400},
        {"objective": "50ms", "percentile": "95%", "search_from": 200, "search_to": 400, "duration": "500ms"},
    ),
]
