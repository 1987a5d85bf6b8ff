"""What the terminal says while a run goes on."""

import io
import math
from dataclasses import replace

import pytest
from rich.console import Console
from rich.progress import Progress

from sentences import assert_sentence
from weighbridge import secret_values
from weighbridge.cli import progress
from weighbridge.cli.progress import Shown, estimates_table, prospect, setup_words, verdict_time
from weighbridge.model.disturbance import disturbance_of
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.level import Level
from weighbridge.model.measurement import Metric, Outcome
from weighbridge.model.secret import SecretName
from weighbridge.model.setup import SetupStep
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.report.text.environments import names_of_study, use_display_names
from weighbridge.runner.estimate import Forecast, forecast
from weighbridge.runner.precision import CostEstimate, OutOfReach, PrecisionStatus
from weighbridge.statistics import Contrast
from weighbridge.study.loader import load

OTHERS = Flag(FlagCode.OTHER_WORK, figures={"cpus": 1.4})
STEAL = Flag(FlagCode.STEAL, figures={"share": 0.2})
TIME = Metric("time", "s", "lower")


@pytest.mark.parametrize(
    ("flags", "more"), [((OTHERS,), {"other_run": True}), ((OTHERS, STEAL), {"other_run": False})]
)
def test_that_others_put_the_target_out_of_reach_is_a_sentence(flags, more, capsys):
    found = OutOfReach(disturbance_of([flags] * 10), "native", 5, 0.02, ((0.031, 0.041), (0.1, 0.12)), 3, **more)
    Shown(None).interference_noticed(found)
    assert_sentence(capsys.readouterr().err)


def test_the_control_has_its_name_in_reports(capsys: pytest.CaptureFixture[str]):
    with use_display_names(names_of_study(load("first-look"))):
        trial = Trial(1, 0, "command", Level(), "native-again")
        Shown(None).trial_started(trial, 0, 20, Forecast(5.0, 10, 1000.0, 400, "limit"))
    assert "round 1: command in native (control)" in capsys.readouterr().err


def estimate(environment: str, spread: float, ratio: float = 1.1) -> CostEstimate:
    """A cost, of 10% if it is not said, whose blocks differ by so much."""
    values = [100.0 * (1 + spread * (number % 5 - 2)) for number in range(10)], [100.0 * ratio] * 10
    cost = Contrast.between(environment, "native").cost(values, better="lower")
    assert cost is not None
    return CostEstimate("command", environment, TIME, cost, cost.half_width, 0.02)


@pytest.mark.parametrize(("blocks", "interval"), [(5, False), (6, True)])
def test_a_cost_so_far_has_its_blocks_and_an_interval_only_of_enough(blocks, interval):
    values = [100.0 + number for number in range(blocks)], [110.0] * blocks
    cost = Contrast.between("docker", "native").cost(values, better="lower")
    (line,) = drawn(80, 10, CostEstimate("command", "docker", TIME, cost, cost.half_width, 0.02))
    assert f"after {blocks} rounds" in line and ("[" in line) == interval


@pytest.mark.parametrize(("blocks", "word"), [(6, False), (9, False), (10, True)])
def test_a_cost_so_far_has_a_word_for_its_direction_only_from_ten_blocks_on(blocks, word):
    """At 6 blocks it said "slower", which the report took back."""
    values = [100.0 + number % 2 for number in range(blocks)], [110.0] * blocks
    cost = Contrast.between("docker", "native").cost(values, better="lower")
    (line,) = drawn(80, 10, CostEstimate("command", "docker", TIME, cost, cost.half_width, 0.02))
    assert ("slower" in line) == word and ("cost " in line) != word and "[" in line


def drawn(width: int, height: int, *estimates: CostEstimate) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width).print(estimates_table(estimates, width, height))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_bar_is_full_where_a_cost_is_as_precise_as_it_is_to_become():
    near, far = drawn(80, 10, estimate("near", 0.001), estimate("far", 0.05))
    assert near.startswith("near") and near.count("━") == 10 and "─" not in near
    assert far.startswith("far") and 0 < far.count("━") < 10 and far.count("━") + far.count("─") == 10
    assert "[" in far


