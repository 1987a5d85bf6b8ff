"""The options and examples of run, which measures a study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weighbridge.cli.declared import Declared, argument, flag, option
from weighbridge.cli.help import DURATION, LIMITS, OUTPUT
from weighbridge.cli.options import (
    allow_concurrent_flag,
    complete_study,
    env_option,
    explain_flag,
    json_flag,
    profile_option,
    progress_option,
    quick_test_flag,
    set_option,
    timing_flag,
    watching_options,
    yes_flag,
)
from weighbridge.model.choices import ProgressFormat


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Run a study, save every trial when it ends, and write the report.

    Ctrl-C stops the run cleanly and prints the command to continue.
    """

    study: str | None = argument(
        "STUDY",
        "A bundled study or a study file. Not needed to continue a run with --out.",
        default=None,
        autocompletion=complete_study,
    )
    directory: Path | None = option(
        "--out DIR", "A new run directory, or the directory of a run to continue. Default: ./runs/STUDY-DATE.", OUTPUT
    )
    profile: str | None = profile_option()
    settings: list[str] = set_option()
    explain: bool = explain_flag()
    rounds: int | None = option(
        "--rounds N",
        "Run this many rounds instead of the study's. With --out alone: the new total of the run.",
        DURATION,
        min=1,
        max=1000,
    )
    watching: Any = watching_options()
    env: list[str] = env_option()
    yes: bool = yes_flag()
    allow_concurrent: bool = allow_concurrent_flag()
    quick_test: bool = quick_test_flag()
    as_json: bool = json_flag()
    progress: ProgressFormat = progress_option()
    timing: bool = timing_flag()
    strict: bool = flag("--strict", "Exit with 10 if the control failed.", LIMITS)


RUN = Declared(
    "weighbridge.cli.run:run",
    RunOptions,
    (
        "weighbridge run first-look",
        "weighbridge run my.yaml --out results/today --yes",
        "weighbridge run shop.yaml --env API_TOKEN",
    ),
    documents=("report",),
)
