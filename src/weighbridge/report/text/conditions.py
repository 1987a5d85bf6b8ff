"""Under what the machine measured, what its last calibration says, and which durability was checked, in words."""

from weighbridge.analysis.results import Analysis
from weighbridge.model.decisions import length_text
from weighbridge.report.text.durability import power_cut_lines

NOT_THIS_PATH = "the calibration of this machine is for one host without cables, not for this path"
NOT_POLLED = "the calibration of this machine is for idle CPUs that halt, not for this run's"
POLLED = (
    "idle CPUs of this machine polled and did not halt, in every environment (cpu_idle): programs that "
    "wait for each other are faster than on CPUs that halt, and what waking a CPU adds to a cost is not in it"
)

TIME_SHARED = (
    "the time was not enough for the target everywhere: blocks went to where a second narrows the intervals most, so "
    "that workloads with long trials have fewer"
)


def condition_lines(analysis: Analysis) -> list[str]:
    """Return a line for each condition, none where there is nothing to say."""
    found = [*power_cut_lines(analysis), *([POLLED] if analysis.polled else []), *_lengths(analysis)]
    found += [TIME_SHARED] if analysis.time_shared else []
    calibration = analysis.calibration
    if calibration is None:
        return found
    if calibration.about == "another-path":
        return [*found, NOT_THIS_PATH]
    if calibration.about == "halting-cpus":
        return [*found, NOT_POLLED]
    return [*found, *(f"{key} {value}" for key, value in calibration.facts.items())]


def _lengths(analysis: Analysis) -> list[str]:
    told = "; ".join(map(length_text, analysis.lengths))
    return [f"how long each trial worked was chosen by a pilot block, which is not counted: {told}"] if told else []