@pytest.mark.parametrize(
    ("ratio", "spread", "says"),
    [
        (0.9, 0.002, "10.0% [9.8, 10.2] faster"),
        (1.1, 0.002, "10.0% [9.8, 10.2] slower"),
        (0.99, 0.05, "cost -0.9% [-5.7, 4.4]"),
    ],
)
def test_what_has_a_direction_word_has_no_sign_and_what_has_both_signs_has_no_word(ratio, spread, says):
    """As in the report: -5.4% became "6.5% faster" at the end."""
    (line,) = drawn(80, 10, estimate("docker", spread, ratio))
    assert says in line.replace("\u00a0", " ")
    assert ("faster" in line or "slower" in line) == ("cost" not in line)


def test_costs_so_far_fit_a_narrow_and_low_terminal():
    lines = drawn(40, 3, *(estimate(f"environment-{number}", 0.001) for number in range(5)), estimate("far", 0.05))
    assert len(lines) == 3 and max(map(len, lines)) <= 40
    assert lines[0].startswith("far") and lines[-1] == "and 4 more"


FAR = PrecisionStatus(
    "command", "bridge", 0.051, False, 2074, (0.024, 0.034), blocks=10, target=0.02, needed_s=(900.0, math.inf)
)
NEAR = PrecisionStatus("command", "docker", 0.051, False, 66, None, blocks=10, target=0.02, needed_s=(12.0, 40.0))
MAYBE = PrecisionStatus(
    "command", "docker", 0.051, False, 66, None, blocks=10, target=0.02, needed_s=(12.0, math.inf)
)
NEVER = PrecisionStatus("command", "docker", math.inf, False, None, target=0.02)


