"""Runs one trial: start the server, wait until it listens, warm up, measure, read, record."""

import time
from typing import Any

from weighbridge.errors import EnvironmentLost
from weighbridge.model.measurement import Outcome, TrialFailure
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.model.workload import Workload
from weighbridge.runner.evaluation import Evaluation, evaluate, flag_use
from weighbridge.runner.outputs import why_broke
from weighbridge.runner.programs import Programs
from weighbridge.runner.stage import Stage
from weighbridge.runner.window import Window


def run_trial(trial: Trial, workload: Workload, options: Any, stage: Stage) -> TrialRecord:
    """Run one trial to its end, whatever its outcome. Only an interruption is raised; the sites stay open."""
    started_at = time.time()
    window, programs, evaluation = Window(stage), Programs(workload, options, stage), Evaluation()
    outcome, message = Outcome.OK, ""
    try:
        window.begin()
        programs.prepare()
        stage.data.throttle()
        window.begin_series()
        programs.start_server()
        programs.warm_up()
        programs.measure(window)
        window.end_series()
        programs.check()
        programs.stop_server()
        evaluation = evaluate(programs.read(), programs, window)
    except TrialFailure as failure:
        outcome, message = failure.outcome, f"{failure}{programs.why_short_of_memory()}"
        if programs.load and (why := why_broke(failure, programs.completed.get("server"), killed=window.killed())):
            outcome, message = Outcome.BROKE, why.format(message)
    except EnvironmentLost as lost:
        outcome, message = Outcome.ENVIRONMENT_LOST, str(lost)
    finally:
        server_lost = programs.stop_server(quietly=True)
    if server_lost is not None and outcome is not Outcome.ENVIRONMENT_LOST:  # which is why the client failed
        outcome, message, evaluation = Outcome.ENVIRONMENT_LOST, str(server_lost), Evaluation()
    if outcome is not Outcome.ENVIRONMENT_LOST:
        try:
            stage.require_supporting_services()  # a server without its database can answer faster
        except EnvironmentLost as lost:
            outcome, message, evaluation = Outcome.ENVIRONMENT_LOST, str(lost), Evaluation()
    window.end(lost=outcome is Outcome.ENVIRONMENT_LOST)
    return TrialRecord(
        trial=trial,
        outcome=outcome,
        started_at=started_at,
        duration_s=window.lasted_s,
        measured_s=window.measured_s,
        measured_from_s=window.ran[0] if window.ran else None,
        message=message,
        measurements=evaluation.measurements,
        roles=tuple(programs.records()),
        samples=(*window.samples(), *programs.samples()),
        flags=(*flag_use(programs, window), *window.flags, *evaluation.flags),
        series=tuple(window.series),
        histograms=evaluation.histograms,
    )
