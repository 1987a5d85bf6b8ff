"""A cost over a fleet: typical, prediction, spread, odd machines and pairs."""

import importlib
import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from weighbridge.features.fleets.statistics import RunCost, fleet_cost, shrunk_variances

BCG_EFFECTS = (-0.8893, -1.5854, -1.3481, -1.4416, -0.2175, -0.7861, -1.6209, 0.0120, -0.4694, -1.3713, -0.3394,
               0.4459, -0.0173)  # fmt: skip
BCG_VARIANCES = (0.3256, 0.1946, 0.4154, 0.0200, 0.0512, 0.0069, 0.2230, 0.0040, 0.0564, 0.0730, 0.0124, 0.5325,
                 0.0714)  # fmt: skip
"""Colditz et al. (1994), the example of the textbooks on random effects."""


def single(machine, effect, error=0.004, blocks=20):
    return RunCost((machine,), effect, error, blocks)


def singles(number, *, between=0.01, noise=0.004, odd=None, seed=2, blocks=20):
    rng = np.random.default_rng(seed)
    costs = 0.1 + rng.normal(0, between, number) + rng.normal(0, noise, number)
    for i, shift in (odd or {}).items():
        costs[i] += shift
    return [single(f"n{i:03}", float(cost), noise, blocks) for i, cost in enumerate(costs)]


def pairs(keys, *, between=0.005, rest=0.002, odd=None, outlier_pairs=(), shift=0.1, noise=0.002, seed=2):
    rng = np.random.default_rng(seed)
    names = sorted({name for key in keys for name in key})
    machines = dict(zip(names, rng.normal(0, between, len(names)), strict=True))
    for name in odd or ():
        machines[name] += shift
    return [
        RunCost(
            key,
            0.1 + machines[key[0]] + machines[key[1]] + rng.normal(0, rest) + shift * (key in outlier_pairs),
            noise,
            20,
        )
        for key in keys
    ]


def ring(number, *steps):
    return [(f"n{i:02}", f"n{(i + step) % number:02}") for step in steps for i in range(number)]


def outlier_machines(fleet):
    return [each.machine for each in fleet.machines if each.outlier]


def outlier_pairs(fleet):
    return [each.machines for each in fleet.pairs if each.outlier]


# -- typical, prediction, spread ----------------------------------------------------------------


def test_a_fleet_of_fewer_than_two_is_none():
    assert fleet_cost(singles(1), margin=0.03) is None
    assert fleet_cost([], margin=0.03) is None
    assert fleet_cost([single("a", 0.1), single("a", 0.2)], margin=0.03) is None
    assert fleet_cost([RunCost(("a", "b"), 0.1, 0.01, 10)], margin=0.03) is None


def test_the_spread_is_paule_and_mandels():
    """Metafor gives 0.3181 for these trials, and -0.7150 for their mean."""
    runs = [
        single(f"n{i:02}", effect, math.sqrt(variance), 10**7)
        for i, (effect, variance) in enumerate(zip(BCG_EFFECTS, BCG_VARIANCES, strict=True))
    ]
    fleet = fleet_cost(runs, margin=0.03)
    assert fleet.spread.between**2 == pytest.approx(0.3181, abs=2e-4)
    assert fleet.mean.estimate == pytest.approx(-0.7150, abs=2e-3)


@pytest.mark.parametrize("number", [2, 5])
def test_of_equally_precise_machines_the_typical_cost_has_students_interval(number):
    runs = singles(number, between=0.05)
    values = [each.effect for each in runs]
    fleet = fleet_cost(runs, margin=0.03)
    low, high = stats.t.interval(0.95, number - 1, np.mean(values), stats.sem(values))
    assert (fleet.typical.estimate, fleet.typical.low, fleet.typical.high) == pytest.approx(
        (np.mean(values), low, high)
    )


def test_machines_that_agree_better_than_their_blocks_allow_get_no_narrower_interval():
    fleet = fleet_cost([single(name, 0.1, 0.01) for name in "abcde"], margin=0.03)
    assert fleet.spread.between == 0 and fleet.spread.between_high > 0.002
    half = stats.t.ppf(0.975, 4) * 0.01 / math.sqrt(5)
    assert fleet.typical.high - fleet.typical.estimate == pytest.approx(half)
    assert fleet.prediction.high >= fleet.typical.high


