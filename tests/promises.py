"""Promises: what Weighbridge says of itself, and which tests prove it.

A test, a class or a module is marked ``promise("a synchronous store keeps what it acknowledged")``. The last lines of
a session say of each promise whose tests were selected whether it was kept. A plug-in of pytest.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest

_PROPERTY = "promise"
_RANKS = {"failed": 0, "passed": 1, "skipped": 2}


@dataclass(frozen=True)
class Proof:
    """What one test said of a promise."""

    promise: str
    test: str
    outcome: str
    """passed, failed or skipped."""
    reason: str = ""
    """Why it was skipped."""


def summary(proofs: Iterable[Proof]) -> list[str]:
    """One line for each promise: what failed first.

    A promise is kept where a test of it passed and none failed; what was skipped beside it is said with its reasons.
    """
    by_promise: dict[str, list[Proof]] = {}
    for proof in proofs:
        by_promise.setdefault(proof.promise, []).append(proof)
    rows = [(_outcome(group), promise, group) for promise, group in by_promise.items()]
    rows.sort(key=lambda row: (_RANKS[row[0]], row[1]))
    return [f"{outcome:<8}{promise}{_details(outcome, group)}" for outcome, promise, group in rows]


def _outcome(group: list[Proof]) -> str:
    return min((proof.outcome for proof in group), key=_RANKS.__getitem__)


def _details(outcome: str, group: list[Proof]) -> str:
    failed = [proof.test for proof in group if proof.outcome == "failed"]
    reasons = sorted({proof.reason for proof in group if proof.outcome == "skipped"})
    passed = sum(proof.outcome == "passed" for proof in group)
    if outcome == "failed":
        return f": {', '.join(failed)}"
    if outcome == "skipped":
        return f": {'; '.join(reasons)}"
    tests = f" ({passed} test{'' if passed == 1 else 's'}"
    return tests + (f"; skipped: {'; '.join(reasons)})" if reasons else ")")


def proofs_of(reports: Iterable[pytest.TestReport]) -> list[Proof]:
    """What the last run of each test said: one that is run again counts once, with its set-up and its end."""
    outcomes: dict[tuple[str, str], Proof] = {}
    for report in reports:
        for key, value in report.user_properties:
            if key != _PROPERTY:
                continue
            promise, test = str(value), report.nodeid
            if report.when == "setup":  # also of a test that is run again
                outcomes.pop((promise, test), None)
            known = outcomes.get((promise, test))
            if report.outcome in _RANKS and (report.when == "call" or report.outcome != "passed"):
                proof = Proof(promise, test, report.outcome, _reason(report))
                if known is None or known.outcome != "failed":
                    outcomes[promise, test] = proof
    return list(outcomes.values())


def _reason(report: pytest.TestReport) -> str:
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return ""


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", "promise(text): what this test proves, a line at the end of the session")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let the promises of a test travel with its reports."""
    for marker in item.iter_markers("promise"):
        item.user_properties.append((_PROPERTY, str(marker.args[0])))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Write a line for each promise, below all that pytest itself has to say."""
    yield
    reports = [
        report
        for outcomes in terminalreporter.stats.values()
        for report in outcomes
        if isinstance(report, pytest.TestReport)
    ]
    reports.sort(key=lambda report: report.start)
    if lines := summary(proofs_of(reports)):
        terminalreporter.section("promises")
        for line in lines:
            terminalreporter.write_line(line)
