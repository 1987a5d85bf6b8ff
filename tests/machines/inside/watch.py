"""watch.py SECONDS STOP: print each distinct state of control groups as a line of JSON, until STOP exists.

It runs in the machine, as root, beside a run. Each line has a group's folder, its files and its processes' names.
"""

import json
import os
import sys
import time
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
FILES = ("cpu.max", "memory.max", "memory.swap.max", "cpuset.cpus", "pids.max", "cgroup.freeze")
TOPS = (
    "weighbridge",
    "weighbridge-idle",
    "docker",
    "system.slice/docker-*",
    "machine.slice",
    "lxc*",
    "user.slice/user-*",
)


def read(path):
    try:
        return path.read_text().strip()
    except OSError:
        return None


def name_of(pid):
    return read(Path("/proc") / pid / "comm")


def main(seconds, stop):
    seen, ends = set(), time.monotonic() + seconds
    while time.monotonic() < ends and not stop.exists():
        for top in (folder for pattern in TOPS for folder in MOUNT.glob(pattern)):
            for folder, _, _ in os.walk(top):
                files = {name: read(Path(folder) / name) for name in FILES}
                pids = (read(Path(folder) / "cgroup.procs") or "").split()
                names = sorted({name for name in map(name_of, pids) if name})
                line = json.dumps({"folder": folder.removeprefix(f"{MOUNT}/"), "files": files, "programs": names})
                if line not in seen:
                    seen.add(line)
                    print(line, flush=True)
        time.sleep(1.5)


main(float(sys.argv[1]), Path(sys.argv[2]))
