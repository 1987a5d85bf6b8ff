"""The frames between the two ends of an ssh connection: a JSON object and bytes, each preceded by its length."""

import errno
import json
import struct
from collections.abc import Mapping
from typing import IO, Any

MAGIC = b"weighbridge agent 1\n"
"""The agent's first line, which separates its frames from earlier output of a login shell."""
BOOT = (
    "import sys,zlib;"
    'sys.version_info>=(3,9) or sys.exit("weighbridge: python3 is "+sys.version.split()[0]);'
    "r=sys.stdin.buffer;n=int(r.readline());p=r.read(n);exec(zlib.decompress(p))"
)
"""The Python program on the command line: it reads the agent's program, preceded by its length, and runs it."""
LIMIT = 2**28
"""The largest number of bytes of a frame."""
_HEAD = struct.Struct(">II")


def pack(fields: Mapping[str, Any], data: bytes = b"") -> bytes:
    """Return one frame in wire format. Raises OSError (EFBIG) for a frame that is too long."""
    text = json.dumps(fields).encode()
    if len(text) + len(data) > LIMIT:
        size = (len(text) + len(data)) / 1e6
        raise OSError(errno.EFBIG, f"the message of {size:.0f} MB is too large for the agent")
    return _HEAD.pack(len(text), len(data)) + text + data


def read(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """Return the next frame; None at the end of the stream, also within a frame. ValueError for anything else."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    text_length, data_length = _HEAD.unpack(head)
    if text_length + data_length > LIMIT:
        raise ValueError("the connection carried data that is not a frame")
    text, data = stream.read(text_length), stream.read(data_length)
    if len(text) < text_length or len(data) < data_length:
        return None
    fields = json.loads(text)
    if not isinstance(fields, dict):
        raise ValueError("the connection carried data that is not a frame")
    return fields, data


def skip_to_magic(stream: IO[bytes], limit: int = 2**16) -> tuple[bool, bytes]:
    """Read up to and including the magic line; return whether it arrived, and the output before it."""
    before = b""
    while len(before) < limit:
        line = stream.readline(limit)
        if line.endswith(MAGIC):  # the last output of a shell can be without an end of line
            return True, before + line[: -len(MAGIC)]
        if not line:
            break
        before += line
    return False, before
