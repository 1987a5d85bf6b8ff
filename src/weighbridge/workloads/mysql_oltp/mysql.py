"""MariaDB and MySQL: the data of a trial, the server's command, and its refusals."""

import hashlib
import re
import signal
from collections.abc import Sequence
from importlib.resources import files
from typing import Literal

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Broke, ProgramFailed, ServerDied, TrialFailure
from weighbridge.model.site import DATA
from weighbridge.model.workload import Endpoint

Server = Literal["mariadb", "mysql"]
PROGRAMS: dict[Server, str] = {"mariadb": "mariadbd", "mysql": "mysqld"}
PACKAGES: dict[Server, tuple[str, ...]] = {
    "mariadb": ("mariadb-server-core", "mariadb-client-core", "sysbench"),
    "mysql": ("mysql-server-core/sid", "mysql-client-core/sid", "mysql-common/sid", "sysbench/sid"),
}
SETTINGS = "/run/weighbridge-my.cnf"
"""The path of the settings in the server's site."""
_ACCOUNTS, _SECRETS = "/run/weighbridge-accounts.sql", "/run/weighbridge-sysbench.cnf"
PRIVATE_FILES = frozenset({_ACCOUNTS, _SECRETS})
"""Files that no other user can read."""
_USER = "sbtest"
WORK = f"{DATA}/mysql"
"""The data folder of the running server."""

_MYSQL_ONLY = (
    "--secure-file-priv=NULL",
    "--mysqlx=OFF",
    "--auto-generate-certs=OFF",
    "--caching-sha2-password-auto-generate-rsa-keys=OFF",
)
"""No second protocol, no folder for exchange, no keys on the disk."""
STOP = signal.SIGVTALRM
"""A signal that ends either server at once, and that differs from a failure and from other processes' signals."""

_FILES = files("weighbridge.workloads.mysql_oltp")
MY_CNF = (_FILES / "my.cnf").read_bytes()
_PREPARE = (_FILES / "prepare.sh").read_bytes()
_RESTORE = 'set -e; rm -rf "$2"; cp -r --reflink=never --sparse=never "$1" "$2"; sync --file-system "$2"'
"""The copy is synced, or the kernel would write it to the disk during the measurement.

It copies the folder in one step, because each trial waits for it: 160 MiB in 200 files take 0.2 s, and 1.2 s file by
file.
"""
_PRIVATE = (
    *("127.%", "10.%", "192.168.%", "169.254.%", "198.18.%", "198.19.%"),
    *(f"172.{second}.%" for second in range(16, 32)),
)
"""Addresses of clients behind an engine's address translation or an environment's bridge: loopback, private networks,
and networks for benchmarks (RFC 2544)."""
_RESTORE_DEADLINE_S = 300.0

_LIMITS = {
    1040: "too many connections",
    1203: "too many connections of one user",
    1037: "the server is out of memory",
    1038: "the server is out of memory",
    1041: "the server is out of memory",
    1135: "the server cannot create another thread",
    1461: "too many prepared statements",
    2002: "the server does not answer",
    2003: "the server does not answer",
    2006: "the server closed a connection",
    2013: "the server closed a connection",
}
"""Messages about too much load, from servers and (numbers from 2000 on) from their client library."""
_FIRST_CLIENT_CODE = 2000
_CODE = re.compile(r"\berror:? ([0-9]{4})\b")
_OWN_FAULT = re.compile(
    r"Too many open files|\berror 2004\b|\berror 20[0-9]{2}: .*\((11|12|23|24|99|101|113)\)$", re.MULTILINE
)
"""The client itself could not connect: it had no file, memory, port or route (the numbers of these failures)."""
_SLOW_START = re.compile(r"Worker threads failed to initialize within ([0-9]+) seconds")


def template(server: Server, tables: int, rows: int) -> str:
    """Return the folder of the initial data, which is named after everything that defines the data."""
    inputs = repr((server, tables, rows)).encode() + _PREPARE
    return f"{DATA}/{server}-{tables}x{rows}-{hashlib.sha256(inputs).hexdigest()[:12]}"


