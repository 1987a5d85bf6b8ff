"""`weighbridge calibrate`."""

import json
import time
from contextlib import ExitStack
from pathlib import Path

from rich.table import Table

from weighbridge.cli.output import err, out, print_json
from weighbridge.cli.progress import show
from weighbridge.cli.runs import continuable
from weighbridge.features.calibration.analysis import CalibrationDocument, summary
from weighbridge.features.calibration.options import CalibrateOptions
from weighbridge.runner import known_noise, living
from weighbridge.runner import run as running
from weighbridge.runner.planned import plan
from weighbridge.runner.signals import interruptible
from weighbridge.store.run import RunStore
from weighbridge.study import loader
from weighbridge.study.source import bundled_study

STUDIES = ("calibrate-cpu", "calibrate-link")


def calibrate(options: CalibrateOptions) -> None:
    """Measure the injected costs, and store the results for later reports."""
    directory = options.directory or Path("runs") / f"calibration-{time.strftime('%Y%m%d-%H%M%S')}"
    again = ("calibrate", "--out", str(directory))
    studies = {name: loader.load(bundled_study(name)) for name in STUDIES}
    for study in studies.values():  # before there is a directory
        plan(study).require()
    living.require_alone(allow_concurrent=options.allow_concurrent)
    with interruptible(), continuable(directory / STUDIES[0], *again):
        for name, study in studies.items():
            err().print(f"{name}: results go to {directory / name}", markup=False)
            with show(directory / name) as progress:
                running.run_study(study, directory / name, progress, lambda store: None)
    with ExitStack() as stack:
        stores = [stack.enter_context(RunStore(directory / name)) for name in STUDIES]
        calibration = summary(stores, made=time.strftime(known_noise.MADE))
    (directory / "calibration.json").write_text(json.dumps(calibration, indent=1))
    known_noise.keep_calibration(calibration)
    if options.as_json:
        print_json(calibration)
    else:
        _print(calibration)
        out().print(f"saved for later reports and in {directory / 'calibration.json'}", markup=False)


def _print(calibration: CalibrationDocument) -> None:
    table = Table("what", "true cost", "measured", "95% interval", "rounds", "inside", box=None, pad_edge=False)
    for row in calibration["readings"]:
        interval = f"[{row['low'] * 100:.2f}, {row['high'] * 100:.2f}]%"
        read, true = f"{row['read'] * 100:.2f}%", f"{row['true'] * 100:.1f}%"
        table.add_row(row["what"], true, read, interval, str(row["blocks"]), "yes" if row["inside"] else "NO")
    out().print(table)
    out().print(f"{calibration['inside']} of {len(calibration['readings'])} true costs lie inside their intervals")
    for what, spans in calibration["smallest_visible"].items():
        costs = ", ".join(f"{cost * 100:.2f}% in {span}" for span, cost in spans.items())
        out().print(f"smallest detectable cost of {what}: {costs}")
