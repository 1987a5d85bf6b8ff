"""Real outputs in ``data/``, each with what the program itself printed; data/README.md says how each was made."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from weighbridge import registry
from weighbridge.model.adapter import AdapterOptions
from weighbridge.model.measurement import Measurement, ProgramFailed, TrialFailure, Unparseable

DATA = Path(__file__).parent / "data"


@cache
def data(name: str) -> bytes:
    """One captured output."""
    return (DATA / name).read_bytes()


def options(kind: str, given: dict[str, Any]) -> AdapterOptions:
    """The options of an adapter."""
    return registry.adapters()[kind].options.model_validate(given)


@dataclass(frozen=True)
class Case:
    """A captured output under some options, and the values that stand in it, by metric."""

    kind: str
    file: str
    values: dict[str, float]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.file}{sorted(self.options) or ''}"

    @property
    def stdout(self) -> bytes:
        """What was printed."""
        return data(self.file)

    def read(self, stdout: bytes) -> tuple[Measurement, ...]:
        """The measurements of an output under this case's options."""
        return options(self.kind, self.options).read(stdout, b"")


@dataclass(frozen=True)
class Bad:
    """A captured output that is no measurement, and the sentence that is said of it."""

    kind: str
    file: str
    failure: type[TrialFailure]
    told: str
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.file


