"""What VirtualBox's programs print. Pure."""

import re
from collections.abc import Mapping

_PREFIX = re.compile(r"^VBox\w+: (?:error: )?")
_NO_REASON = ("Details: ", "Context: ", "Tip! ", "warning: ", "Error -")
_REASONS, _LENGTH = 2, 300
_PAIR = re.compile(r'^"?([^"=]+)"?=(?:"(.*)"|([^"]*))$')
_VERSION = re.compile(r"^(\d+)\.(\d+)\.(\d+)\S*\n", re.MULTILINE)
_MADE = re.compile(r"^(?:0%\S*)?Interface '(vboxnet\d{1,3})' was successfully created$", re.MULTILINE)


def complaint(stderr: bytes) -> str:
    """Return why a program of VirtualBox failed, in one line; empty if it gave no reason."""
    lines = [line.strip() for line in stderr.decode(errors="replace").splitlines() if _PREFIX.match(line)]
    messages = [_PREFIX.sub("", line) for line in lines]
    reasons = [line for line in messages if line and not line.startswith(_NO_REASON)]
    return ": ".join(reasons[:_REASONS])[:_LENGTH]


def pairs(text: str) -> Mapping[str, str]:
    """Return the names and values that ``showvminfo --machinereadable`` prints."""
    matches = (_PAIR.match(line) for line in text.splitlines())
    return {pair[1]: pair[3] if pair[2] is None else pair[2] for pair in matches if pair}


def state(text: str) -> str:
    """Return a machine's state: "running", "poweroff", "aborted". Raises ValueError if the text has none."""
    if not (machine_state := pairs(text).get("VMState")):
        raise ValueError("VBoxManage did not report the machine's state")
    return machine_state


def version(text: str) -> tuple[int, int, int]:
    """Return the version that ``--version`` printed (``7.2.22_Debianr175245``). Raises ValueError if it has none."""
    match = _VERSION.search(text)
    if match is None:
        raise ValueError("VBoxManage did not report its version")
    return int(match[1]), int(match[2]), int(match[3])


def made_link(text: str) -> str:
    """Return the link that ``hostonlyif create`` has made. Raises ValueError if its output names none."""
    match = _MADE.search(text)
    if match is None:
        raise ValueError("VBoxManage did not report its new link")
    return match[1]
