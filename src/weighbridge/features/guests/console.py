"""Reads the last messages of a guest's console and of its hypervisor."""

import re

_STAMP = re.compile(r"^\[ *\d+\.\d+\] ")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_NO_REASON = ("Restarting system", "---[ end", "Kernel Offset", "Rebooting in", "terminating on signal")
"""Messages at every end that are not a reason."""
_REASONS = ("Kernel panic - not syncing", "weighbridge: the guest cannot", "qemu-system")
_FIRECRACKER = re.compile(
    r"Failed to build MicroVM from Json: .* from one single json(?: failed)?: (.+?)"
    r"(?:\.? (?:Make sure the user|Invalid TUN/TAP) .*)?$"
)
_CHAIN = "Cloud Hypervisor exited with the following chain of errors:"
"""How a hypervisor says that it cannot start a guest. Below such a line, Cloud Hypervisor numbers its causes."""
_LINES, _LENGTH = 3, 300


def last_words(console: bytes) -> str:
    """Return why a guest ended, in one line: the line with a reason, else the last lines; empty without output."""
    return reason(console) or "; ".join(_plain_lines(console)[-_LINES:])[-_LENGTH:]


def reason(console: bytes) -> str:
    """Return a hypervisor's reason, or the last line of a console with a reason for its end; empty without one."""
    lines = _plain_lines(console)
    for number, line in enumerate(lines):
        if failure := _FIRECRACKER.search(line):
            return failure[1][-_LENGTH:]
        if _CHAIN in line:
            causes = [cause.partition(": ")[2] for cause in lines[number + 1 :]]
            repeated = len(causes) > 1 and causes[-1] in causes[-2]
            return ": ".join(causes[-3:-1] if repeated else causes[-2:])[-_LENGTH:]
    named = [line for line in lines if any(words in line for words in _REASONS)]
    return "; ".join(named[-1:])[-_LENGTH:]


def _plain_lines(console: bytes) -> list[str]:
    lines = [_plain(line) for line in console.decode(errors="replace").splitlines()]
    return [line for line in lines if line and not any(words in line for words in _NO_REASON)]


def _plain(line: str) -> str:
    shown = "".join(each for each in _ESCAPES.sub("", line) if each.isprintable())
    return _STAMP.sub("", shown.strip())
