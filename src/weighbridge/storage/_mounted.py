"""A file system that is mounted in a folder of a host, for as long as a site has it."""

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.model.command import Command
from weighbridge.model.site import Host

_MOUNT_S, _UNMOUNT_S = 60.0, 20.0


@contextmanager
def mounted(host: Host, kind: str, source: str, folder: Path, options: Sequence[str] = ()) -> Iterator[None]:
    """Mount ``source`` as a file system of that kind (mount(8)). Raises Unavailable with what mount said.

    It is unmounted at the end, also while somebody still uses it.
    """
    how = ("-o", ",".join(options)) if options else ()
    done = host.run(Command(("mount", "-t", kind, *how, "--", source, str(folder)), _MOUNT_S))
    if done.returncode != 0:
        why = "mount did not end in time" if done.timed_out else done.last_words
        raise Unavailable(f"host {host.name}: {source} cannot be mounted as {kind}: {why}")
    try:
        yield
    finally:
        with contextlib.suppress(EnvironmentLost):
            host.run(Command(("umount", "--lazy", "--", str(folder)), _UNMOUNT_S))
