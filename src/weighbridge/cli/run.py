"""`weighbridge run`."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weighbridge.cli.complete import complete_study
from weighbridge.cli.metrics import MetricsOption, address, watched
from weighbridge.cli.output import (
    EXPLAIN,
    WRONG_COMMAND_LINE,
    BesideOthersOption,
    EnvOption,
    ExplainOption,
    ProfileOption,
    RehearsalOption,
    SetOption,
    err,
    examples,
    fail,
    out,
)

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
            help="A bundled study or a study file; not needed to continue a run with --out.",
            autocompletion=complete_study,
        ),
        directory: Path | None = typer.Option(
            None,
            "--out",
            help="A new run directory, or that of an interrupted run to continue. Default: ./runs/STUDY-DATE.",
        ),
        profile: str | None = ProfileOption,
        settings: list[str] = SetOption,
        explain: bool = ExplainOption,
        blocks: int | None = typer.Option(
            None,
            min=1,
            max=1000,
            help="Run this many blocks instead of the study's. With --out alone: the run's new total.",
        ),
        metrics: str | None = MetricsOption,
        env: list[str] = EnvOption,
        yes: bool = typer.Option(False, "--yes", "-y", help="Start without asking."),
        beside_others: bool = BesideOthersOption,
        rehearsal: bool = RehearsalOption,
        strict: bool = typer.Option(False, "--strict", help="Exit with 10 if the run is untrusted (A/A arm)."),
    ) -> None:
        """Run a study, save every trial as it ends, and write the report.

        Ctrl-C stops it cleanly and prints the command to continue.
        """
        from weighbridge.cli.approval import confirm, confirm_continued, load_named
        from weighbridge.cli.runs import holds_a_run
        from weighbridge.errors import Untrusted
        from weighbridge.runner.living import require_alone
        from weighbridge.study.loader import with_blocks
        from weighbridge.study.settings import with_settings

        if study is None and directory is None:
            message = "name a study (see 'weighbridge studies'), or a run to continue with --out DIR"
            fail(message, WRONG_COMMAND_LINE)
        if study is None and (profile is not None or settings or explain):
            option = "--profile" if profile is not None else "--set" if settings else "--explain"
            fail(f"{option} needs a study; a continued run has its own", WRONG_COMMAND_LINE)
        address(metrics)  # a wrong one is told before anything else is
        loaded, origin = load_named(study, profile, yes=yes) if study is not None else (None, None)
        if loaded is not None:
            loaded = with_settings(loaded, [*settings, *([EXPLAIN] if explain else [])])
            loaded = loaded if blocks is None else with_blocks(loaded, blocks)
        if loaded is not None and origin is not None and not (directory and holds_a_run(directory)):
            directory = directory or new_directory(loaded)
            needs_yes = confirm(origin, loaded, directory, yes=yes, rehearsal=rehearsal)
        else:
            assert directory is not None
            needs_yes = confirm_continued(directory, yes=yes)
        require_alone(beside_others=beside_others)
        total = blocks if loaded is None else None
        if not measured(loaded, directory, yes=yes and needs_yes, metrics=metrics, blocks=total, env=env) and strict:
            raise Untrusted("untrusted: the baseline measured twice disagrees with itself; do not rely on this run")


def measured(
    study: "Study | None",
    directory: Path,
    *,
    yes: bool,
    metrics: str | None = None,
    blocks: int | None = None,
    env: Sequence[str] = (),
) -> bool:
    """Measure a study, or go on with a run of so many ``blocks``, and write its report; whether it can be trusted.

    ``yes``: whether the command that goes on with it is not to ask. ``metrics``: where a monitoring server reads.
    ``env``: names of variables that the command which goes on with it takes.
    """
    from weighbridge.cli.progress import show
    from weighbridge.cli.runs import continuable
    from weighbridge.report.text.next_step import continuing
    from weighbridge.runner.run import run_study
    from weighbridge.runner.signals import interruptible

    trusted: list[bool] = []
    with (
        interruptible(),
        show() as progress,
        watched(address(metrics), progress, study, directory) as told_of_it,
        continuable(directory, *continuing("run", str(directory), yes=yes, variables=env)),
    ):

        def after(store: "RunStore") -> None:
            if (analysis := report_run(store, progress)) is not None:
                trusted.append(analysis.trust.trusted is not False)

        run_study(study, directory, told_of_it, after, blocks)
    return all(trusted)


def new_directory(study: "Study") -> Path:
    """Where a run goes that was given no directory."""
    safe = re.sub(r"[^A-Za-z0-9_.-]", "-", study.file.study)
    return Path("runs") / f"{safe}-{time.strftime('%Y%m%d-%H%M%S')}"


def report_run(store: "RunStore", progress: "Shown") -> "Analysis | None":
    """Write the page, print the verdicts and the page's path; gives what they are made of.

    Where no trial has ended there is nothing to report: None, and only what ended the run is told.
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
