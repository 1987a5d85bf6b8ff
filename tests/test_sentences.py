"""Sentences in golden files: what is compared, what is made anew, and that none is left without its test."""

from pathlib import Path

import pytest

from sentences import GoldenSentences, merge_into_golden, read_golden

TESTS = """
from sentences import assert_sentence, raises_sentence
import pytest

@pytest.mark.parametrize("number", ["one", "two: 2"])
def test_error(number, tmp_path):
    with raises_sentence(ValueError, OSError) as error:
        raise ValueError(f"{tmp_path}/x: {number} is wrong")
    assert error.type is ValueError

def test_two_sentences():
    assert_sentence("first")
    with raises_sentence(KeyError):
        raise KeyError("SECOND")

def test_lines():
    assert_sentence("one\\n\\n      two\\nthr\\0ee")

def test_nothing():
    pass
"""
CONFTEST = """
def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true")
"""
GOLDEN = """\
test_error[one]
    TMP/x: one is wrong
test_error[two: 2]
    TMP/x: two: 2 is wrong
test_lines
    one
        two
        thr\\x00ee
test_two_sentences
    first
    'SECOND'
"""


class Project:
    """A project with one module of tests and its golden file."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester
        pytester.makeconftest(CONFTEST)
        self.golden = pytester.path / "sentences/test_it.txt"
        self.write(TESTS)

    def write(self, tests: str) -> None:
        self._pytester.makepyfile(test_it=tests)
        for compiled in self._pytester.path.glob("__pycache__/test_it*"):  # within a second of the other one
            compiled.unlink()

    def run(self, *arguments: str) -> pytest.RunResult:
        options = ("-p", "sentences", "-p", "no:cacheprovider", "-p", "no:xdist")
        return self._pytester.runpytest_inprocess(*options, *arguments)


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)


def test_they_are_made_and_compared(project: Project):
    project.run("--update-golden").assert_outcomes(passed=5)
    assert project.golden.read_text() == GOLDEN
    project.run().assert_outcomes(passed=5)


def test_another_sentence_fails_and_names_the_remedy(project: Project):
    project.golden.parent.mkdir()
    project.golden.write_text(GOLDEN.replace("first", "last"))
    result = project.run()
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["*pytest test_it.py --update-golden*"])


def test_a_missing_sentence_fails(project: Project):
    project.golden.parent.mkdir()
    project.golden.write_text(GOLDEN.replace("    first\n", ""))
    project.run("-k", "lines or two_sentences").assert_outcomes(passed=1, failed=1, deselected=3)


def test_a_sentence_that_is_no_longer_asserted_fails(project: Project):
    project.golden.parent.mkdir()
    project.golden.write_text(f"test_nothing\n    once there was a sentence\n{GOLDEN}")
    project.run().assert_outcomes(passed=4, failed=1)
    project.run("--update-golden").assert_outcomes(passed=5)
    assert project.golden.read_text() == GOLDEN


def test_a_selection_replaces_its_own_sentences_alone(project: Project):
    project.golden.parent.mkdir()
    project.golden.write_text(GOLDEN.replace("one is wrong", "1 is wrong"))
    project.run("--update-golden", "-k", "lines").assert_outcomes(passed=1, deselected=4)
    project.run("--update-golden", "test_it.py::test_two_sentences").assert_outcomes(passed=1)
    assert project.golden.read_text() == GOLDEN.replace("one is wrong", "1 is wrong")
    assert read_golden(project.golden)["test_lines"] == ["one\n    two\n    thr\\x00ee"]


def test_a_test_that_fails_keeps_its_sentences(project: Project):
    project.golden.parent.mkdir()
    project.golden.write_text(GOLDEN)
    project.write(TESTS.replace("is ValueError", "is OSError").replace("first", "begin"))
    project.run("--update-golden").assert_outcomes(passed=3, failed=2)
    assert project.golden.read_text() == GOLDEN.replace("first", "begin")


def test_the_sentences_of_a_test_that_is_gone_go_with_it(project: Project):
    project.golden.parent.mkdir()
    project.golden.write_text(f"{GOLDEN}test_zero\n    nothing is less\n")
    project.run("--update-golden").assert_outcomes(passed=5)
    assert project.golden.read_text() == GOLDEN


def test_a_test_that_is_run_again_counts_from_its_first_sentence(project: Project):
    project.golden.parent.mkdir()
    project.golden.write_text("test_again\n    it is said\n")
    project.write(
        "from sentences import assert_sentence\nimport pytest\nTIMES = []\n"
        "@pytest.mark.flaky(reruns=1)\ndef test_again():\n"
        "    assert_sentence('it is said')\n    TIMES.append(1)\n    assert len(TIMES) == 2\n"
    )
    project.run().assert_outcomes(passed=1)
    project.run("--update-golden")
    assert project.golden.read_text() == "test_again\n    it is said\n"


def test_processes_that_write_one_file_keep_what_the_others_wrote(tmp_path: Path):
    path = tmp_path / "sentences/test_it.txt"
    merge_into_golden(path, {"test_b": ["b"], "test_c": ["c"]})
    merge_into_golden(path, {"test_a": ["a", "a second"], "test_c": []})
    assert path.read_text() == "test_a\n    a\n    a second\ntest_b\n    b\n"
    merge_into_golden(path, {}, remove={"test_a", "test_b"})
    assert not path.exists()


def test_every_sentence_has_its_test(golden_sentences: GoldenSentences):
    without = {
        str(path): sorted(golden_sentences.without_test(path.parent.parent / f"{path.stem}.py"))
        for path in Path(__file__).parent.glob("*/sentences/*.txt")
    }
    assert not {path: tests for path, tests in without.items() if tests}, "make the files of these modules anew"
