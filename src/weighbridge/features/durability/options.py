"""The options and examples of `weighbridge durability`."""

from dataclasses import dataclass
from pathlib import Path

from weighbridge.cli.declared import Declared, argument, option
from weighbridge.cli.options import complete_study, json_flag, profile_option, progress_option, yes_flag
from weighbridge.model.choices import ProgressFormat, Promise


@dataclass(frozen=True, slots=True)
class DurabilityOptions:
    """Check which acknowledged records survive a power cut in a study's environments.

    For each environment whose data is on a guest host, Weighbridge starts a new guest that writes records, kills
    it, restarts it and looks for every acknowledged record. The guest's disk loses unflushed data. Needs nbdkit.
    """

    study: str | None = argument(
        "STUDY",
        "A bundled study or a study file. Not needed with --out.",
        default=None,
        autocompletion=complete_study,
    )
    directory: Path | None = option("--out RUN", "A run directory. Its reports then show the result.")
    profile: str | None = profile_option()
    promise: list[Promise] = option(
        "--promise " + "|".join(Promise),
        "How records are written before they are acknowledged. Repeatable. Default: all.",
        default=[*Promise],
    )
    seconds: float = option(
        "--seconds NUMBER", "Seconds of writing before the power cut.", default=3.0, min=0.5, max=600.0
    )
    as_json: bool = json_flag()
    progress: ProgressFormat = progress_option()
    yes: bool = yes_flag()


DURABILITY = Declared(
    "weighbridge.features.durability.command:durability",
    DurabilityOptions,
    (
        "weighbridge durability my.yaml",
        "weighbridge durability my.yaml --promise fsync --json",
        "weighbridge durability --out runs/THAT-RUN",
    ),
    documents=("durability",),
)
