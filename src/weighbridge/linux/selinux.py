"""SELinux: whether a kernel enforces it, and how a container may use files of its host's nevertheless.

A container's processes may then read only files that are labelled for containers. This machine's own files are not,
and a run never relabels what is the user's: the container is started without confinement by labels.
"""

from collections.abc import Callable, Collection
from pathlib import Path

ENFORCE = "/sys/fs/selinux/enforce"
WITHOUT_LABELS = "label=disable"
"""The security option, of Docker and of podman, of a container that has files of its host."""
FACT = "SELinux"
_UNCONFINED = f"enforcing, but not for this container, which uses files of its host ({WITHOUT_LABELS})"


def _read_local(path: str) -> bytes:
    return Path(path).read_bytes()


def state(read: Callable[[str], bytes] = _read_local) -> str:
    """Whether SELinux is "enforcing" or "permissive"; "" where the kernel has none.

    ``read`` reads a file of the machine that is asked about, and may raise OSError: of this one by itself.
    """
    try:
        return {b"1": "enforcing", b"0": "permissive"}.get(read(ENFORCE).strip(), "")
    except OSError:
        return ""


def security_options(read: Callable[[str], bytes], *, files_of_host: bool) -> list[str]:
    """The security options of a container that has, or has not, files of its host."""
    return [WITHOUT_LABELS] if files_of_host and state(read) == "enforcing" else []


def facts(options: Collection[str]) -> dict[str, str]:
    """The fact about SELinux of a container with these security options; none without `WITHOUT_LABELS`."""
    return {FACT: _UNCONFINED} if WITHOUT_LABELS in options else {}
