"""The options and examples of compare, history and gate."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from weighbridge.cli.declared import Declared, argument, flag, option
from weighbridge.cli.help import DURATION, LIMITS, MEASURE, OUTPUT
from weighbridge.cli.options import allow_concurrent_flag, env_option_to_extend, json_flag, progress_option
from weighbridge.model.choices import ProgressFormat


class Annotations(StrEnum):
    """The services whose annotations can be written."""

    GITHUB = "github"
    GITLAB = "gitlab"


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """Compare runs of one study: what changed, and how much each cost changed."""

    runs: list[Path] = argument(
        "RUN...", "Two or more run directories or kept files. Each is compared with the first."
    )
    as_json: bool = json_flag()
    as_markdown: bool = flag("--markdown", "Print Markdown to standard output, and nothing else.", OUTPUT)
    page: Path | None = option("--html FILE", "Write a page with all runs in every chart.", OUTPUT)
    all_metrics: bool = flag("--all", "Show the table of every metric, not only the first.", OUTPUT)
    margin: str | None = option(
        "--margin PERCENT",
        "Changes within this margin are equivalent, for example 3%. Default: the study's margin.",
        MEASURE,
    )
    allowance: str = option(
        "--allowance PERCENT", "How much a cost can differ between two identical sessions.", MEASURE, default="1%"
    )
    changed: list[str] = option(
        "--changed FACT",
        "A fact that you changed on purpose, for example sysctl:vm.swappiness. Absolute values are still "
        "compared. Repeatable.",
        MEASURE,
        default=[],
    )


COMPARE = Declared(
    "weighbridge.features.gate.compare_command:compare",
    CompareOptions,
    (
        "weighbridge compare runs/before runs/after",
        "weighbridge compare runs/before runs/after --html changes.html",
        'weighbridge compare runs/before runs/after --markdown >> "$GITHUB_STEP_SUMMARY"',
        "weighbridge compare runs/before runs/after --changed sysctl:vm.swappiness",
        "weighbridge compare runs/docker-20 runs/docker-27 runs/docker-29 --json",
    ),
    documents=("compare",),
)


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """List the runs in a folder, oldest first, with their costs and the changes between them.

    Unreadable runs are skipped and named on standard error.
    """

    directory: Path = argument("DIR", "A folder with run directories or kept files, or with folders of them.")
    as_json: bool = json_flag()
    page: Path | None = option("--html FILE", "Write a page with the cost of each primary metric over time.")


HISTORY = Declared(
    "weighbridge.features.gate.history_command:history",
    HistoryOptions,
    (
        "weighbridge history runs",
        "weighbridge history runs --html history.html",
        "weighbridge history runs --json",
    ),
    documents=("history",),
)


@dataclass(frozen=True, slots=True)
class GateOutputs:
    """The output for CI and for the terminal."""

    junit: Path | None = option("--junit FILE", "Write a JUnit report.", OUTPUT)
    markdown: Path | None = option("--markdown FILE", "Append a Markdown summary to this file.", OUTPUT)
    annotations: Annotations | None = option(
        "--annotations github|gitlab",
        "github: also print workflow commands. gitlab: print only a code quality report.",
        OUTPUT,
    )
    bmf: Path | None = option("--bmf FILE", "Write the costs in Bencher Metric Format.", OUTPUT)
    as_json: bool = json_flag()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """Check a run's costs against budgets, and report the answer as the exit code.

    A cost passes if its whole interval is within the budget, fails if the whole interval is above, and is
    undecided otherwise. Exit codes: 0 passed, 11 failed, 12 undecided, 9 undecided because trials failed, 10 the
    control failed.
    """

    run: Path = argument("RUN", "A run directory, or a kept file.")
    budget: list[str] = option(
        "--budget BUDGET",
        "A budget for a cost: ENVIRONMENT.WORKLOAD.METRIC<=35%, with * for any part. Repeatable.",
        LIMITS,
        default=[],
    )
    budget_file: Path | None = option(
        "--budget-file FILE", "A file with one budget per line. Text after # is a comment.", LIMITS
    )
    against: Path | None = option(
        "--against RUN", "An earlier run. The cost of a primary metric can rise above it by at most --margin.", LIMITS
    )
    margin: str | None = option(
        "--margin PERCENT", "Largest allowed increase over the earlier run, for example 3%.", LIMITS
    )
    extend: str | None = option(
        "--extend TIME", "If undecided, run more rounds for at most this time, for example 10min.", DURATION
    )
    yes: bool = flag("--yes -y", "Run more rounds without asking.", DURATION)
    env: list[str] = env_option_to_extend()
    allow_concurrent: bool = allow_concurrent_flag()
    progress: ProgressFormat = progress_option()
    outputs: GateOutputs


GATE = Declared(
    "weighbridge.features.gate.gate_command:gate",
    GateOptions,
    (
        "weighbridge gate RUN --budget 'bridge.tcp.throughput<=35%' --budget '*.latency_p99<=10%'",
        "weighbridge gate RUN --budget '*.throughput<=35%' --extend 10min --yes",
        "weighbridge gate RUN --budget '*.throughput<=35%' --extend 10min --env API_TOKEN",
        "weighbridge gate RUN --budget-file budgets.txt",
        "weighbridge gate RUN --against OLD-RUN --margin 3%",
        "weighbridge gate RUN --budget '*.throughput<=35%' --junit gate.xml --markdown gate.md --annotations github",
    ),
    documents=("gate",),
)
