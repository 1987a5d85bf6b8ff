"""The machine as a run finds it, to be compared with what it leaves."""

import json
import os
import re
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from weighbridge.linux import cgroups, process
from weighbridge.linux.process import run_of
from weighbridge.runner import living
from weighbridge.runner import run_lock as state
from weighbridge.userland.build import cache_folder

PROGRAMS = {
    "dockerd", "containerd", "docker-proxy", "redis-server", "redis-benchmark", "iperf3", "sysbench", "nginx", "wrk",
    "mariadbd", "mysqld", "qemu-system-x86", "hpcc", "pbzip2", "podman", "conmon", "slirp4netns", "pasta",
    "etcd", "kubelet", "kube-apiserver", "kube-controller", "kube-scheduler", "kube-proxy", "kube-router",
    "squashfuse_ll", "fuse-overlayfs",
}  # fmt: skip
FOLDERS = tuple(
    Path(path)
    for path in (
        "/run/docker", "/run/docker.pid", "/run/docker.sock", "/run/containerd", "/run/runc", "/run/netns",
        "/etc/docker", "/etc/containerd", "/var/lib/docker", "/var/lib/containerd", "/var/lib/cni",
        "/var/lib/weighbridge", "/opt/containerd", "/run/containers", "/run/libpod", "/var/lib/containers",
        "/etc/containers/networks", "/dev/shm/libpod_lock", "/run/user", "/etc/cni", "/run/cni", "/opt/cni",
        "/var/lib/kubelet", "/var/log/pods", "/var/log/containers", "/usr/libexec/kubernetes", "/run/kubernetes",
    )
)  # fmt: skip
"""Whatever an engine may write to, beside its own data in the cache."""
TEMPORARY = ("containerd*", "docker*", "runc*", "weighbridge-[0-9]*")
MOUNTS = ("weighbridge", "userlands", "docker", "containerd", "netns", "overlay", "cgroup", "loop")
SYSCTLS = (
    "net/ipv4/ip_forward", "net/ipv[46]/conf/all/forwarding", "net/ipv6/conf/default/forwarding",
    "net/bridge/bridge-nf-*", "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic*", "kernel/keys/root_max*",
)  # fmt: skip
XTABLES = ("filter", "nat", "mangle", "raw", "security")
"""The tables of iptables, whose rules iptables-save tells: only nft removes them."""
SETTLE_S = 10.0
OTHERS_S = 240.0


@dataclass(frozen=True)
class Machine:
    """Everything on the machine that a run may change, as lines of text."""

    lines: frozenset[str]

    @classmethod
    def as_it_is(cls) -> "Machine":
        """Now; waits for runs that are not ours (another terminal's) to end, as they change it under our hands."""
        deadline = time.monotonic() + OTHERS_S
        while _of_others() and time.monotonic() < deadline:
            time.sleep(0.2)
        return cls(frozenset(_lines()))

    def must_be_unchanged(self) -> None:
        """Fail with a list of every difference. Links and mounts of a namespace that ended vanish a moment later."""
        began = time.monotonic()
        while (now := frozenset(_lines())) != self.lines:
            waited = time.monotonic() - began
            if waited > (OTHERS_S if _of_others() else SETTLE_S):
                break
            time.sleep(0.1)
        appeared, vanished = sorted(now - self.lines), sorted(self.lines - now)
        assert not appeared and not vanished, "left behind: " + "; ".join(appeared) + " vanished: " + str(vanished)


def _living() -> set[str]:
    return {run for run in state.known_runs() if living.alive(run)}


def _of_others() -> set[str]:
    return {run for run in _living() if _owner(run) != os.getpid()}


def _owner(run: str) -> int:
    try:
        return int(json.loads((state.base() / run / "owner.json").read_text())["pid"])
    except (OSError, ValueError, KeyError):
        return 0


def _lines() -> Iterator[str]:
    living = _living()
    for line in (*_kernel(), *_files()):
        if not any(run in line or f"wb-{run[-6:]}-" in line for run in living):
            yield line
    for pid, run, name in processes():
        if run not in living:
            yield f"process {pid} {name} of run {run or '?'}"


def _kernel() -> Iterator[str]:
    for link in Path("/sys/class/net").iterdir():
        yield f"link {link.name}"
    for mount in Path("/proc/self/mounts").read_text().splitlines():
        if any(word in mount for word in MOUNTS):
            yield f"mount {mount}"
    for loop in Path("/sys/block").glob("loop*/loop/backing_file"):
        backing = loop.read_text().strip()
        elsewhere = not Path(backing).exists() and not backing.endswith("(deleted)")  # of another worker's machine
        shared = backing.endswith(".sif")  # all have one cache: of an Apptainer, it goes with its process
        if any(word in backing for word in MOUNTS) and not elsewhere and not shared:
            yield f"loop device {backing}"
    for hierarchy in cgroups.hierarchies():
        for top in (*cgroups.TOPS, "docker"):
            for group in (hierarchy / top, *(hierarchy / top).rglob("*/")):
                if group.is_dir():
                    yield f"control group {group}"
    for program in ("iptables-save", "ip6tables-save"):
        rules = subprocess.run([program], capture_output=True, text=True, check=False).stdout
        lines = (re.sub(r" .[0-9]+:[0-9]+.$", "", line) for line in rules.splitlines() if line[:1] in "*-:")
        yield from (f"{program} {number} {rule}" for number, rule in enumerate(_of_tables(lines)))
    tables = process.output(("nft", "list", "tables")) or ""
    yield from (f"nft {table}" for table in tables.splitlines() if table.split()[-1] not in XTABLES)
    for path in (path for pattern in SYSCTLS for path in sorted(Path("/proc/sys").glob(pattern))):
        yield f"sysctl {path} {path.read_text().strip()}"


def _of_tables(lines: Iterable[str]) -> Iterator[str]:
    """Each with its table, but not the kernel's own chains that let all pass: only nft removes those."""
    table = ""
    for line in lines:
        if line.startswith("*"):
            table = line[1:]
        elif not re.fullmatch(r":\S+ ACCEPT", line):
            yield f"{table} {line}"


def _files() -> Iterator[str]:
    for folder in (*FOLDERS, state.base(), cache_folder() / "engines"):
        for path in (folder, *folder.rglob("*")):
            if path.exists() or path.is_symlink():
                yield f"file {path}"
    for path in (
        *Path("/dev/shm").glob("weighbridge*"),
        *(path for each in TEMPORARY for path in Path("/tmp").glob(each)),
    ):
        yield f"file {path}"
    for path in (cache_folder() / "userlands").glob(".building-*"):
        yield f"file {path}"


_GROUP = re.compile(r"/weighbridge/([0-9a-f]{12})(?:/|$)", re.MULTILINE)


def processes() -> Iterator[tuple[int, str, str]]:
    """Every process that carries a run's id, or is a program that runs start: (pid, run id or "", name)."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name = (folder / "comm").read_text().strip()
            if (folder / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                continue  # it has ended; whoever started it has yet to ask how
            group = _GROUP.search((folder / "cgroup").read_text())  # some overwrite their environment (redis)
            run = run_of(folder) or (group[1] if group else "")
        except OSError:
            continue
        if int(folder.name) != os.getpid() and (run or name in PROGRAMS):
            yield int(folder.name), run, name
