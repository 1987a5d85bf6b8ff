"""What makes a machine noisy, in words, each with what can be done."""

from collections.abc import Iterator, Mapping

from weighbridge.analysis.noise import MachineNoise
from weighbridge.model.facts import InterruptRate
from weighbridge.model.flag import FlagCode
from weighbridge.report.text.trial_flags import flag_kind_text

_REMEDIES: Mapping[str, str] = {
    FlagCode.STEAL: "other machines share its CPUs: take a machine with CPUs of its own, or a quieter hour",
    FlagCode.OTHER_WORK: "other programs run here: end them, or keep them off the CPUs of the study (resources: pin)",
    FlagCode.MEMORY_PRESSURE: "memory is short: end what holds it, or lower what the study's sites may have",
    FlagCode.IO_PRESSURE: "something else uses the disk: end it, or put WEIGHBRIDGE_CACHE on a disk of its own",
    FlagCode.CLOCKS: "the machine is too busy to be on time, or a clock is wrong: end what else runs",
}
_STEADY_GOVERNORS = ("", "none", "performance")


def cause_lines(machine_noise: MachineNoise) -> list[str]:
    """Return what disturbed trials, and what of the machine makes runs differ, each with what can be done."""
    disturbances = [(f"{each.count} of {each.trials} trials", each) for each in machine_noise.disturbed]
    lines = [
        f"{count}: {flag_kind_text(each.flag, each.figures)}: {_REMEDIES[each.flag.code]}"
        for count, each in disturbances
    ]
    lines += [_interrupted(each) for each in machine_noise.interrupts]
    return [*lines, *_of_the_machine(machine_noise.facts)] or ["nothing that is known disturbed these trials"]


def _interrupted(rate: InterruptRate) -> str:
    return (
        f"{rate.device} interrupted CPU {rate.cpu} {rate.per_s:.0f} times a second, for these trials or for others: "
        f"keep it off the CPUs of a study (/proc/irq/{rate.number}/smp_affinity_list)"
    )


def _of_the_machine(facts: Mapping[str, str]) -> Iterator[str]:
    governor = facts.get("frequency governor", "")
    if governor not in _STEADY_GOVERNORS:
        yield f"the frequency of its CPUs follows their load (governor {governor}): set the governor to performance"
    if facts.get("SMT") == "on":
        yield "two hardware threads share each core (SMT): pin to CPUs of different cores (resources: pin)"
