"""Each function that puts one value into words, with values at its edges: the golden file has what they give."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from sentences import assert_sentence
from weighbridge.analysis.conditions import by_label
from weighbridge.analysis.curves import CurvePeak, SweptLevel
from weighbridge.analysis.noise import machine_noise
from weighbridge.analysis.overload import Breakage
from weighbridge.analysis.plan import differing
from weighbridge.analysis.remarks.flags import figure_ranges, kind_of
from weighbridge.analysis.remarks.meters import FewReadings
from weighbridge.analysis.remarks.trials import FixedTime
from weighbridge.analysis.results import Comparison
from weighbridge.meters import host
from weighbridge.model.address import CellId
from weighbridge.model.choices import Promise
from weighbridge.model.facts import Interface, NetworkPath
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.level import Level
from weighbridge.model.power_cut import PowerCut
from weighbridge.report.text import trial_flags
from weighbridge.report.text.conditions import durability_words, power_cut_verdict
from weighbridge.report.text.curves import broke_words, level_words, peak_doubt
from weighbridge.report.text.formatting import (
    difference_interval,
    noise_text,
    percent_interval,
    percent_range,
    percent_short,
    percent_text,
    plain,
    quantities,
    quantity,
    share,
    shared_unit,
    unit_as,
)
from weighbridge.report.text.metric_names import difference_unit_of, metric_words, titled
from weighbridge.report.text.noise import cause_lines
from weighbridge.report.text.paths import interfaces
from weighbridge.report.text.remarks import remark_text
from weighbridge.report.text.steps import change_text
from weighbridge.report.text.verdicts import cost_text
from weighbridge.statistics import Interval, compare

INFINITE = math.inf
ONE, TWO, FIVE = (SweptLevel(load, str(load), CellId("w", Level())) for load in (1, 200, 5000))
MANY = tuple(SweptLevel(load, str(load), CellId("w", Level())) for load in (1, 2, 3, 1000))
RATE = SweptLevel(1.0, "1Mbit/s", CellId("w", Level()))
MEMORY, REFUSED = (Breakage("b", count, 10, why, 10, 0) for count, why in ((4, "no memory"), (10, "refused")))
FAR = Flag(FlagCode.STEAL, "host b", {"share": 0.031})
OWN = Flag("mine", figures={"x": 2.0}, text="as it said")
EXT4 = {"storage": {"kind": "directory", "disk": {"filesystem": "ext4", "size": 5}}, "limits": True}
XFS = {"storage": {"kind": "directory", "disk": {"filesystem": "xfs", "size": 5}}, "limits": True}
NO_DISK = {"storage": {"kind": "directory", "disk": None}, "limits": True}
IN_MEMORY = {"storage": {"kind": "tmpfs", "size": 7}, "limits": True}
BRIDGE = NetworkPath(
    transport="tcp",
    interfaces=(
        Interface(place="host a", name="veth1", kind="veth", mtu=1500),
        Interface(place="server", name="eth0", kind="veth", mtu=1500),
    ),
)


def cost_of(baseline: list[float], other: list[float], unit: str = "s") -> str:
    cost = compare(baseline, other, better="lower")
    return cost_text(Comparison("bridge", "native", False, cost, None, None, None, None, "inconclusive", ()), unit)


def column(*sizes: float) -> list[str]:
    costs = [compare([0.0] * 10, [size + each for each in range(10)], better="lower") for size in sizes]
    rows = [Comparison("x", "native", False, cost, 0.0, 0.0, None, None, "different", ()) for cost in costs]
    return [cost_text(row, "B", difference_unit_of(rows, "B")) for row in rows]


def in_one_unit(values: list[float | None], unit: str) -> list[str]:
    return [quantity(each, unit, shared_unit(values, unit)) for each in values]


def percents(estimate: float, low: float, high: float) -> str:
    return percent_interval(Interval(estimate, low, high))


def limits(high: float) -> str:
    return percent_text(Interval(27.0, 20.0, high), 6)


def differences(estimate: float, low: float, high: float, unit: str) -> str:
    return difference_interval(Interval(estimate, low, high), unit)


def step(before: dict[str, object], after: dict[str, object]) -> str:
    return change_text(differing(before, after))


def power_cut(claimed: str, lost: int, torn: int = 0) -> PowerCut:
    first = 10 - lost if lost else None
    return PowerCut("host", Promise.FSYNC, "volume", claimed, "lab", 10, 10 - lost, lost, first, torn, 0)  # type: ignore[arg-type]


def durabilities(*kinds: str) -> list[str]:
    places = ("a/kv", "b/kv", "a/db", "b/db")
    return [durability_words(each) for each in by_label(dict(zip(places, kinds, strict=True))).values()]


def flag_kind(flag: Flag) -> str:
    return trial_flags.flag_kind_text(kind_of(flag), figure_ranges([flag]))


Call = tuple[Callable[..., object], list[tuple[Any, ...]]]
CALLS: dict[str, list[Call]] = {
    "quantities": [
        (quantity, [
            (8.662e9, "bit/s"), (8662.0, "Mbit/s"), (40e9, "bit/s"), (12e-6, "s"), (0.5, "ms"), (250.0, "us"),
            (123456.0, "requests/s"), (0.0, "%"), (0.0123, "%"), (None, "s"), (2140.0, "1/s"),
        ]),
        (quantities, [((5.05e-6, 2.23e-5), "s"), ((), "s"), ((0.0, 12.0), "count")]),
        (in_one_unit, [([139e6, 12.8e9, None, 0.0], "bit/s"), ([2.0, 0.005], "s"), ([1.0, INFINITE], "count")]),
        (shared_unit, [([0.000055, 3.1], "s"), ([0.0021, 0.3], "s"), ([1e-9, 5000.0], "s"), ([], "s")]),
        (unit_as, [("Gbit/s", "bit/s"), ("Mbit/s", "Mbit/s"), ("s", "bit/s"), ("requests/s", "requests/s")]),
        (plain, [(0.0,), (1.0,), (999.6,), (12345678.0,), (1e-9,), (INFINITE,)]),
    ],
    "costs": [
        (percents, [
            (27.43, 25.91, 28.78), (-0.02, -0.41, 0.3), (12.0, -INFINITE, 100.0), (9999.0, 9000.0, 11000.0),
            (25027.2, 24280.3, 26806.9), (25027.2, -50.0, 1e9), (25027.2, -INFINITE, INFINITE),
            (-25027.2, -26806.9, -24280.3),
        ]),
        (percent_short, [(98.96,), (99.46,), (99.99,), (100.0,), (-99.46,), (25027.0,)]),
        (percent_range, [([12.3, 25027.0],), ([25027.0, 25027.0],), ([3.1, 12.4],)]),
        (limits, [(1026.0,), (1e9,), (INFINITE,)]),
        (differences, [
            (0.12, 0.10, 0.15, "%"), (0.0, 0.0, 0.0, "s"), (2.0, -INFINITE, INFINITE, "segments"),
            (12.0, 8.0, 15.0, "count"),
        ]),
        (cost_of, [
            ([100.0], [127.0]), ([100.0] * 5, [126.0, 127.0, 128.0, 129.0, 127.0]),
            ([100.0] * 6, [126.0, 127.0, 127.0, 127.0, 127.0, 128.0]), ([0.0] * 5, [1.0] * 5, "ms"),
            ([0.0] * 6, [1.0, 2.0, 1.5, 1.5, 1.4, 1.6], "ms"),
        ]),
        (column, [(2e3, 3e6)]),
    ],
    "noise": [
        (noise_text, [
            ((0.0, 0.0),), ((-0.004, 0.004),), ((-0.006, 0.006),), (None,), ((-1.12, 1.11),), ((-50.0, 33.3),),
            ((-1e6, 99.99),), ((-0.002, 0.002), "s"), ((0.0, 0.0), "count"),
        ]),
        (share, [(0.0112,), (None,), (99.99,), (1215840.59,), (INFINITE,)]),
    ],
    "names": [
        (metric_words, [("one_way_latency",)]),
        (titled, [
            ("latency (size=1)", "latency", "latency_mean", "us"), ("jitter", "jitter", "jitter", "ms"),
            ("tcp", "tcp", "throughput", "bit/s"), ("redis-set", "redis-set", "set_throughput", "requests/s"),
            ("redis-set", "redis-set", "set_p99", "ms"), ("memory", "memory", "memory_usage", "MiB"),
            ("entry", "entry", "time_to_ready", "s"),
        ]),
        (interfaces, [(BRIDGE,)]),
        (step, [(EXT4, XFS), (EXT4, IN_MEMORY), (NO_DISK, XFS)]),
    ],
    "loads": [
        (level_words, [("connections", FIVE), ("rate", TWO), ("clients", ONE), ("bitrate", RATE)]),
        (peak_doubt, [
            ("threads", CurvePeak(TWO, 1.0, 0, 3, (ONE, FIVE), "")), ("threads", CurvePeak(TWO, 1.0, 1, 9, MANY, "")),
            ("threads", CurvePeak(TWO, 1.0, 0, 0, (), "")),
        ]),
        (broke_words, [
            ("threads", [(FIVE, REFUSED)], "mysql"), ("threads", [(ONE, MEMORY), (FIVE, REFUSED)]),
        ]),
    ],
    "flags": [
        (trial_flags.flags_text, [([FAR, OWN],)]),
        (trial_flags.stable_text, [([FAR, OWN],)]),
        (trial_flags.flag_text, [
            (Flag(FlagCode.THROTTLED, "server", {"share": 0.2}),), (Flag(FlagCode.OTHER, text="errors"),),
        ]),
        (flag_kind, [(OWN,)]),
    ],
    "remarks": [
        (remark_text, [
            (FewReadings(1.0, 2, 3),), (FewReadings(10.0, 2, None),), (FewReadings(1.0, 0, None),),
            (FixedTime("w", 10.0),),
        ]),
        (power_cut_verdict, [
            (power_cut("synchronous", 3, torn=1),), (power_cut("synchronous", 0),), (power_cut("asynchronous", 2),),
            (power_cut("unknown", 2),),
        ]),
        (durabilities, [("none", "none", "synchronous", "asynchronous")]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("about", CALLS)
def test_values_in_words(about: str):
    given = [(function, each) for function, several in CALLS[about] for each in several]
    said = [function(*each) for function, each in given]
    assert_sentence("\n".join(" | ".join(each) if isinstance(each, list) else str(each) for each in said))


def test_every_flag_has_words_and_every_flag_of_the_meters_is_known():
    assert set(trial_flags.WORDS) == set(FlagCode) - {FlagCode.OTHER} and trial_flags.FOREIGN == host.FOREIGN
    busy = {"steal_s": 3.0, "load1": 90.0, "busy_s": 60.0, "psi_memory_s": 5.0, "psi_io_s": 5.0}
    raised = [*host.host_flags(busy, [{"cpu_s": 1.0}], 10.0, 2)]
    raised += host.site_flags("client", {"throttled_s": 5.0, "cpu_s": 10.0}, 10.0)
    raised += host.shared_flags({"client": {"cpu_s": 19.0}, "server": {"cpu_s": 1.0}}, 10.0, 2)
    assert all("?" not in flag_kind(each) for each in raised)


def test_what_disturbed_a_noisy_machine_is_named_with_what_helps(run):
    flags = {(block, "native"): (Flag(FlagCode.STEAL, "", {"share": block / 10}),) for block in (1, 2)}
    facts = {"host": {"frequency governor": "schedutil", "SMT": "on"}}
    for recipe in ({"flags": flags, "facts": facts}, {}):
        assert_sentence("\n".join(cause_lines(machine_noise(run(costs={}, **recipe)))))
