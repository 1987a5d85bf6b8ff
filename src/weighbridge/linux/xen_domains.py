"""The domains that runs have on this machine, where it is the first domain of Xen."""

import re
from collections.abc import Iterator
from pathlib import Path

from weighbridge.linux import process
from weighbridge.model.command import Command
from weighbridge.model.isolation import Layer
from weighbridge.model.leavings import DeadRun, Leavings, Leftover, RunFolders
from weighbridge.model.names import RunId

CAPABILITIES = "/proc/xen/capabilities"
FIRST_DOMAIN = b"control_d"
"""What that file of the first domain holds."""
WITHIN_FIRST = Layer("Xen's first domain")
"""What the programs of such a host are in, natively too; its other domains are not."""
_NAME = re.compile(r"^(weighbridge-([0-9a-f]{12})-\d+) ", re.MULTILINE)
_ANSWER_S = 30.0


def name_of(run_id: RunId, number: int) -> str:
    """The name of a run's domain, by which ``weighbridge clean`` finds it."""
    return f"weighbridge-{run_id}-{number}"


def domains_in(listed: str) -> list[tuple[str, str]]:
    """The runs' domains among what ``xl list`` prints: run and name."""
    return [(each[2], each[1]) for each in _NAME.finditer(listed)]


def domains() -> list[tuple[str, str]]:
    """The runs' domains on this machine: run and name."""
    try:
        if FIRST_DOMAIN not in Path(CAPABILITIES).read_bytes():
            return []
    except OSError:
        return []
    return domains_in(process.run(Command(("xl", "list"), _ANSWER_S)).text)


class XenDomains(Leavings):
    """The domains of a run."""

    label = "Xen domains"

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Each domain of a run."""
        yield from (Leftover(owner, "domain", name) for owner, name in domains())

    def remove(self, run: DeadRun) -> None:
        """End each; whoever was making one has ended by now."""
        for owner, name in domains():
            if owner == run.id:
                process.run(Command(("xl", "destroy", name), _ANSWER_S))
