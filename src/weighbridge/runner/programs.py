"""What each program of a trial used, as the launcher of its site tells it."""

from collections.abc import Mapping

from weighbridge.model.command import Completed
from weighbridge.runner.metering import Sample


def samples(completed: Mapping[str, Completed]) -> tuple[Sample, ...]:
    """Role, name and value: CPU seconds, bytes, counts, and its wall time as seen from outside of the site."""
    found: list[Sample] = []
    for role, each in completed.items():
        if each.outside_s is not None:
            found.append((role, "program_outside_s", each.outside_s))
        if each.usage is None:
            continue
        told = {
            "program_cpu_user_s": each.usage.cpu_user_s,
            "program_cpu_system_s": each.usage.cpu_system_s,
            "program_peak_bytes": each.usage.peak_memory,
            "program_switches": each.usage.switches,
            "program_preemptions": each.usage.preemptions,
            "program_minor_faults": each.usage.minor_faults,
            "program_major_faults": each.usage.major_faults,
        }
        found += [(role, name, float(value)) for name, value in told.items()]
    return tuple(found)
