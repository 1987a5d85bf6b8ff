"""Whatever an output looks like, it becomes the tool's own values or a recorded failure, and nothing else."""

import re
from bisect import bisect_left
from contextlib import AbstractContextManager, suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from damage import damaged, damaged_anywhere, naming
from sentences import raises_sentence
from usual_options import NEEDED
from weighbridge import registry
from weighbridge.model.measurement import ProgramFailed, TrialFailure, Unparseable

from .captured import FAILED, GOOD, REFUSED, Case, Failure, parse

KINDS = sorted({case.kind for case in GOOD})
OPTIONS = {(case.kind, str(case.options)): case for case in GOOD}


@pytest.mark.parametrize("case", GOOD, ids=str)
def test_the_values_are_those_that_the_tool_printed(case: Case):
    found = {measured.metric.name: measured.value for measured in case.parse(case.stdout)}
    assert found == pytest.approx(case.values, rel=1e-12)


def _cuts(printed: bytes) -> list[int]:
    """Where an output is cut: in each number after each digit, in what is between numbers at its ends.

    More than 200 bytes before the end, at every third of these places, and long before it at 100 of them.
    """
    places = [0, *(match.end() for match in re.finditer(rb"[0-9.]|[^\s0-9.]+|[ \t]+|\s", printed))][:-1]
    long_before, near = (bisect_left(places, len(printed) - size) for size in (2000, 200))
    return [
        *places[: long_before : max(7, long_before // 100)], *places[long_before:near:3], *places[near:],
        max(0, len(printed) - 1),
    ]  # fmt: skip


@pytest.mark.parametrize("case", GOOD, ids=str)
def test_an_output_cut_anywhere_gives_the_same_values_or_none(case: Case):
    whole = case.parse(case.stdout)
    parsed = 0
    for length in _cuts(case.stdout):
        try:
            assert case.parse(case.stdout[:length]) == whole
            parsed += 1
        except (Unparseable, ProgramFailed):
            continue
    assert parsed <= 20, "only the end may be missing: a line feed, or the fairness of threads"


def _named(case: Case) -> AbstractContextManager[None]:
    return naming((case.kind, case.file, case.options))


@given(stdout=st.binary(), stderr=st.binary(max_size=50), returncode=st.sampled_from([0, 1, -9]))
def test_random_bytes_never_break_a_parser(stdout: bytes, stderr: bytes, returncode: int):
    for case in OPTIONS.values():
        with _named(case), pytest.raises(TrialFailure):
            case.parse(stdout, stderr, returncode)


@damaged_anywhere
@example(seed=943837, length=34, damage=b"1e")  # a rate of 1e400 or so in fio's
def test_an_output_with_random_damage_never_breaks_a_parser(seed: int, length: int, damage: bytes):
    for case in GOOD:
        with _named(case), suppress(TrialFailure):
            case.parse(damaged(case.stdout, case.file, seed, length, damage))


@pytest.mark.parametrize("kind", KINDS)
def test_empty_and_garbage_are_unparseable(kind: str):
    for stdout in (b"", b"\n", b"\0" * 100, b"\xff\xfe", b"[" * 100_000, b"{}", b"null", b'{"end": 1}'):
        with naming(stdout[:20]), pytest.raises(Unparseable):
            parse(kind, {}, stdout)


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_that_failed_is_told_in_its_own_words(kind: str):
    with pytest.raises(ProgramFailed, match="no such luck"):
        parse(kind, {}, b"", b"something\nno such luck\n", returncode=1)


@pytest.mark.parametrize("case", GOOD, ids=str)
def test_a_good_output_of_a_program_that_failed_is_no_measurement(case: Case):
    with pytest.raises(ProgramFailed):
        case.parse(case.stdout, returncode=-9)


def test_every_workload_has_a_captured_output():
    assert set(registry.workloads()) == set(KINDS)


@pytest.mark.parametrize("failure", FAILED, ids=str)
def test_a_trial_that_failed_has_its_outcome_and_one_sentence(failure: Failure):
    with raises_sentence(TrialFailure) as caught:
        failure.parse()
    assert caught.value.outcome == failure.entry["outcome"]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("kind", "options"), REFUSED, ids=lambda part: part if isinstance(part, str) else str(part))
def test_options_that_make_no_sense_are_refused_in_one_sentence(kind: str, options: dict[str, Any]):
    with raises_sentence(ValidationError):
        registry.workloads()[kind].options.model_validate(NEEDED.get(kind, {}) | options)
