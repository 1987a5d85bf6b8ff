"""The quick form of `benchmarks/injected_truth.py`: known costs and noise through real sites and a whole report."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

LARGE = {"ratio": (10.0,), "difference": (100.0,)}
"""Fixed costs of 10 %, in percent or in the unit: five times the noise of a figure."""
PATH = Path(__file__).parents[2] / "benchmarks" / "injected_truth.py"


@pytest.fixture(scope="module")
def truth() -> ModuleType:
    spec = importlib.util.spec_from_file_location("injected_truth", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.promise("a report tells the costs that were injected, with their signs, and sees those it says it would")
def test_a_report_tells_the_costs_that_were_injected(truth: ModuleType):
    """Also on a busy machine: noise, order and costs are the same each time, and the report is of these alone."""
    noise, figures, tally = "lognormal CV 2 %", truth.figures_of(2, 24), truth.Tally()
    for session in truth.sessions_of(noise, figures, 2, {"blocks": 10}, machine=False):
        tally.add(session)
        large = [each for each in session.figures if each.cost in LARGE[each.figure.scale]]
        assert large and all(each.different for each in large)
    assert (tally.untrusted, tally.wrong_side) == (0, 0)
    assert len(tally.seen) == sum(figure.injection == "visible" for figure in figures), "the first report states all"
    assert [str(check) for check in truth.checks(noise, tally) if not check.met] == []
