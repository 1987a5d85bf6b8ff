"""PostgreSQL: the data of a trial, the server's command, and its refusals."""

import base64
import hashlib
import hmac
import re
import signal
from importlib.resources import files

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Broke, ProgramFailed, ServerDied, TrialFailure
from weighbridge.model.workload import Endpoint

PACKAGES = ("postgresql-15", "postgresql-contrib-15")
HBA = "/run/weighbridge-pg_hba.conf"
"""The path of pg_hba.conf in the server's site."""
_SALT = b"weighbridge"
"""All passwords share it, because they are random."""
STOP = signal.SIGQUIT
"""An immediate shutdown, because the data is discarded."""
_PREPARE = (files("weighbridge.workloads.pgbench") / "prepare.sh").read_bytes()
_RESTORE = 'set -e; rm -rf "$2"; cp -a --reflink=never --sparse=never "$1" "$2"; sync --file-system "$2"'
"""The copy is synced, or the kernel would write it to the disk during the measurement."""
_AS = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--")
"""PostgreSQL refuses to run as root."""
READY = "database system is ready to accept connections"
"""The message after which it accepts connections. It listens earlier, and refuses them while it starts."""
_SERVER = "/usr/lib/postgresql/15/bin/postgres"
"""Debian has no link to this program on PATH."""
_REFUSED = re.compile(r"FATAL: +(sorry, too many clients already|remaining connection slots are reserved[^\n]*)")
_GONE = re.compile(r"(server closed the connection unexpectedly|Connection refused|terminating connection)")


def template(scale: int, at: Endpoint) -> str:
    """Return the folder of the initial data."""
    digest = hashlib.sha256(_PREPARE).hexdigest()[:12]
    return f"{at.data}/postgres-{scale}-{digest}"


def work(at: Endpoint) -> str:
    """Return the data folder of the running server."""
    return f"{at.data}/postgres"


def hba(at: Endpoint) -> bytes:
    """Return pg_hba.conf: all hosts can connect, with the endpoint's password if it has one."""
    return f"host all all 0.0.0.0/0 {'scram-sha-256' if at.password else 'trust'}\n".encode()


def verifier(password: str) -> str:
    """Return the stored form of a password, as in pg_authid (RFC 5803).

    It uses one iteration. More are for passwords that can be guessed, and a thousand clients would compute for
    seconds.
    """

    def key(name: bytes) -> bytes:
        return hmac.digest(hashlib.pbkdf2_hmac("sha256", password.encode(), _SALT, 1), name, "sha256")

    salt, stored, of_server = (
        base64.b64encode(each).decode()
        for each in (_SALT, hashlib.sha256(key(b"Client Key")).digest(), key(b"Server Key"))
    )
    return f"SCRAM-SHA-256$1:{salt}${stored}:{of_server}"


def prepare(scale: int, at: Endpoint) -> Command:
    """Make the template, unless the same version of the server has made it there, and set its password."""
    argv = ("sh", "-s", "--", template(scale, at), str(scale))
    asked = f"verifier='{verifier(at.password)}'\n".encode() if at.password else b""
    return Command(argv, deadline_s=300 + 10 * scale, stdin=asked + _PREPARE)


def client_env(at: Endpoint) -> dict[str, str]:
    """Return the variables that give clients the password."""
    return {"PGPASSWORD": at.password} if at.password else {}


def restore(scale: int, at: Endpoint) -> Command:
    """Replace the data folder by a copy of the template that is on the disk."""
    argv = ("sh", "-c", _RESTORE, "restore", template(scale, at), work(at))
    return Command(argv, deadline_s=300 + 2 * scale)


def serve(at: Endpoint, *settings: str) -> tuple[str, ...]:
    """Return the server's command on the data folder, as the user postgres. ``settings`` are NAME=VALUE."""
    own = (
        f"listen_addresses={at.listen}", f"port={at.port}", f"hba_file={HBA}", "unix_socket_directories=",
        "dynamic_shared_memory_type=sysv",
    )  # fmt: skip
    words = [word for setting in (*own, *settings) for word in ("-c", setting)]
    return (*_AS, _SERVER, "-D", work(at), *words)


def failure(client: Completed, server: Completed, load: str) -> TrialFailure:
    """Return pgbench's failure: Broke if a living server refused the ``load``, ServerDied if the server had ended."""
    stderr = client.error_text
    if refused := _REFUSED.search(stderr):
        return Broke(f"{refused[1]} at {load}")
    if disconnect := _GONE.search(stderr):
        if server.returncode != -STOP:
            return ServerDied(f"the server exited with code {server.returncode} under {load}: {server.last_words}")
        return Broke(f"{disconnect[1]} at {load}")
    return ProgramFailed(f"pgbench exited with code {client.returncode}: {client.last_words}")
