"""Probes the largest UDP payload that does not fragment between two sites."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from weighbridge.linux.probing import listens, probe_of
from weighbridge.model.command import Command
from weighbridge.model.site import Site
from weighbridge.model.study import Role
from weighbridge.model.workload import Endpoint

PROBE_S = 20
"""Seconds that either end of the probe can need; on a clean path it needs a tenth of a second."""
SMALLEST, LARGEST = 16, 65507
"""The range of the search in bytes of UDP payload; 65507 is the maximum of IPv4."""
_PRINTED_PATH = re.compile(r"payload=([0-9]{1,5}) from=([0-9]{1,3}(?:\.[0-9]{1,3}){3})\n", re.ASCII)


@dataclass(frozen=True, slots=True)
class DatagramPath:
    """The largest UDP payload that passes in one piece, there and back, and the client's address.

    ``client`` is the address from which the client's kernel sends to the server.
    """

    udp_payload: int
    client: str


def probe(server: Site, client: Site, at: Mapping[Role, Endpoint]) -> DatagramPath | None:
    """Return the path between two sites; None if no datagram came back.

    Datagrams go from the client's site to the server's, whose port must be free. Each end of the path reports its
    largest datagram, and the limit of the path is found by bisection, with repetitions against loss. So a link that
    silently drops large datagrams is found too. Fragmentation by a tunnel outside of its datagrams is not visible.
    """
    receiver = server.start(probe_command("answer", at["server"].listen, at["server"].port))
    try:
        if not listens(receiver, server, "udp", at["server"].port):
            return None
        sender = client.run(probe_command("ask", at["client"].address, at["client"].port))
    finally:
        receiver.stop()
    return None if sender.returncode != 0 else parse(sender.text)


def probe_command(role: str, address: str, port: int) -> Command:
    """Return the command of one end: ``answer`` in the server's site, ``ask`` in the client's. It ends by itself."""
    return probe_of("datagrams", PROBE_S, role, address, str(port), str(PROBE_S))


def parse(text: str) -> DatagramPath | None:
    """Return the path that the asking end reported; None for invalid output."""
    match = _PRINTED_PATH.fullmatch(text)
    if match is None or not SMALLEST <= int(match[1]) <= LARGEST:
        return None
    return DatagramPath(int(match[1]), match[2])
