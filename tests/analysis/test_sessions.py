"""A run that went on later: which blocks are of which session, and what differs between them."""

import json
import sqlite3

import pytest

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.sessions import SessionDifference, sessions
from weighbridge.model.measurement import Outcome
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
    analysis = analyse(run(costs={"bridge": 1.2}, facts=FACTS))
    assert [each.blocks for each in analysis.sessions.sessions] == [tuple(range(1, 11))]
    assert analysis.sessions.mixed == () == analysis.sessions.differences


def test_blocks_of_two_sessions(run):
    found = analyse(continued(run(costs={"bridge": 1.2}, facts=FACTS), after=12)).sessions
    assert [each.blocks for each in found.sessions] == [(1, 2, 3, 4), (5, 6, 7, 8, 9, 10)]
    assert found.differences == (
        SessionDifference(GOVERNOR, ("powersave", "performance")),
        SessionDifference("docker", ("20.10", "29.1"), ("bridge",)),
    )
    assert found.sessions[1].started_at == BEGAN + 25.0


def test_a_block_that_mixes_two_sessions_is_named(run):
    store = continued(run(costs={"bridge": 1.2}, facts=FACTS), after=13)
    analysis = analyse(store)
    assert analysis.sessions.mixed == (5,)
    assert [each.blocks for each in analysis.sessions.sessions] == [(1, 2, 3, 4, 5), (5, 6, 7, 8, 9, 10)]


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


def stepped(store, after: int, seconds: float):
    """The run as if the clock had been set after so many trials: what was noted from there on has another time."""
    store.close()
    with sqlite3.connect(store.directory / DATABASE) as file:
        first = BEGAN + 2.0 * after + 1.0
        (starts,) = file.execute("SELECT value FROM run WHERE key = 'session_starts'").fetchone()
        moved = [[at + seconds * (at >= first), last] for at, last in json.loads(starts)]
        file.execute("UPDATE run SET value = ? WHERE key = 'session_starts'", (json.dumps(moved),))
        file.execute("UPDATE fact SET at = at + ? WHERE at >= ?", (seconds, first))
        file.execute("UPDATE trial SET started_at = started_at + ? WHERE id > ?", (seconds, after))
    return RunStore(store.directory)


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0])
def test_a_step_of_the_clock_changes_nothing(run, seconds: float):
    store = continued(run(costs={"bridge": 1.2}, facts=FACTS, slowed=WORSE_AND_WORSE, blocks=14), after=12)
    store.close()
    with sqlite3.connect(store.directory / DATABASE) as file:
        starts = json.dumps([[BEGAN, 0], [BEGAN + 25.0, 12]])
        file.execute("INSERT INTO run VALUES ('session_starts', ?)", (starts,))
    before, after = found_in(RunStore(store.directory)), found_in(stepped(store, 9, seconds))
    assert {remark.code for metric in before[0] for row in metric.comparisons for remark in row.remarks} >= {
        "drift", "autocorrelation"
    }  # fmt: skip
    assert after == before


WORSE_AND_WORSE = {(block, name): 1.05**block for block in range(1, 15) for name in ("native", "bridge")}


def found_in(store):
    """The costs, trust, trials and sessions of a run, without what is a time of the clock."""
    with store:
        analysis = analyse(store)
    trials = [each._replace(started_at=0.0) for each in analysis.trials]
    return analysis.metrics, analysis.trust, trials, [each.blocks for each in analysis.sessions.sessions]


def test_a_session_notes_the_trials_before_it(tmp_path, run):
    store = run(costs={"bridge": 1.2}, blocks=2)
    store.close()
    with RunStore(store.directory, writable=True) as writable:
        writable.begin_session({"kernel": "6.1"})
        writable.begin_session({"kernel": "6.2"})
        assert list(writable.session_starts().values()) == [6, 6]
        noted = [at for scope, key, _, at in writable.facts() if (scope, key) == ("host", "kernel")]
        assert list(writable.session_starts()) == noted
