"""The options and examples of `weighbridge replicate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weighbridge.cli.declared import Declared, argument, flag, option
from weighbridge.cli.help import OUTPUT, WHAT
from weighbridge.cli.options import (
    allow_concurrent_flag,
    complete_study,
    json_flag,
    profile_option,
    progress_option,
    quick_test_flag,
    timing_flag,
    watching_options,
    yes_flag,
)
from weighbridge.model.choices import ProgressFormat


@dataclass(frozen=True, slots=True)
class ReplicateOptions:
    """Run a published study on your machines, and compare the results with its published figures."""

    study: str | None = argument(
        "STUDY",
        "A bundled study with published figures. Not needed with --out or --report.",
        default=None,
        autocompletion=complete_study,
    )
    profile: str | None = profile_option()
    link: str | None = option("--link RATE", "Rate of every testbed cable, for example 100mbit.", WHAT)
    directory: Path | None = option(
        "--out DIR", "A new run directory, or the directory of an interrupted run to continue.", OUTPUT
    )
    report: Path | None = option("--report RUN", "Rewrite the pages of this run, and run nothing.", OUTPUT)
    watching: Any = watching_options()
    yes: bool = yes_flag()
    allow_concurrent: bool = allow_concurrent_flag()
    quick_test: bool = quick_test_flag()
    timing: bool = timing_flag()
    as_json: bool = json_flag()
    progress: ProgressFormat = progress_option()
    claims: bool = flag("--claims", "Print every published claim next to the measured value.", OUTPUT)
    as_latex: bool = flag("--latex", "Print these claims as a LaTeX table.", OUTPUT)
    as_csv: bool = flag("--csv", "Print these claims as CSV.", OUTPUT)


REPLICATE = Declared(
    "weighbridge.features.replication.command:replicate",
    ReplicateOptions,
    (
        "weighbridge replicate docker-networks --profile quick",
        "weighbridge replicate --out RUN",
        "weighbridge replicate --report RUN",
        "weighbridge replicate --report RUN --claims",
        "weighbridge replicate --report RUN --latex > claims.tex",
    ),
    documents=("replicate",),
)
