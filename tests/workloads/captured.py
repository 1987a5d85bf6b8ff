"""Real outputs in ``data/``, each with what the tool itself printed. See data/README.md for where they come from."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weighbridge import registry
from weighbridge.model.command import Completed
from weighbridge.model.measurement import Measurement
from weighbridge.model.plugin import Endpoint, Workload

DATA = Path(__file__).parent / "data"
AT = Endpoint(listen="0.0.0.0", address="192.0.2.7", port=15201)


def ended(stdout: bytes = b"", stderr: bytes = b"", returncode: int = 0) -> Completed:
    """A process that ended by itself."""
    return Completed(argv=("x",), returncode=returncode, stdout=stdout, stderr=stderr, duration_s=1.0)


def data(name: str) -> bytes:
    """One captured output."""
    return (DATA / name).read_bytes()


@dataclass(frozen=True)
class Case:
    """A captured output of one kind under some options, and the values that stand in it."""

    kind: str
    file: str
    values: dict[str, float]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.file

    @property
    def workload(self) -> Workload:
        """The plug-in."""
        return registry.workloads()[self.kind]

    @property
    def stdout(self) -> bytes:
        """What was printed."""
        return data(self.file)

    def parse(self, stdout: bytes, stderr: bytes = b"", returncode: int = 0) -> tuple[Measurement, ...]:
        """What the plug-in makes of an output under this case's options."""
        return parse(self.kind, self.options, stdout, stderr, returncode)


def parse(
    kind: str, options: dict[str, Any], stdout: bytes, stderr: bytes = b"", returncode: int = 0
) -> tuple[Measurement, ...]:
    """Measurements from the output of the measured role; the other roles printed nothing."""
    workload = registry.workloads()[kind]
    completed = {role: ended() for role in workload.roles}
    completed[workload.roles[-1]] = ended(stdout, stderr, returncode)
    return workload.parse(workload.options.model_validate(options), completed)


UDP = {"protocol": "udp", "bitrate": "10Mbit/s"}

GOOD = [
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
    Case("sysbench-cpu", "sysbench-cpu.txt", {"events": 1730.16}),
    Case("sysbench-cpu", "sysbench-cpu-99.txt", {"events": 1978.20}),
    Case("sysbench-memory", "sysbench-memory.txt", {"bandwidth": 5494.70}),
    Case("sysbench-memory", "sysbench-memory-read.txt", {"bandwidth": 7101.61}),
    Case("sysbench-memory", "sysbench-memory-4k.txt", {"bandwidth": 35791.55}),
]
