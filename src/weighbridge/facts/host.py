"""The fingerprint of a machine, which readers need to compare its figures with another machine's."""

import contextlib
import hashlib
import hmac
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from weighbridge.engines import firewall
from weighbridge.facts.interrupts import of_this_machine
from weighbridge.facts.packet_filter import count_nftables
from weighbridge.facts.virtual_machine import hypervisor
from weighbridge.linux import cgroup_files, counters, firewalld, own_container, selinux
from weighbridge.linux.process import output
from weighbridge.model.host import MACHINE_ID, NODE, PLACED_BY
from weighbridge.model.interrupt_time import INTERRUPT_TIME

_SYSCTLS = (
    "net/core/rmem_max", "net/core/wmem_max", "net/core/somaxconn", "net/core/netdev_max_backlog",
    "net/core/default_qdisc", "net/ipv4/tcp_congestion_control", "net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem",
    "net/ipv4/ip_forward", "net/ipv4/ip_local_port_range", "net/netfilter/nf_conntrack_max",
    "net/bridge/bridge-nf-call-iptables", "vm/swappiness", "vm/overcommit_memory",
    "kernel/numa_balancing", "kernel/sched_autogroup_enabled",
)  # fmt: skip


_VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities"
_KNOWN_VULNERABILITIES = (
    "gather_data_sampling", "ghostwrite", "indirect_target_selection", "itlb_multihit", "l1tf", "mds", "meltdown",
    "mmio_stale_data", "old_microcode", "reg_file_data_sampling", "retbleed", "spec_rstack_overflow",
    "spec_store_bypass", "spectre_v1", "spectre_v2", "srbds", "tsa", "tsx_async_abort", "vmscape",
)  # fmt: skip
"""The vulnerabilities of Linux 6.17, for machines whose folders cannot be listed."""


def machine_facts(
    text: Callable[[str], str], vulnerabilities: Iterable[str] = _KNOWN_VULNERABILITIES
) -> dict[str, str]:
    """Return facts from the files of a machine's kernel; ``text`` returns a file's text, "" if it is missing."""
    states = {name: text(f"{_VULNERABILITIES}/{name}") for name in vulnerabilities}
    return {
        **_cpu(text),
        "kernel command line": text("/proc/cmdline"),
        "memory": _memory(text("/proc/meminfo")),
        "clock source": text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "transparent huge pages": _chosen(text("/sys/kernel/mm/transparent_hugepage/enabled")),
        "mitigations": _mitigations(states),
        **{f"sysctl {name.replace('/', '.')}": text(f"/proc/sys/{name}") for name in _SYSCTLS},
    }


_MACHINE_ID_KEY = b"weighbridge: which machine is it"
"""A key, because machine-id(5) asks not to show the id itself, and to hash it with a key."""
_DMI = "/sys/class/dmi/id"


def machine_id_fact(machine_id: str) -> str:
    """Return 16 hexadecimal digits that identify a machine by its machine-id(5); "" if it has none."""
    plain_id = machine_id.strip()
    if not re.fullmatch(r"[0-9a-fA-F-]{32,36}", plain_id):  # missing, or "uninitialized"
        return ""
    return hmac.new(_MACHINE_ID_KEY, plain_id.replace("-", "").lower().encode(), hashlib.sha256).hexdigest()[:16]


def hardware_facts(text: Callable[[str], str]) -> dict[str, str]:
    """Return a machine's model and firmware; ``text`` returns a file's text, "" if it is missing."""
    parts = {name: text(f"{_DMI}/{name}") for name in ("sys_vendor", "product_name", "bios_version", "bios_date")}
    device_tree = text("/sys/firmware/devicetree/base/model").rstrip("\0")
    return {
        "model": " ".join(filter(None, (parts["sys_vendor"], parts["product_name"]))) or device_tree,
        "firmware": " of ".join(filter(None, (parts["bios_version"], parts["bios_date"]))),
    }


def identity_facts() -> dict[str, str]:
    """Return the identity of this machine: its name, its id, its hardware, and its Slurm job."""
    job, node = (os.environ.get(name, "") for name in ("SLURM_JOB_ID", "SLURMD_NODENAME"))
    return {
        NODE: platform.node(),
        MACHINE_ID: machine_id_fact(_read("/etc/machine-id")),
        **hardware_facts(_read),
        PLACED_BY: f"Slurm job {job}" + (f" on {node}" if node else "") if job else "",
    }


def noise_facts() -> dict[str, str]:
    """Return the facts of this machine that its noise depends on."""
    cpu = _cpu(_read)
    return {
        "machine": machine_id_fact(_read("/etc/machine-id")),
        "kernel": platform.release(),
        **{name: cpu[name] for name in ("CPU", "CPUs online")},
    }


