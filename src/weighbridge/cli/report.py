"""`weighbridge report`."""

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weighbridge.cli.gate import checked
from weighbridge.cli.output import JsonFlag, err, examples, fail, out, print_json
from weighbridge.errors import LimitExceeded, LimitUndecided

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weighbridge.analysis.gate import Finding
    from weighbridge.analysis.results import Analysis

PREFIX, TABLE = "--fail-if ", "--table "


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        epilog=examples(
            "weighbridge report runs/first-look-20261121-090000",
            "weighbridge report RUN --all",
            "weighbridge report RUN --table '*.tcp.throughput'",
            "weighbridge report RUN --json",
            "weighbridge report RUN --fail-if 'bridge.tcp.throughput > 35%'",
        )
    )
    def report(
        run: Path = typer.Argument(help="A run directory."),
        as_json: bool = JsonFlag,
        everything: bool = typer.Option(
            False, "--all", help="Show everything: tables, steps, curves, network paths, remarks."
        ),
        tables: list[str] = typer.Option(
            [],
            "--table",
            metavar="COMPARISON",
            help="Also show the table of ENVIRONMENT.WORKLOAD.METRIC, with * for any part. Repeatable.",
        ),
        page: Path | None = typer.Option(None, "--html", help="Write the page here instead of into the run."),
        fail_if: list[str] = typer.Option(
            [],
            "--fail-if",
            metavar="LIMIT",
            help="Exit with a code of its own if a cost exceeds this limit. Repeatable.",
        ),
    ) -> None:
        """Show a run's verdicts and rewrite its page.

        The page is report.html in the run, plus replication.html for a replication.
        """
        from weighbridge.analysis.analyse import analyse
        from weighbridge.analysis.gate import judge
        from weighbridge.analysis.requirement import LIMIT, parse_requirement, reports_named
        from weighbridge.cli.replicate import PAGE, write_beside
        from weighbridge.cli.runs import run_directory
        from weighbridge.errors import WeighbridgeError
        from weighbridge.model.text import printable
        from weighbridge.report.export.json import report_json
        from weighbridge.report.text.gate import limit_sentence
        from weighbridge.store.run import RunStore

        gc.set_threshold(100_000)  # what a run has is needed to the end: looking for waste took a tenth of the time
        limits = checked(lambda: [parse_requirement(each, LIMIT) for each in fail_if], PREFIX)  # before a run is read
        run = run_directory(run)
        with RunStore(run) as store:
            analysis = analyse(store)
            findings = checked(lambda: judge(limits, analysis), PREFIX)  # before anything is written
            shown = checked(lambda: [each for name in tables for each in reports_named(name, analysis)], TABLE)
            if as_json:
                document = report_json(store, analysis)
                if limits:
                    from weighbridge.report.export.gate import limits_json

                    document["limits"] = limits_json(analysis, findings)
                print_json(document)
                _answer(findings, analysis)
                return
            from weighbridge.report.html import write_html
            from weighbridge.report.terminal import print_report

            at = page or run / "report.html"
            pages, refused = [f"report: {at}"], ""
            try:
                write_html(store, at, analysis)
                if page is None and (run / PAGE).exists():
                    pages.append(f"published and measured: {write_beside(store, analysis)[1]}")
            except PermissionError as error:
                refused = f"{error.filename}: {error.strerror}: no page written; use --html FILE"
            print_report(analysis, out(), everything=everything, tables=shown, run=str(run))
        if refused:
            fail(refused, WeighbridgeError.exit_code)
        for line in pages:
            err().print(line, markup=False)
        for finding in findings:
            if finding.outcome == "kept":
                out().print(printable(limit_sentence(finding, analysis)), markup=False, soft_wrap=True)
        _answer(findings, analysis)


def _answer(findings: "Sequence[Finding]", analysis: "Analysis") -> None:
    """Raise what the limits come to, unless every one of them is kept: with a line for each that is not."""
    from weighbridge.model.text import printable
    from weighbridge.report.text.gate import limit_sentence

    lines = [printable(limit_sentence(each, analysis)) for each in findings if each.outcome != "kept"]
    if any(each.outcome == "exceeded" for each in findings):
        raise LimitExceeded("\n".join(lines))
    if lines:
        raise LimitUndecided("\n".join(lines))
