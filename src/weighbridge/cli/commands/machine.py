"""The options and examples of doctor and clean: the commands about this machine or a cluster."""

from dataclasses import dataclass

from weighbridge.cli.declared import Declared, flag, option
from weighbridge.cli.help import MEASURE, OUTPUT, WHERE
from weighbridge.cli.options import (
    allow_concurrent_flag,
    context_option,
    json_flag,
    namespace_option,
    progress_option,
)
from weighbridge.model.choices import ProgressFormat


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """Check this machine: what can be measured, what is missing, and how to add it.

    The first lines show the environments that weigh compares by default.
    """

    everything: bool = flag("--all", "Show every plug-in, and everything that is missing.", OUTPUT)
    noisy: bool = flag(
        "--noise",
        "Measure this machine's noise for two to three minutes; print the smallest cost that 10 minutes detect.",
        MEASURE,
    )
    cluster: bool = flag("--cluster", "Check the Kubernetes cluster of kubectl's current context instead.", WHERE)
    context: str = context_option()
    namespace: str = namespace_option()
    allow_concurrent: bool = allow_concurrent_flag()
    as_json: bool = json_flag()
    progress: ProgressFormat = progress_option()


DOCTOR = Declared(
    "weighbridge.cli.doctor:doctor",
    DoctorOptions,
    (
        "weighbridge doctor",
        "weighbridge doctor --all",
        "weighbridge doctor --noise",
        "weighbridge doctor --cluster",
    ),
    documents=("doctor", "noise"),
)


@dataclass(frozen=True, slots=True)
class CleanOptions:
    """Remove the leftovers of interrupted or killed runs from this machine, or from a cluster.

    Active runs, run directories and cached root filesystems are kept.
    """

    check: bool = flag("--check", "Only list leftovers; exit with 1 if there are any.")
    run: str | None = option("--run DIR|ID", "Only this run: its directory or id.")
    cluster: bool = flag("--cluster", "Clean the Kubernetes cluster of kubectl's context, after runs of any machine.")
    context: str = context_option()
    namespace: str = namespace_option()
    as_json: bool = json_flag()


CLEAN = Declared(
    "weighbridge.cli.clean:clean",
    CleanOptions,
    (
        "weighbridge clean",
        "weighbridge clean --check",
        "weighbridge clean --run DIR",
        "weighbridge clean --cluster",
    ),
    documents=("clean",),
)
