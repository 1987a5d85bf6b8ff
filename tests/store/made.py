"""A study and trials of it, made up."""

from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.level import Level
from weighbridge.model.measurement import Measurement, Metric, Outcome
from weighbridge.model.study import Study
from weighbridge.model.trial import RoleRecord, Trial, TrialRecord
from weighbridge.study.loader import check
from weighbridge.study.source import parse

THROUGHPUT = Metric("throughput", "Mbit/s", "higher")
JITTER = Metric("jitter", "ms", "lower")
TEXT = """\
study: small
question: What does it cost?
baseline: native
environments: {native: {kind: native}, host: {kind: docker, network: host}}
workloads: {redis: {kind: redis-benchmark, clients: [10, 50]}, cpu: {kind: sysbench-cpu}}
equivalence: 3%
seed: 7
"""
STUDY: Study = check(parse(TEXT, "small.yaml"))
FLAGS = (Flag(FlagCode.STEAL, figures={"share": 0.03}), Flag(FlagCode.GENERATOR_SATURATED))
LEVEL = Level([("clients", "10"), ("pipeline", "1")])


def record(block: int = 1, environment: str = "native", value: float = 5.0, **changes) -> TrialRecord:
    """One trial that ended."""
    trial = Trial(block, changes.pop("attempt", 0), "redis", LEVEL, environment)
    fields = {
        "outcome": Outcome.OK,
        "started_at": 1000.0 + block,
        "duration_s": 1.25,
        "measured_s": 1.0,
        "measurements": (Measurement(THROUGHPUT, value), Measurement(JITTER, 0.0)),
        "roles": (RoleRecord("client", ("iperf3", "-c", "ü x"), 0, 1.0, b"\x00out\xff", b"err"),),
        "samples": (("host", "busy_s", 0.5), ("client", "cpu_s", 0.25)),
        "flags": FLAGS,
    }
    return TrialRecord(trial=trial, **{**fields, **changes})
