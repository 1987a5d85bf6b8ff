"""What an engine leaves in the host's packet filter and sysctls after it has gone, and how to take it out again.

dockerd keeps its chains, its FORWARD policy and ip_forward when it stops. A private engine must not: a note of how
things were is kept in a folder, so that ``weighbridge clean`` can restore them even after a kill.
"""

import contextlib
import enum
import json
import re
import shlex
from pathlib import Path

from weighbridge.linux.links import is_rule
from weighbridge.linux.process import output

NOTE = "firewall.json"
TABLES = ("filter", "nat")
_SYSCTLS = ("net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding", "net/bridge/bridge-nf-call-iptables")


class Adds(enum.Enum):
    """What each kind of engine adds, as a pattern for the lines of iptables-save."""

    DOCKER = r"\bDOCKER|\bwb-[0-9a-f]+|\bdocker0\b|-s (\S+)/32 -d \1/32 .*-j MASQUERADE$"
    """Its chains, rules that name our bridges, and a published port's way back to itself."""
    PODMAN = r"\bNETAVARK"
    """netavark's chains; each of its rules is in one of them or leads to one."""


_EVERYTHING = "|".join(adds.value for adds in Adds)


def rules(table: str) -> list[str]:
    """The table's chains (":NAME POLICY") and rules ("-A ..."); empty where there is no iptables."""
    text = output(("iptables-save", "-t", table)) or ""
    return [re.sub(r" \[\d+:\d+\]$", "", line) for line in text.splitlines() if line.startswith((":", "-A"))]


def count() -> int:
    """How many IPv4 rules are in force, NAT included."""
    return sum(line.startswith("-A") for table in TABLES for line in rules(table))


def remember(folder: Path) -> None:
    """Note the rules and sysctls as they are before an engine starts; a note that is there already is kept."""
    if (folder / NOTE).exists():
        return
    sysctls = {name: value for name in _SYSCTLS if (value := _sysctl(name)) is not None}
    note = {"rules": {table: rules(table) for table in TABLES}, "sysctls": sysctls}
    part = (folder / NOTE).with_suffix(".part")
    part.write_text(json.dumps(note))
    part.replace(folder / NOTE)  # so that no kill leaves half a note


def restore(folder: Path, adds: Adds | None = None, *, last: bool = True) -> None:
    """Take out what engines (or this kind) added since ``remember``, and only that; nothing where nothing was noted.

    Unless it is the ``last``, another engine still runs: the note is kept for it, and the sysctls are left alone.
    """
    (folder / NOTE).with_suffix(".part").unlink(missing_ok=True)
    try:
        note = json.loads((folder / NOTE).read_text())
    except FileNotFoundError:
        return
    for table in TABLES:
        before = set(note["rules"][table])
        for argv in undo(before, rules(table), adds):
            output(("iptables", "--wait", "-t", table, *argv))
    if not last:
        return
    for name, value in note["sysctls"].items():
        if _sysctl(name) != value:
            with contextlib.suppress(OSError):
                (Path("/proc/sys") / name).write_text(value)
    (folder / NOTE).unlink(missing_ok=True)


def undo(before: set[str], now: list[str], adds: Adds | None = None) -> list[tuple[str, ...]]:
    """The iptables arguments that take out the rules, chains and policies that an engine added: rules first.

    The rules of our own bridges are no engine's: they end with the links of their run, which may be another one.
    """
    ours = re.compile(adds.value if adds else _EVERYTHING)
    added = [line for line in now if line not in before and ours.search(line) and not is_rule(line)]
    steps = [tuple(shlex.split("-D" + rule[2:])) for rule in added if rule.startswith("-A")]
    steps += [("-X", chain.split()[0][1:]) for chain in added if chain.startswith(":")]
    policies = {line.split()[0][1:]: line.split()[1] for line in before if line.startswith(":")}
    for line in now if adds is not Adds.PODMAN else ():  # it sets no policy
        if line.startswith(":") and line not in before:
            name, policy = line[1:].split()[:2]
            if policy != "-" and policies.get(name, "ACCEPT") != policy:
                steps.append(("-P", name, policies.get(name, "ACCEPT")))
    return steps


def _sysctl(name: str) -> str | None:
    try:
        return (Path("/proc/sys") / name).read_text().strip()
    except OSError:
        return None
