"""A run's network links on a machine, and the rules that let frames pass between ports of its bridge (iptables(8)).

Where br_netfilter is loaded, frames between two ports of any bridge go through the machine's FORWARD chain, which an
engine sets to drop; to and from the host itself they never do. Docker adds the same rule for its own bridges.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.linux.process import link_prefix, output
from weighbridge.model.command import Command
from weighbridge.model.host import Host
from weighbridge.model.names import RunId

_RULE = re.compile(r'^-A ((?:FORWARD|PREROUTING) .*--comment "?weighbridge-([0-9a-f]{12})"? .*)$', re.MULTILINE)
_TABLES = {"FORWARD": "filter", "PREROUTING": "raw"}
"""The tables of the chains that rules of ours are in."""

FOLDER = Path("/sys/class/net")
OURS = re.compile(r"wb-([0-9a-f]{6})-(?:[bnpv]?\d+|c)")
"""The names of the links of runs, each with the end of its run's id."""
NO_OFFLOADS = ("tso", "off", "gso", "off", "gro", "off")
"""What `ethtool -K` switches off where a host has no offloads."""


def interfaces() -> list[str]:
    """The names of this machine's network interfaces."""
    return sorted(path.name for path in FOLDER.iterdir() if path.is_symlink())


def rule(bridge: str, run_id: RunId, other: str | None = None) -> tuple[str, ...]:
    """The rule, behind ``-I FORWARD``, that lets frames pass between a bridge's ports, or on to an ``other`` link.

    Its comment tells whose it is.
    """
    comment = ("-m", "comment", "--comment", f"weighbridge-{run_id}")
    return ("-i", bridge, "-o", other or bridge, *comment, "-j", "ACCEPT")


def rule_to_subnet(link: str, subnet: str, run_id: RunId) -> tuple[str, ...]:
    """The rule, behind ``-t raw -I PREROUTING``, that lets frames pass from a link to an engine's network."""
    return ("-d", subnet, "-i", link, "-m", "comment", "--comment", f"weighbridge-{run_id}", "-j", "ACCEPT")


def drops_routed(saved: str, bridge: str) -> bool:
    """Whether an engine drops what is for a container on its bridge and comes from elsewhere, before it is routed.

    ``saved`` is the output of iptables-save(8). Docker does so from 28 on.
    """
    pattern = rf"^-A PREROUTING -d \S+ ! -i {re.escape(bridge)} -j DROP$"
    return re.search(pattern, saved, re.MULTILINE) is not None


def is_rule(line: str) -> bool:
    """Whether a line of iptables-save(8) is a rule of ours, of whichever run."""
    return _RULE.fullmatch(line) is not None


def rules_in(saved: str) -> Iterator[tuple[str, str]]:
    """Each rule of ours in the output of iptables-save(8): the run's id, and what follows ``-D``."""
    for match in _RULE.finditer(saved):
        yield match[2], match[1]


def rules() -> list[tuple[str, str]]:
    """Each rule of ours on this machine, as `rules_in`; empty where there is no iptables."""
    return [*rules_in(output(("iptables-save",)) or "")]


def over_interface(
    name: str, parent: str, address: str, gateway: str, hardware: str, mtu: str
) -> tuple[tuple[str, ...], ...]:
    """The arguments of ip(8), one after the other, that make an interface of a host a port of a new bridge.

    The host's ``address`` (with its prefix), hardware address and default route move from it to the bridge.
    """
    return (
        ("link", "add", name, "type", "bridge", "stp_state", "0", "forward_delay", "0"),
        ("link", "set", parent, "master", name),
        ("address", "delete", address, "dev", parent),
        ("link", "set", name, "address", hardware, "mtu", mtu, "up"),
        ("address", "add", address, "broadcast", "+", "dev", name),
        ("route", "replace", "default", "via", gateway, "dev", name),
    )


def must(host: Host, *argv: str) -> None:
    """Run a command that sets up a network. Unavailable, with its last words, where it fails."""
    must_tell(host, *argv)


def must_tell(host: Host, *argv: str) -> str:
    """Run a command as `must` does; return what it printed."""
    completed = host.run(Command(argv, 10))
    if completed.returncode != 0:
        raise Unavailable(f"host {host.name}: {' '.join(argv)}: {completed.last_words}")
    return completed.text


def remove_all(run_id: RunId) -> None:
    """Remove a run's links and take out its rules."""
    for link in sorted(FOLDER.glob(f"{link_prefix(run_id)}*")):
        output(("ip", "link", "delete", link.name))
    for run, words in rules():
        if run == run_id:
            arguments = shlex.split(words)
            output(("iptables", "--wait", "-t", _TABLES[arguments[0]], "-D", *arguments))
