"""The network path between two sites, probed: the largest UDP payload that does not fragment; a TCP connection."""

import re
import time
from dataclasses import dataclass
from importlib import resources

from weighbridge.model.command import Command, Running, Transport
from weighbridge.model.plugin import Endpoint
from weighbridge.model.site import Site

PROBE_S = 20
"""How long either end of the probe may take, in seconds; on a clean path it is done within a tenth of one."""
READY_S = 5.0
SMALLEST, LARGEST = 16, 65507
"""The bytes of UDP payload between which is searched; 65507 is the most that IPv4 has room for."""
_POLL_S = 0.002
_FOUND = re.compile(r"payload=([0-9]{1,5}) from=([0-9]{1,3}(?:\.[0-9]{1,3}){3})\n", re.ASCII)


@dataclass(frozen=True, slots=True)
class NetworkPath:
    """``udp_payload``: bytes of the largest UDP payload that passes in one piece, there and back.

    ``client``: the address that the client's kernel chooses for what it sends to the server.
    """

    udp_payload: int
    client: str


def probe(server: Site, client: Site, at: Endpoint) -> NetworkPath | None:
    """The path between two sites; None where no datagram came back.

    Datagrams go from the client's site to the server's, whose port must be free. Each end of the path gives the
    largest that it lets out, and what is on the way is found by halving, with repetitions against loss: so a link
    that drops large datagrams and says nothing is found too. What a tunnel splits outside of the datagrams that it
    carries cannot be seen from within.
    """
    receiver = server.start(probe_command("answer", at.listen, at.port))
    try:
        if not _listens(receiver, server, at.port):
            return None
        sender = client.run(probe_command("ask", at.address, at.port))
    finally:
        receiver.stop()
    return None if sender.returncode != 0 else parse(sender.text)


def probe_command(role: str, address: str, port: int) -> Command:
    """One end of the probe: ``answer`` in the server's site, ``ask`` in the client's. It ends by itself."""
    return _perl("path.pl", role, address, port, PROBE_S)


def parse(text: str) -> NetworkPath | None:
    """What the asking end printed; None where that is anything else."""
    found = _FOUND.fullmatch(text)
    if found is None or not SMALLEST <= int(found[1]) <= LARGEST:
        return None
    return NetworkPath(int(found[1]), found[2])


def reached(server: Site, client: Site, at: Endpoint) -> bool:
    """Whether a TCP connection from the client's site gets to the server's, whose port must be free."""
    listener = server.start(_perl("reach.pl", "listen", at.listen, at.port, READY_S))
    try:
        if not _listens(listener, server, at.port, "tcp"):
            return False
        return client.run(_perl("reach.pl", "connect", at.address, at.port, READY_S)).returncode == 0
    finally:
        listener.stop()


def _perl(file: str, role: str, address: str, port: int, seconds: float) -> Command:
    """One end of a program beside this module, which is told after how many seconds it has to end."""
    program = resources.files(__package__).joinpath(file).read_text()
    return Command(("perl", "-e", program, role, address, str(port), f"{seconds:.0f}"), seconds + 5)


def _listens(receiver: Running, server: Site, port: int, transport: Transport = "udp") -> bool:
    deadline = time.monotonic() + READY_S
    while not server.listening(((transport, port),)):
        if receiver.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True
