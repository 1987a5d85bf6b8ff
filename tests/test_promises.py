"""The lines that end `make test-long`."""

import pytest

from promises import Proof, summary

TESTS = """
import pytest

@pytest.mark.promise("what is synced is kept")
@pytest.mark.parametrize("disk", ["one", "two"])
def test_synced(disk):
    assert disk == "one"

@pytest.mark.promise("a limit holds")
@pytest.mark.promise("a limit is told")
def test_limit():
    pass

@pytest.mark.promise("a limit holds")
def test_limit_elsewhere():
    pytest.skip("needs runsc")

@pytest.fixture
def broken():
    yield
    assert False

@pytest.mark.promise("nothing is left")
def test_left(broken):
    pass

@pytest.mark.skip(reason="needs an NFS server")
@pytest.mark.promise("NFS is synchronous")
def test_nfs():
    pass

def test_that_promises_nothing():
    pass
"""
LINES = [
    "failed  nothing is left: test_promised.py::test_left",
    "failed  what is synced is kept: test_promised.py::test_synced[two]",
    "passed  a limit holds (1 test; skipped: needs runsc)",
    "passed  a limit is told (1 test)",
    "skipped NFS is synchronous: needs an NFS server",
]


def test_a_session_ends_with_a_line_for_each_promise(pytester: pytest.Pytester):
    pytester.makepyfile(test_promised=TESTS)
    outcome = pytester.runpytest_inprocess("-p", "promises", "-p", "no:cacheprovider", "-p", "no:xdist")
    lines = outcome.outlines
    assert lines[-len(LINES) - 1 : -1] == LINES
    assert " promises " in lines[-len(LINES) - 2]


def test_a_session_without_promises_says_nothing_of_them(pytester: pytest.Pytester):
    pytester.makepyfile("def test_it(): pass")
    outcome = pytester.runpytest_inprocess("-p", "promises", "-p", "no:cacheprovider", "-p", "no:xdist")
    outcome.stdout.no_fnmatch_line("* promises *")


def test_a_promise_is_kept_where_a_test_passed_and_none_failed():
    passed, failed = Proof("p", "a", "passed"), Proof("p", "b", "failed")
    skipped = Proof("p", "c", "skipped", "needs root")
    assert summary([passed, passed]) == ["passed  p (2 tests)"]
    assert summary([passed, skipped, failed]) == ["failed  p: b"]
    assert summary([skipped, skipped]) == ["skipped p: needs root"]
    assert summary([]) == []
