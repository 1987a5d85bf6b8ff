"""What limited a trial: shares, and which limit is named where several apply."""

import pytest

from weighbridge.model.flag import BOTTLENECKS, Flag, FlagCode
from weighbridge.model.host import NetworkLink
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.workload import Endpoint
from weighbridge.runner.bottleneck import RoleCpus, TrialUsage, bottleneck
from weighbridge.runner.stage import Stage
from weighbridge.runner.window import Window

from .world import FakeSite, World

RATE = 100e6
THROUGHPUT = Metric("throughput", "Mbit/s", "higher")
APART = RoleCpus(frozenset({"server"}), {"client": 1, "server": 1})
TOGETHER = RoleCpus(frozenset({"server"}), {"client": 2, "server": 2}, shared_cpus=2)
BOTH_INSIDE = RoleCpus(frozenset({"server", "client"}), {"client": 1, "server": 1})
IDLE = {"client": {"cpu_s": 0.1}, "server": {"cpu_s": 0.1}}


def use(client: float = 0.1, server: float = 0.1, *, client_held: float = 0.0, server_held: float = 0.0):
    """CPU seconds and throttled seconds of ten."""
    return {
        "client": {"cpu_s": client, "throttled_s": client_held},
        "server": {"cpu_s": server, "throttled_s": server_held},
    }


def cable(share: float, where: str = "host a") -> Flag:
    return Flag(FlagCode.CABLE, where, {"share": share, "rate": RATE})


def named(seen: TrialUsage, cpus: RoleCpus = APART, asked: float | None = None, reached: float = 0.0) -> Flag:
    told = None if asked is None else Measurement(THROUGHPUT, asked)
    found = bottleneck(seen, cpus, told, [Measurement(THROUGHPUT, reached)])
    assert found.code in BOTTLENECKS
    return found


def test_the_share_of_a_cable_is_that_of_its_busier_direction(world: World):
    bits, silent = {"out": 5e6, "in": 1e6}, dict[str, float]()
    links = NetworkLink("host a", RATE, lambda: dict(bits)), NetworkLink("host b", RATE, lambda: dict(silent))
    site = FakeSite(world, "solo", "one", "solo", links=links)
    window = Window(Stage({"solo": site}, {"solo": Endpoint("", "", 0)}))
    window.begin_measured(served=False, opens=False)
    bits.update({"out": 5e6 + 198e6, "in": 1e6 + 20e6})
    silent["out"] = 1.0  # unreadable at first
    window.end_measured()
    (flag,) = window.cables(2.0)
    assert flag == cable(0.99)
    assert window.cables(1.0)[0].figures["share"] == 1.0, "never more than whole"


ALONE = RoleCpus(frozenset({"solo"}), {"solo": 2}, threads=2)
ONE_THREAD = RoleCpus(frozenset({"solo"}), {"solo": 2})
HERE = RoleCpus(APART.inside, APART.cpus, separate_machines=False)
"""On the server's machine the kernel does the receiver's work partly on the sender's CPU: that is the cost, too."""
HELD = use(9.5, 5.0, server_held=3.0)
ASKED = {"asked": 10.0, "reached": 10.0}


@pytest.mark.parametrize(
    ("seen", "cpus", "code", "where"),
    [
        (TrialUsage(IDLE, 10.0, [cable(0.2, "host b"), cable(0.9)]), APART, FlagCode.CABLE, "host a"),
        (TrialUsage(IDLE, 10.0, [cable(0.2, "host b"), cable(0.89)]), APART, FlagCode.NO_BOTTLENECK, ""),
        (TrialUsage(IDLE, 10.0, [cable(0.93), cable(0.98, "host b")]), APART, FlagCode.CABLE, "host b"),
        # a generator outside is the limit while the server has CPU left
        (TrialUsage(use(9.5), 10.0), APART, FlagCode.GENERATOR, "client"),
        (TrialUsage(use(1.0, client_held=2.0), 10.0), APART, FlagCode.GENERATOR, "client"),
        (TrialUsage(use(9.0), 10.0), APART, FlagCode.NO_BOTTLENECK, ""),
        (TrialUsage(use(9.5, 9.5), 10.0), APART, FlagCode.CPUS, "server"),
        (TrialUsage(HELD, 10.0), APART, FlagCode.CPU_QUOTA, "server"),
        (TrialUsage(use(9.5, 3.0), 10.0), TOGETHER, FlagCode.GENERATOR, "client"),
        (TrialUsage(use(9.5, 9.0), 10.0), TOGETHER, FlagCode.CPUS, ""),
        (TrialUsage(use(client=10.0), 10.0), APART, FlagCode.GENERATOR, "client"),
        (TrialUsage(use(client=10.0), 10.0), HERE, FlagCode.CPUS, "client"),
        # a client inside shows its cost
        (TrialUsage(use(9.5), 10.0), BOTH_INSIDE, FlagCode.CPUS, "client"),
        (TrialUsage(use(1.0, client_held=2.0), 10.0), BOTH_INSIDE, FlagCode.CPU_QUOTA, "client"),
        # a program without a counterpart
        (TrialUsage({"solo": {"cpu_s": 19.5}}, 10.0), ALONE, FlagCode.CPUS, "solo"),
        (TrialUsage({"solo": {"cpu_s": 10.0, "throttled_s": 5.0}}, 10.0), ALONE, FlagCode.CPU_QUOTA, "solo"),
        (TrialUsage({"solo": {"cpu_s": 9.8}}, 10.0), ONE_THREAD, FlagCode.CPUS, "solo"),
        (TrialUsage({"solo": {"cpu_s": 9.0}}, 10.0), ONE_THREAD, FlagCode.NO_BOTTLENECK, ""),
        (TrialUsage({"solo": {}}, 10.0), ALONE, FlagCode.NO_BOTTLENECK, ""),
        # programs that waited for disks
        (TrialUsage(IDLE, 10.0, waited_s=6.0), APART, FlagCode.DISK, ""),
        (TrialUsage(IDLE, 10.0, waited_s=4.0), APART, FlagCode.NO_BOTTLENECK, ""),
        # each is named before those after it
        (TrialUsage(use(9.5), 10.0, waited_s=9.0), APART, FlagCode.GENERATOR, "client"),
        (TrialUsage(HELD, 10.0, waited_s=9.0), APART, FlagCode.CPU_QUOTA, "server"),
        (TrialUsage(use(1.0, 9.5), 10.0, waited_s=9.0), APART, FlagCode.CPUS, "server"),
    ],
)
def test_the_limit_of_a_trial(seen: TrialUsage, cpus: RoleCpus, code: FlagCode, where: str):
    found = named(seen, cpus)
    assert (found.code, found.where) == (code, where)


@pytest.mark.parametrize(("reached", "met"), [(10.2, True), (9.6, True), (9.4, False), (0.0, False)])
def test_a_rate_that_was_asked_for_is_the_limit_where_it_was_met(reached: float, met: bool):
    found = named(TrialUsage(IDLE, 10.0), asked=10.0, reached=reached)
    assert (found.code == FlagCode.ASKED_RATE) is met
    if met:
        assert found.text == "Mbit/s" and found.figures == pytest.approx({"share": reached / 10, "rate": 10.0})


def test_a_cable_is_named_before_the_rate_that_was_asked_for_and_that_before_disks():
    assert named(TrialUsage(use(9.5), 10.0, [cable(0.95)], 9.0), **ASKED).code == FlagCode.CABLE
    assert named(TrialUsage(use(9.5), 10.0, waited_s=9.0), **ASKED).code == FlagCode.ASKED_RATE
