"""The Redis server of a workload: its files, and the meaning of its generator's failures. It is not a plug-in."""

import re
import signal
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Broke, ProgramFailed, ServerDied, TrialFailure
from weighbridge.model.options import Options
from weighbridge.model.plugin import Durability
from weighbridge.model.quantity import Size
from weighbridge.model.site import DATA
from weighbridge.model.workload import Endpoint

FOLDER = f"{DATA}/redis"
"""The folder of a server that saves its data."""
STOP = signal.SIGUSR1
"""Redis has no handler for it, so it ends at once. SIGTERM waits for its timer, and SIGKILL would look like a kill.
"""
_EMPTY_FOLDER = 'rm -rf "$1" && mkdir "$1"'
_VARIABLE = "WEIGHBRIDGE_PASSWORD"
_WITH_PASSWORD = f'exec redis-benchmark -a "${_VARIABLE}" "$@"'
_FSYNC = {"always": "always", "everysec": "everysec", "never": "no"}


def _word(value: object) -> object:
    return "no" if value is False else value  # as YAML 1.1 reads it


class RedisServerOptions(Options):
    """Configuration of the server, with the names that redis.conf uses. Sizes are in bytes."""

    appendonly: Annotated[
        Literal["no", "always", "everysec", "never"],
        BeforeValidator(_word),
        Field(description="Whether and when each write is logged to disk (appendfsync)"),
    ] = "no"
    maxclients: Annotated[
        int, Field(ge=1, le=10**6, description="Most clients, as far as the limit of open files allows")
    ] = 20_000
    maxmemory: Annotated[
        Size | None, Field(ge=2**20, le=2**50, description="Memory limit, above which it refuses writes (noeviction)")
    ] = None
    tcp_backlog: Annotated[int, Field(ge=1, le=65_535, description="Listen backlog, as far as the system allows")] = (
        65_535
    )


def durability(options: RedisServerOptions) -> Durability:
    """Return the durability of an acknowledged write."""
    if options.appendonly == "no":
        return "none"
    return "synchronous" if options.appendonly == "always" else "asynchronous"


def empty_folder(options: RedisServerOptions) -> Command | None:
    """Empty the folder of a server that saves, because it would start with the data there."""
    return Command(("sh", "-c", _EMPTY_FOLDER, "redis", FOLDER)) if options.appendonly != "no" else None


def server(options: RedisServerOptions, at: Endpoint, deadline_s: float) -> Command:
    """Return the command of the server in the foreground."""
    settings = f"requirepass {at.password}\n".encode() if at.password else b""
    argv = ["redis-server", "--bind", at.listen, "--port", str(at.port), "--protected-mode", "no"]
    argv += ["--tcp-backlog", str(options.tcp_backlog), "--maxclients", str(options.maxclients)]
    argv += ["--save", "", "--daemonize", "no"]
    if options.maxmemory is not None:
        argv += ["--maxmemory", str(options.maxmemory), "--maxmemory-policy", "noeviction"]
    if options.appendonly == "no":
        argv += ["--appendonly", "no"]
    else:
        argv += ["--appendonly", "yes", "--appendfsync", _FSYNC[options.appendonly], "--dir", FOLDER]
    argv += ["-"] if settings else []  # it reads them from standard input
    return Command(tuple(argv), deadline_s, stdin=settings, listens=(("tcp", at.port),), stop_signal=STOP)


def generator(at: Endpoint, argv: Sequence[str], deadline_s: float) -> Command:
    """Return redis-benchmark with these arguments and the server's password."""
    if not at.password:
        return Command(("redis-benchmark", *argv), deadline_s)
    return Command(("sh", "-c", _WITH_PASSWORD, "redis-benchmark", *argv), deadline_s, {_VARIABLE: at.password})


def complaint(client: Completed) -> str:
    """Return the generator's standard error with each line once."""
    lines = dict.fromkeys(client.error_text.splitlines())
    return "; ".join(line.strip() for line in lines if line.strip())[:300]


_GENERATOR = {
    "Too many open files": "redis-benchmark ran out of file descriptors for {clients} clients. Raise the limit of "
    "open files (ulimit -Hn), or use fewer clients",
    "Cannot assign requested address": "redis-benchmark has no local port left for {clients} clients (a closed "
    "connection holds its port for a minute): use fewer clients, or widen net.ipv4.ip_local_port_range",
}
"""The generator's own limits by the system's message."""
_LIMITS = {
    "max number of clients reached": "the server refused a client (max number of clients reached)",
    "OOM command not allowed": "the server reached maxmemory (OOM command not allowed)",
}
"""The server's limits by its own message."""
_NO_ANSWER = re.compile(
    r"Connection refused|Connection reset|Connection timed out|Server closed the connection"
    r"|All clients disconnected|Broken pipe"
)
_FEWER = re.compile(r"maxclients has been reduced to ([0-9]+)")


def failure(options: RedisServerOptions, clients: int, client: Completed, server: Completed) -> TrialFailure:
    """Return a generator's failure: its own (ProgramFailed), the server's end, or the server's limits (Broke)."""
    message = complaint(client) or client.last_words
    for words, sentence in _GENERATOR.items():
        if words in message:
            return ProgramFailed(sentence.format(clients=clients))
    if server.returncode not in (0, -STOP):  # neither still there to be stopped, nor ended in good order
        return ServerDied(f"the server exited with code {server.returncode} while the client was running: {message}")
    for words, sentence in _LIMITS.items():
        if words in message:
            fewer = _FEWER.search(server.text) if "client" in words else None
            return Broke(sentence + (f": its open files allow {fewer[1]}" if fewer else ""))
    if _NO_ANSWER.search(message):
        return Broke(f"the server did not answer {clients} clients: {message}")
    return ProgramFailed(f"redis-benchmark exited with code {client.returncode}: {message}")
