"""The objects of VirtualBox outside of its folder: the sockets of its programs, and links of the host.

Each site has its own VirtualBox, which ``VBOX_IPC_SOCKETID`` separates from the user's. Its sockets are in a folder
of /tmp with that name.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.linux import process
from weighbridge.linux.deletion import OwnFolder, remove_trees
from weighbridge.linux.folders import is_own_folder
from weighbridge.model.cleanup import Cleanup, Leftover, OrphanedRun, RunFolders
from weighbridge.model.command import Command
from weighbridge.model.names import RunId

FOLDERS = ("/usr/lib/virtualbox", "/opt/VirtualBox")
"""The folders of its programs. The one in PATH is a script that also prints warnings."""
LINKS_OF = "VBoxNetAdpCtl"
_MEETINGS = Path("/tmp")  # noqa: S108 - VirtualBox accepts no other folder
_MEETING = re.compile(r"\.vbox-([0-9a-f]{12})-\d+-ipc")
_NOTE = "vboxnet"
_LINK = re.compile(r"vboxnet\d{1,3}")


def identity(run_id: RunId, number: int) -> str:
    """Return the name of one of a run's VirtualBox services, which `VirtualBoxTraces` searches for."""
    return f"{run_id}-{number}"


def meeting(name: str) -> str:
    """Return the folder of VirtualBox's sockets, which it makes itself."""
    return str(_MEETINGS / f".vbox-{name}-ipc")


def note_link(state: Path, name: str) -> None:
    """Note a link that VirtualBox has made for a run and that would outlive it."""
    with (state / _NOTE).open("a") as note:
        note.write(f"{name}\n")


class VirtualBoxTraces(Cleanup):
    """The folders of VirtualBox's sockets, and links of the host that it made."""

    label = "folders of VirtualBox"

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Yield this user's folders in /tmp with their runs."""
        for path in _MEETINGS.glob(".vbox-*-ipc"):
            if is_own_folder(path) and (meeting := _MEETING.fullmatch(path.name)):
                yield Leftover(meeting[1], "folder of VirtualBox", str(path))

    def remove(self, run: OrphanedRun) -> None:
        """Remove the folders and links of a run whose processes have ended. OSError names what stays of a folder."""
        for name in _noted(run.state):
            for folder in FOLDERS:
                with contextlib.suppress(Unavailable):
                    process.run(Command((f"{folder}/{LINKS_OF}", name, "remove"), 20))
        paths = (path for path in _MEETINGS.glob(f".vbox-{run.id}-*-ipc") if is_own_folder(path))
        remove_trees(*(OwnFolder.of(_MEETINGS, path.name) for path in paths))


def _noted(state: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return [line for line in (state / _NOTE).read_text().splitlines() if _LINK.fullmatch(line)]
    return []
