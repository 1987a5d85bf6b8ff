"""`weighbridge doctor --noise`: measure how noisy this machine is."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import ConfigDict, with_config
from rich.table import Table
from typing_extensions import TypedDict

from weighbridge.analysis.noise import SPAN_S, TARGETS, MachineNoise, machine_noise
from weighbridge.cli.output import err, out, print_json
from weighbridge.cli.progress import show
from weighbridge.errors import Interrupted
from weighbridge.report.text.formatting import plain
from weighbridge.report.text.noise import cause_lines, smallest_cost_lines
from weighbridge.runner import known_noise, userlands
from weighbridge.runner import run as running
from weighbridge.runner.estimate import clock
from weighbridge.runner.planned import plan
from weighbridge.runner.signals import interruptible
from weighbridge.store.run import RunStore
from weighbridge.study import loader
from weighbridge.study.source import bundled_study

NOISE_STUDY = "noise"
OFTEN_PER_S = 100.0
"""Interrupts per second that are reported. At 5 us each, they use 0.05% of a CPU."""


def measure_noise(*, as_json: bool) -> None:
    """Measure and print the noise of this machine. Raises the errors of a run."""
    study = loader.load(bundled_study(NOISE_STUDY))
    plan(study).require()
    first = (
        ""
        if userlands.userlands_built(study)
        else "first builds a root filesystem with its programs (once, a few minutes), then "
    )
    err().print(f"doctor --noise {first}runs {len(study.cells)} programs against themselves for two to three minutes")
    with known_noise.run_folder() as folder:
        try:
            with interruptible(), known_noise.counted_interrupts(OFTEN_PER_S) as often, show() as progress:
                running.run_study(study, folder / "run", progress, lambda store: None)
        except Interrupted as ended:
            ended.discarded = True
            raise
        with RunStore(folder / "run") as store:
            noise = replace(machine_noise(store), interrupts=tuple(often))
    document = noise_document(noise, known_noise.stamp())
    known_noise.keep(document)
    if as_json:
        print_json(document)
    else:
        _print_noise(noise)


class NoisePrecision(TypedDict):
    """The rounds and the time for a precision; ``half_width`` is a fraction: 0.02 is ±2%."""

    half_width: float
    blocks: int
    seconds: float


class NoiseRow(TypedDict):
    """The noise of one workload; ``variation`` is the standard deviation of the log ratio of two successive runs."""

    workload: str
    kind: str
    variation: float
    pairs: int
    trial_s: float
    to: list[NoisePrecision]


class DisturbedTrials(TypedDict):
    """How many trials of a kind were disturbed."""

    code: str
    where: str
    trials: int
    of: int


class SmallestCost(TypedDict):
    """The smallest cost that ``seconds`` of trials can detect: 0.02 is 2%; null if it is unknown."""

    seconds: float
    cost: float | None
    by_resource: dict[str, float | None]


class InterruptRow(TypedDict):
    """A device that interrupts a CPU often."""

    number: int
    device: str
    cpu: int
    per_s: float


@with_config(ConfigDict(extra="forbid"))
class NoiseDocument(TypedDict):
    """The document of ``weighbridge doctor --noise --json``."""

    version: Literal[1]
    noise: list[NoiseRow]
    disturbed: list[DisturbedTrials]
    smallest_cost: SmallestCost
    interrupts: list[InterruptRow]
    made: str
    facts: dict[str, str]


def noise_document(noise: MachineNoise, stamp: Mapping[str, Any]) -> NoiseDocument:
    """Return the document of ``--json``, in fractions and seconds; ``stamp`` has its time and machine."""
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
            for row in noise.rows
        ],
        "disturbed": [
            {"code": each.flag.code, "where": each.flag.where, "trials": each.count, "of": each.trials}
            for each in noise.disturbed
        ],
        "smallest_cost": _smallest_cost_document(noise.smallest_costs),
        "interrupts": [
            {"number": each.number, "device": each.device, "cpu": each.cpu, "per_s": each.per_s}
            for each in noise.interrupts
        ],
        "made": stamp["made"],
        "facts": stamp["facts"],
    }  # fmt: skip


def _smallest_cost_document(costs: Mapping[str, float]) -> SmallestCost:
    known = {name: cost if math.isfinite(cost) else None for name, cost in costs.items()}
    largest = max(costs.values(), default=math.inf)
    return {"seconds": SPAN_S, "cost": largest if math.isfinite(largest) else None, "by_resource": known}


def _print_noise(noise: MachineNoise) -> None:
    for line in smallest_cost_lines(noise.smallest_costs):
        out().print(line, markup=False)
    table = Table("what", "between runs", *(f"to ±{100 * each:g}%" for each in TARGETS), box=None, pad_edge=False)
    for row in noise.rows:
        times = (clock(row.seconds(each)) for each in TARGETS)
        table.add_row(f"{row.workload} ({row.kind})", f"{plain(100 * row.variation, 2)}%", *times)
    out().print(table)
    out().print(
        "\nbetween runs: standard deviation of the ratio of two successive runs of the same program. "
        "The times are for one comparison of two native environments with this noise.\n",
        markup=False,
    )
    for line in cause_lines(noise):
        out().print(line, markup=False)
    out().print("saved for 'weighbridge plan' and for the start of a run", markup=False)