def test_without_a_terminal_lines_become_rarer_and_have_the_least_precise_cost(capsys, monkeypatch):
    """A run of two minutes had about 20, one for each look."""
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    shown = Shown(None)
    for name in ("native", "docker"):
        shown.waits([SetupStep("site", f"{name} (server)")])
    for second in range(1000):
        now = float(second)
        left = Forecast(5.0, 10, 1000.0 - second, 400, "limit")
        shown.trial_started(Trial(second // 2 + 1, 0, "command", Level(), "docker"), second, 20, left)
        if second == 9:
            shown.time_known(0.0521, left)
            shown.costs_estimated(10, [estimate("bridge", 0.05)])
        if second == 100:
            shown.costs_estimated(50, [estimate("bridge", 0.001), estimate("docker", 0.05)])
        if second % 20 == 19:
            shown.precision_checked(second // 2, [FAR, NEAR])
    undecided = PrecisionStatus("command", "docker", 0.019, False, 600, target=0.016, for_verdict=True)
    for _ in range(2):  # a run that goes on comes to its earlier looks again
        shown.precision_checked(500, [undecided])
        shown.precision_checked(600, [replace(undecided, width=0.0155, reached=True)])
    assert_sentence(capsys.readouterr().err)


def test_a_slow_start_is_told_without_a_terminal(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    shown = Shown(None)
    for second, name in ((1.0, "one"), (12.0, "two"), (13.0, "three")):
        now = second
        shown.waits([SetupStep("host", name, 2, 9), SetupStep("image", "web")])
    assert capsys.readouterr().err == "starting host two (2 of 9); importing the image on web\n"


@pytest.mark.parametrize(
    "steps",
    [
        [SetupStep("host", "db", 2, 9), SetupStep("image", "web"), SetupStep("engine", "a-nat")],
        [SetupStep("site", "bridge (client)", 3, 12, clients="b"), SetupStep("site", "volume", 4, 10)],
        [SetupStep("services", "pod", 1500, 2000)],
        [SetupStep("engine", f"host-{number}") for number in range(5)],
    ],
)
def test_what_a_run_waits_for_is_one_sentence(steps):
    assert_sentence(setup_words(steps))


@pytest.mark.parametrize(
    ("limit_s", "blocks", "rest_s"),
    [(math.inf, 1, 2.0), (20.0, 1, 2.0), (20.0, 7, 2.0), (1.0, 7, 2.0), (4.0, 1, 2.0), (25.0, 0, 4.0)],
)
def test_when_a_run_ends_is_one_sentence(limit_s, blocks, rest_s):
    """Looks at 10 and 60 blocks of 3 s; the last block that the limit allows to begin is completed."""
    looks = [(look, rest_s + 3.0 * (look - blocks)) for look in (10, 60)]
    left = forecast(blocks, looks, limit_s, 3.0, rest_s)
    assert left.first_s <= left.last_s and left.first_blocks <= left.last_blocks
    assert left.last_s <= max(limit_s, rest_s)
    assert_sentence(f"{left.ends_by}: {verdict_time(left)}")


def test_what_is_to_be_expected_is_one_sentence():
    reached = PrecisionStatus("command", "netns", 0.01, True, 10, target=0.02)
    undecided = [replace(each, for_verdict=True, target=0.016) for each in (NEAR, MAYBE, FAR)]
    for statuses in (
        [NEAR], [FAR], [MAYBE], [NEAR, FAR, reached], [NEVER], [reached], [], *([each] for each in undecided),
        [undecided[0], MAYBE],
    ):  # fmt: skip
        assert_sentence(prospect(statuses))
    for since_s, end in ((10.0, "in 2 to 30 s"), (20.0, "within 20 s"), (40.0, "any moment")):
        assert prospect([NEAR], since_s=since_s).replace("\u00a0", " ") == f"±2% expected {end}"
    slow = replace(NEAR, needed_s=(50.0, 200.0), cell="other")
    assert prospect([NEAR, slow]).endswith("in 62 s to 4 min") and prospect([slow]).endswith("in 50 s to 3 min")
    assert prospect([replace(NEAR, needed_s=(12.0, 12.0))]).endswith("in about 12 s")
    assert prospect([replace(FAR, expected=(0.0204, 0.031))]).endswith("might not be reached"), (
        "and not: expect about ±2.0%"
    )


def test_on_a_terminal_costs_stand_below_the_bar_and_what_to_expect_below_them():
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=True, color_system=None)
    shown = Shown(Progress(console=console))
    shown.costs_estimated(3, [estimate("near", 0.001)])
    console.print(shown.rendered())
    shown.precision_checked(10, [FAR])
    console.print(shown.rendered())
    bar, cost, again, _, expected = file.getvalue().splitlines()
    assert "starting" in bar and cost.startswith("near") and "━" in cost
    assert again == bar and expected == prospect([FAR])


def test_the_bar_is_full_when_the_trials_have_ended_early():
    bar = Progress("{task.completed}/{task.total}", console=Console(file=io.StringIO()))
    shown, trial = Shown(bar), Trial(1, 0, "command", Level(), "docker")
    shown.trial_started(trial, 86, 105, Forecast(5.0, 10, 10.0, 400, "limit"))
    shown.say("still the same trial")
    assert (bar.tasks[0].completed, bar.tasks[0].total) == (86, 105)
    shown.trial_finished(TrialRecord(trial, Outcome.OK, 0.0, 1.0, 1.0))
    shown.say("cleaning up")
    assert (bar.tasks[0].completed, bar.tasks[0].total, bar.tasks[0].fields["count"]) == (87, 87, "87/87")


def test_beside_the_bar_is_room_for_what_a_terminal_writes_of_ctrl_c(monkeypatch: pytest.MonkeyPatch):
    """It went to the next line, so that the bar above it stayed on the screen."""
    monkeypatch.setattr(progress.err(), "_width", 80)
    file = io.StringIO()
    shown = Shown(Progress("{task.description}", console=Console(file=file, width=80), expand=True))
    shown.say("starting native " * 10)
    Console(file=file, width=80).print(shown.rendered())
    assert max(map(len, file.getvalue().splitlines())) <= 77


def test_a_line_has_no_value_of_a_secret(monkeypatch, capsys):
    monkeypatch.setattr(secret_values, "_values", {SecretName("TOKEN"): "hunter2"})
    Shown(None).say("refused: hunter2")
    assert capsys.readouterr().err == "refused: ${secret:TOKEN}\n"