def _clients(at: Endpoint) -> tuple[str, ...]:
    """Return the addresses of possible clients, as SQL patterns."""
    return tuple(dict.fromkeys((*_PRIVATE, *([at.client] if at.client else ()))))


def user(at: Endpoint) -> str:
    """Return the user name of clients. It can be a secret, because MySQL accepts passwords only on encrypted
    connections."""
    return at.password or _USER


def server_files(at: Endpoint) -> dict[str, bytes]:
    """Return the server's settings, and the SQL that renames its accounts to the name that clients know."""
    renamed = (f"RENAME USER '{_USER}'@'{place}' TO '{user(at)}'@'{place}';\n" for place in _clients(at))
    return {SETTINGS: MY_CNF, **({_ACCOUNTS: "".join(renamed).encode()} if at.password else {})}


def client_files(at: Endpoint) -> dict[str, bytes]:
    """Return the options of sysbench that no other user can read."""
    return {_SECRETS: f"mysql-user={user(at)}\n".encode()} if at.password else {}


def client_options(at: Endpoint) -> tuple[str, ...]:
    """Return sysbench's options for the server's address and for the user name."""
    as_whom = f"--config-file={_SECRETS}" if at.password else f"--mysql-user={_USER}"
    return f"--mysql-host={at.address}", f"--mysql-port={at.port}", as_whom, "--mysql-db=sbtest"


def prepare(server: Server, tables: int, rows: int, at: Endpoint) -> Command:
    """Make the template in the server's site, unless the same version of the server has made it there."""
    folder = template(server, tables, rows)
    argv = ("sh", "-s", "--", PROGRAMS[server], folder, str(tables), str(rows), *_clients(at))
    return Command(argv, deadline_s=180 + tables * rows / 1000, stdin=_PREPARE)


def restore(server: Server, tables: int, rows: int) -> Command:
    """Replace the data folder by a copy of the template that is on the disk."""
    argv = ("sh", "-c", _RESTORE, "restore", template(server, tables, rows), WORK)
    return Command(argv, deadline_s=_RESTORE_DEADLINE_S + tables * rows / 10_000)


def serve(server: Server, at: Endpoint, *settings: str) -> tuple[str, ...]:
    """Return the server's command on the data folder, with ``settings`` in addition to those of its file."""
    own = _MYSQL_ONLY if server == "mysql" else ()
    network = [f"--bind-address={at.listen}", f"--port={at.port}"]
    network += [f"--init-file={_ACCOUNTS}"] if at.password else []
    return (PROGRAMS[server], f"--defaults-file={SETTINGS}", f"--datadir={WORK}", *network, *settings, *own)


def failure(client: Completed, fatal_errors: Sequence[str], server: Completed, load: str) -> TrialFailure:
    """Return the failure that sysbench's ``fatal_errors`` mean: Broke if a living server refused the ``load``.

    It is ServerDied if the server had ended: its client in a container can end before Weighbridge notices that. It is
    ProgramFailed for anything else, and first of all if the client ran out of its own resources.
    """
    if fault := _OWN_FAULT.search(client.text):
        return ProgramFailed(f"sysbench cannot make the connections of {load}: {fault[0]}")
    coded = next(((int(code[1]), line) for line in fatal_errors if (code := _CODE.search(line))), None)
    number, line = coded or (0, fatal_errors[0])
    refusal = Broke(f"{_LIMITS.get(number, 'it failed')} at {load} ({line[:300]})")
    if number in _LIMITS and number < _FIRST_CLIENT_CODE:
        return refusal
    if slow := _SLOW_START.search(client.text):
        return Broke(f"the server did not take {load} within {slow[1]} s")
    if number not in _LIMITS:
        return ProgramFailed(f"sysbench: {line[:300]}")
    if server.returncode != -STOP:
        return ServerDied(f"the server exited with code {server.returncode} under {load}: {server.last_words}")
    return refusal
