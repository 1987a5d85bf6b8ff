"""The options and examples of `weighbridge calibrate`."""

from dataclasses import dataclass
from pathlib import Path

from weighbridge.cli.declared import Declared, option
from weighbridge.cli.options import allow_concurrent_flag, json_flag, progress_option
from weighbridge.model.choices import ProgressFormat


@dataclass(frozen=True, slots=True)
class CalibrateOptions:
    """Check the accuracy of this machine: inject known costs and measure them.

    Weighbridge reduces CPU time and link rate by 0, 2, 5, 10 and 25%. Later reports on this machine show the
    result.
    """

    directory: Path | None = option("--out DIR", "Folder for the runs and calibration.json.")
    allow_concurrent: bool = allow_concurrent_flag()
    as_json: bool = json_flag()
    progress: ProgressFormat = progress_option()


CALIBRATE = Declared(
    "weighbridge.features.calibration.command:calibrate",
    CalibrateOptions,
    (
        "weighbridge calibrate",
        "weighbridge calibrate --out calibration/today --json",
    ),
    documents=("calibrate",),
)
