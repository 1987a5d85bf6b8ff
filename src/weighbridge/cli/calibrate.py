"""`weighbridge calibrate`."""

import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import typer

from weighbridge.cli.options import AllowConcurrentOption, JsonFlag
from weighbridge.cli.output import err, examples, out, print_json

STUDIES = ("calibrate-cpu", "calibrate-link")


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples("weighbridge calibrate", "weighbridge calibrate --out calibration/today --json"))
    def calibrate(
        directory: Path | None = typer.Option(
            None, "--out", metavar="DIR", help="Folder for the runs and calibration.json."
        ),
        allow_concurrent: bool = AllowConcurrentOption,
        as_json: bool = JsonFlag,
    ) -> None:
        """Check the accuracy of this machine: inject known costs and measure them.

        Weighbridge reduces CPU time and link rate by 0, 2, 5, 10 and 25%. Later reports on this machine show the
        result.
        """
        from weighbridge.analysis.calibration import summary
        from weighbridge.cli.progress import show
        from weighbridge.cli.runs import continuable
        from weighbridge.runner.known_noise import keep_calibration
        from weighbridge.runner.living import require_alone
        from weighbridge.runner.planned import plan
        from weighbridge.runner.run import run_study
        from weighbridge.runner.signals import interruptible
        from weighbridge.store.run import RunStore
        from weighbridge.study.loader import load
        from weighbridge.study.source import bundled_study

        directory = directory or Path("runs") / f"calibration-{time.strftime('%Y%m%d-%H%M%S')}"
        again = ("calibrate", "--out", str(directory))
        studies = {name: load(bundled_study(name)) for name in STUDIES}
        for study in studies.values():  # before there is a directory
            plan(study).require()
        require_alone(beside_others=allow_concurrent)
        with interruptible(), continuable(directory / STUDIES[0], *again):
            for name, study in studies.items():
                err().print(f"{name}: results go to {directory / name}", markup=False)
                with show() as progress:
                    run_study(study, directory / name, progress, lambda store: None)
        with ExitStack() as stack:
            calibration = summary([stack.enter_context(RunStore(directory / name)) for name in STUDIES])
        calibration["made"] = time.strftime("%Y-%m-%d %H:%M:%S %z")
        (directory / "calibration.json").write_text(json.dumps(calibration, indent=1))
        keep_calibration(calibration)
        if as_json:
            print_json(calibration)
        else:
            _print(calibration)
            out().print(f"saved for later reports and in {directory / 'calibration.json'}", markup=False)


def _print(calibration: dict[str, Any]) -> None:
    from rich.table import Table

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
