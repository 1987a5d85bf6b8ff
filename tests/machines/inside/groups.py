"""In a machine with systemd: control groups limit, freeze and meter as they should; those of a user as those of root.

    PYTHONPATH=src python3 tests/machines/inside/groups.py
    PYTHONPATH=src systemd-run --user --scope -p Delegate=yes python3 tests/machines/inside/groups.py

Ends with 0 and "as expected", else with what is not; nothing is left of it.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from weighbridge.linux import cgroups, delegation
from weighbridge.linux.cgroup_files import ITSELF, process_limit
from weighbridge.linux.cgroups import Cgroup
from weighbridge.model.host import Limits
from weighbridge.model.names import GroupName, RunId

RUN = RunId("de1e6a7ed000")
LIMITS = Limits(cpus=0.5, memory=2**28)
"""Half a CPU, for a program that takes all that there is."""
_TAKES_ALL = "echo 0 > {}; while :; do :; done"


def main() -> None:
    """Make a group as a run does, and see what holds in it."""
    if os.geteuid() == 0:
        group = Cgroup(GroupName(RUN, "site")).create()
    else:
        assert delegation.lacking() == "", delegation.lacking()
        tree = delegation.tree(RUN)
        assert Path("/proc/self/cgroup").read_text().strip().endswith(f"/{tree.name}/{ITSELF}")
        group = Cgroup(GroupName(RUN, "site"), mount=tree).create()
    assert group.limit(LIMITS) == {}, group.limit(LIMITS)
    program = subprocess.Popen(["sh", "-c", _TAKES_ALL.format(group.procs[0])])
    try:
        before, began = group.meters().get("cpu_s", 0.0), time.monotonic()
        time.sleep(5)
        used, passed = group.meters()["cpu_s"] - before, time.monotonic() - began
        assert used < 0.65 * passed, f"{used:.2f} s of CPU time in {passed:.2f} s"
        assert group.pids() == {program.pid}
        group.freeze()
        frozen = group.meters()["cpu_s"]
        time.sleep(1)
        assert group.meters()["cpu_s"] == frozen, "frozen, it went on"
        assert cgroups.runs() == [RUN]
        limit = process_limit(lambda path: Path(path).read_bytes(), program.pid)
        print(f"{group.procs[0].parent}: {used / passed:.2f} CPUs, {LIMITS.memory} bytes, {limit} processes")
    finally:
        for each in cgroups.groups_of(GroupName(RUN)):
            each.kill()
            each.remove()
        program.wait()
        cgroups.remove_top()
    assert cgroups.runs() == []


try:
    main()
except AssertionError as error:
    sys.exit(f"not as expected: {error}")
print("as expected")
