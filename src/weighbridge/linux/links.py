"""A run's network links on a machine, and the rules that let frames pass between its bridge's ports (iptables(8)).

If br_netfilter is loaded, frames between two ports of any bridge go through the machine's FORWARD chain, which an
engine sets to drop. Frames to and from the host itself never do. Docker adds the same rule for its own bridges.
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
"""The tables of the chains that contain rules of runs."""

FOLDER = Path("/sys/class/net")
OURS = re.compile(r"wb-([0-9a-f]{6})-(?:[bnpv]?\d+|c)")
"""The names of the links of runs, each with the end of its run's id."""
NO_OFFLOADS = ("tso", "off", "gso", "off", "gro", "off")
"""The arguments of `ethtool -K` that disable offloads."""


def interfaces() -> list[str]:
    """Return the names of this machine's network interfaces."""
    return sorted(path.name for path in FOLDER.iterdir() if path.is_symlink())


def rule(bridge: str, run_id: RunId, other: str | None = None) -> tuple[str, ...]:
    """Return the rule after ``-I FORWARD`` that lets frames pass between a bridge's ports, or to an ``other`` link.

    Its comment identifies the run.
    """
    comment = ("-m", "comment", "--comment", f"weighbridge-{run_id}")
    return ("-i", bridge, "-o", other or bridge, *comment, "-j", "ACCEPT")


def rule_to_subnet(link: str, subnet: str, run_id: RunId) -> tuple[str, ...]:
    """Return the rule after ``-t raw -I PREROUTING`` that lets frames pass from a link to an engine's network."""
    return ("-d", subnet, "-i", link, "-m", "comment", "--comment", f"weighbridge-{run_id}", "-j", "ACCEPT")


def drops_routed(saved: str, bridge: str) -> bool:
    """Return whether an engine drops frames from elsewhere to a container on its bridge before they are routed.

    ``saved`` is the output of iptables-save(8). Docker does so since version 28.
    """
    pattern = rf"^-A PREROUTING -d \S+ ! -i {re.escape(bridge)} -j DROP$"
    return re.search(pattern, saved, re.MULTILINE) is not None


def is_rule(line: str) -> bool:
    """Return whether a line of iptables-save(8) is a rule of any run."""
    return _RULE.fullmatch(line) is not None


def rules_in(saved: str) -> Iterator[tuple[str, str]]:
    """Yield each run's rule in the output of iptables-save(8): the run's id, and the arguments after ``-D``."""
    for match in _RULE.finditer(saved):
        yield match[2], match[1]


def rules() -> list[tuple[str, str]]:
    """Return each run's rule on this machine, as `rules_in`; empty without iptables."""
    return [*rules_in(output(("iptables-save",)) or "")]


def over_interface(
    name: str, parent: str, address: str, gateway: str, hardware: str, mtu: str
) -> tuple[tuple[str, ...], ...]:
    """Return the arguments of ip(8), in order, that make an interface of a host a port of a new bridge.

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
    """Run a command that sets up a network. Raises Unavailable, with its last words, if it fails."""
    must_output(host, *argv)


def must_output(host: Host, *argv: str) -> str:
    """Run a command as `must` does; return its output."""
    completed = host.run(Command(argv, 10))
    if completed.returncode != 0:
        raise Unavailable(f"host {host.name}: {' '.join(argv)}: {completed.last_words}")
    return completed.text


def remove_all(run_id: RunId) -> None:
    """Remove a run's links and its rules."""
    for link in sorted(FOLDER.glob(f"{link_prefix(run_id)}*")):
        output(("ip", "link", "delete", link.name))
    for run, words in rules():
        if run == run_id:
            arguments = shlex.split(words)
            output(("iptables", "--wait", "-t", _TABLES[arguments[0]], "-D", *arguments))
