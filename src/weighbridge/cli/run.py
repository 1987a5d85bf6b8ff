"""`weighbridge run`."""

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weighbridge.cli.output import err, out

if TYPE_CHECKING:
    from weighbridge.model.study import Study
    from weighbridge.store.run import RunStore


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog="Examples: weighbridge run first-look -- weighbridge run my.yaml --out results/today --yes")
    def run(
        study: str | None = typer.Argument(
            None, help="A bundled study's name or the path of a study file; not needed to continue a run with --out."
        ),
        directory: Path | None = typer.Option(
            None, "--out", help="The run directory: made, or continued where it holds an interrupted run."
        ),
        yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask before starting."),
        strict: bool = typer.Option(
            False, "--strict", help="Exit with 10 where the A/A arm makes the run untrusted."
        ),
    ) -> None:
        """Run a study for real, save every trial as it ends, and write the report.

        Ctrl-C ends it in good order; the same command with the same --out continues it.
        """
        from weighbridge.cli.progress import show
        from weighbridge.errors import Untrusted
        from weighbridge.runner.run import run_study
        from weighbridge.runner.signals import interruptible
        from weighbridge.study.loader import load

        loaded = load(study) if study is not None else None
        if directory is None:
            directory = _new_directory(loaded)
        if loaded is not None:
            _confirm(loaded, directory, yes=yes)
        trusted: list[bool] = []
        with interruptible(), show() as progress:
            run_study(loaded, directory, progress, lambda store: trusted.append(_report(store)))
        if strict and not all(trusted):
            raise Untrusted("the A/A arm shows a cost where there is none: do not rely on this session's numbers")


def _new_directory(study: "Study | None") -> Path:
    from weighbridge.errors import RunDirectoryError

    if study is None:
        raise RunDirectoryError("name a study to run (weighbridge studies), or --out DIR of a run to continue")
    safe = re.sub(r"[^A-Za-z0-9_.-]", "-", study.file.study)
    return Path("runs") / f"{safe}-{time.strftime('%Y%m%d-%H%M%S')}"


def _confirm(study: "Study", directory: Path, *, yes: bool) -> None:
    from weighbridge.runner.estimate import clock, seconds
    from weighbridge.runner.run import require_ready

    require_ready(study)
    least, most = seconds(study)
    arms, cells = len(study.arms), len(study.cells)
    err().print(
        f"{study.file.study}: {arms} environments x {cells} workloads, {clock(least)} to {clock(most)}; "
        f"results go to {directory}",
        markup=False,
    )
    if not yes and sys.stdin.isatty() and sys.stderr.isatty():
        typer.confirm("Start?", default=True, abort=True, err=True)


def _report(store: "RunStore") -> bool:
    """Write the page, print the verdicts and the page's path; False where the session is untrusted."""
    from weighbridge.report.analysis import analyse
    from weighbridge.report.html import write_html
    from weighbridge.report.terminal import print_report

    page = store.directory / "report.html"
    analysis = analyse(store)
    write_html(store, page, analysis)
    print_report(analysis, out())
    out().print(f"report: {page}", markup=False, soft_wrap=True)
    return analysis.trust.trusted is not False