SORT = "org.example.Sort"
COST = {"measure": "rate cost (%)", "unit": "%", "better": "lower"}
GOOD = [
    Case("hyperfine", "hyperfine.json", {"mean_time": 0.0006595404}),
    Case(
        "hyperfine", "hyperfine-two.json", {"slow": 0.022437265333333335, "quick": 0.00059184},
        {"benchmarks": ["slow", "quick"]},
    ),
    Case("hyperfine", "hyperfine-two.json", {"quick": 0.00059184}, {"benchmarks": ["quick"]}),
    Case(
        "pytest-benchmark", "pytest-benchmark.json",
        {"test_b_py_test_sort_1000": 3.6310000723460687, "test_b_py_test_sum": 0.9213999874191359},
        {"benchmarks": ["test_b.py::test_sort[1000]", "test_b.py::test_sum"]},
    ),
    Case(
        "google-benchmark", "google-benchmark.json",
        {"bm_milli": 81.47142546856144, "bm_copy_64": 1.4864242528954985},
        {"benchmarks": ["BM_Milli", "BM_Copy/64"]},
    ),
    Case(
        "google-benchmark", "google-benchmark-repeated.json", {"bm_copy_64": 1.6737171487775102},
        {"benchmarks": ["BM_Copy/64"]},
    ),
    Case(
        "google-benchmark", "google-benchmark-aggregates.json", {"bm_copy_64": 2.1975316711989437},
        {"benchmarks": ["BM_Copy/64"]},
    ),
    Case(
        "go-bench", "go-bench.txt", {"sort_n_1000": (13820 + 5240) / 2, "sprint": (73.46 + 62.49) / 2},
        {"benchmarks": ["Sort/n=1000", "Sprint"]},
    ),
    Case("go-bench", "go-bench-one.txt", {"time_per_op": 101.8}),
    Case("go-bench", "go-bench-one.txt", {"sprint": 101.8}, {"benchmarks": ["Sprint"], "package": "example.org/gob"}),
    Case(
        "jmh", "jmh.json",
        {"org_example_sort_sum_size_10": 189183178.4318315, "org_example_sort_sorted_size_10": 472288.28014116264},
        {"benchmarks": [f"{SORT}.sum:size=10", f"{SORT}.sorted:size=10"]},
    ),
    Case(
        "jmh", "jmh-avgt.json", {"org_example_sort_sorted_size_10": 1.846064692686131},
        {"mode": "avgt", "benchmarks": [f"{SORT}.sorted:size=10"]},
    ),
    Case(
        "oha", "oha.json",
        {
            "requests": 83281.70802025057, "latency_mean": 0.23871688105766436, "latency_p50": 0.164124,
            "latency_p90": 0.452494, "latency_p95": 0.550053, "latency_p99": 0.729396, "success": 100,
        },
    ),
    Case(
        "k6", "k6.json",
        {
            "requests": 759.608689103026, "latency_mean": 2.14245072, "latency_p50": 1.0066755,
            "latency_p90": 3.407666500000001, "latency_p95": 7.249149899999984, "success": 100,
        },
    ),
    Case(
        "vegeta", "vegeta.json",
        {
            "requests": 99.39114811462109, "latency_mean": 3.360209, "latency_p50": 1.35692, "latency_p90": 8.006783,
            "latency_p95": 15.213079, "latency_p99": 25.184582, "success": 100,
        },
    ),
    Case(
        "wrk", "wrk.txt",
        {
            "requests": 2027.18, "latency_mean": 3.45, "latency_p50": 1.18, "latency_p90": 8.32, "latency_p99": 30.71,
            "errors": 0,
        },
    ),
    Case(
        "wrk", "wrk-errors.txt", {"requests": 1658.78, "latency_mean": 5.17, "errors": 1690}, {"latency": False}
    ),
    Case(
        "bmf", "bmf-latency.json", {"tests_benchmark_c": 3361, "tests_benchmark_a": 3247},
        {"benchmarks": ["tests::benchmark_c", "tests::benchmark_a"]},
    ),
    Case("bmf", "bmf-documented.json", {"latency": 88}, {"measure": "latency"}),
    Case("bmf", "bmf-documented.json", {"throughput": 5.55}, {"measure": "Throughput"}),
    Case("bmf", "bmf-documented.json", {"build_time": 87}, {"measure": "Build Time"}),
    Case("bmf", "bmf-documented.json", {"my_binary": 42}, {"measure": "file-size", "benchmarks": ["my_binary"]}),
    Case("bmf", "bmf-dhat.json", {"total_bytes": 662}, {"measure": "Total Bytes", "unit": "B", "better": "lower"}),
    Case("bmf", "bmf-dhat.json", {"final_bytes": 0}, {"measure": "Final Bytes", "unit": "B", "better": "lower"}),
    Case(
        "bmf", "bmf-gate.json",
        {"docker_host_latency": -3.1009281699613256, "docker_overlay_latency": 29.22960308320125},
        {**COST, "benchmarks": ["docker-host.latency", "docker-overlay.latency"]},
    ),
]  # fmt: skip
BAD = [
    Bad(
        "hyperfine", "hyperfine-failed.json", ProgramFailed,
        "hyperfine: a run of 'false' failed with a nonzero exit code",
    ),
    Bad(
        "hyperfine", "hyperfine-two.json", Unparseable,
        "hyperfine's output has 2 benchmarks. Name those to read: benchmarks: [quick, slow]",
    ),
    Bad("pytest-benchmark", "pytest-benchmark-text.txt", Unparseable, "pytest-benchmark did not print JSON"),
    Bad(
        "pytest-benchmark", "pytest-benchmark.json", Unparseable,
        "pytest-benchmark's output has no benchmark 'test_sum'. Choose from test_b.py::test_sum, test_b.py::test_",
        {"benchmarks": ["test_sum"]},
    ),
    Bad("google-benchmark", "google-benchmark-failed.json", ProgramFailed, "Google Benchmark: BM_Fail: no such luck"),
    Bad("go-bench", "go-bench-failed.txt", ProgramFailed, "go test: --- FAIL: BenchmarkBroken"),
    Bad("jmh", "jmh-failed.json", Unparseable, "JMH's output has no benchmark"),
    Bad(
        "jmh", "jmh.json", Unparseable, "JMH's output has no benchmark in mode avgt. Try: mode: thrpt",
        {"mode": "avgt"},
    ),
    Bad("k6", "k6-refused.json", ProgramFailed, "k6: none of 50 requests succeeded"),
    Bad("oha", "wrk.txt", Unparseable, "oha did not print JSON"),
    Bad("vegeta", "vegeta-refused.json", ProgramFailed, 'vegeta: no request succeeded: Get "http://127.0.0.1:18456/":'),
    Bad("vegeta", "vegeta.txt", Unparseable, "vegeta did not print JSON"),
    Bad("wrk", "wrk-refused.txt", ProgramFailed, "wrk: unable to connect to 127.0.0.1:18456 Connection refused"),
    Bad("wrk", "wrk-errors.txt", Unparseable, "wrk's report has no 50th percentile"),
    Bad(
        "bmf", "bmf-documented.json", Unparseable,
        "the Bencher Metric Format has 4 measures. Name one of them: measure: latency, throughput, build-time, file-",
    ),
    Bad("bmf", "bmf-dhat.json", Unparseable, "the Bencher Metric Format has 6 measures. Name one of them: measure: "),
    Bad(
        "bmf", "bmf-latency.json", Unparseable,
        "the Bencher Metric Format has 3 benchmarks. Name those to read: benchmarks: [tests::benchmark_a, te",
    ),
    Bad(
        "bmf", "bmf-documented.json", Unparseable,
        "the benchmark 'my_binary' has no measure 'latency' (it has: file-size)",
        {"measure": "latency", "benchmarks": ["my_binary"]},
    ),
    Bad(
        "bmf", "bmf-gate.json", Unparseable, "the Bencher Metric Format has no benchmark 'bridge.latency'. Choose ",
        {**COST, "benchmarks": ["bridge.latency"]},
    ),
    Bad("bmf", "hyperfine.json", Unparseable, "the JSON is not Bencher Metric Format: 'results' has a measure"),
    Bad("bmf", "wrk.txt", Unparseable, "the program did not print JSON"),
]  # fmt: skip
