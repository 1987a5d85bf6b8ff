"""`weighbridge run`."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weighbridge.cli.complete import complete_study
from weighbridge.cli.help import DURATION, LIMITS, OUTPUT
from weighbridge.cli.metrics import MetricsOption, address, watched
from weighbridge.cli.options import (
    EXPLAIN,
    AllowConcurrentOption,
    EnvOption,
    ExplainOption,
    ProfileOption,
    QuickTestOption,
    SetOption,
    YesOption,
)
from weighbridge.cli.output import WRONG_COMMAND_LINE, err, examples, fail, out

if TYPE_CHECKING:
    from weighbridge.analysis.results import Analysis
    from weighbridge.cli.progress import Shown
    from weighbridge.model.study import Study
    from weighbridge.store.run import RunStore


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        epilog=examples(
            "weighbridge run first-look",
            "weighbridge run my.yaml --out results/today --yes",
            "weighbridge run shop.yaml --env API_TOKEN",
        )
    )
    def run(
        study: str | None = typer.Argument(
            None,
            help="A bundled study or a study file. Not needed to continue a run with --out.",
            autocompletion=complete_study,
        ),
        directory: Path | None = typer.Option(
            None,
            "--out",
            metavar="DIR",
            help="A new run directory, or the directory of a run to continue. Default: ./runs/STUDY-DATE.",
            rich_help_panel=OUTPUT,
        ),
        profile: str | None = ProfileOption,
        settings: list[str] = SetOption,
        explain: bool = ExplainOption,
        rounds: int | None = typer.Option(
            None,
            "--rounds",
            metavar="N",
            min=1,
            max=1000,
            help="Run this many rounds instead of the study's. With --out alone: the new total of the run.",
            rich_help_panel=DURATION,
        ),
        metrics: str | None = MetricsOption,
        env: list[str] = EnvOption,
        yes: bool = YesOption,
        allow_concurrent: bool = AllowConcurrentOption,
        quick_test: bool = QuickTestOption,
        strict: bool = typer.Option(
            False, "--strict", help="Exit with 10 if the control failed.", rich_help_panel=LIMITS
        ),
    ) -> None:
        """Run a study, save every trial when it ends, and write the report.

        Ctrl-C stops the run cleanly and prints the command to continue.
        """
        from weighbridge.cli.approval import confirm, confirm_continued, load_named
        from weighbridge.cli.runs import holds_a_run
        from weighbridge.errors import Untrusted
        from weighbridge.runner.living import require_alone
        from weighbridge.study.loader import with_blocks
        from weighbridge.study.settings import with_settings

        if study is None and directory is None:
            message = "name a study ('weighbridge studies' lists them), or a run to continue with --out DIR"
            fail(message, WRONG_COMMAND_LINE)
        if study is None and (profile is not None or settings or explain):
            option = "--profile" if profile is not None else "--set" if settings else "--explain"
            fail(f"{option} needs a study, because a continued run already has one", WRONG_COMMAND_LINE)
        address(metrics)  # report a wrong address first
        loaded, origin = load_named(study, profile, yes=yes) if study is not None else (None, None)
        if loaded is not None:
            loaded = with_settings(loaded, [*settings, *([EXPLAIN] if explain else [])])
            loaded = loaded if rounds is None else with_blocks(loaded, rounds)
        if loaded is not None and origin is not None and not (directory and holds_a_run(directory)):
            directory = directory or new_directory(loaded)
            needs_yes = confirm(origin, loaded, directory, yes=yes, quick_test=quick_test)
        else:
            assert directory is not None
            needs_yes = confirm_continued(directory, yes=yes)
        require_alone(beside_others=allow_concurrent)
        total = rounds if loaded is None else None
        if not measured(loaded, directory, yes=yes and needs_yes, metrics=metrics, rounds=total, env=env) and strict:
            raise Untrusted(
                "the control failed: two copies of the baseline differ. Measure again on a quieter machine"
            )


def measured(
    study: "Study | None",
    directory: Path,
    *,
    yes: bool,
    metrics: str | None = None,
    rounds: int | None = None,
    env: Sequence[str] = (),
) -> bool:
    """Measure a study, or continue a run to ``rounds``, and write its report. Return whether the control passed.

    ``metrics`` is the address for a monitoring server. ``yes`` and ``env`` (names of variables) go into the command
    that continues the run.
    """
    from weighbridge.cli.progress import show
    from weighbridge.cli.runs import continuable
    from weighbridge.report.text.environments import names_of_study, use_display_names
    from weighbridge.report.text.formatting import plural
    from weighbridge.report.text.next_step import continuing
    from weighbridge.runner.run import run_study, study_of
    from weighbridge.runner.signals import interruptible
    from weighbridge.store.run import RunStore

    trusted: list[bool] = []
    shown, trials = study, 0
    if shown is None:
        with RunStore(directory) as store:
            shown, trials = study_of(store), len(store.finished())
    with (
        use_display_names(names_of_study(shown)),
        interruptible(),
        show() as progress,
        watched(address(metrics), progress, study, directory) as listeners,
        continuable(directory, *continuing("run", str(directory), yes=yes, variables=env)),
    ):

        def after(store: "RunStore") -> None:
            if rounds is not None and len(store.finished()) == trials:
                progress.close()
                measured_rounds = max((trial.block for trial in store.finished()), default=0)
                if measured_rounds == rounds:
                    err().print(f"The run already has {plural(measured_rounds, 'round')}; --rounds is the total.")
            if (analysis := report_run(store, progress)) is not None:
                trusted.append(analysis.trust.trusted is not False)

        run_study(study, directory, listeners, after, rounds)
    return all(trusted)


def new_directory(study: "Study") -> Path:
    """Return the default directory of a run."""
    safe = re.sub(r"[^A-Za-z0-9_.-]", "-", study.file.study)
    return Path("runs") / f"{safe}-{time.strftime('%Y%m%d-%H%M%S')}"


def report_run(store: "RunStore", progress: "Shown") -> "Analysis | None":
    """Write the page, print the verdicts and the path of the page, and return their analysis.

    If no trial has ended there is nothing to report: return None.
    """
    progress.close()
    if not store.finished():
        return None

    from weighbridge.analysis.analyse import analyse
    from weighbridge.model.secret import variables_of
    from weighbridge.report.html import write_html
    from weighbridge.report.terminal import print_report
    from weighbridge.runner.sites import CLEANUP
    from weighbridge.store.extensions import unfinished

    for scope, place, why, _ in store.facts():
        if scope == CLEANUP:
            err().print(f"note: {place}: cleanup failed: {why}; all measurements are kept", markup=False)
    page = store.directory / "report.html"
    analysis = analyse(store)
    write_html(store, page, analysis)
    ended = unfinished(store.info())
    print_report(
        analysis, out(), run=str(store.directory), pages=[f"report: {page}"], yes=True, ended=ended,
        variables=variables_of(store.secrets() or ()),
    )  # fmt: skip
    return analysis
