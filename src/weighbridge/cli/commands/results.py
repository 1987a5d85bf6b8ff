"""The options and examples of report and export: the commands that read a run."""

from dataclasses import dataclass
from pathlib import Path

from weighbridge.cli.declared import Declared, argument, flag, option
from weighbridge.cli.help import LIMITS, OUTPUT
from weighbridge.cli.options import json_flag

_SHOWN = "What to show"


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Show a run's verdicts, and rewrite its page.

    The page is report.html in the run. A replication also has replication.html.
    """

    run: Path = argument("RUN", "A run directory, or a kept file.")
    as_json: bool = json_flag()
    as_markdown: bool = flag("--markdown", "Print Markdown to standard output, and nothing else.", OUTPUT)
    as_latex: bool = flag("--latex", "Print the costs of the primary metrics as a LaTeX table.", OUTPUT)
    as_svg: bool = flag("--svg", "Print the costs of the primary metrics as an SVG chart.", OUTPUT)
    methods: bool = flag(
        "--methods", "Print a paragraph for the methods section of a paper. With --latex: for LaTeX.", OUTPUT
    )
    bib: bool = flag("--bib", "Print a BibTeX entry of the run, with the digest of its file.", OUTPUT)
    as_openmetrics: bool = flag(
        "--openmetrics",
        "Print the costs of the primary metrics for the textfile collector of node_exporter or the Pushgateway.",
        OUTPUT,
    )
    as_action_benchmark: bool = flag(
        "--github-action-benchmark",
        "Print the costs of the primary metrics as JSON for github-action-benchmark's tool customSmallerIsBetter.",
        OUTPUT,
    )
    everything: bool = flag("--all", "Show everything: all tables, steps, curves, network paths and remarks.", _SHOWN)
    tables: list[str] = option(
        "--table COMPARISON",
        "Also show the table of ENVIRONMENT.WORKLOAD.METRIC, with * for any part. Repeatable.",
        _SHOWN,
        default=[],
    )
    page: Path | None = option("--html FILE", "Write the page here instead of into the run.", OUTPUT)
    fail_if: list[str] = option(
        "--fail-if LIMIT",
        "Exit with 11 if a cost exceeds this limit, with 12 if that is undecided. Repeatable.",
        LIMITS,
        default=[],
    )


REPORT = Declared(
    "weighbridge.cli.report:report",
    ReportOptions,
    (
        "weighbridge report runs/first-look-20261121-090000",
        "weighbridge report RUN --all",
        "weighbridge report RUN --table '*.tcp.throughput'",
        "weighbridge report RUN --json",
        'weighbridge report RUN --markdown >> "$GITHUB_STEP_SUMMARY"',
        "weighbridge report RUN --svg > costs.svg",
        "weighbridge report RUN --methods --latex > methods.tex",
        "weighbridge report RUN --bib >> runs.bib",
        "weighbridge report RUN --openmetrics > redis.prom",
        "weighbridge report RUN --fail-if 'bridge.tcp.throughput > 35%'",
    ),
    documents=("report",),
)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Export a run's measurements, costs and CPU times as CSV or Parquet."""

    run: Path = argument("RUN", "A run directory, or a kept file.")
    csv: Path | None = option("--csv FOLDER", "Folder for measurements.csv, costs.csv and programs.csv.")
    as_json: bool = json_flag()
    parquet: Path | None = option("--parquet FOLDER", "Folder for the same tables as Parquet. Needs pyarrow.")


EXPORT = Declared(
    "weighbridge.cli.export:export",
    ExportOptions,
    (
        "weighbridge export runs/first-look-20261121-090000 --csv tables/",
        "weighbridge export RUN --parquet tables/",
    ),
    documents=("files",),
)
