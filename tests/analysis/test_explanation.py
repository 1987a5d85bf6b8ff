"""Why an environment costs what it does: each mechanism, their interaction, and what is unexplained."""

import json
import math
from dataclasses import replace

import pytest

from report.made_up_runs import REQUESTS, Workload
from report.test_html import page_of
from report.test_terminal import shown
from sentences import assert_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.explanation import second_pass
from weighbridge.analysis.results import ProofState
from weighbridge.model.decisions import LeftOut
from weighbridge.model.explained import DescribedMechanism, Explains, Proof
from weighbridge.model.facts import NetworkPath
from weighbridge.report.export.json import report_json
from weighbridge.report.text.explanation import explanation_rows, explanation_sentence


def mechanism(kind: str, **changes: object) -> DescribedMechanism:
    return DescribedMechanism(
        **{
            "kind": kind, "environment": "bridge", "title": f"the {kind}", "switched": "on → off",
            "remedy": f"leave the {kind} out", "source": "a book", **changes,
        }
    )  # fmt: skip


FILTER, NETWORK, TRANSLATION = "filter", "network", "translation"
TRUE = {FILTER: 1.05, TRANSLATION: 1.1, NETWORK: 1.2}
"""By what each multiplies the time of a request; together they take 1.08 more than that, and 1.04 is of none."""
TOGETHER, REST = 1.08, 1.04
WHOLE = TRUE[FILTER] * TRUE[TRANSLATION] * TRUE[NETWORK] * TOGETHER * REST
MECHANISMS = (
    mechanism(FILTER, proof=Proof(fact="seccomp", off="off")),
    mechanism(TRANSLATION),
    mechanism(NETWORK, off_with=(TRANSLATION,)),
)


def recipe(**changes: object) -> dict[str, object]:
    """A bridge with three mechanisms, of which the network can be off only without the translation."""
    without_translation = WHOLE / TRUE[TRANSLATION]
    arms = {
        "without-filter": (WHOLE / TRUE[FILTER], (FILTER,)),
        "without-translation": (without_translation, (TRANSLATION,)),
        "without-network": (without_translation / TRUE[NETWORK], (TRANSLATION, NETWORK)),
        "bare": (REST, (FILTER, TRANSLATION, NETWORK)),
    }
    costs = {"bridge": WHOLE, **{f"bridge-{name}": cost for name, (cost, _) in arms.items()}}
    explains = {f"bridge-{name}": Explains(environment="bridge", off=off) for name, (_, off) in arms.items()}
    return {
        "costs": costs, "explains": explains, "mechanisms": MECHANISMS, "blocks": 20,
        "workloads": [Workload("redis", [(REQUESTS, 1000, 0.004)])],
        "facts": {"bridge/server": {"seccomp": "filter"}, "bridge-without-filter/server": {"seccomp": "off"}},
        **changes,
    }  # fmt: skip


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


def test_a_cost_that_is_not_proven_is_not_explained(explained):
    made = recipe(aa_factor=1.0)
    same = dict.fromkeys(made["costs"], 1.0)
    analysis = explained(costs=same, workloads=[Workload("redis", [(REQUESTS, 1000, 0.2)])])
    sentence = explanation_sentence(analysis, analysis.explanations[0])
    assert "is undecided" in sentence and "so it is not explained" in sentence
    (explanation,) = explained().explanations
    total = replace(explanation.total, verdict="inconclusive")
    assert_sentence(explanation_sentence(analysis, replace(explanation, total=total)))


@pytest.mark.parametrize("verdict", ["hidden", "equivalent"])
def test_a_cost_that_is_hidden_or_does_not_matter_is_not_explained(explained, verdict: str):
    analysis = explained()
    (explanation,) = analysis.explanations
    total = replace(explanation.total, verdict=verdict)
    sentence = explanation_sentence(analysis, replace(explanation, total=total))
    assert sentence.endswith("it is not explained.") and "filter" not in sentence


def test_where_everything_off_is_faster_than_the_baseline_it_says_so(explained):
    faster = {**recipe()["costs"], "bridge-bare": 0.9}
    analysis = explained(costs=faster)
    assert "With all of them off, it is better than native" in explanation_sentence(
        analysis, analysis.explanations[0]
    )


