"""`weighbridge report`."""

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weighbridge.cli.gate import checked
from weighbridge.cli.help import LIMITS, OUTPUT
from weighbridge.cli.options import JsonFlag
from weighbridge.cli.output import WRONG_COMMAND_LINE, examples, fail, out, print_json
from weighbridge.errors import LimitExceeded, LimitUndecided, TrialsFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weighbridge.analysis.gate import Finding
    from weighbridge.analysis.results import Analysis, MetricReport
    from weighbridge.store.run import RunStore

PREFIX, TABLE = "--fail-if ", "--table "
WHAT_TO_SHOW = "What to show"


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        epilog=examples(
            "weighbridge report runs/first-look-20261121-090000",
            "weighbridge report RUN --all",
            "weighbridge report RUN --table '*.tcp.throughput'",
            "weighbridge report RUN --json",
            'weighbridge report RUN --markdown >> "$GITHUB_STEP_SUMMARY"',
            "weighbridge report RUN --svg > costs.svg",
            "weighbridge report RUN --fail-if 'bridge.tcp.throughput > 35%'",
        )
    )
    def report(
        run: Path = typer.Argument(metavar="RUN", help="A run directory."),
        as_json: bool = JsonFlag,
        as_markdown: bool = typer.Option(
            False,
            "--markdown",
            help="Print Markdown to standard output, and nothing else.",
            rich_help_panel=OUTPUT,
        ),
        as_latex: bool = typer.Option(
            False,
            "--latex",
            help="Print the costs of the primary metrics as a LaTeX table.",
            rich_help_panel=OUTPUT,
        ),
        as_svg: bool = typer.Option(
            False,
            "--svg",
            help="Print the costs of the primary metrics as an SVG chart.",
            rich_help_panel=OUTPUT,
        ),
        everything: bool = typer.Option(
            False,
            "--all",
            help="Show everything: all tables, steps, curves, network paths and remarks.",
            rich_help_panel=WHAT_TO_SHOW,
        ),
        tables: list[str] = typer.Option(
            [],
            "--table",
            metavar="COMPARISON",
            help="Also show the table of ENVIRONMENT.WORKLOAD.METRIC, with * for any part. Repeatable.",
            rich_help_panel=WHAT_TO_SHOW,
        ),
        page: Path | None = typer.Option(
            None,
            "--html",
            metavar="FILE",
            help="Write the page here instead of into the run.",
            rich_help_panel=OUTPUT,
        ),
        fail_if: list[str] = typer.Option(
            [],
            "--fail-if",
            metavar="LIMIT",
            help="Exit with 11 if a cost exceeds this limit, with 12 if that is undecided. Repeatable.",
            rich_help_panel=LIMITS,
        ),
    ) -> None:
        """Show a run's verdicts, and rewrite its page.

        The page is report.html in the run. A replication also has replication.html.
        """
        from weighbridge.analysis.analyse import analyse
        from weighbridge.analysis.gate import judge
        from weighbridge.analysis.requirement import LIMIT, parse_requirement, reports_named
        from weighbridge.cli.runs import run_directory
        from weighbridge.model.text import printable
        from weighbridge.report.export.json import report_json
        from weighbridge.report.text.gate import limit_sentence
        from weighbridge.store.run import RunStore

        gc.set_threshold(100_000)  # the data is needed until the end, and collection took a tenth of the time
        other_format = _one_of({"json": as_json, "markdown": as_markdown, "latex": as_latex, "svg": as_svg})
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
            if other_format is not None:
                from weighbridge.report.documents import run_latex, run_markdown, run_svg

                write = {"markdown": run_markdown, "latex": run_latex, "svg": run_svg}[other_format]
                print(write(analysis), end="", flush=True)
                _answer(findings, analysis)
                return
            _show(store, analysis, run, page, shown, everything=everything)
        for finding in findings:
            if finding.outcome == "kept":
                out().print(printable(limit_sentence(finding, analysis)), markup=False, soft_wrap=True)
        _answer(findings, analysis)


def _one_of(formats: "Mapping[str, bool]") -> str | None:
    """Return the chosen format, or None. Exit with a message if there are several."""
    chosen = [name for name, is_chosen in formats.items() if is_chosen]
    if len(chosen) > 1:
        named = " and ".join(f"--{each}" for each in chosen)
        fail(f"{named} both use standard output: choose one", WRONG_COMMAND_LINE)
    return chosen[0] if chosen else None


def _show(
    store: "RunStore",
    analysis: "Analysis",
    run: Path,
    page: Path | None,
    tables: "Sequence[MetricReport]",
    *,
    everything: bool,
) -> None:
    """Write the pages of a run, and print its verdicts."""
    from weighbridge.cli.replicate import PAGE, write_beside
    from weighbridge.errors import WeighbridgeError
    from weighbridge.model.secret import variables_of
    from weighbridge.replication.report import replication_document
    from weighbridge.report.html import write_html
    from weighbridge.report.render_terminal import print_document
    from weighbridge.report.terminal import print_report

    at = page or run / "report.html"
    pages, refused, beside = [f"report: {at}"], "", None
    try:
        write_html(store, at, analysis)
        if page is None and (run / PAGE).exists():
            beside, beside_page = write_beside(store, analysis)
            pages.append(f"published and measured: {beside_page}")
    except PermissionError as error:
        refused = f"{error.filename}: {error.strerror}. No page was written: name another file with --html FILE"
        pages = []
    # on a terminal, Weighbridge asks before it runs a study that is not bundled
    yes = not out().is_terminal
    print_report(
        analysis, out(), everything=everything, tables=tables, run=str(run), pages=pages, yes=yes,
        variables=variables_of(store.secrets() or ()),
    )  # fmt: skip
    if everything and beside is not None:
        print_document(replication_document(beside, store), out(), full=True, details=False)
    if refused:
        fail(refused, WeighbridgeError.exit_code)


def _answer(findings: "Sequence[Finding]", analysis: "Analysis") -> None:
    """Raise the result of the limits with a line for each that is not kept, unless all are kept."""
    from weighbridge.analysis.gate import failed_workloads
    from weighbridge.model.text import printable
    from weighbridge.report.text.gate import limit_sentence

    lines = [printable(limit_sentence(each, analysis)) for each in findings if each.outcome != "kept"]
    if any(each.outcome == "exceeded" for each in findings):
        raise LimitExceeded("\n".join(lines))
    if failed := failed_workloads(findings, analysis):
        lines.append(f"no round of {', '.join(failed)} is complete, because trials failed")
        raise TrialsFailed("\n".join(lines))
    if lines:
        raise LimitUndecided("\n".join(lines))
