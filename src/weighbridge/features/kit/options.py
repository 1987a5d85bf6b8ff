"""The options and examples of `weighbridge kit`."""

from dataclasses import dataclass
from pathlib import Path

from weighbridge.cli.declared import Declared, argument, flag, option
from weighbridge.cli.options import complete_study, json_flag


@dataclass(frozen=True, slots=True)
class KitOptions:
    """Write a folder with everything to run a study by hand, without Weighbridge.

    The folder has a Dockerfile, Compose files, scripts and a README. With --run, it contains a finished run instead,
    and a script that repeats the run with Weighbridge and compares both.
    """

    study: str | None = argument(
        "STUDY",
        "A bundled study or a study file. Not needed with --run.",
        default=None,
        autocompletion=complete_study,
    )
    run: Path | None = option("--run RUN", "Pack this run, so that others can repeat it with one command.")
    folder: Path | None = option("--out FOLDER", "Output folder, empty or new. Default: kit-STUDY, or kit-RUN.")
    profile: str | None = option(
        "--profile NAME",
        "A profile of the study, or 'standard': the study itself. Default: 'published' if it exists.",
    )
    yes: bool = flag("--yes -y", "Read the files that the study names without asking.")
    as_json: bool = json_flag()


KIT = Declared(
    "weighbridge.features.kit.command:kit",
    KitOptions,
    (
        "weighbridge kit docker-networks",
        "weighbridge kit first-look --out by-hand/",
        "weighbridge kit docker-networks --profile standard",
        "weighbridge kit my.yaml --yes",
        "weighbridge kit --run runs/first-look-20261121-090000 --out artifact/",
    ),
    documents=("files",),
)