def test_the_limit_of_the_spread_is_that_of_a_chi_square():
    runs = singles(10, between=0.05, noise=1e-6)
    fleet = fleet_cost(runs, margin=0.03)
    deviation = np.std([each.effect for each in runs], ddof=1)
    assert fleet.spread.between == pytest.approx(deviation, rel=1e-4)
    assert fleet.spread.between_high == pytest.approx(deviation * math.sqrt(9 / stats.chi2.ppf(0.025, 9)), rel=1e-4)


def test_of_precise_machines_the_next_one_is_within_students_interval():
    runs = singles(8, between=0.05, noise=1e-6)
    values = [each.effect for each in runs]
    half = stats.t.ppf(0.975, 7) * np.std(values, ddof=1) * math.sqrt(1 + 1 / 8)
    fleet = fleet_cost(runs, margin=0.03)
    assert fleet.prediction.high - fleet.prediction.estimate == pytest.approx(half, rel=0.01)


def test_nothing_is_foretold_from_two_machines():
    fleet = fleet_cost(singles(2), margin=0.03)
    assert fleet.prediction is None and fleet.machines == () and fleet.typical.low < 0.1 < fleet.typical.high


def test_runs_of_one_machine_tell_sessions_from_machines():
    rng = np.random.default_rng(5)
    runs = [
        single(f"n{i:02}", 0.1 + machine + rng.normal(0, 0.02) + rng.normal(0, 0.002), 0.002)
        for i, machine in enumerate(rng.normal(0, 0.05, 40))
        for _ in range(3)
    ]
    fleet = fleet_cost(runs, margin=0.03)
    assert fleet.spread.session == pytest.approx(0.02, rel=0.2)
    assert fleet.spread.between == pytest.approx(0.05, rel=0.3)
    assert fleet.spread.within == pytest.approx(0.002 * math.sqrt(20))
    assert {each.runs for each in fleet.machines} == {3}
    assert fleet_cost(singles(5), margin=0.03).spread.session is None


def test_few_blocks_that_were_alike_by_chance_do_not_weigh_more():
    rng = np.random.default_rng(3)
    degrees = np.full(30, 9.0)
    sample = 0.02**2 * rng.chisquare(9, 30) / 9
    assert np.ptp(np.log(shrunk_variances(sample, degrees))) < 0.4 * np.ptp(np.log(sample))
    unlike = sample * np.exp(rng.normal(0, 1.5, 30))
    drawn = shrunk_variances(unlike, degrees)
    assert np.all(np.diff(drawn[np.argsort(unlike)]) > 0) and np.ptp(np.log(drawn)) < np.ptp(np.log(unlike))


def test_runs_without_any_noise_are_no_error():
    assert fleet_cost([single(name, 0.1, 0.0) for name in "abcd"], margin=0.03).typical.estimate == 0.1
    fleet = fleet_cost([single(name, 0.1 + 0.01 * i, 0.0) for i, name in enumerate("abcd")], margin=0.03)
    assert fleet.spread.between == pytest.approx(np.std([0, 0.01, 0.02, 0.03], ddof=1), rel=1e-4)


# -- odd machines -------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
def test_an_odd_machine_is_found_and_makes_no_other_odd(sign):
    fleet = fleet_cost(singles(20, odd={3: sign * 0.2}), margin=0.03)
    assert outlier_machines(fleet) == ["n003"]
    effect = fleet.machines[3]
    assert effect.estimate == pytest.approx(sign * 0.2, abs=0.03) and effect.adjusted_p < 1e-6
    assert abs(np.mean([each.estimate for each in fleet.machines if not each.outlier])) < 0.003


def test_an_odd_machine_is_none_whose_distance_does_not_matter():
    runs = singles(20, between=0.001, noise=0.0005, odd={3: 0.02})
    assert outlier_machines(fleet_cost(runs, margin=0.01)) == ["n003"]
    assert outlier_machines(fleet_cost(runs, margin=0.03)) == []


def test_several_odd_machines_do_not_hide_one_another():
    runs = singles(10, between=0.01, odd={1: 0.2, 4: 0.2, 7: 0.21})
    values = np.array([each.effect for each in runs])
    assert not np.any(np.abs(values - values.mean()) > 2 * values.std(ddof=1)), "the usual rule sees none of them"
    assert outlier_machines(fleet_cost(runs, margin=0.03)) == ["n001", "n004", "n007"]


def test_the_interval_says_what_the_verdict_says():
    for seed in range(5):
        fleet = fleet_cost(singles(12, odd={3: 0.06, 5: -0.05}, seed=seed), margin=0.03)
        for each in fleet.machines:
            away = each.interval.low > 0 or each.interval.high < 0
            assert away == (each.adjusted_p <= 0.05)
            assert each.outlier == (away and abs(each.estimate) >= 0.03)


