"""The largest UDP payload that does not fragment between two sites, probed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from weighbridge.linux.probing import listens, probe_of
from weighbridge.model.command import Command
from weighbridge.model.site import Site
from weighbridge.model.study import Role
from weighbridge.model.workload import Endpoint

PROBE_S = 20
"""How long either end of the probe may take, in seconds; on a clean path it is done within a tenth of one."""
SMALLEST, LARGEST = 16, 65507
"""The bytes of UDP payload between which is searched; 65507 is the most that IPv4 has room for."""
_PRINTED_PATH = re.compile(r"payload=([0-9]{1,5}) from=([0-9]{1,3}(?:\.[0-9]{1,3}){3})\n", re.ASCII)


@dataclass(frozen=True, slots=True)
class DatagramPath:
    """``udp_payload``: bytes of the largest UDP payload that passes in one piece, there and back.

    ``client``: the address that the client's kernel chooses for what it sends to the server.
    """

    udp_payload: int
    client: str


def probe(server: Site, client: Site, at: Mapping[Role, Endpoint]) -> DatagramPath | None:
    """The path between two sites; None where no datagram came back.

    Datagrams go from the client's site to the server's, whose port must be free. Each end of the path gives the
    largest that it lets out, and what is on the way is found by halving, with repetitions against loss: so a link
    that drops large datagrams and says nothing is found too. What a tunnel splits outside of the datagrams that it
    carries cannot be seen from within.
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
    """One end of the probe: ``answer`` in the server's site, ``ask`` in the client's. It ends by itself."""
    return probe_of("datagrams", PROBE_S, role, address, str(port), str(PROBE_S))


def parse(text: str) -> DatagramPath | None:
    """Return the path that the asking end reported; None where its output is anything else."""
    match = _PRINTED_PATH.fullmatch(text)
    if match is None or not SMALLEST <= int(match[1]) <= LARGEST:
        return None
    return DatagramPath(int(match[1]), match[2])
