"""The configuration of a Xen domain for ``xl``, and a parser for the output of ``xl``. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from weighbridge.errors import Unavailable
from weighbridge.features.guests.console import reason
from weighbridge.hosts.bridge import Bridge
from weighbridge.linux.links import NO_OFFLOADS

DomainType = Literal["pv", "pvh", "hvm"]
WORDS: Mapping[DomainType, str] = {"pv": "PV", "pvh": "PVH", "hvm": "HVM"}
CONSOLE = "/dev/hvc0"
DRIVERS = ("xen-blkfront", "xen-netfront", "crc32c_generic", "ext4", "tcp_diag", "udp_diag")
"""The driver names of `weighbridge.features.guests.kernel`."""
_DISKS = ("xvde", "xvdf")
"""The first names for which the machine of an HVM domain has no IDE disk beside them, that cannot be read-only."""
_ROW = re.compile(
    r"^(?P<name>\S+) +(?P<id>\d+) +(?P<memory>\d+) +\d+ +(?P<state>\S+) +(?P<cpu_s>\d+\.\d+)$", re.MULTILINE
)
_ERROR = re.compile(r"^libxl: error: \S+:(?:Domain \d+:)?(.*)$", re.MULTILINE)
_INFO = re.compile(r"^(\w+) *: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DomainInterface:
    """A domain's network interface: ``port`` is its name on the host, as a port of ``bridge``."""

    port: str
    bridge: Bridge
    guest_address: str
    offloads: bool = True
    """Whether either end takes packets that are larger than a frame."""

    @property
    def hardware(self) -> str:
        """The address of the guest's interface, of Xen's own range: no other domain of the run has it."""
        return "00:16:3e:" + ":".join(f"{int(part):02x}" for part in self.guest_address.split(".")[1:])


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain. Paths are its host's; ``disks`` are the root folder's, read-only, and one for data."""

    name: str
    type: DomainType
    kernel: str
    ramdisk: str
    vcpus: int
    memory: int
    """Bytes."""
    disks: tuple[str, ...]
    script: str
    """What joins its disks and its interface to the host."""
    interface: DomainInterface | None = None
    cpus: str | None = None
    """The list of CPUs that it can use."""
    cap: int | None = None
    """The limit of its CPU time, in percent of one CPU."""
    emulated: bool = False
    """Whether Xen itself is on an emulated CPU, which has not all that it shows."""
    open_files: int = 1024

    @property
    def creator(self) -> tuple[str, ...]:
        """What stands before the program that has the domain made: ``script`` inherits it from there (ethtool(8))."""
        plain = self.interface is not None and not self.interface.offloads
        return ("env", f"WEIGHBRIDGE_OFFLOADS={' '.join(NO_OFFLOADS)}") if plain else ()

    def config(self) -> str:
        """The text of its configuration (xl.cfg(5)). Raises Unavailable if it cannot express a path."""
        lines = [
            f"name = {_quoted(self.name)}",
            f"type = {_quoted(self.type)}",
            f"kernel = {_quoted(self.kernel)}",
            f"ramdisk = {_quoted(self.ramdisk)}",
            f"cmdline = {_quoted(' '.join(self.command_line()))}",
            f"vcpus = {self.vcpus}",
            f"memory = {self.memory >> 20}",
            f"disk = [ {', '.join(self._disks())} ]",
            *(f'on_{what} = "destroy"' for what in ("poweroff", "reboot", "crash")),
        ]
        if self.interface is not None:
            net = self.interface
            vif = f"mac={net.hardware},bridge={net.bridge.name},vifname={net.port},type=vif,script={self.script}"
            lines.append(f"vif = [ {_quoted(vif)} ]")
        if self.cpus is not None:
            lines.append(f"cpus = {_quoted(self.cpus)}")
        if self.cap is not None:
            lines.append(f"cap = {self.cap}")
        if self.emulated:
            lines.append('tsc_mode = "native"')
            if self.type != "pv":  # an emulated CPU shows rdtscp, but Xen has it not for its guests
                lines.append('cpuid = "host,rdtscp=0"')
        if self.type == "hvm":
            lines += ["xen_platform_pci = 1", 'vga = "none"', "vnc = 0"]
        return "\n".join(lines)

    def command_line(self) -> tuple[str, ...]:
        """Return the kernel's command line, with the arguments of its first process behind the dashes."""
        words = ["console=hvc0", "quiet", "panic=-1", "--", "--modules", ",".join(DRIVERS), "--terminal", CONSOLE]
        for what, device in zip(("--disk", "--data"), _DISKS[: len(self.disks)], strict=False):
            words += [what, f"/dev/{device}"]
        if (net := self.interface) is not None:
            words += ["--address", net.guest_address, "--mask", "255.255.255.0", "--gateway", net.bridge.gateway]
            words += ["--mtu", str(net.bridge.mtu)]
        return (*words, "--files", str(self.open_files), "--name", self.name)

    def _disks(self) -> list[str]:
        access = ("r", "w")
        return [
            _quoted(f"format=raw,vdev={device},access={how},script={self.script},target={path}")
            for device, how, path in zip(_DISKS, access, self.disks, strict=False)
        ]


def _quoted(value: str) -> str:
    if any(each in value for each in "\"'\\\n"):
        raise Unavailable(f"xl cannot handle the quotes in {value!r}: move it (WEIGHBRIDGE_CACHE)")
    return f'"{value}"'


def use_of(listed: str, name: str) -> Mapping[str, float]:
    """Return a domain's counters from the output of ``xl list``: CPU time to a tenth of a second, and memory."""
    for row in _ROW.finditer(listed):
        if row["name"] == name:
            return {"cpu_s": float(row["cpu_s"]), "memory_bytes": float(int(row["memory"]) << 20)}
    return {}


def is_ending(listed: str, name: str) -> bool:
    """Return whether ``xl list`` shows no running domain: it is shut down, crashed, dying, or not listed."""
    states = [row["state"] for row in _ROW.finditer(listed) if row["name"] == name]
    return not states or bool({*"scd"} & {*states[0]})


def reason_of(stderr: bytes) -> str:
    """Return why a domain ended, in one line, from the output of its kernel and of xl; empty if unknown.

    What a kernel says without naming an end (a warning as it came up) is not a reason, and hides none of xl's.
    """
    text = stderr.decode(errors="replace")
    errors = [match[1] for match in _ERROR.finditer(text) if "estr" not in match[0]]  # that it was gone already
    return reason(stderr) or (errors[0].strip() if errors else "")


def info_of(printed: str) -> Mapping[str, str]:
    """Return what ``xl info`` prints, by name."""
    return dict(_INFO.findall(printed))


def memory_of_xen(printed: str) -> Mapping[str, int]:
    """Return bytes from ``xl info``'s output: ``total``, and ``available`` to domains; unknown ones are omitted."""
    info = info_of(printed)
    names = {"total": "total_memory", "available": "free_memory"}
    return {name: int(info[field]) << 20 for name, field in names.items() if info.get(field, "").isdecimal()}
