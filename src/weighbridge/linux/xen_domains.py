"""The domains that runs have on this machine, where it is the first domain of Xen."""

import re
from pathlib import Path

from weighbridge.linux.process import run
from weighbridge.model.command import Command
from weighbridge.model.isolation import Layer

CAPABILITIES = "/proc/xen/capabilities"
FIRST_DOMAIN = b"control_d"
"""What that file of the first domain holds."""
WITHIN_FIRST = Layer("Xen's first domain")
"""What the programs of such a host are in, natively too; its other domains are not."""
_NAME = re.compile(r"^(weighbridge-([0-9a-f]{12})-\d+) ", re.MULTILINE)
_ANSWER_S = 30.0


def name_of(run_id: str, number: int) -> str:
    """The name of a run's domain, by which ``weighbridge clean`` finds it."""
    return f"weighbridge-{run_id}-{number}"


def named(listed: str) -> list[tuple[str, str]]:
    """The runs' domains among what ``xl list`` prints: run and name."""
    return [(each[2], each[1]) for each in _NAME.finditer(listed)]


def domains() -> list[tuple[str, str]]:
    """Those of this machine: run and name."""
    try:
        if FIRST_DOMAIN not in Path(CAPABILITIES).read_bytes():
            return []
    except OSError:
        return []
    return named(run(Command(("xl", "list"), _ANSWER_S)).text)


def destroy(run_id: str) -> None:
    """End every domain of a run."""
    for whose, name in domains():
        if whose == run_id:
            run(Command(("xl", "destroy", name), _ANSWER_S))
