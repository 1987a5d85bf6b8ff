"""nginx as a server of static files, shared by the workloads that send requests to it."""

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import ServerDied, ServerNotReady
from weighbridge.model.options import ABSOLUTE, External, Options
from weighbridge.model.quantity import Duration, Size
from weighbridge.model.workload import Endpoint
from weighbridge.workloads._local_file import LARGEST, check_local, read_local

PACKAGES = ("nginx",)
"""The package with the server. nginx-light and nginx-core are this package with modules that are not used here."""

_FILES = Path(__file__).parent / "nginx"
_CONFIGURATION = "/tmp/nginx.conf"  # noqa: S108 - a site's own /tmp
_SITE_FILES = {"page": "/tmp/page.html", "picture": "/tmp/picture.jpg"}  # noqa: S108
_JPEG = (bytes.fromhex("ffd8ffe000104a46494600010100000100010000"), bytes.fromhex("ffd9"))
"""The first bytes (JFIF 1.1) and the last bytes of a JPEG file."""
_LIMIT = re.compile(
    r"\[(?:warn|alert|crit|emerg)\] \S+ (.*\bnot enough\b.*|.*exited on signal.*|.*memory.*)$", re.MULTILINE
)
_KILLED = re.compile(r"\[alert\] \S+ (.*exited on signal (?:9|15)\b.*)$", re.MULTILINE)


def _readable(path: str) -> str:
    """Return the path of a picture. The ValueError says in one sentence why it cannot be served."""
    check_local(path, "picture")
    return path


class NginxOptions(Options):
    """Options of nginx. The defaults are those of the published study if it gives them, and otherwise nginx's own."""

    content: Annotated[
        Literal["page", "picture"], Field(description="What clients fetch: a static page, or a large picture")
    ] = "page"
    picture: Annotated[
        Annotated[str, AfterValidator(_readable), ABSOLUTE] | None,
        Field(description="Your own picture, relative to the current folder; default: a generated one"),
        External.FILE,
    ] = None
    picture_size: Annotated[
        Size, Field(ge=1000, le=LARGEST, description="Bytes of the generated picture, which does not compress")
    ] = 500_000
    worker_processes: Annotated[
        Literal["auto"] | Annotated[int, Field(ge=1, le=1024)],
        Field(description="Worker processes; auto: one per online CPU, whatever the limits"),
    ] = "auto"
    worker_connections: Annotated[int, Field(ge=16, le=1_000_000, description="Most connections of each worker")] = (
        4096
    )
    keepalive_timeout: Annotated[
        Duration, Field(ge=0, le=86400, description="Keep-alive time of idle connections; 0s: one request each")
    ] = 65.0
    keepalive_requests: Annotated[
        int, Field(ge=1, le=10**9, description="Requests after which nginx closes a connection")
    ] = 1000
    sendfile: Annotated[
        bool, Field(description="Let the kernel send files instead of copying them through nginx")
    ] = True
    backlog: Annotated[
        int, Field(ge=1, le=65535, description="Connections that can wait to be accepted; at most net.core.somaxconn")
    ] = 65535


def url(options: NginxOptions, at: Endpoint) -> str:
    """Return the URL of the content."""
    return f"http://{at.address}:{at.port}/{Path(_SITE_FILES[options.content]).name}"


def server(options: NginxOptions, at: Endpoint, deadline_s: float) -> Command:
    """Return the command of nginx in the foreground, with the configuration of `files`. SIGTERM ends it at once."""
    argv = ("nginx", "-e", "stderr", "-p", "/tmp", "-c", _CONFIGURATION)  # noqa: S108
    return Command(argv, deadline_s, listens=(("tcp", at.port),))


def files(options: NginxOptions, at: Endpoint) -> Mapping[str, bytes]:
    """Return the configuration, the page and the picture, by their path in the server's site.

    Raises ServerNotReady if the user's picture has disappeared since the study was checked.
    """
    return {
        _CONFIGURATION: configuration(options, at).encode(),
        _SITE_FILES["page"]: (_FILES / "page.html").read_bytes(),
        _SITE_FILES["picture"]: _picture(options),
    }


def configuration(options: NginxOptions, at: Endpoint) -> str:
    """Return nginx.conf. nginx listens on the site's own address only."""
    return Template((_FILES / "nginx.conf").read_text()).substitute(
        listen=at.listen,
        port=at.port,
        backlog=options.backlog,
        worker_processes=options.worker_processes,
        worker_connections=options.worker_connections,
        sendfile="on" if options.sendfile else "off",
        keepalive_timeout=f"{options.keepalive_timeout * 1000:.0f}ms",
        keepalive_requests=options.keepalive_requests,
    )


def _picture(options: NginxOptions) -> bytes:
    if options.picture is None:
        return generated_picture(options.picture_size)
    try:
        return read_local(options.picture, "picture")
    except ValueError as error:
        raise ServerNotReady(str(error)) from None


@cache
def generated_picture(size: int) -> bytes:
    """Return ``size`` bytes between the marks of a JPEG file. They are the same everywhere, and compress as badly as
    a picture."""
    begin, end = _JPEG
    return begin + hashlib.shake_256(b"weighbridge").digest(size - len(begin) - len(end)) + end


def require_workers(server: Completed | None) -> None:
    """Raise ServerDied if another process or the kernel killed a worker, even though nginx starts a new one."""
    match = _KILLED.search(server.error_text) if server else None
    if match:
        raise ServerDied(f"nginx: {match[1][:200]}", killed=True)


def limit_met(server: Completed | None) -> str:
    """Return nginx's message about a limit that it reached (connections, memory, a killed worker), or ""."""
    if server is None:
        return ""
    match = _LIMIT.search(server.error_text)
    return match[1][:200] if match else ""
