"""SELinux: whether a kernel enforces it, and how a container can still use files of its host.

With enforcement, a container's processes can only read files that are labelled for containers. This machine's files
are not, and a run never relabels a user's files. So the container starts without confinement by labels.
"""

from collections.abc import Callable, Collection
from pathlib import Path

ENFORCE = "/sys/fs/selinux/enforce"
WITHOUT_LABELS = "label=disable"
"""The security option of Docker and podman for a container that uses files of its host."""
FACT = "SELinux"
_UNCONFINED = f"enforcing, but not for this container, which uses files of its host ({WITHOUT_LABELS})"


def _read_local(path: str) -> bytes:
    return Path(path).read_bytes()


def state(read: Callable[[str], bytes] = _read_local) -> str:
    """Return whether SELinux is "enforcing" or "permissive"; "" if the kernel does not have it.

    ``read`` reads a file of the machine and can raise OSError; the default reads this machine.
    """
    try:
        return {b"1": "enforcing", b"0": "permissive"}.get(read(ENFORCE).strip(), "")
    except OSError:
        return ""


def security_options(read: Callable[[str], bytes], *, files_of_host: bool) -> list[str]:
    """Return the security options of a container, depending on whether it uses files of its host."""
    return [WITHOUT_LABELS] if files_of_host and state(read) == "enforcing" else []


def facts(options: Collection[str]) -> dict[str, str]:
    """Return the fact about SELinux of a container with these security options; empty without `WITHOUT_LABELS`."""
    return {FACT: _UNCONFINED} if WITHOUT_LABELS in options else {}
