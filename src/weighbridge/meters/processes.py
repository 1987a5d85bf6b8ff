"""The processes of a site that has no control group, from their /proc/PID/stat lines (proc(5))."""

import re
from collections.abc import Sequence

from weighbridge.meters.parse import Numbers

_LINE = re.compile(r"^(\d+) \(.*\) [A-Za-z] ([-\d ]+)$")


def trees(texts: Sequence[str | None], ticks: int, page: int) -> list[Numbers | None]:
    """At each moment: CPU seconds (user and system), resident memory and number of threads of all processes.

    A process that ended keeps what it was last seen to have used: what it used after that, and processes that lived
    only between two readings, are missed.
    """
    seen: dict[tuple[str, str], float] = {}
    found: list[Numbers | None] = []
    for text in texts:
        if text is None:
            found.append(None)
            continue
        resident = threads = 0
        for line in text.split("\n")[:-1]:
            match = _LINE.match(line)
            fields = match[2].split() if match else []
            if match is None or len(fields) < 21:
                continue
            user, system, count, started, pages = (int(fields[at]) for at in (10, 11, 16, 18, 20))
            seen[match[1], str(started)] = (user + system) / ticks
            resident += pages * page
            threads += count
        levels = {"memory_anonymous_bytes": float(resident), "pids_count": float(threads)}
        found.append(Numbers({"cpu_share": sum(seen.values())}, levels))
    return found
