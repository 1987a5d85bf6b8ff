"""PostgreSQL: data made once and copied before each start, the server's command, what it refuses."""

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
"""Where the file of who may connect is in the server's site."""
_SALT = b"weighbridge"
"""One for all: passwords are random."""
STOP = signal.SIGQUIT
"""An immediate shutdown: the data is thrown away."""
_PREPARE = (files("weighbridge.workloads.pgbench") / "prepare.sh").read_bytes()
_RESTORE = 'set -e; rm -rf "$2"; cp -a --reflink=never --sparse=never "$1" "$2"; sync --file-system "$2"'
"""Synced, or the kernel would write the copy to the disk while it is measured."""
_AS = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--")
"""It refuses to run as root."""
READY = "database system is ready to accept connections"
"""What it prints once it takes connections: it listens before, and refuses them while it starts."""
_SERVER = "/usr/lib/postgresql/15/bin/postgres"
"""Debian has no link to it."""
_REFUSED = re.compile(r"FATAL: +(sorry, too many clients already|remaining connection slots are reserved[^\n]*)")
_GONE = re.compile(r"(server closed the connection unexpectedly|Connection refused|terminating connection)")


def template(scale: int, at: Endpoint) -> str:
    """The folder of the data that trials start from."""
    digest = hashlib.sha256(_PREPARE).hexdigest()[:12]
    return f"{at.data}/postgres-{scale}-{digest}"


def work(at: Endpoint) -> str:
    """The data folder of the running server."""
    return f"{at.data}/postgres"


def hba(at: Endpoint) -> bytes:
    """Return the file of who may connect: who knows the endpoint's password, where it has one."""
    return f"host all all 0.0.0.0/0 {'scram-sha-256' if at.password else 'trust'}\n".encode()


def verifier(password: str) -> str:
    """Return what the server keeps of a password, as pg_authid has it (RFC 5803).

    One iteration, or a thousand clients would compute for seconds: more are for passwords that can be guessed.
    """

    def key(name: bytes) -> bytes:
        return hmac.digest(hashlib.pbkdf2_hmac("sha256", password.encode(), _SALT, 1), name, "sha256")

    salt, stored, of_server = (
        base64.b64encode(each).decode()
        for each in (_SALT, hashlib.sha256(key(b"Client Key")).digest(), key(b"Server Key"))
    )
    return f"SCRAM-SHA-256$1:{salt}${stored}:{of_server}"


def prepare(scale: int, at: Endpoint) -> Command:
    """Make the template, unless the same version of the server has made it there, and give it the password."""
    argv = ("sh", "-s", "--", template(scale, at), str(scale))
    asked = f"verifier='{verifier(at.password)}'\n".encode() if at.password else b""
    return Command(argv, deadline_s=300 + 10 * scale, stdin=asked + _PREPARE)


def client_env(at: Endpoint) -> dict[str, str]:
    """Return the variables by which its clients know the password."""
    return {"PGPASSWORD": at.password} if at.password else {}


def restore(scale: int, at: Endpoint) -> Command:
    """Replace the data folder by a copy of the template that is on the disk."""
    argv = ("sh", "-c", _RESTORE, "restore", template(scale, at), work(at))
    return Command(argv, deadline_s=300 + 2 * scale)


def serve(at: Endpoint, *settings: str) -> tuple[str, ...]:
    """The server on the data folder, as the user postgres; ``settings`` are NAME=VALUE."""
    own = (
        f"listen_addresses={at.listen}", f"port={at.port}", f"hba_file={HBA}", "unix_socket_directories=",
        "dynamic_shared_memory_type=sysv",
    )  # fmt: skip
    words = [word for setting in (*own, *settings) for word in ("-c", setting)]
    return (*_AS, _SERVER, "-D", work(at), *words)


def failure(client: Completed, server: Completed, load: str) -> TrialFailure:
    """What made pgbench fail: Broke where a living server refused the ``load``, ServerDied where it had ended."""
    stderr = client.stderr.decode(errors="replace")
    if refused := _REFUSED.search(stderr):
        return Broke(f"{refused[1]} at {load}")
    if disconnect := _GONE.search(stderr):
        if server.returncode != -STOP:
            return ServerDied(f"the server exited with code {server.returncode} under {load}: {server.last_words}")
        return Broke(f"{disconnect[1]} at {load}")
    return ProgramFailed(f"pgbench exited with code {client.returncode}: {client.last_words}")
