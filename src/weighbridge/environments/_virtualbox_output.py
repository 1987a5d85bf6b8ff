"""What VirtualBox's programs print. Pure."""

import re

_PREFIX = re.compile(r"^VBox\w+: (?:error: )?")
_NO_REASON = ("Details: ", "Context: ", "Tip! ", "warning: ", "Error -")
_PAIR = re.compile(r'^"?([\w/ .-]+?)"?=(?:"(.*)"|(.*))$')
_LISTED = re.compile(r'^"(.*)" \{([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\}$')
_VERSION = re.compile(r"^(\d+)\.(\d+)\.(\d+)\S*$", re.MULTILINE)
_MADE = re.compile(r"^Interface '([\w-]+)' was successfully created$", re.MULTILINE)


def complaint(stderr: bytes) -> str:
    """Why one of its programs failed, in one line; empty where it said nothing."""
    lines = [line.strip() for line in stderr.decode(errors="replace").splitlines() if _PREFIX.match(line)]
    said = [_PREFIX.sub("", line) for line in lines]
    return next((line for line in said if line and not line.startswith(_NO_REASON)), "")[:300]


def machine_info(text: str) -> dict[str, str]:
    """Give the pairs of ``showvminfo --machinereadable``. ValueError where it does not tell the machine's state."""
    found = {}
    for line in text.splitlines():
        if pair := _PAIR.match(line):
            found[pair[1]] = pair[3] if pair[2] is None else pair[2]
    if not found.get("VMState"):
        raise ValueError("VBoxManage did not tell the state of the machine")
    return found


def machines(text: str) -> dict[str, str]:
    """Give the names and UUIDs of ``list vms`` or ``list runningvms``. ValueError: a line that is none."""
    found = {}
    for line in text.splitlines():
        if line.strip():
            listed = _LISTED.match(line)
            if listed is None:
                raise ValueError(f"VBoxManage listed no machine: {line[:100]}")
            found[listed[1]] = listed[2]
    return found


def version(text: str) -> tuple[int, int, int]:
    """Read what ``--version`` prints: ``7.2.22_Debianr175245``. ValueError where it is none."""
    found = _VERSION.search(text)
    if found is None:
        raise ValueError("VBoxManage did not tell its version")
    return int(found[1]), int(found[2]), int(found[3])


def made_link(text: str) -> str:
    """Read which link ``hostonlyif create`` has made. ValueError where it told none."""
    found = _MADE.search(text)
    if found is None:
        raise ValueError("VBoxManage did not tell which link it has made")
    return found[1]
