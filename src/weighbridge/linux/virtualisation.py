"""Whether the CPU has virtualisation support (vmx, svm), as far as the kernel shows."""

from pathlib import Path

DEVICE = "/dev/kvm"
ELSEWHERE = "use a machine with hardware virtualisation (nested, if the machine is virtual)"
_EXTENSIONS = frozenset({"vmx", "svm"})


def lacking(device: Path = Path(DEVICE), cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return why this machine has no hardware virtualisation; "" if it has, or only a try can show.

    Only x86 has CPU flags for it. Other machines without KVM's device count as having none.
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
