"""A folder of the kernel's NFS server, mounted on the site's host or by its engine."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from weighbridge.errors import Unavailable
from weighbridge.model.host import Host
from weighbridge.model.plugin import Durability, Readiness
from weighbridge.model.site import Mount, MountRequest
from weighbridge.model.storage import Storage, StorageOptions
from weighbridge.storage._nfs_server import (
    REMEDY,
    Export,
    When,
    must,
    server_of,
    services_of,
    unmount,
    why_not_here,
)  # fmt: skip

_WRITABLE = 'at=$(mktemp -d "$1/try-XXXXXX") && exec rmdir "$at"'


class NfsOptions(StorageOptions):
    """How the server exports, how the client mounts. What ``sync`` means differs between the two."""

    kind: Literal["nfs"] = "nfs"
    export: Annotated[
        When, Field(description="When the server answers that data is on its disk: once it is, or before")
    ] = "sync"
    mount: Annotated[
        When, Field(description="Whether the client sends each write at once, or keeps it until it is synced")
    ] = "async"
    version: Annotated[
        Literal["3", "4.0", "4.2"], BeforeValidator(str), Field(description="The version of the protocol")
    ] = "4.2"
    hard: Annotated[
        bool, Field(description="Whether programs wait for a server that does not answer, or get an error")
    ] = True

    @property
    def in_force(self) -> frozenset[str]:
        """What a mount table must show of it."""
        shown = {f"vers={self.version}", "hard" if self.hard else "soft", "rw"}
        return frozenset(shown | {"sync"} if self.mount == "sync" else shown)

    def mount_options(self, address: str) -> str:
        """Return the options of the mount of a server with this address, as mount(2) takes them."""
        asked = f"addr={address},rw,nfsvers={self.version},proto=tcp,{self.mount},{'hard' if self.hard else 'soft'}"
        return f"{asked},mountproto=tcp,mountaddr={address}" if self.version == "3" else asked


class Nfs(Storage):
    """Server and client are the kernel's. The server is on the host that ``placement`` names, else the site's own."""

    kind = "nfs"
    summary = "a folder of the kernel's NFS server on a host, mounted or as a volume of the engine"
    options = NfsOptions
    ways = ("volume", "folder")
    served: ClassVar[bool] = True

    def durability(self, options: Any) -> Durability:
        """What the server acknowledged from its memory is lost with it."""
        return "synchronous" if options.export == "sync" else "asynchronous"

    def readiness(self, options: Any | None = None) -> Readiness:
        """Not ready: only guest hosts can have it, which end with the run."""
        return Readiness(False, why_not_here(), REMEDY)

    @contextmanager
    def open(self, options: Any, request: MountRequest) -> Iterator[Mount]:
        """Export a new, empty folder to the site's host, mount it, and check what is in force."""
        run, host = request.run, request.host
        at = request.server or host
        services_of(run, host)
        server = server_of(run, at)
        asked = options.mount_options(at.address)
        with ExitStack() as stack:
            export = stack.enter_context(server.export(request.name, host.address, options.export))
            facts = {"export": export.line, "versions of the server": server.versions}
            servers = (at,) if at.name != host.name else ()
            filesystem, cached_by = "nfs" if options.version == "3" else "nfs4", f"the NFS server on host {at.name}"
            folder = str(stack.enter_context(host.data_folder(run, f"{request.name}-mount")))
            stack.callback(unmount, run, host, export.path)
            mount_checked(host, export, asked, folder, options)
            if request.volumes is None:
                yield Mount("folder", folder, servers, facts, filesystem, cached_by, options.in_force)
                return
            unmount(run, host, export.path)  # the engine mounts it itself, with the same options
            driver = {"type": "nfs", "o": asked, "device": f":{export.path}"}
            with request.volumes.volume(request.name, driver) as volume:
                try:
                    yield Mount("volume", volume, servers, facts, filesystem, cached_by, options.in_force)
                finally:  # before the engine is asked to remove it
                    unmount(run, host, export.path)


def mount_checked(host: Host, export: Export, asked: str, folder: str, options: NfsOptions) -> None:
    """Mount an export at a folder. Unavailable where that, or what it asks for, is refused, or it is not writable."""
    must(host, "an NFS mount", "mount", "-i", "-t", "nfs", "-o", asked, f":{export.path}", folder)
    in_force = _mounted(host, folder)
    if lacking := sorted(options.in_force - in_force):
        raise Unavailable(
            f"host {host.name}: its NFS mount is not '{lacking[0]}', but '{','.join(sorted(in_force)) or 'none'}'"
        )
    must(host, "a writable NFS mount", "sh", "-c", _WRITABLE, "try", folder)


def _mounted(host: Host, folder: str) -> set[str]:
    """The options, of the mount and of its file system, that are in force at a folder."""
    for line in reversed(host.read("/proc/self/mountinfo").decode(errors="replace").splitlines()):
        before, _, after = line.partition(" - ")
        if before.split(" ")[4] == folder:
            return {*before.split(" ")[5].split(","), *after.split(" ")[2].split(",")}
    return set()


PLUGIN = Nfs()
