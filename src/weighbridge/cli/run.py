"""`weighbridge run`."""

import re
import time
from collections.abc import Sequence
from pathlib import Path

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.results import Analysis
from weighbridge.cli import approval
from weighbridge.cli.commands.measurements import RunOptions
from weighbridge.cli.declared import later
from weighbridge.cli.feature import Watch, watched, watches_of
from weighbridge.cli.messages import ANSWER, WRONG_COMMAND_LINE, fail
from weighbridge.cli.options import EXPLAIN
from weighbridge.cli.output import err, out, print_json
from weighbridge.cli.progress import RunDisplay, show
from weighbridge.cli.runs import continuable, holds_a_run
from weighbridge.cli.timing import print_timing, timing_since_start
from weighbridge.errors import Untrusted
from weighbridge.model.secret import variables_of
from weighbridge.model.study import Study
from weighbridge.model.timing import Timing
from weighbridge.report import html
from weighbridge.report.terminal import print_report
from weighbridge.report.text.environments import names_of_study, use_display_names
from weighbridge.report.text.formatting import plural
from weighbridge.report.text.next_step import continuing
from weighbridge.runner import living
from weighbridge.runner import run as running
from weighbridge.runner.signals import interruptible
from weighbridge.runner.sites import CLEANUP
from weighbridge.store.extensions import unfinished
from weighbridge.store.run import RunStore
from weighbridge.study import loader
from weighbridge.study.settings import with_settings

report_json = later("weighbridge.report.export.json:report_json")


def run(options: RunOptions) -> None:
    """Run a study, or continue a run, and print its report."""
    timing = timing_since_start()
    directory, yes, loaded = options.directory, options.yes, None
    if options.study is None and directory is None:
        message = "name a study ('weighbridge studies' lists them), or a run to continue with --out DIR"
        fail(message, WRONG_COMMAND_LINE)
    if options.study is None and (options.profile is not None or options.settings or options.explain):
        option = "--profile" if options.profile is not None else "--set" if options.settings else "--explain"
        fail(f"{option} needs a study, because a continued run already has one", WRONG_COMMAND_LINE)
    watches = watches_of(options.watching)  # reports wrong values first
    if options.study is not None:
        loaded, origin = approval.load_named(options.study, options.profile, yes=yes)
        loaded = with_settings(loaded, [*options.settings, *([EXPLAIN] if options.explain else [])])
        loaded = loaded if options.rounds is None else loader.with_blocks(loaded, options.rounds)
    if loaded is not None and not (directory and holds_a_run(directory)):
        directory = directory or new_directory(loaded)
        needs_yes = approval.confirm(origin, loaded, directory, yes=yes, quick_test=options.quick_test)
    else:
        assert directory is not None
        needs_yes = approval.confirm_continued(directory, yes=yes)
    living.require_alone(allow_concurrent=options.allow_concurrent)
    total = options.rounds if loaded is None else None
    yes = yes and needs_yes
    trusted = measured(
        loaded, directory, yes=yes, watches=watches, rounds=total, env=options.env, timing=timing,
        concurrent=options.allow_concurrent,
    )  # fmt: skip
    if options.timing:
        print_timing(timing)
    if options.strict and not trusted:
        raise Untrusted("the control failed: two copies of the baseline differ. Measure again on a quieter machine")


def measured(
    study: Study | None,
    directory: Path,
    *,
    yes: bool,
    watches: Sequence[Watch] = (),
    rounds: int | None = None,
    env: Sequence[str] = (),
    timing: Timing | None = None,
    concurrent: bool = False,
) -> bool:
    """Measure a study, or continue a run to ``rounds``, and write its report. Return whether the control passed.

    ``watches`` are what follows the run. ``yes``, ``env`` (names of variables) and ``concurrent`` go into the command
    that continues the run. ``timing`` notes how long each phase takes.
    """
    trusted: list[bool] = []
    shown, trials = study, 0
    if shown is None:
        with RunStore(directory) as store:
            shown, trials = running.study_of(store), len(store.finished())
    with (
        use_display_names(names_of_study(shown)),
        interruptible(),
        show(directory) as progress,
        watched(watches, progress, study, directory) as listeners,
        continuable(directory, *continuing("run", str(directory), yes=yes, variables=env, concurrent=concurrent)),
    ):

        def after(store: RunStore) -> None:
            if rounds is not None and len(store.finished()) == trials:
                progress.close()
                measured_rounds = max((trial.block for trial in store.finished()), default=0)
                if measured_rounds == rounds:
                    err().print(f"The run already has {plural(measured_rounds, 'round')}; --rounds is the total.")
            if (analysis := report_run(store, progress, concurrent=concurrent)) is not None:
                trusted.append(analysis.trust.trusted is not False)

        running.run_study(study, directory, listeners, after, rounds, timing=timing)
    return all(trusted)


def new_directory(study: Study) -> Path:
    """Return the default directory of a run."""
    safe = re.sub(r"[^A-Za-z0-9_.-]", "-", study.file.study)
    return Path("runs") / f"{safe}-{time.strftime('%Y%m%d-%H%M%S')}"


def report_run(
    store: RunStore, progress: RunDisplay, *, concurrent: bool, screen: bool = True, lasting: bool = True
) -> Analysis | None:
    """Write the page, print the verdicts and the path of the page, or the document, and return their analysis.

    If no trial has ended there is nothing to report: return None. ``concurrent`` is whether the run can continue next
    to other runs. Without ``screen``, print no verdicts. ``lasting`` is whether the run can be continued.
    """
    progress.close()
    if not store.finished():
        return None

    for scope, place, why, _ in store.facts():
        if scope == CLEANUP:
            err().print(f"note: {place}: cleanup failed: {why}; all measurements are kept", markup=False)
    page = store.directory / "report.html"
    analysis = analyse(store)
    html.write_html(store, page, analysis)
    if ANSWER.json:
        print_json(report_json(store, analysis, yes=True, lasting=lasting))
        return analysis
    ended = unfinished(store.info())
    if screen:
        print_report(
            analysis, out(), run=str(store.directory), pages=[f"report: {page}"], yes=True, ended=ended,
            variables=variables_of(store.secrets() or ()), concurrent=concurrent, lasting=lasting,
        )  # fmt: skip
    return analysis
