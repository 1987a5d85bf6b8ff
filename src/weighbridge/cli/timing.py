"""The table of ``--timing``: how long each phase of a run took."""

import os
import time
from pathlib import Path

from rich.table import Table

from weighbridge.cli.output import err
from weighbridge.model.timing import Phase, Timing

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_START_FIELD = 19
"""The place of the start time after the name of the program in /proc/PID/stat (proc_pid_stat(5))."""
_TITLES = {
    Phase.START: "start of the program",
    Phase.PREPARATION: "checks and facts",
    Phase.SET_UP: "set-up",
    Phase.PILOT: "pilot round",
    Phase.TRIALS: "trials",
    Phase.EVALUATION: "interim looks",
    Phase.CLEANUP: "cleanup",
    Phase.REPORT: "report",
}


def timing_since_start() -> Timing:
    """Return a timing that includes the time since this process began."""
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[_START_FIELD]) / _TICKS_PER_S
    return Timing(max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started))


def timing_rows(timing: Timing) -> list[tuple[str, float]]:
    """Return the rows of the table: names and seconds, with the set-up of each environment, and the total."""
    phases, rows = timing.phases, list[tuple[str, float]]()
    for phase, seconds in phases.items():
        rows.append((_TITLES[phase], seconds))
        if phase is Phase.SET_UP:
            rows += [(f"  of {name} (overlaps)", each) for name, each in timing.environments.items()]
    rows.append(("total", sum(phases.values())))
    if timing.first_estimate_s is not None:
        rows.append(("first estimate after", timing.first_estimate_s))
    return rows


def print_timing(timing: Timing) -> None:
    """Print the table on standard error."""
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    for name, seconds in timing_rows(timing):
        table.add_row(name, f"{seconds:.2f} s")
    err().print(table)
