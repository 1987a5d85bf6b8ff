"""gVisor's shim for Debian 12's containerd, and for a root without CAP_SYS_RESOURCE, which tests may run as.

    runsc_shim.py PROGRAM ARGUMENTS...    # PROGRAM: gVisor's containerd-shim-runsc-v1

containerd 1.6 expects the address of a shim where that prints JSON, and gVisor's ends where it may not give itself
a better score with the OOM killer. So what it does to start itself is done here; all else is its own.
"""

import fcntl
import hashlib
import os
import socket
import sys
from pathlib import Path

_SOCKETS = Path("/run/containerd/s")
_ABOVE_ITS = 10


def start(program: str, arguments: list[str]) -> str:
    """Start the shim of the bundle in the working directory, with its socket as file 3. Return its address."""
    _SOCKETS.mkdir(mode=0o711, parents=True, exist_ok=True)
    path = _SOCKETS / hashlib.sha256(str(Path.cwd()).encode()).hexdigest()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    address = f"unix://{path}"
    Path("address").write_text(address)
    its = fcntl.fcntl(listener, fcntl.F_DUPFD_CLOEXEC, _ABOVE_ITS)
    nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    pid = os.posix_spawn(
        program, [program, *arguments], {**os.environ, "GOMAXPROCS": "2"},
        file_actions=[*nothing, (os.POSIX_SPAWN_DUP2, its, 3)], setpgroup=0,
    )  # fmt: skip
    Path("shim.pid").write_text(str(pid))
    return address


if __name__ == "__main__":
    _, program, *arguments = sys.argv
    if arguments[-1] == "start":
        print(start(program, arguments[:-1]), end="")
    else:
        os.execv(program, [program, *arguments])
