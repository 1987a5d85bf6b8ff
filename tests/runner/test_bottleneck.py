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


def kind(seen: TrialUsage, cpus: RoleCpus = APART, **more: float) -> tuple[str, str]:
    found = named(seen, cpus, **more)
    return found.code, found.where


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


@pytest.mark.parametrize(("share", "code"), [(0.9, FlagCode.CABLE), (0.89, FlagCode.NO_BOTTLENECK)])
def test_a_cable_is_full_from_nine_tenths(share: float, code: FlagCode):
    assert named(TrialUsage(IDLE, 10.0, [cable(0.2, "host b"), cable(share)])).code == code


def test_the_fullest_cable_is_named():
    assert named(TrialUsage(IDLE, 10.0, [cable(0.93), cable(0.98, "host b")])) == cable(0.98, "host b")


@pytest.mark.parametrize(("reached", "met"), [(10.2, True), (9.6, True), (9.4, False), (0.0, False)])
def test_a_rate_that_was_asked_for_is_the_limit_where_it_was_met(reached: float, met: bool):
    found = named(TrialUsage(IDLE, 10.0), asked=10.0, reached=reached)
    assert (found.code == FlagCode.ASKED_RATE) is met
    if met:
        assert found.text == "Mbit/s" and found.figures == pytest.approx({"share": reached / 10, "rate": 10.0})


def test_a_generator_outside_is_the_limit_while_the_server_has_cpu_left():
    assert kind(TrialUsage(use(9.5), 10.0)) == (FlagCode.GENERATOR, "client")
    assert kind(TrialUsage(use(1.0, client_held=2.0), 10.0)) == (FlagCode.GENERATOR, "client")
    assert kind(TrialUsage(use(9.0), 10.0)) == (FlagCode.NO_BOTTLENECK, "")
    assert kind(TrialUsage(use(9.5, 9.5), 10.0)) == (FlagCode.CPUS, "server"), "the server had none left"
    assert kind(TrialUsage(use(9.5, 5.0, server_held=3.0), 10.0)) == (FlagCode.CPU_QUOTA, "server")
    assert kind(TrialUsage(use(9.5, 3.0), 10.0), TOGETHER) == (FlagCode.GENERATOR, "client")
    assert kind(TrialUsage(use(9.5, 9.0), 10.0), TOGETHER) == (FlagCode.CPUS, ""), "all that they share was used"


def test_a_client_inside_shows_its_cost():
    assert kind(TrialUsage(use(9.5), 10.0), BOTH_INSIDE) == (FlagCode.CPUS, "client")
    assert kind(TrialUsage(use(1.0, client_held=2.0), 10.0), BOTH_INSIDE) == (FlagCode.CPU_QUOTA, "client")


def test_a_program_without_a_counterpart():
    alone = RoleCpus(frozenset({"solo"}), {"solo": 2}, threads=2)
    assert kind(TrialUsage({"solo": {"cpu_s": 19.5}}, 10.0), alone) == (FlagCode.CPUS, "solo")
    assert kind(TrialUsage({"solo": {"cpu_s": 10.0, "throttled_s": 5.0}}, 10.0), alone) == (
        FlagCode.CPU_QUOTA,
        "solo",
    )
    one_thread = RoleCpus(frozenset({"solo"}), {"solo": 2})
    assert kind(TrialUsage({"solo": {"cpu_s": 9.8}}, 10.0), one_thread) == (FlagCode.CPUS, "solo"), (
        "it can use no more"
    )
    assert kind(TrialUsage({"solo": {"cpu_s": 9.0}}, 10.0), one_thread) == (FlagCode.NO_BOTTLENECK, "")
    assert kind(TrialUsage({"solo": {}}, 10.0), alone) == (FlagCode.NO_BOTTLENECK, "")


def test_disks_are_the_limit_where_programs_waited_for_them():
    assert kind(TrialUsage(IDLE, 10.0, waited_s=6.0)) == (FlagCode.DISK, "")
    assert kind(TrialUsage(IDLE, 10.0, waited_s=4.0)) == (FlagCode.NO_BOTTLENECK, "")


def test_precedence():
    """Each is named before those after it."""
    full = cable(0.95)
    busy, held = use(9.5), use(9.5, 5.0, server_held=3.0)
    assert kind(TrialUsage(busy, 10.0, [full], 9.0), asked=10.0, reached=10.0)[0] == FlagCode.CABLE
    assert kind(TrialUsage(busy, 10.0, waited_s=9.0), asked=10.0, reached=10.0)[0] == FlagCode.ASKED_RATE
    assert kind(TrialUsage(busy, 10.0, waited_s=9.0))[0] == FlagCode.GENERATOR
    assert kind(TrialUsage(held, 10.0, waited_s=9.0))[0] == FlagCode.CPU_QUOTA
    assert kind(TrialUsage(use(1.0, 9.5), 10.0, waited_s=9.0))[0] == FlagCode.CPUS


def test_on_the_server_s_machine_a_generator_without_cpu_shows_the_cost():
    """The kernel does the receiver's work partly on the sender's CPU: it carries what the environment costs."""
    here = RoleCpus(APART.inside, APART.cpus, separate_machines=False)
    assert kind(TrialUsage(use(client=10.0), 10.0)) == (FlagCode.GENERATOR, "client")
    assert kind(TrialUsage(use(client=10.0), 10.0), here) == (FlagCode.CPUS, "client")
