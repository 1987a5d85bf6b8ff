"""watch.py SECONDS STOP: print each distinct state of the sites of runs as a line of JSON, until STOP exists.

It runs in the machine, as root, beside a run. A line has every control group with processes of a site, at one moment:
the site's name, the names of its programs, and by file what it and each group above it say, the innermost first.
A state that changed while it was read is left out.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
FILES = ("cpu.max", "memory.max", "cgroup.freeze")
TOPS = ("weighbridge", "weighbridge.slice", "docker", "system.slice/docker-*", "machine.slice", "user.slice/user-*")
SITE = re.compile(r"\d+-.+-(server|client)")
names = {}


def read(path):
    try:
        return path.read_text().strip()
    except OSError:
        return None


def site_of(folder, pid):
    """Return the name of the site: of the group itself, or the hostname of the container that a scope is of."""
    if not names.get(folder):  # a container has its hostname a moment after its first process is there
        name = folder.name
        if any(part.startswith(("docker-", "libpod-")) for part in folder.parts):
            words = ["nsenter", "-t", pid, "-u", "hostname"]
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
            name = done.stdout.strip()
        names[folder] = name if SITE.fullmatch(name) else ""
    return names[folder]


def state():
    groups = []
    for top in (folder for pattern in TOPS for folder in MOUNT.glob(pattern)):
        for folder in map(Path, (each for each, _, _ in os.walk(top))):
            pids = (read(folder / "cgroup.procs") or "").split()
            site = site_of(folder, pids[0]) if pids else ""
            if site:
                programs = sorted({read(Path("/proc") / pid / "comm") or "" for pid in pids})
                above = [folder, *(each for each in folder.parents if MOUNT in each.parents)]
                files = {name: [read(each / name) for each in above] for name in FILES}
                groups.append({"site": site, "programs": programs, "files": files})
    return sorted(groups, key=lambda group: group["site"])


def main(seconds, stop):
    seen, ends = set(), time.monotonic() + seconds
    while time.monotonic() < ends and not stop.exists():
        groups = state()
        line = json.dumps(groups)
        if groups and line not in seen and state() == groups:
            seen.add(line)
            print(line, flush=True)
        time.sleep(0.5)


main(float(sys.argv[1]), Path(sys.argv[2]))
