"""What the terminal says while a run goes on."""

import io

import pytest
from rich.console import Console
from rich.progress import Progress

from sentences import assert_sentence
from weighbridge.cli.progress import Shown, estimates_table
from weighbridge.model.disturbance import disturbance_of
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.runner.precision import Estimate, OutOfReach
from weighbridge.statistics import Contrast

OTHERS = Flag(FlagCode.OTHER_WORK, figures={"cpus": 1.4})
STEAL = Flag(FlagCode.STEAL, figures={"share": 0.2})


@pytest.mark.parametrize(("flags", "more"), [((OTHERS,), {"beside": True}), ((OTHERS, STEAL), {"beside": False})])
def test_that_others_put_the_target_out_of_reach_is_a_sentence(flags, more, capsys):
    found = OutOfReach(disturbance_of([flags] * 10), "native", 5, 0.02, (0.041, 0.12), 3, **more)
    Shown(None).others_noticed(found)
    assert_sentence(capsys.readouterr().err)


def estimate(environment: str, spread: float) -> Estimate:
    """A cost of 10 % whose blocks differ by so much."""
    values = [100.0 * (1 + spread * (number % 5 - 2)) for number in range(10)], [110.0] * 10
    cost = Contrast.between(environment, "native").cost(values, better="lower")
    assert cost is not None
    return Estimate("command", environment, "s", cost, 0.02)


@pytest.mark.parametrize(("blocks", "interval"), [(5, False), (6, True)])
def test_a_cost_so_far_has_its_blocks_and_an_interval_only_of_enough(blocks, interval, capsys):
    values = [100.0 + number for number in range(blocks)], [110.0] * blocks
    cost = Contrast.between("docker", "native").cost(values, better="lower")
    Shown(None).costs_estimated(1, [Estimate("command", "docker", "s", cost, 0.02)])
    line = capsys.readouterr().err
    assert f"after {blocks} blocks" in line and ("[" in line) == interval


def drawn(width: int, height: int, *estimates: Estimate) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width).print(estimates_table(estimates, width, height))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_bar_is_full_where_a_cost_is_as_precise_as_it_is_to_become():
    near, far = drawn(80, 10, estimate("near", 0.001), estimate("far", 0.05))
    assert near.startswith("near") and near.count("━") == 20 and "─" not in near
    assert far.startswith("far") and 0 < far.count("━") < 20 and far.count("━") + far.count("─") == 20
    assert "of ±2%" in far and "[" in far


def test_costs_so_far_fit_a_narrow_and_low_terminal():
    lines = drawn(40, 3, *(estimate(f"environment-{number}", 0.001) for number in range(5)), estimate("far", 0.05))
    assert len(lines) == 3 and max(map(len, lines)) <= 40
    assert lines[0].startswith("far") and lines[-1] == "and 4 more"


def test_without_a_terminal_the_first_costs_and_the_time_are_lines(capsys):
    shown = Shown(None)
    shown.time_known(0.0521, 10, 95.0)
    for blocks in (3, 4):
        shown.costs_estimated(blocks, [estimate("bridge", 0.001)])
    assert_sentence(capsys.readouterr().err)


def test_on_a_terminal_costs_stand_below_the_bar():
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=True, color_system=None)
    shown = Shown(Progress(console=console))
    shown.costs_estimated(3, [estimate("near", 0.001)])
    console.print(shown.rendered())
    bar, cost = file.getvalue().splitlines()
    assert "starting" in bar and cost.startswith("near") and "━" in cost
