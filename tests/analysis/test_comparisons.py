"""Contrasts of a run's environments: of the blocks that have them all."""

import pytest

from report.made_up_runs import REQUESTS, Workload
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.comparisons import contrast_cost, grouped
from weighbridge.analysis.plan import plan_of
from weighbridge.model.measurement import Outcome
from weighbridge.statistics import Contrast, verdicts

COSTS = {"first": 1.2, "second": 1.5, "both": 1.98}
INTERACTION = Contrast(("native", "first", "second", "both"), (1.0, -1.0, -1.0, 1.0))


@pytest.fixture
def values(run):
    def made(**recipe):
        store = run(costs=COSTS, workloads=[Workload("tcp", [(REQUESTS, 1000, 0.01)])], **{"blocks": 14, **recipe})
        (values,) = [each for key, each in grouped(store.values()).items() if key[2] == REQUESTS.name]
        return values, plan_of(store), analyse(store)

    return made


def test_an_interaction_is_one_effect_a_block(values):
    """Of requests, of which more are better: both together lose a tenth more than each alone."""
    mine, plan, _ = values()
    found = contrast_cost(mine, INTERACTION, plan)
    assert found.cost.blocks == 14 and found.cost.low < 1 / 1.1 < found.cost.high < 1
    assert found.cost.worsening.estimate == pytest.approx(100 * (1 - 1 / 1.1), abs=1.5)
    assert found.p_value == verdicts.family_p_value(INTERACTION.effects(found.values, "ratio"), plan.looks) < 0.001


def test_a_block_counts_that_has_all_of_them(values):
    mine, plan, _ = values(failing={(3, "second"): Outcome.DEADLINE})
    assert contrast_cost(mine, INTERACTION, plan).cost.blocks == 13
    assert contrast_cost(mine, Contrast.between("both", "first"), plan).cost.blocks == 14
    assert contrast_cost(mine, Contrast.between("both", "absent"), plan) is None


def test_a_cost_of_the_report_is_such_a_contrast(values):
    mine, plan, analysis = values()
    rows = {row.environment: row.cost for row in analysis.metrics[0].comparisons}
    assert all(contrast_cost(mine, Contrast.between(name, "native"), plan).cost == rows[name] for name in COSTS)
