"""foreign.py COMMAND...: run a command where programs of arm64 are emulated, in namespaces of its own.

binfmt_misc belongs to a user namespace (since Linux 6.7), so that the machine itself knows nothing of it, and nothing
is left of it. All of the machine's ids are the same inside.
"""

import ctypes
import os
import shutil
import sys
from pathlib import Path

EMULATOR = "qemu-aarch64-static"
_MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
_MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
"""An ELF header of a program or library for aarch64, as Debian's qemu-user registers it; its OS/ABI may be any."""
_BINFMT = "/proc/sys/fs/binfmt_misc"
_IDS = "0 0 65536\n"
_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000


def main() -> int:
    """Run the command that the words name; return what it ended with."""
    libc = ctypes.CDLL(None, use_errno=True)
    unshared, mapped = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        if libc.unshare(_NEW_USER | _NEW_MOUNTS) != 0:
            sys.exit(f"no namespace of its own: {os.strerror(ctypes.get_errno())}")
        os.write(unshared[1], b".")
        os.read(mapped[0], 1)
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
        if libc.mount(b"binfmt_misc", _BINFMT.encode(), b"binfmt_misc", 0, None) != 0:
            sys.exit(f"no binfmt_misc of its own: {os.strerror(ctypes.get_errno())}")
        rule = f":{EMULATOR}:M::{_MAGIC}:{_MASK}:{shutil.which(EMULATOR)}:F"
        Path(_BINFMT, "register").write_text(rule)
        os.execvp(sys.argv[1], sys.argv[1:])
    os.close(unshared[1])
    if os.read(unshared[0], 1):
        for file in ("uid_map", "gid_map"):
            Path(f"/proc/{child}/{file}").write_text(_IDS)
        os.write(mapped[1], b".")
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