def test_the_page_the_terminal_and_json_have_every_row(run):
    store = run(**recipe())
    analysis = analyse(store)
    rows = explanation_rows(analysis, analysis.explanations[0])
    document = json.loads(json.dumps(report_json(store, analysis), allow_nan=False))
    (row,) = document["explanations"]
    assert row["text"] == explanation_sentence(analysis, analysis.explanations[0])
    assert [each["kind"] for each in row["mechanisms"]] == [NETWORK, TRANSLATION, FILTER]
    assert row["mechanisms"][2]["proof"] == {"state": "shown", "with": "filter", "without": "off"}
    assert all(each["cost"]["family"] == "mechanisms" for each in row["mechanisms"])
    page, screen = (" ".join(text.split()) for text in (page_of(store).text, shown(store)))
    for each in rows:
        assert " ".join(each.cost.split()) in page and each.what.split(" (")[0].split()[-1] in screen


def matching(**rules: int | None) -> dict[str, dict[str, str]]:
    """The facts of the recipe, and how many rules a probe matched in environments whose names begin with these."""
    paths = {
        name.replace("_", "-"): NetworkPath(transport="tcp", interfaces=(), rules=n) for name, n in rules.items()
    }
    return {**recipe()["facts"], "path": {f"{name}@here": path.model_dump_json() for name, path in paths.items()}}


def test_the_rules_that_a_probe_matched_stand_beside_what_moved(run):
    store = run(**recipe(facts=matching(bridge=10, bridge_without_translation=0, bridge_without_network=0)))
    analysis = analyse(store)
    rows = {row.what: row for row in explanation_rows(analysis, analysis.explanations[0])}
    assert rows["the translation"].moved == "rules matched 10 → 0" and rows["the network"].moved == ""
    assert rows["the filter"].switched == "on → off; seen: filter → off"
    (row,) = report_json(store, analysis)["explanations"]
    rules = {each["kind"]: each["rules"] for each in row["mechanisms"]}
    assert rules[TRANSLATION] == {"with": "10", "without": "0"} and rules[FILTER] == {"with": "10", "without": None}
    assert "rules matched 10 → 0" in page_of(store).text


def test_rules_that_nobody_could_read_are_not_shown(explained):
    analysis = explained(facts=matching(bridge=10, bridge_without_translation=None))
    assert not any("rules" in row.moved for row in explanation_rows(analysis, analysis.explanations[0]))


# -- in every combination ---------------------------------------------------------------------------

MORE = 1.06
"""By what the filter and the translation take more together than each by itself."""


def crossed(**changes: object) -> dict[str, object]:
    """The same bridge with its mechanisms in every combination; the filter costs more beside the translation."""
    mechanisms = tuple(each.model_copy(update={"crossed": True}) for each in MECHANISMS)
    costs, explains = {}, {}
    for off in ((), (FILTER,), (TRANSLATION,), (FILTER, TRANSLATION), (TRANSLATION, NETWORK), tuple(TRUE)):
        on = [kind for kind in TRUE if kind not in off]
        name = f"bridge-without-{'-'.join(off)}" if off else "bridge"
        costs[name] = REST * math.prod(TRUE[kind] for kind in on) * (MORE if {FILTER, TRANSLATION} <= {*on} else 1)
        if off:
            explains[name] = Explains(environment="bridge", off=off)
    return recipe(costs=costs, explains=explains, mechanisms=mechanisms, **changes)


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


def test_the_second_pass_is_of_what_showed_a_cost(run, explained):
    (explanation,) = explained().explanations
    assert second_pass(explanation) == (NETWORK, TRANSLATION, FILTER)
    analysis = analyse(run(**crossed()))
    sentence = explanation_sentence(analysis, analysis.explanations[0])
    assert "the filter and the translation cost " in sentence and "unexplained by the mechanisms" in sentence
    (row,) = report_json(run(**crossed()), analysis)["explanations"]
    assert row["crossed"] and (row["pairs"][0]["one"], row["pairs"][0]["other"]) == (FILTER, TRANSLATION)
    assert row["pairs"][0]["cost"]["family"] == "mechanisms"


def test_one_of_two_that_cost_the_same_alone_hides_the_other(run):
    """Neither costs anything beside the other, both off are much faster: all that were switched are crossed."""
    two = MECHANISMS[:2]
    costs = {"bridge": 1.3, "bridge-without-filter": 1.3, "bridge-without-translation": 1.3, "bridge-bare": 1.0}
    off = ((FILTER,), (TRANSLATION,), (FILTER, TRANSLATION))
    explains = {name: Explains(environment="bridge", off=each) for name, each in zip([*costs][1:], off, strict=True)}
    analysis = analyse(run(**recipe(costs=costs, explains=explains, mechanisms=two)))
    (explanation,) = analysis.explanations
    assert {*second_pass(explanation)} == {FILTER, TRANSLATION} and explanation.interaction.verdict == "different"
    assert "weighbridge explain RUN" in explanation_sentence(analysis, explanation)
