"""A run whose study names a Prometheus server: asked before and after each trial, never while one runs."""

import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge.errors import StudyError, Unavailable
from weighbridge.meters.meter import MeterFailed
from weighbridge.meters.prometheus import Watched
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Outcome
from weighbridge.model.plugin import Readiness
from weighbridge.model.trial import PROMETHEUS
from weighbridge.runner import planned
from weighbridge.runner import run as running
from weighbridge.store.run import RunStore

from .test_session import failing
from .world import Told, World, study
from .world import go as run_session

SERVER = "prometheus: {url: 'http://127.0.0.1:9090', queries: {load: {query: node_load1, unit: '1'}}}"


def body(parameters) -> bytes:
    """The load; and of every question about the age of a sample: it is new."""
    start = float(parameters["start"])
    value = start if "timestamp" in parameters["query"] else 0.5
    series = b'{"metric":{},"values":[[%f,"%f"]]}' % (start, value)
    return b'{"status":"success","data":{"resultType":"matrix","result":[%b]}}' % series


def go(world: World, path: Path, ask) -> Told:
    """Run a session whose server answers as ``ask`` does."""
    made = study("cpu: {kind: fake-solo}", blocks=1, more=SERVER)
    assert made.file.prometheus is not None

    @contextmanager
    def open_(_: str):
        assert all(program.stopped for program in world.programs), "nothing runs while it is asked"
        yield ask

    return run_session(path, made, completed=Watched(made.file.prometheus, open_).completed)


def saved(path: Path):
    """The trials with the flags that are about Prometheus (the machine may have its own), and the series."""
    with RunStore(path / "run") as store:
        trials = [
            row._replace(flags=tuple(flag for flag in row.flags if flag.code == FlagCode.PROMETHEUS))
            for row in store.trials()
        ]
        return trials, [series for _, series in store.series()]


def test_its_series_are_saved_with_each_trial(world: World, tmp_path: Path):
    told = go(world, tmp_path, lambda _, parameters: (200, body(parameters)))
    trials, series = saved(tmp_path)
    assert {row.outcome for row in trials} == {"ok"} and [row.flags for row in trials] == [()] * 4
    assert [(each.place, each.name, each.values) for each in series] == [(PROMETHEUS, "load 1", (0.5,))] * 4
    assert all(record.series for record in told.records), "who watches the run is told of them too"


def test_a_server_that_goes_away_is_a_flag_and_no_failure(world: World, tmp_path: Path):
    answered: list[str] = []

    def ask(path: str, parameters) -> tuple[int, bytes]:
        answered.append(path)
        if len(answered) > 6:  # those of two trials
            raise MeterFailed("the server does not answer (Connection refused)")
        return 200, body(parameters)

    go(world, tmp_path, ask)
    trials, series = saved(tmp_path)
    assert {row.outcome for row in trials} == {"ok"} and len(series) == 2
    flag = Flag(FlagCode.PROMETHEUS, text="no samples of load: the server does not answer (Connection refused)")
    assert [row.flags for row in trials] == [(), (), (flag,), (flag,)]


def test_a_trial_that_failed_has_its_series_too(world: World, tmp_path: Path):
    failing(world, (1, "one"))
    go(world, tmp_path, lambda _, parameters: (200, body(parameters)))
    trials, series = saved(tmp_path)
    assert [row.outcome for row in trials].count(Outcome.PROGRAM_FAILED) == 1
    assert len(series) == len(trials)


WRONG = (400, b'{"status":"error","errorType":"bad_data","error":"1:3: parse error"}')


@pytest.mark.parametrize(
    ("answer", "error"),
    [(MeterFailed("the server does not answer (Connection refused)"), Unavailable),
     ((200, b""), Unavailable), (WRONG, StudyError)],
)  # fmt: skip
def test_a_run_is_refused_before_anything_is_opened(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer, error
):
    def ask(_path: str, parameters) -> tuple[int, bytes]:
        if isinstance(answer, Exception):
            raise answer
        if answer == WRONG and parameters["query"] == "time()":
            return 200, b'{"status":"success","data":{"resultType":"scalar","result":[0,"%f"]}}' % time.time()
        return answer

    monkeypatch.setattr(planned, "Watched", lambda options: Watched(options, lambda _: nullcontext(ask)))
    monkeypatch.setattr(planned, "readiness_of", lambda made: {arm.name: Readiness(True) for arm in made.arms})
    made = study("cpu: {kind: fake-solo}", blocks=1, more=SERVER)
    with raises_sentence(error):
        running.run_study(made, tmp_path / "run", Told(), lambda store: pytest.fail("there is nothing to report"))
    assert world.sites == []
    assert planned.require_prometheus(study("cpu: {kind: fake-solo}", blocks=1)) == []