def fingerprint() -> dict[str, str]:
    """Return facts that do not change during a run, without unknown ones."""
    return {
        **machine_facts(_read, (path.name for path in sorted(Path(_VULNERABILITIES).glob("*")))),
        "kernel": f"{platform.system()} {platform.release()} {platform.version()}",
        "architecture": platform.machine(),
        "operating system": _os_name(),
        "cgroup version": str(cgroup_files.version()),
        INTERRUPT_TIME: of_this_machine(),
        "virtualisation": _virtualisation(),
        "user": "root" if os.geteuid() == 0 else "unprivileged",
        **identity_facts(),
        **_programs(),
        selinux.FACT: selinux.state(),
        own_container.FACT: own_container.engine(),
    }


def volatile_facts() -> dict[str, str]:
    """Return facts that change during a run: load, steal since boot, firewall rules, interfaces."""
    steal = counters.cpu_ticks(_read("/proc/stat")).get("steal")
    return {
        "load": _read("/proc/loadavg"),
        "steal": "" if steal is None else f"{steal / os.sysconf('SC_CLK_TCK'):.2f} s since boot",
        "firewall rules": _number_text(firewall.count()) if os.geteuid() == 0 else "",
        "nftables rules": _nft_rules(),
        firewalld.FACT: "running" if firewalld.runs() else "",
        **_interfaces(),
    }


def _virtualisation() -> str:
    name = hypervisor()
    return "not known" if name is None else name or "none seen"


def _arm_cpu(implementer: str, part: str) -> str:
    """Return an arm64 CPU by the numbers of its maker and model, because /proc/cpuinfo does not name it."""
    return f"implementer {implementer}, part {part}" if implementer and part else ""


def _cpu(text: Callable[[str], str]) -> dict[str, str]:
    info = text("/proc/cpuinfo")

    def field(name: str) -> str:
        match = re.search(rf"^{name}\s*:\s*(.+)$", info, re.MULTILINE)
        return match.group(1) if match else ""

    return {
        "CPU": field("model name") or field("Hardware") or _arm_cpu(field("CPU implementer"), field("CPU part")),
        "CPUs online": text("/sys/devices/system/cpu/online"),
        "cores": field("cpu cores"),
        "microcode": field("microcode"),
        "SMT": text("/sys/devices/system/cpu/smt/control"),
        "frequency governor": text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "none",
    }


def _mitigations(states: Mapping[str, str]) -> str:
    active = [f"{name}: {state}" for name, state in states.items() if state and state != "Not affected"]
    return "; ".join(active) or ("none needed" if any(states.values()) else "")


def _programs() -> dict[str, str]:
    commands = {
        "dockerd": ("dockerd", "--version"),
        "runc": ("runc", "--version"),
        "containerd": ("containerd", "--version"),
        "iptables": ("iptables", "--version"),
    }
    answers = {name: output(argv) for name, argv in commands.items()}
    return {f"version of {name}": answer.splitlines()[0] for name, answer in answers.items() if answer}


def _interfaces() -> dict[str, str]:
    interfaces = {}
    for path in sorted(Path("/sys/class/net").glob("*")):
        mtu, state = _read(path / "mtu"), _read(path / "operstate")
        if not mtu or (state == "down" and path.name != "lo"):
            continue
        features = output(("ethtool", "-k", path.name)) or ""
        names = ("tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload")
        states = [f"{name} {value}" for name in names if (value := _feature(features, name))]
        interfaces[f"interface {path.name}"] = ", ".join([f"mtu {mtu}", *states])
    return interfaces


def _feature(features: str, name: str) -> str:
    match = re.search(rf"^{name}: (\w+)", features, re.MULTILINE)
    return match.group(1) if match else ""


def _nft_rules() -> str:
    count = count_nftables(output(("nft", "-j", "list", "ruleset")) or "") if os.geteuid() == 0 else None
    return _number_text(count)


def _number_text(count: int | None) -> str:
    return "" if count is None else str(count)


def _memory(meminfo: str) -> str:
    total = counters.memory_kib(meminfo).get("MemTotal")
    return f"{total / 2**20:.1f} GiB" if total else ""


def _os_name() -> str:
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)', _read("/etc/os-release"), re.MULTILINE)
    return match.group(1) if match else ""


def _chosen(text: str) -> str:
    match = re.search(r"\[(\w+)\]", text)
    return match.group(1) if match else text


def _read(path: str | Path) -> str:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return Path(path).read_text().strip().replace("\t", " ")
    return ""