def test_one_of_three_machines_may_be_odd_and_needs_to_be_far():
    near = fleet_cost([single("a", 0.1), single("b", 0.104), single("c", 0.15)], margin=0.03)
    far = fleet_cost([single("a", 0.1), single("b", 0.104), single("c", 0.3)], margin=0.03)
    assert outlier_machines(near) == [] and outlier_machines(far) == ["c"]
    assert len(near.machines) == len(far.machines) == 3


# -- pairs --------------------------------------------------------------------------------------


def test_a_machine_that_is_slow_with_every_partner_is_odd_and_no_pair_is():
    for steps in ((1,), (1, 3)):
        fleet = fleet_cost(pairs(ring(12, *steps), odd={"n04"}), margin=0.03)
        assert outlier_machines(fleet) == ["n04"] and outlier_pairs(fleet) == []


def test_a_pair_that_is_slow_alone_is_odd_and_no_machine_is():
    slow = [("n04", "n05")]
    fleet = fleet_cost(pairs(ring(12, 1, 3), outlier_pairs=slow), margin=0.03)
    assert outlier_pairs(fleet) == slow and outlier_machines(fleet) == []


def test_with_two_partners_each_only_a_very_slow_pair_is_told_from_its_machines():
    slow = [("n04", "n05")]
    fleet = fleet_cost(pairs(ring(12, 1), outlier_pairs=slow), margin=0.03)
    assert outlier_pairs(fleet) == outlier_machines(fleet) == []
    fleet = fleet_cost(pairs(ring(12, 1), outlier_pairs=slow, shift=1.0), margin=0.03)
    assert outlier_pairs(fleet) == slow and outlier_machines(fleet) == []


def test_an_odd_machine_and_an_odd_pair_are_told_apart_in_one_fleet():
    runs = pairs(ring(20, 1, 3), odd={"n04"}, outlier_pairs=[("n10", "n11")])
    fleet = fleet_cost(runs, margin=0.03)
    assert outlier_machines(fleet) == ["n04"] and outlier_pairs(fleet) == [("n10", "n11")]
    assert fleet.spread.pair is not None


def test_a_machine_with_one_partner_has_no_effect():
    keys = [*ring(8, 1), ("n00", "x")]
    fleet = fleet_cost(pairs(keys), margin=0.03)
    assert "x" not in [each.machine for each in fleet.machines] and len(fleet.machines) == 8
    assert ("n00", "x") not in [each.machines for each in fleet.pairs] and len(fleet.pairs) == 8
    alone = fleet_cost(pairs([("a", "b"), ("c", "d"), ("e", "f")]), margin=0.03)
    assert alone.machines == alone.pairs == () and alone.spread.pair is None and alone.typical is not None


def test_all_pairs_of_a_fleet_and_pairs_that_are_not_connected():
    everyone = fleet_cost(pairs(list(combinations("abcdefgh", 2)), odd={"c"}), margin=0.03)
    assert outlier_machines(everyone) == ["c"]
    islands = [*combinations("abcd", 2), *combinations("efgh", 2)]
    assert outlier_machines(fleet_cost(pairs(islands, odd={"c"}), margin=0.03)) == ["c"]


def test_pairs_that_differ_by_more_than_machines_explain_are_no_spread_between_machines():
    effects = "-80 -44 -128 72 28 -4 -4 -99 43 67 -20 -75 -36 -27 33"
    errors = "54 58 40 75 52 52 72 70 78 55 40 43 45 62 92"
    blocks = "15 15 30 15 26 20 11 13 17 28 27 20 26 15 10"
    keys = "05 14 23 01 25 34 02 31 45 03 42 51 04 53 12"
    fleet = fleet_cost(
        [
            RunCost((key[0], key[1]), int(effect) / 1e4, int(error) / 1e4, int(number))
            for key, effect, error, number in zip(*map(str.split, (keys, effects, errors, blocks)), strict=True)
        ],
        margin=0.03,
    )
    assert fleet is not None and fleet.spread.between == 0 and fleet.spread.between_high < 0.01
    assert fleet.typical.high - fleet.typical.low < 0.01


def test_a_pair_is_the_same_in_either_direction():
    runs = pairs(ring(8, 1, 3))
    again = [*runs, replace(runs[0], machines=runs[0].machines[::-1], effect=runs[0].effect + 0.001)]
    fleet = fleet_cost(again, margin=0.03)
    assert len(fleet.pairs) == 16 and fleet.spread.session is not None
    assert {each.machine: each.runs for each in fleet.machines}["n00"] == 5


