"""The options and examples of `weighbridge explain`."""

from dataclasses import dataclass
from pathlib import Path

from weighbridge.cli.declared import Declared, argument, option
from weighbridge.cli.help import OUTPUT, WHAT
from weighbridge.cli.options import (
    allow_concurrent_flag,
    env_option,
    json_flag,
    placebo_flag,
    progress_option,
    quick_test_flag,
    rounds_option,
    timing_flag,
    trace_option,
    yes_flag,
)
from weighbridge.model.choices import ProgressFormat


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """Find out what causes a cost, by switching off one mechanism at a time.

    In every round, Weighbridge measures the environment again: complete, without each single mechanism (seccomp,
    network, address translation, limits), and without all of them. If RUN already explains the cost, Weighbridge
    switches its costly mechanisms (at most four) in every combination to find interactions.
    """

    run: Path = argument("RUN", "A run with costs to explain.")
    environment: str | None = option(
        "--environment NAME",
        "Explain this environment. Default: the environment with the largest significant cost.",
        WHAT,
    )
    workload: str | None = option(
        "--workload NAME", "Explain its cost in this workload. Default: the workload with the largest cost.", WHAT
    )
    rounds: int | None = rounds_option()
    placebo: bool = placebo_flag()
    trace: str | None = trace_option()
    directory: Path | None = option("--out DIR", "Directory of the new run. Default: a new one.", OUTPUT)
    save: Path | None = option("--save FILE", "Write the study file and run nothing.", OUTPUT)
    env: list[str] = env_option()
    yes: bool = yes_flag()
    allow_concurrent: bool = allow_concurrent_flag()
    quick_test: bool = quick_test_flag()
    timing: bool = timing_flag()
    as_json: bool = json_flag()
    progress: ProgressFormat = progress_option()


EXPLAIN = Declared(
    "weighbridge.features.explain.command:explain",
    ExplainOptions,
    (
        "weighbridge explain runs/first-look-20261127-101500",
        "weighbridge explain runs/first-look-20261127-101500 --environment bridge --workload redis-set",
        "weighbridge explain runs/first-look-20261127-101500 --save why.yaml",
        "weighbridge explain RUN --placebo",
        "weighbridge explain RUN --env API_TOKEN",
    ),
    documents=("report", "files"),
)
