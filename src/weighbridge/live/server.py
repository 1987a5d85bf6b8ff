"""The endpoint that Prometheus scrapes: on this machine's loopback only, for as long as the run."""

import errno
import ipaddress
import re
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server

from weighbridge.errors import Unavailable
from weighbridge.live.families import Families
from weighbridge.live.snapshot import Live

_WRITTEN = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^:\[\]]*):([0-9]{1,5})", re.ASCII)


def address_of(text: str) -> tuple[str, int]:
    """The address and port in ``127.0.0.1:9464``. ValueError says what is wrong with it, for a person."""
    example = "write it like 127.0.0.1:9464, or 127.0.0.1:0 for any free port"
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text:.60}' is not an address with a port: {example}")
    host, port = match[1].strip("[]"), int(match[2])
    if port > 65535:
        raise ValueError(f"there is no port {port}: {example}")
    if host == "localhost":
        host = "127.0.0.1"
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ValueError(f"metrics are served on this machine's loopback only, not on '{host:.60}': {example}")
    return host, port


@contextmanager
def serving(address: tuple[str, int], live: Live, study: str = "") -> Iterator[str]:
    """Serve what there is to tell of the run, and give the URL. Raises Unavailable where that address is taken."""
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
    """Who hangs up in the middle of a scrape is no failure of the run."""


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the port is in use; choose another, or 0 for any free port"
    if error.errno == errno.EACCES:
        return "that port needs root; choose one above 1023, or 0 for any free one"
    return str(error.strerror or error)
