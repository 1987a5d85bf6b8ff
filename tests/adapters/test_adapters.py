"""Whatever a program printed, an adapter gives the program's own values or a recorded failure, and nothing else."""

import pytest

from damage import damaged, damaged_anywhere, naming
from sentences import raises_sentence
from weighbridge import registry
from weighbridge.model.adapter import safe_name
from weighbridge.model.measurement import TrialFailure

from .captured import BAD, GOOD, Bad, Case, options

FIRST = list({case.kind: case for case in GOOD}.values())


@pytest.mark.parametrize("case", GOOD, ids=str)
def test_the_values_are_those_that_the_program_printed(case: Case):
    found = {measured.metric.name: measured.value for measured in case.read(case.stdout)}
    assert found == pytest.approx(case.values, rel=1e-9)


@pytest.mark.parametrize("case", GOOD, ids=str)
def test_it_reads_what_it_declares(case: Case):
    declared = options(case.kind, case.options).metrics()
    assert tuple(measured.metric for measured in case.read(case.stdout)) == declared


@pytest.mark.parametrize("case", GOOD, ids=str)
def test_an_output_cut_anywhere_gives_the_same_values_or_none(case: Case):
    whole = case.read(case.stdout)
    last = max(0, len(case.stdout) - 500)
    step = max(7, last // 300)
    same = 0
    for length in (*range(0, last, step), *range(last, len(case.stdout))):
        try:
            assert case.read(case.stdout[:length]) == whole
            same += 1
        except TrialFailure:
            continue
    assert same <= 60, "only the end may be missing: line feeds, and what a package is called"


@damaged_anywhere
def test_an_output_with_random_damage_never_breaks_it(seed: int, length: int, damage: bytes):
    for case in FIRST:
        with naming((case.kind, case)):
            try:
                case.read(damaged(case.stdout, case.file, seed, length, damage))
            except TrialFailure as failure:
                assert "\n" not in str(failure), case


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_failure_is_told_in_one_sentence(bad: Bad):
    from .captured import data

    with pytest.raises(bad.failure) as failed:
        options(bad.kind, bad.options).read(data(bad.file), b"")
    assert str(failed.value).startswith(bad.told)


def test_every_adapter_has_captured_outputs_of_success_and_failure():
    assert {case.kind for case in GOOD} == {*registry.adapters()}
    assert {bad.kind for bad in BAD} == {*registry.adapters()}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Fib/n=20", "fib_n_20"),
        ("tests/test_a.py::test_sort[10]", "tests_test_a_py_test_sort_10"),
        ("42", "n_42"),
        ("BM_Copy/8", "bm_copy_8"),
        ("x" * 99, "x" * 60),
    ],
)
def test_a_benchmark_s_name_becomes_one_that_limits_and_tables_take(text: str, name: str):
    assert safe_name(text) == name


def test_a_name_of_which_nothing_is_left_is_refused():
    with raises_sentence(ValueError):
        safe_name("日本")


def test_two_benchmarks_of_one_metric_are_told():
    with raises_sentence(ValueError):
        options("go-bench", {"benchmarks": ["a/b", "a b"]})
