"""The arguments of VBoxManage, as lists without the program itself. Pure.

A failed ``modifyvm`` takes all its options back, so that one has them all.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from weighbridge.model.command import PublishedPort

Words = tuple[str, ...]
Nic = Literal["e1000", "virtio"]
NICS: dict[Nic, tuple[str, str]] = {"e1000": ("82540EM", "e1000"), "virtio": ("virtio", "virtio_net")}
"""An interface's type as VirtualBox calls it, and its driver in the guest."""
DISK_DRIVERS = ("ata_piix", "sd_mod")
DISKS = ("/dev/sda", "/dev/sdb")
"""What its hard disks are in the guest: the first places of the IDE controller; the boot medium is at the last."""
MASK = "255.255.255.0"
_IDE, _PLACES, _MEDIUM = "ide", (("0", "0"), ("0", "1")), ("1", "1")
_PORT, _CONSOLE = ("0x3F8", "4"), ("0x2F8", "3")
"""Address and interrupt of ttyS0 and ttyS1."""
_LEAST_VIDEO = "9"


@dataclass(frozen=True, slots=True)
class Attachment:
    """What its interface is attached to: ``how`` are VBoxManage's words. Addresses as in `guests.words`."""

    how: Words
    guest_address: str
    gateway: str
    mtu: int = 1500
    mask: ClassVar[str] = MASK

    @property
    def hardware(self) -> str:
        """The address of its interface: no other machine of the run has it."""
        return "5254" + "".join(f"{int(part):02x}" for part in self.guest_address.split("."))


@dataclass(frozen=True, slots=True)
class DiskDescriptor:
    """A descriptor of an image; if it is ``immutable``, VirtualBox writes changes to another file."""

    descriptor: str
    immutable: bool


@dataclass(frozen=True, slots=True)
class VirtualMachine:
    """A machine, with paths on its host. ``memory`` is in bytes; ``folder`` has the files of VirtualBox about it."""

    name: str
    folder: str
    cpus: int
    memory: int
    medium: str
    disks: tuple[DiskDescriptor, ...]
    port: str
    """The socket at the other end of its first serial port; ``console`` is the file of the second one."""
    console: str
    network: Attachment | None = None
    nic: Nic = "e1000"


def bridged(link: str, own: str, gateway: str, mtu: int) -> Attachment:
    """Frames go through a network link of the host, a bridge or an interface."""
    return Attachment(("bridged", "--bridge-adapter1", link), own, gateway, mtu)


def internal(name: str, own: str) -> Attachment:
    """A network of machines alone: the host is not on it."""
    return Attachment(("intnet", "--intnet1", name), own, "")


def host_only(link: str, own: str, gateway: str) -> Attachment:
    """A network of machines and their host, which is on it by a link that VirtualBox has made."""
    return Attachment(("hostonly", "--host-only-adapter1", link), own, gateway)


def translated(outside: str, ports: Iterable[PublishedPort]) -> Attachment:
    """VirtualBox's own translation of addresses: ``ports`` of ``outside`` on the host lead to the machine."""
    rules = (
        word
        for port in ports
        for word in (
            "--nat-pf1",
            f"{port.transport}{port.reached},{port.transport},{outside},{port.reached},,{port.listens}",
        )
    )
    return Attachment(("nat", *rules), "10.0.2.15", "10.0.2.2")


def creation(machine: VirtualMachine) -> tuple[Words, ...]:
    """Everything until it can be started."""
    attach = ("storageattach", machine.name, "--storagectl", _IDE)
    return (
        (
            "createvm", "--name", machine.name, "--platform-architecture", "x86", "--ostype", "Linux26_64",
            "--basefolder", machine.folder, "--register",
        ),
        (
            "modifyvm", machine.name, "--cpus", str(machine.cpus), "--memory", str(machine.memory >> 20),
            "--ioapic", "on", "--acpi", "on", "--firmware", "bios", "--rtc-use-utc", "on",
            "--boot1", "dvd", "--boot2", "none", "--boot3", "none", "--boot4", "none",
            "--firmware-boot-menu", "disabled", "--firmware-logo-display-time", "0",
            "--graphicscontroller", "vboxvga", "--vram", _LEAST_VIDEO, "--audio-enabled", "off", "--vrde", "off",
            "--uart1", *_PORT, "--uart-type1", "16550A", "--uart-mode1", "server", machine.port,
            "--uart2", *_CONSOLE, "--uart-type2", "16550A", "--uart-mode2", "file", machine.console,
            *_network(machine),
        ),
        ("storagectl", machine.name, "--name", _IDE, "--add", "ide", "--controller", "PIIX4", "--bootable", "on"),
        *(
            (
                *attach, "--port", port, "--device", device, "--type", "hdd", "--medium", disk.descriptor,
                "--mtype", "immutable" if disk.immutable else "normal",
            )
            for (port, device), disk in zip(_PLACES, machine.disks, strict=False)
        ),
        (*attach, "--port", _MEDIUM[0], "--device", _MEDIUM[1], "--type", "dvddrive", "--medium", machine.medium),
    )  # fmt: skip


def _network(machine: VirtualMachine) -> Words:
    if machine.network is None:
        return "--nic1", "none"
    how = ("--nic1", *machine.network.how, "--nic-type1", NICS[machine.nic][0], "--cable-connected1", "on")
    return *how, "--mac-address1", machine.network.hardware


def removal(name: str) -> tuple[Words, ...]:
    """Switch it off and forget it. Not ``--delete``: that would delete the images that others have, too."""
    return ("controlvm", name, "poweroff"), ("unregistervm", name)


def descriptor(place: str, size: int, identity: str) -> str:
    """A VMDK that is but the description of a raw image, a file or a device of the host, of ``size`` bytes."""
    return (
        "# Disk DescriptorFile\nversion=1\nCID=fffffffe\nparentCID=ffffffff\n"
        f'createType="monolithicFlat"\n\nRW {size // 512} FLAT "{place}" 0\n\n'
        'ddb.virtualHWVersion = "4"\nddb.adapterType="ide"\n'
        f'ddb.uuid.image="{identity}"\nddb.uuid.parent="00000000-0000-0000-0000-000000000000"\n'
    )
