"""`weighbridge doctor --noise`."""

import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from weighbridge.cli.output import out, print_json

if TYPE_CHECKING:
    from weighbridge.analysis.noise import MachineNoise

STUDY = "noise"
OFTEN_PER_S = 100.0
"""Interrupts that are told: at 5 us each, one in 2000 of a CPU's time."""


def noise(*, as_json: bool) -> None:
    """Measure how noisy this machine is, and print it. Raises what a run raises."""
    from weighbridge.analysis.noise import machine_noise
    from weighbridge.cli.progress import show
    from weighbridge.runner.known_noise import counted_interrupts, keep, run_folder
    from weighbridge.runner.run import require_ready, run_study
    from weighbridge.runner.signals import interruptible
    from weighbridge.runner.userlands import require_userlands
    from weighbridge.store.run import RunStore
    from weighbridge.study.loader import load

    study = load(STUDY)
    require_ready(study)
    require_userlands(study)
    with run_folder() as folder:
        with interruptible(), counted_interrupts(OFTEN_PER_S) as often, show() as progress:
            run_study(study, folder / "run", progress, lambda store: None)
        with RunStore(folder / "run") as store:
            found = replace(machine_noise(store), interrupts=tuple(often))
    document = {**document_of(found), "made": time.strftime("%Y-%m-%d %H:%M:%S %z")}
    keep(document)
    if as_json:
        print_json(document)
    else:
        _print(found)


def document_of(found: "MachineNoise") -> dict[str, Any]:
    """What ``--json`` prints: fractions and seconds."""
    from weighbridge.analysis.noise import TARGETS

    return {
        "version": 1,
        "noise": [
            {
                "workload": row.workload, "kind": row.kind, "variation": row.variation, "pairs": row.pairs,
                "trial_s": row.trial_s,
                "to": [
                    {"half_width": each, "blocks": row.blocks(each), "seconds": row.seconds(each)} for each in TARGETS
                ],
            }
            for row in found.rows
        ],
        "disturbed": [
            {"code": each.flag.code, "where": each.flag.where, "trials": each.count, "of": each.trials}
            for each in found.disturbed
        ],
        "interrupts": [asdict(each) for each in found.interrupts],
    }  # fmt: skip


def _print(found: "MachineNoise") -> None:
    from rich.table import Table

    from weighbridge.analysis.noise import TARGETS
    from weighbridge.report.text.formatting import plain
    from weighbridge.report.text.noise import cause_lines
    from weighbridge.runner.estimate import clock

    table = Table("what", "between runs", *(f"to ±{100 * each:g} %" for each in TARGETS), box=None, pad_edge=False)
    for row in found.rows:
        times = (clock(row.seconds(each)) for each in TARGETS)
        table.add_row(f"{row.workload} ({row.kind})", f"{plain(100 * row.variation, 2)} %", *times)
    out().print(table)
    out().print(
        "\nbetween runs: standard deviation of the ratio of two runs of the same program, one after the other. "
        "The times are those of one comparison of two native environments whose runs are as noisy.\n",
        markup=False,
    )
    for line in cause_lines(found):
        out().print(line, markup=False)
    out().print("kept for weighbridge plan", markup=False)
