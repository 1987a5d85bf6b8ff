"""The endpoint for Prometheus, on a loopback address of this machine while the run is active."""

import errno
import ipaddress
import re
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server

from weighbridge.errors import Unavailable
from weighbridge.features.monitoring.families import Families
from weighbridge.features.monitoring.snapshot import Live

_WRITTEN = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^:\[\]]*):([0-9]{1,5})", re.ASCII)


def address_of(text: str) -> tuple[str, int]:
    """Return the address and port of ``127.0.0.1:9464``. Raises ValueError with a message for the user."""
    example = "write it like 127.0.0.1:9464, or 127.0.0.1:0 for any free port"
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text:.60}' is not an address with a port: {example}")
    host, port = match[1].strip("[]"), int(match[2])
    if port > 65535:
        raise ValueError(f"port {port} is too large: {example}")
    if host == "localhost":
        host = "127.0.0.1"
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ValueError(f"'{host:.60}' is not a loopback address of this machine: {example}")
    return host, port


@contextmanager
def serving(address: tuple[str, int], live: Live, study: str = "") -> Iterator[str]:
    """Serve the metrics of the run, and yield the URL. Raises Unavailable if the address is in use."""
    registry = CollectorRegistry(auto_describe=True)
    registry.register(Families(live.now, study))
    host, port = address
    shown = f"[{host}]" if ":" in host else host
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise Unavailable(f"metrics cannot be served on {shown}:{port}: {_why(error)}") from error
    server.handle_error = _say_nothing  # type: ignore[method-assign, assignment]
    try:
        yield f"http://{shown}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _say_nothing(*_: object) -> None:
    """Ignore a client that closes the connection during a scrape, because it does not concern the run."""


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the port is in use. Choose another, or 0 for any free port"
    if error.errno == errno.EACCES:
        return "this port needs root. Choose one above 1023, or 0 for any free port"
    return str(error.strerror or error)
