"""The second port of programs that carry their data beside their control connection."""

from weighbridge.model.plugin import Endpoint

_LAST = 65535


def data_port(at: Endpoint) -> int:
    """The port for the data: the next one to ``at.port``, of which nothing is promised.

    An environment publishes ``at.port`` only, so a client has to reach the server's own address.
    """
    return at.port + 1 if at.port < _LAST else at.port - 1
