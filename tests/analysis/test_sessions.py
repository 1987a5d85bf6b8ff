"""A run that went on later: which blocks are of which session, and what differs between them."""

import sqlite3

from report.test_html import page_of
from report.test_terminal import shown
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.sessions import SessionDifference, sessions
from weighbridge.model.measurement import Outcome
from weighbridge.report.export.json import report_json
from weighbridge.report.text.conditions import session_lines
from weighbridge.store.run import DATABASE, RunStore

BEGAN = 1_700_000_000.0
"""When the trials of a made-up run begin: one each two seconds, three in a block."""
GOVERNOR = "frequency governor"


def continued(store, after: int):
    """The run as if it had gone on with another governor and engine after so many trials."""
    store.close()
    again = BEGAN + 2.0 * after + 1.0
    with sqlite3.connect(store.directory / DATABASE) as file:
        file.execute("UPDATE fact SET at = ?", (BEGAN,))
        rows = [("host", GOVERNOR, "performance"), ("host", "kernel", "6.1"), ("bridge/server", "docker", "29.1")]
        file.executemany("INSERT INTO fact VALUES (?, ?, ?, ?)", [(*row, again) for row in rows])
    return RunStore(store.directory)


FACTS = {"host": {GOVERNOR: "powersave", "kernel": "6.1"}, "bridge/server": {"docker": "20.10"},
         "bridge/client": {"docker": "20.10", "address": "10.0.0.2"}}  # fmt: skip


def test_one_session_is_not_spoken_of(run):
    store = run(costs={"bridge": 1.2}, facts=FACTS)
    analysis = analyse(store)
    assert [each.blocks for each in analysis.sessions.sessions] == [tuple(range(1, 11))]
    assert session_lines(analysis) == [] and "session" not in shown(store).splitlines()[3]
    document = report_json(store)
    assert len(document["sessions"]) == 1 and document["mixed_blocks"] == []


def test_blocks_of_two_sessions(run):
    store = continued(run(costs={"bridge": 1.2}, facts=FACTS), after=12)
    lines = session_lines(analyse(store))
    assert lines == [
        "measured in 2 sessions, between which this machine may have changed: blocks 1 to 4 in session 1 "
        "(2023-11-14 22:13 UTC), blocks 5 to 10 in session 2 (2023-11-14 22:13 UTC)",
        "frequency governor is not the same in all sessions: powersave, then performance",
        "docker in bridge is not the same in all sessions: 20.10, then 29.1",
    ]
    page, terminal = page_of(store).text, " ".join(shown(store).split())
    assert all(line in page and line in terminal for line in lines)
    document = report_json(store)
    assert [each["blocks"] for each in document["sessions"]] == [[1, 2, 3, 4], [5, 6, 7, 8, 9, 10]]
    assert document["sessions"][1] == {
        "started": "2023-11-14T22:13:45Z", "blocks": [5, 6, 7, 8, 9, 10],
        "facts": {GOVERNOR: "performance", "bridge: docker": "29.1"},
    }  # fmt: skip


def test_a_block_that_mixes_two_sessions_is_named(run):
    store = continued(run(costs={"bridge": 1.2}, facts=FACTS), after=13)
    analysis = analyse(store)
    assert analysis.sessions.mixed == (5,) == tuple(report_json(store)["mixed_blocks"])
    assert [each.blocks for each in analysis.sessions.sessions] == [(1, 2, 3, 4, 5), (5, 6, 7, 8, 9, 10)]
    assert session_lines(analysis)[1].startswith(
        "block 5 was begun in one session and finished in another: its costs"
    )


def test_a_session_without_a_trial_is_none(run):
    store = continued(run(costs={"bridge": 1.2}, facts=FACTS), after=1000)
    assert len(analyse(store).sessions.sessions) == 1 and analyse(store).sessions.differences == ()


def test_what_one_session_does_not_know_is_no_difference(run):
    trials = analyse(run(costs={"bridge": 1.2})).trials
    at = trials[5].started_at - 1
    facts = [("host", "kernel", "6.1", BEGAN), ("host", "kernel", "6.1", at), ("host", "SMT", "on", at)]
    assert sessions(facts, trials, {"docker"}).differences == ()
    other = [*facts, ("host", "SMT", "off", BEGAN)]
    assert sessions(other, trials, {"docker"}).differences == (SessionDifference("SMT", ("off", "on")),)
    assert sessions([], trials, ()).sessions == ()


def test_a_block_whose_earlier_session_left_no_value_mixes_nothing(run):
    whole = continued(run(costs={"bridge": 1.2}, facts=FACTS), after=13)
    (first,) = [trial for trial in analyse(whole).trials if trial.order == 13]
    failing = {(5, first.environment): Outcome.DEADLINE}
    store = continued(run(costs={"bridge": 1.2}, facts=FACTS, failing=failing), after=13)
    assert analyse(store).sessions.sessions[0].blocks == (1, 2, 3, 4, 5)
    assert analyse(store).sessions.mixed == ()
