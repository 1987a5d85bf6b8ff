"""A cost over a fleet: typical, prediction, spread, odd machines and pairs."""

import numpy as np
import pytest

from weighbridge.statistics.fleet import Measured, fleet_cost


def singles(k, *, between=0.01, noise=0.004, odd=(), seed=2, blocks=20):
    rng = np.random.default_rng(seed)
    shifts = dict(odd)
    return [
        Measured((f"n{i:03}",), 0.1 + rng.normal(0, between) + rng.normal(0, noise) + shifts.get(i, 0), noise, blocks)
        for i in range(k)
    ]


def test_a_fleet_of_one_machine_is_none():
    assert fleet_cost(singles(1), margin=0.03) is None
    assert fleet_cost([], margin=0.03) is None


def test_one_odd_machine_is_found():
    fleet = fleet_cost(singles(20, odd={3: 0.2}), margin=0.03)
    assert [each.machine for each in fleet.machines if each.odd] == ["n003"]


@pytest.mark.parametrize(("field", "value"), [("effect", float("nan")), ("standard_error", float("inf"))])
def test_what_is_not_finite_is_refused(field, value):
    run = {"machines": ("a",), "effect": 0.0, "standard_error": 0.1, "blocks": 10, field: value}
    with pytest.raises(ValueError):
        fleet_cost([Measured(**run)], margin=0.03)
