"""Remarks in words: each has some, and each code a meaning."""

import json
import math
from dataclasses import fields

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge.analysis.part_cost import PartCost
from weighbridge.analysis.remarks import kinds
from weighbridge.analysis.remarks.confounders import Confounder, IoUringRefused, NotCovered
from weighbridge.analysis.remarks.cost import TargetMissed
from weighbridge.analysis.remarks.entry import EntryAndSteady
from weighbridge.analysis.remarks.flags import FigureRange, FlaggedTrials
from weighbridge.analysis.remarks.rules import Rules
from weighbridge.analysis.remarks.trials import Outliers
from weighbridge.analysis.results import Remark
from weighbridge.model.flag import FlagKind
from weighbridge.report.export.json import remark_json
from weighbridge.report.text.remarks import CODES, joint_texts, remark_text, remark_texts
from weighbridge.statistics import Interval

KINDS = {each for each in kinds() if each is not Confounder}


@pytest.mark.parametrize("kind", sorted(KINDS, key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__)
def test_every_remark_has_a_code_and_words(kind: type[Remark]):
    assert kind.code in CODES
    assert remark_text.dispatch(kind) is not remark_text.dispatch(Remark)


def test_every_code_has_a_meaning_and_a_remark():
    assert set(CODES) == {kind.code for kind in KINDS}


def test_ranks_decide_the_order_of_remarks():
    about: Rules[str] = Rules()
    about(20)(lambda _: ["second"])
    about(10)(lambda _: ["first"])
    assert about.remarks("") == ["first", "second"]
    with pytest.raises(AssertionError):
        about(10)(lambda _: [])


def test_a_remark_for_machines_has_its_figures():
    kind = FlagKind("steal", "", "")
    flagged = FlaggedTrials("bridge", kind, 3, 10, (FigureRange("share", 0.02, 0.05),))
    found = json.loads(json.dumps(remark_json(flagged), allow_nan=False))
    assert (found["code"], found["environment"], found["count"], found["trials"]) == ("trial", "bridge", 3, 10)
    assert found["flag"] == {"code": "steal", "where": "", "text": ""}
    assert found["figures"] == [{"name": "share", "low": 0.02, "high": 0.05}]
    assert found["text"] == remark_text(flagged)
    assert remark_json(TargetMissed(0.02, math.inf, 3, None))["half_width"] is None


def test_both_costs_of_a_sandbox_are_in_words():
    slow = PartCost("different", Interval(5833.0, 5700.0, 5960.0), "%", None, 0.012, 0.712)
    small = PartCost("equivalent", Interval(0.4, -0.5, 1.3), "%", 0.03, 1.0, 1.004)
    open_ = PartCost("inconclusive", Interval(4.0, -1.5, 9.9), "%", None, 1.0, 1.04)
    gain = PartCost("different", Interval(-0.25, -0.31, -0.2), "s", None, 1.0, 0.75)
    for entry, steady in ((slow, small), (slow, open_), (open_, gain), (open_, open_)):
        assert_sentence(remark_text(EntryAndSteady("srt", entry, steady)))
    assert_sentence(remark_text(NotCovered("landrun", "network", "UDP passes")))


def test_no_field_hides_the_code_or_the_words():
    assert not [kind for kind in KINDS if {each.name for each in fields(kind)} & {"code", "text"}]


def test_a_remark_without_words_is_an_error():
    with raises_sentence(TypeError):
        remark_text(Remark())


@pytest.mark.parametrize("predicted", [61, 2886])
def test_a_number_of_blocks_that_no_run_can_have_is_not_told_as_one(predicted: int):
    """ "about 2074 blocks needed" stood beside "No number of blocks"."""
    assert_sentence(remark_text(TargetMissed(0.02, 0.05, 10, predicted)))


@pytest.mark.parametrize("predicted", [(266, 266), (266, 1500), (266, None)])
def test_a_shared_sentence_has_only_figures_of_all_its_environments(predicted: tuple[int, int | None]):
    """One environment needs 266 rounds, the other 1500: "they need more than 1000 rounds"."""
    missed = [(TargetMissed(0.05, 0.17, 10, each), name) for each, name in zip(predicted, "ab", strict=True)]
    assert_sentence("\n".join(joint_texts(missed, compared=3)))


def test_environments_with_other_figures_have_sentences_of_their_own():
    assert_sentence("\n".join(remark_texts([Outliers("a", 1, 61), Outliers("b", 2, 61), Outliers("c", 1, 61)])))


@pytest.mark.parametrize(("refusing", "allowing"), [("docker", "native"), ("native", "docker")])
def test_the_side_that_refuses_io_uring_is_named_with_the_cause(refusing: str, allowing: str):
    assert_sentence(remark_text(IoUringRefused("docker", refusing, "refused (EPERM, seccomp)", allowing)))
