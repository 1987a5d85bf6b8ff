"""Causes of a noisy machine in words, each with a remedy."""

import math
from collections.abc import Iterator, Mapping

from weighbridge.analysis.noise import MachineNoise
from weighbridge.model.facts import InterruptRate
from weighbridge.model.flag import FlagCode
from weighbridge.report.text.formatting import plain, smallest_cost_text
from weighbridge.report.text.trial_flags import flag_kind_text

_REMEDIES: Mapping[str, str] = {
    FlagCode.STEAL: "other machines share its CPUs: use a machine with dedicated CPUs, or a quieter hour",
    FlagCode.OTHER_WORK: "other programs run here: stop them, or pin the study to other CPUs (resources: pin)",
    FlagCode.MEMORY_PRESSURE: "memory is short: free some, or lower the study's memory limit",
    FlagCode.IO_PRESSURE: "something else uses the disk: stop it, or put WEIGHBRIDGE_CACHE on its own disk",
    FlagCode.CLOCKS: "the machine is too busy, or a clock is wrong: stop other programs",
}
_RESOURCES: Mapping[str, str] = {"network": "network (loopback)"}
_STEADY_GOVERNORS = ("", "none", "performance")


def smallest_cost_lines(costs: Mapping[str, float]) -> list[str]:
    """Return the smallest cost that ten minutes can detect: the largest, and the cost of each resource.

    There is no largest cost if ten minutes are too short for a resource.
    """
    each = ", ".join(
        f"{_RESOURCES.get(name, name)} {f'{plain(100 * cost, 2)}%' if math.isfinite(cost) else 'unknown'}"
        for name, cost in costs.items()
    )
    largest = max(costs.values(), default=math.inf)
    if math.isfinite(largest):
        return [f"{smallest_cost_text(largest)}: {each}.", ""]
    return [f"10 minutes are too short for some trials of this machine. Smallest costs: {each}.", ""]


def cause_lines(machine_noise: MachineNoise) -> list[str]:
    """Return the causes that disturbed trials, and the settings of the machine that add noise, with remedies."""
    disturbances = [(f"{each.count} of {each.trials} trials", each) for each in machine_noise.disturbed]
    lines = [
        f"{count}: {flag_kind_text(each.flag, each.figures)}: {_REMEDIES[each.flag.code]}"
        for count, each in disturbances
    ]
    lines += [_interrupted(each) for each in machine_noise.interrupts]
    return [*lines, *_of_the_machine(machine_noise.facts)] or ["nothing known disturbed these trials"]


def _interrupted(rate: InterruptRate) -> str:
    return (
        f"{rate.device} interrupted CPU {rate.cpu} {rate.per_s:.0f} times a second: "
        f"move its interrupts off the study's CPUs (/proc/irq/{rate.number}/smp_affinity_list)"
    )


def _of_the_machine(facts: Mapping[str, str]) -> Iterator[str]:
    governor = facts.get("frequency governor", "")
    if governor not in _STEADY_GOVERNORS:
        yield f"CPU frequency follows load (governor {governor}): set the governor to performance"
    if facts.get("SMT") == "on":
        yield "two hardware threads share each core (SMT): pin to different cores (resources: pin)"
