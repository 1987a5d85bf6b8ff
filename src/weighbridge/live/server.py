"""The endpoint that Prometheus scrapes: on this machine's loopback only, for as long as the run."""

import errno
import ipaddress
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from weighbridge.errors import Unavailable
from weighbridge.live.answers import Kept
from weighbridge.live.families import Families
from weighbridge.live.state import Live

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


class _Server(ThreadingWSGIServer):
    def handle_error(self, *_: object) -> None:
        """Say nothing: who hangs up in the middle is no failure of the run."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing of a scrape."""


@contextmanager
def serving(address: tuple[str, int], live: Live, study: str = "") -> Iterator[str]:
    """Serve what there is to tell of the run, and give the URL. Raises Unavailable where that address is taken."""
    registry = CollectorRegistry(auto_describe=True)
    registry.register(Families(live.now, study))
    answers = Kept(make_wsgi_app(registry), lambda: live.version)
    host, port = address
    kind, shown = (_Server6, f"[{host}]") if ":" in host else (_Server, host)
    try:
        server = make_server(host, port, answers, kind, _Quiet)
    except OSError as error:
        raise Unavailable(f"metrics cannot be served on {shown}:{port}: {_why(error)}") from error
    thread = Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{shown}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another program has that port; choose another one, or 0 for any free one"
    if error.errno == errno.EACCES:
        return "that port is for root; choose one above 1023, or 0 for any free one"
    return str(error.strerror or error)
