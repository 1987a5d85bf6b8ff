"""The machine that QEMU emulates for a guest, as a pure function to its argument list."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from weighbridge.features.guests.architecture import HOST, Architecture
from weighbridge.features.guests.network import Network
from weighbridge.features.guests.words import words

Accelerator = Literal["kvm", "tcg"]
Nic = Literal["virtio", "vhost", "e1000", "e1000e", "rtl8139"]
DiskBus = Literal["virtio", "ide"]
CacheMode = Literal["writeback", "writethrough", "none", "directsync", "unsafe"]
MachineType = Literal["standard", "microvm"]
"""The machine of QEMU: the usual one for the architecture (q35, virt), or one without PCI."""

DATA_DRIVE = "d1"
"""The name of the second disk."""
_ERRORS = ",werror=report,rerror=report"
"""Options that report errors: by default, a full disk of the host stops the guest for ever."""
_PLAIN = ",".join(
    (
        "",
        "csum=off",
        "gso=off",
        *(f"{end}_{what}=off" for end in ("host", "guest") for what in ("tso4", "tso6", "ecn", "ufo")),
    )
)
"""Options of a virtio interface whose packets are no larger than its cable's."""
_ACCELERATORS = {"kvm": "kvm", "tcg": "tcg,thread=multi"}
_NICS: Mapping[Nic, tuple[str, str]] = {
    "virtio": ("virtio-net-pci", "virtio_net"),
    "vhost": ("virtio-net-pci", "virtio_net"),
    "rtl8139": ("rtl8139", "8139cp"),
    "e1000": ("e1000", "e1000"),
    "e1000e": ("e1000e", "e1000e"),
}
"""The QEMU device of an interface, and its driver in the guest."""
_DISK_DRIVERS: dict[str, tuple[str, ...]] = {"virtio": ("virtio_blk",), "ide": ("ata_piix", "sd_mod")}
_DISK_NAMES = {"virtio": "vd", "ide": "sd"}
_FIRST_DOMAIN = 0.5, 512 * 2**20
"""The share of a machine's memory for the first domain of its hypervisor, and the least bytes of it."""
_ALWAYS = ("virtio_console", "crc32c_generic", "ext4", "tcp_diag", "udp_diag")
_BUSES: Mapping[MachineType, tuple[str, str]] = {
    "standard": ("-pci", "virtio_pci"),
    "microvm": ("-device", "virtio_mmio"),
}
"""The end of the names of virtio's devices, and the driver of their bus in the guest."""
_MICROVM = "microvm,acpi=on"
"""The machine. Its kernel finds the devices in the tables of ACPI."""


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk image, and how it is attached to the machine."""

    image: Path
    bus: DiskBus = "virtio"
    cache: CacheMode = "writeback"
    read_only: bool = False
    temporary: bool = False
    """Whether writes go to an unnamed file in the folder of TMPDIR, which ends with QEMU."""
    socket: Path | None = None
    """The socket of an NBD server for the image, which QEMU then does not open itself."""


@dataclass(frozen=True, slots=True)
class QemuMachine:
    """A guest: its hardware, its kernel, and the arguments of its first process."""

    name: str
    kernel: Path
    ramdisk: Path
    accelerator: Accelerator
    cpus: int
    memory: int
    """Bytes of its RAM."""
    disks: tuple[Disk, ...] = ()
    """Its disks: the first holds its root folder, the second its data."""
    network: Network | None = None
    nic: Nic = "virtio"
    open_files: int = 1024
    arguments: tuple[str, ...] = field(default=())
    """Further arguments of its first process."""
    queues: int = 1
    """Pairs of queues of its virtio interface, which let packets of several virtual CPUs pass in parallel."""
    huge_pages: bool = False
    """Whether its RAM is in huge pages of the host, which are all allocated before it boots."""
    monitor: Path | None = None
    """The socket of its monitor (QMP), through which it is changed while it runs."""
    hypervisor: Path | None = None
    """A hypervisor that is booted first; the kernel is then that of its first domain."""
    architecture: Architecture = HOST
    machine_type: MachineType = "standard"
    tsc_khz: int = 0
    """The frequency of the host's time stamp counter, for a machine that cannot measure it; 0 for others."""
    window: ClassVar[int] = 0
    vsock: ClassVar[None] = None

    def argv(self) -> tuple[str, ...]:
        """Return QEMU's argument list. Its stdin and stdout are the launcher's stream, its stderr is the console."""
        architecture = self.architecture
        model = architecture.cpus[self.accelerator]
        if self.hypervisor is not None:  # with SMAP, the first domain dies under it (QEMU 7.2)
            model += ",-smap"
        return (
            architecture.program, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
            "-M", f"{self._type()}{',memory-backend=ram' if self.huge_pages else ''}",
            "-name", f"{self.name},debug-threads=on",
            "-accel", _ACCELERATORS[self.accelerator], "-cpu", model, "-smp", str(self.cpus),
            "-m", f"{self.memory >> 20}M", *self._memory(),
            *self._boot(),
            "-chardev", "stdio,id=port,signal=off", "-device", self._virtio("serial"),
            "-device", "virtserialport,chardev=port,name=weighbridge",
            "-chardev", "file,id=console,path=/dev/stderr,append=on", "-serial", "chardev:console",
            *self._disks(), *self._network(), *self._monitor(),
        )  # fmt: skip

    def _type(self) -> str:
        return _MICROVM if self.machine_type == "microvm" else self.architecture.machine

    def _virtio(self, name: str) -> str:
        return f"virtio-{name}{_BUSES[self.machine_type][0]}"

    def _memory(self) -> tuple[str, ...]:
        if not self.huge_pages:
            return ()
        return "-object", f"memory-backend-memfd,id=ram,size={self.memory >> 20}M,hugetlb=on,prealloc=on"

    def _boot(self) -> tuple[str, ...]:
        command_line = " ".join(self.command_line())
        if self.hypervisor is None:
            return "-kernel", str(self.kernel), "-initrd", str(self.ramdisk), "-append", command_line
        modules = f"{_escaped(f'{self.kernel} {command_line}')},{_escaped(str(self.ramdisk))}"
        return "-kernel", str(self.hypervisor), "-append", " ".join(self._hypervisor()), "-initrd", modules

    def _hypervisor(self) -> tuple[str, ...]:
        """Return Xen's command line: other domains get the remaining memory, and CPUs keep their numbers."""
        first = f"{self.first_domain_memory >> 20}M"
        # on an emulated CPU (QEMU 7.2), lazy restoring makes PV domains lose vector registers
        eager = ("spec-ctrl=eager-fpu",) if self.accelerator == "tcg" else ()
        return "console=com1", "com1=115200,8n1", f"dom0_mem={first},max:{first}", "dom0_vcpus_pin", *eager

    @property
    def first_domain_memory(self) -> int:
        """Return the kernel's bytes of memory if it runs under a hypervisor."""
        part, least = _FIRST_DOMAIN
        return max(int(self.memory * part), least) >> 20 << 20

    def command_line(self) -> tuple[str, ...]:
        """Return the kernel's command line, with the arguments of its first process after the dashes."""
        console = self.architecture.console if self.hypervisor is None else "hvc0"
        disks = [f"/dev/{_DISK_NAMES[disk.bus]}{letter}" for disk, letter in zip(self.disks, "ab", strict=False)]
        init_arguments = words(self.name, self.modules(), disks, self.network, self.open_files)
        clock = (f"tsc_early_khz={self.tsc_khz}", "tsc=reliable") if self.tsc_khz else ()
        return (f"console={console}", "quiet", "panic=-1", *clock, "--", *init_arguments, *self.arguments)

    def modules(self) -> tuple[str, ...]:
        """Return the drivers that the guest loads, by `weighbridge.features.guests.kernel`'s names."""
        disks = (driver for disk in self.disks for driver in _DISK_DRIVERS[disk.bus])
        network = (_NICS[self.nic][1],) if self.network else ()
        return tuple(dict.fromkeys((_BUSES[self.machine_type][1], *_ALWAYS, *disks, *network)))

    def _disks(self) -> list[str]:
        words = ["-device", "piix3-ide,id=ide"] if any(disk.bus == "ide" for disk in self.disks) else []
        for number, disk in enumerate(self.disks):
            # a disk on IDE cannot be read-only: writes go to an unnamed file instead
            only = (",snapshot=on" if disk.bus == "ide" else ",readonly=on") if disk.read_only else ""
            only = ",snapshot=on" if disk.temporary else only
            if disk.read_only:  # other hypervisors' locks of the whole file would stop QEMU
                only += ",file.locking=off"
            image = _escaped(str(disk.image) if disk.socket is None else f"nbd+unix:///?socket={disk.socket}")
            words += ["-drive", f"file={image},format=raw,id=d{number},if=none,cache={disk.cache}{_ERRORS}{only}"]
            device = f"ide-hd,bus=ide.0,unit={number}" if disk.bus == "ide" else self._virtio("blk")
            words += ["-device", f"{device},drive=d{number}"]
        return words

    def _monitor(self) -> list[str]:
        return [] if self.monitor is None else ["-qmp", f"unix:{_escaped(str(self.monitor))},server=on,wait=off"]

    def _network(self) -> list[str]:
        if self.network is None:
            return []
        virtio, has_pci = _NICS[self.nic][1] == "virtio_net", self.machine_type == "standard"
        name = self._virtio("net") if virtio else _NICS[self.nic][0]
        device = f"{name},netdev=net,mac={self.network.hardware}{',romfile=' if has_pci else ''}"
        device += _PLAIN if not self.network.offloads and virtio else ""
        netdev = f"{self.network.netdev()}{',vhost=on' if self.nic == 'vhost' else ''}"
        if self.queues > 1:  # on PCI, an interrupt per queue, plus one for changes and one for control
            device += f",mq=on{f',vectors={2 * self.queues + 2}' if has_pci else ''}"
            netdev += f",queues={self.queues}"
        return ["-netdev", netdev, "-device", device]


def _escaped(value: str) -> str:
    return value.replace(",", ",,")