# -- of any numbers -----------------------------------------------------------------------------


@given(
    st.lists(st.floats(-1, 1), min_size=3, max_size=12),
    st.floats(1e-3, 0.3),
    st.floats(-2, 2),
    st.floats(0.1, 10),
)
def test_a_shift_and_a_unit_move_all_results_alike(effects, error, shift, unit):
    runs = [single(f"n{i:02}", effect, error) for i, effect in enumerate(effects)]
    moved = [replace(each, effect=shift + unit * each.effect, standard_error=unit * error) for each in reversed(runs)]
    one, other = fleet_cost(runs, margin=0.03), fleet_cost(moved, margin=0.03 * unit)
    for a, b in ((one.typical, other.typical), (one.prediction, other.prediction)):
        expected = [shift + unit * each for each in (a.estimate, a.low, a.high)]
        assert [b.estimate, b.low, b.high] == pytest.approx(expected, abs=1e-6 * unit, rel=1e-4)
    assert other.spread.between == pytest.approx(unit * one.spread.between, abs=1e-6 * unit, rel=1e-4)
    assert [each.machine for each in one.machines] == [each.machine for each in other.machines]
    assert one.typical.low <= one.typical.estimate <= one.typical.high


@pytest.mark.parametrize("margin", [0.0, 0.03])
def test_every_machine_that_can_be_told_is_given(margin):
    rng = np.random.default_rng(11)
    for number in (3, 4, 5, 8):
        for scale in (0.001, 0.1):
            names = [f"n{i}" for i in range(number)]
            costs = scale * rng.standard_cauchy(number)
            fleet = fleet_cost([single(*each) for each in zip(names, costs.tolist(), strict=True)], margin=margin)
            assert [each.machine for each in fleet.machines] == names
            runs = [
                RunCost(key, scale * float(rng.standard_cauchy()), 0.004, 20) for key in combinations(names, 2)
            ]  # fmt: skip
            fleet = fleet_cost(runs, margin=margin)
            assert len(fleet.machines) == number
            for each in (*fleet.machines, *fleet.pairs):
                assert each.interval.low <= each.estimate <= each.interval.high and 0 <= each.adjusted_p <= 1


def test_what_is_wrong_is_refused():
    good = single("a", 0.1)
    bad = [
        replace(good, effect=math.nan),
        replace(good, standard_error=math.inf),
        replace(good, standard_error=-1.0),
        replace(good, blocks=1),
        replace(good, machines=("a", "a")),
        replace(good, machines=()),
        replace(good, machines=("a", "b")),
    ]
    for each in bad:
        with pytest.raises(ValueError):
            fleet_cost([good, each], margin=0.03)
    for settings in ({"margin": -1.0}, {"margin": math.inf}, {"margin": 0.03, "confidence": 1.0}):
        with pytest.raises(ValueError):
            fleet_cost([good], **settings)


# -- as `benchmarks/fleet_statistics.py` simulates it, a few cells ----------------------------------------


@pytest.fixture
def fleets(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module("fleet_statistics")


@pytest.mark.parametrize(("kind", "machines"), [("normal", 3), ("exponential", 10)])
def test_simulated_fleets_cover_the_typical_cost_and_the_next_machine(fleets, kind, machines):
    centres = fleets.centre(fleets.SHAPES[kind])
    rows = [fleets.one_coverage(kind, machines, "quiet", centres, np.random.default_rng([1, i])) for i in range(60)]
    _, _, typical, following, *_ = np.mean(rows, axis=0)
    assert typical >= 0.86 and following >= 0.84


def test_simulated_fleets_name_the_odd_machine_and_no_other(fleets):
    rows = [fleets.one_outlier(20, 1, 3.0, 0.01, "normal", np.random.default_rng([2, i])) for i in range(40)]
    found, false, *_ = np.mean(rows, axis=0)
    assert found >= 0.95 and false <= 0.12


def test_simulated_pairs_name_the_odd_machine_or_the_odd_pair(fleets):
    machine, pair = (
        np.mean(
            [
                fleets.one_pairs(12, 5, odd, 3.0, bad, (0.005, 0.003), np.random.default_rng([3, i]))
                for i in range(20)
            ],
            axis=0,
        )
        for odd, bad in ((1, 0), (0, 1))
    )
    assert machine[0] >= 0.95 and machine[1] + machine[3] <= 0.15
    assert pair[2] >= 0.85 and pair[1] + pair[3] <= 0.15
