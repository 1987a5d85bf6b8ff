"""The domains of runs on this machine, if it is Xen's first domain."""

import re
from collections.abc import Iterator
from pathlib import Path

from weighbridge.linux import process
from weighbridge.model.cleanup import Cleanup, Leftover, OrphanedRun, RunFolders
from weighbridge.model.command import Command
from weighbridge.model.isolation import Layer
from weighbridge.model.names import RunId

CAPABILITIES = "/proc/xen/capabilities"
FIRST_DOMAIN = b"control_d"
"""The content of that file in the first domain."""
WITHIN_FIRST = Layer("Xen's first domain")
"""The layer of all programs on such a host, also of native ones; its other domains are not in it."""
_NAME = re.compile(r"^(weighbridge-([0-9a-f]{12})-\d+) ", re.MULTILINE)
_ANSWER_S = 30.0


def name_of(run_id: RunId, number: int) -> str:
    """Return the name of a run's domain, by which ``weighbridge clean`` finds it."""
    return f"weighbridge-{run_id}-{number}"


def domains_in(listed: str) -> list[tuple[str, str]]:
    """Return run and name of each run's domain in the output of ``xl list``."""
    return [(each[2], each[1]) for each in _NAME.finditer(listed)]


def domains() -> list[tuple[str, str]]:
    """Return run and name of each run's domain on this machine."""
    try:
        if FIRST_DOMAIN not in Path(CAPABILITIES).read_bytes():
            return []
    except OSError:
        return []
    return domains_in(process.run(Command(("xl", "list"), _ANSWER_S)).text)


class XenDomains(Cleanup):
    """The Xen domains of a run."""

    label = "Xen domains"

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Yield each domain of a run."""
        yield from (Leftover(owner, "domain", name) for owner, name in domains())

    def remove(self, run: OrphanedRun) -> None:
        """Destroy each domain; no process can still be making one."""
        for owner, name in domains():
            if owner == run.id:
                process.run(Command(("xl", "destroy", name), _ANSWER_S))
