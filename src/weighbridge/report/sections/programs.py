"""The page's table of what each program used, beside its site."""

from collections.abc import Sequence
from typing import Any

from weighbridge.analysis.metered import PLACES
from weighbridge.analysis.program_use import GUEST_CPU, GUEST_STEAL, SITE_CPU, UNITS, ProgramUse
from weighbridge.report.text.formatting import quantity, shared_unit

HEADS = {
    "program_cpu_user_s": "CPU, user",
    "program_cpu_system_s": "CPU, system",
    SITE_CPU: "CPU of its site",
    GUEST_CPU: "CPU as its guest sees it",
    GUEST_STEAL: "steal as its guest sees it",
    "program_peak_bytes": "peak memory",
    "program_switches": "context switches",
    "program_preemptions": "preemptions",
    "program_minor_faults": "minor faults",
    "program_major_faults": "major faults",
    "program_outside_s": "wall time from outside",
}


def program_table(used: Sequence[ProgramUse]) -> dict[str, Any]:
    """Return the heads of the columns that some program has, and the rows by role, none without a program."""
    names = [name for name in HEADS if any(name in each.medians for each in used)]
    units = {name: shared_unit([each.medians.get(name) for each in used], UNITS.get(name, "s")) for name in names}
    roles: dict[str, list[list[str]]] = {}
    for each in used:
        cells = [quantity(each.medians.get(name), UNITS.get(name, "s"), units[name]) for name in names]
        roles.setdefault(PLACES[each.role], []).append([each.environment, *cells])
    return {"heads": [HEADS[name] for name in names], "roles": roles}
