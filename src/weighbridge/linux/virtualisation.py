"""Whether the CPU's help for virtual machines (vmx, svm) can be there, as far as the kernel tells without a try."""

from pathlib import Path

DEVICE = "/dev/kvm"
ELSEWHERE = "use a machine with hardware virtualisation (nested, if the machine is virtual)"
_EXTENSIONS = frozenset({"vmx", "svm"})


def lacking(device: Path = Path(DEVICE), cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return why this machine has no hardware virtualisation; "" where it has, or where only a try can tell.

    x86 alone has flags that tell it. Elsewhere a machine without KVM's device is taken to have none.
    """
    flags = [line.split() for line in _text(cpuinfo).splitlines() if line.split(":")[0].strip() == "flags"]
    if flags:
        return "" if any(_EXTENSIONS.intersection(words) for words in flags) else "the CPU has neither vmx nor svm"
    return "" if device.exists() else f"there is no {device}"


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
