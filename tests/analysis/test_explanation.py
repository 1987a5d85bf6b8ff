"""Why an environment costs what it does: each mechanism, their interaction, and what is unexplained."""

import pytest

from report.explained_runs import (
    FILTER,
    MECHANISMS,
    MORE,
    NETWORK,
    REST,
    TOGETHER,
    TRANSLATION,
    TRUE,
    crossed,
    recipe,
    with_placebo,
)
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.explanation import second_pass
from weighbridge.analysis.results import ProofState
from weighbridge.model.decisions import LeftOut
from weighbridge.model.explained import Explains


@pytest.fixture
def explained(run):
    def made(**changes):
        return analyse(run(**recipe(**changes)))

    return made


def percent_of(factor: float) -> float:
    """The cost in requests per second, of which more are better."""
    return 100 * (1 - 1 / factor)


def test_each_part_is_measured_with_an_interval_that_has_the_truth(explained):
    (explanation,) = explained().explanations
    measured = {each.mechanism.kind: each.row for each in explanation.mechanisms}
    for kind, factor in TRUE.items():
        penalty = measured[kind].cost.penalty
        assert penalty.low < percent_of(factor) < penalty.high and measured[kind].verdict == "different"
    assert [each.mechanism.kind for each in explanation.mechanisms] == [NETWORK, TRANSLATION, FILTER]
    together, rest = explanation.interaction.cost.penalty, explanation.unexplained.cost.penalty
    assert together.low < percent_of(TOGETHER) < together.high
    assert rest.low < percent_of(REST) < rest.high
    assert explanation.total.verdict == "different" and explanation.total.environment == "bridge"


def test_parts_are_no_environments_of_the_study(explained):
    analysis = explained()
    assert analysis.others == ("bridge",) and not analysis.native_only
    assert {row.environment for report in analysis.metrics for row in report.comparisons} == {
        "bridge",
        "native-again",
    }


def test_steps_from_arm_to_arm_have_no_interaction(run):
    """Where each can be off only with those before it the single costs are steps from one arm to the next."""
    parts = ("bridge-without-translation", "bridge-without-network")
    made = recipe(mechanisms=MECHANISMS[1:])
    made["costs"] = {name: made["costs"][name] for name in ("bridge", *parts)}
    made["explains"] = {name: made["explains"][name] for name in parts}
    (explanation,) = analyse(run(**made)).explanations
    assert explanation.interaction is None and explanation.unexplained_arm == "bridge-without-network"


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({"bridge/server": {"seccomp": "filter"}, "bridge-without-filter/server": {"seccomp": "off"}}, "shown"),
        ({"bridge/server": {"seccomp": "filter"}, "bridge-without-filter/server": {"seccomp": "filter"}}, "not-off"),
        ({"bridge/server": {"seccomp": "off"}, "bridge-without-filter/server": {"seccomp": "off"}}, "not-off"),
        ({"bridge/server": {"seccomp": "filter"}}, "unknown"),
    ],
)
def test_a_mechanism_is_off_by_what_its_sites_say(explained, facts, state):
    (explanation,) = explained(facts=facts).explanations
    states = {each.mechanism.kind: each.proof for each in explanation.mechanisms}
    assert states == {FILTER: ProofState(state), TRANSLATION: ProofState.UNKNOWN, NETWORK: ProofState.UNKNOWN}


def test_what_cannot_be_switched_here_is_a_row_with_the_reason(explained):
    absent = LeftOut(environment="bridge-without-filter", kind="docker", why="no seccomp in this kernel")
    made = recipe()
    costs = {name: cost for name, cost in made["costs"].items() if name != absent.environment}
    analysis = explained(costs=costs, left_out=(absent,))
    (explanation,) = analysis.explanations
    last = explanation.mechanisms[-1]
    assert (last.mechanism.kind, last.row, last.why_not) == (FILTER, None, "no seccomp in this kernel")
    assert analysis.left_out == ()
    assert explanation.unexplained_arm == "bridge-without-network", "which has off what was switched, and no more"


# -- what nothing looks like ------------------------------------------------------------------------


@pytest.mark.parametrize(("cost", "excludes"), [(1.0, False), (1.05, True)])
def test_a_placebo_is_measured_and_is_no_cause(run, cost, excludes):
    (explanation,) = analyse(run(**with_placebo(cost))).explanations
    placebo = explanation.placebo.cost.penalty
    assert placebo.low < percent_of(cost) < placebo.high
    assert explanation.placebo_excludes_zero is excludes
    assert explanation.placebo_arm == "bridge-placebo"
    assert {each.mechanism.kind for each in explanation.mechanisms} == {*TRUE}
    assert {*second_pass(explanation)} == {*TRUE}
    together, rest = explanation.interaction.cost.penalty, explanation.unexplained.cost.penalty
    assert together.estimate == pytest.approx(percent_of(TOGETHER), abs=0.5)
    assert rest.estimate == pytest.approx(percent_of(REST), abs=0.5)


def test_without_a_placebo_there_is_none(explained):
    (explanation,) = explained().explanations
    assert explanation.placebo is None and not explanation.placebo_excludes_zero


# -- in every combination ---------------------------------------------------------------------------


def test_crossed_mechanisms_tell_which_of_them_interact(run):
    (explanation,) = analyse(run(**crossed())).explanations
    pairs = {(each.one.kind, each.other.kind): each.row for each in explanation.pairs}
    assert pairs.keys() == {(FILTER, TRANSLATION), (FILTER, NETWORK)}, "the network is off only without translation"
    assert pairs[FILTER, TRANSLATION].verdict == "different"
    assert pairs[FILTER, TRANSLATION].cost.penalty.estimate == pytest.approx(percent_of(MORE), abs=0.5)
    assert pairs[FILTER, NETWORK].verdict != "different"
    share = {FILTER: 1 / 3, TRANSLATION: 1 / 2, NETWORK: 0}
    for each in explanation.mechanisms:
        true = TRUE[each.mechanism.kind] * MORE ** share[each.mechanism.kind]
        assert each.row.cost.penalty.estimate == pytest.approx(percent_of(true), abs=0.5)
    assert explanation.unexplained.verdict == "different" and explanation.crossed
    assert second_pass(explanation) == ()


def test_the_second_pass_is_of_what_showed_a_cost(explained):
    (explanation,) = explained().explanations
    assert second_pass(explanation) == (NETWORK, TRANSLATION, FILTER)


def test_one_of_two_that_cost_the_same_alone_hides_the_other(run):
    """Neither costs anything beside the other, both off are much faster: all that were switched are crossed."""
    two = MECHANISMS[:2]
    costs = {"bridge": 1.3, "bridge-without-filter": 1.3, "bridge-without-translation": 1.3, "bridge-bare": 1.0}
    off = ((FILTER,), (TRANSLATION,), (FILTER, TRANSLATION))
    explains = {name: Explains(environment="bridge", off=each) for name, each in zip([*costs][1:], off, strict=True)}
    analysis = analyse(run(**recipe(costs=costs, explains=explains, mechanisms=two)))
    (explanation,) = analysis.explanations
    assert {*second_pass(explanation)} == {FILTER, TRANSLATION} and explanation.interaction.verdict == "different"
