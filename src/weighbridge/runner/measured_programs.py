"""The programs that a study measures, by what they hold: facts of a run, noted once a session."""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

from weighbridge import registry
from weighbridge.model.isolation import OUTSIDE
from weighbridge.model.measurement import TrialFailure
from weighbridge.model.options import Brings
from weighbridge.model.study import Study
from weighbridge.model.userland import Userlands
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.study.brings import brought_by
from weighbridge.userland.programs import digest_of, digests

SCOPE = "programs"
"""The scope of these facts: a word of a command -> SHA-256 of the file that it names, in its role's userland."""
_NOWHERE = Endpoint("127.0.0.1", "127.0.0.1", 5201, "127.0.0.1", 1472)
"""No program is named after where its server is."""


def measured_programs(study: Study, userlands: Userlands) -> dict[str, str]:
    """Return the digest of each program, script and further file that the commands of a study's roles name.

    The ``files`` of a workload are among them: a program may read any. So are programs of this machine that a study
    names, an engine's: two builds may tell the same version.
    """
    found: dict[str, str] = {}
    read: set[tuple[str, tuple[str, ...], str]] = set()
    for workload, options, environment in _workloads(study):
        for role in workload.roles(options):
            inside = role == "solo" or role in study.file.inside
            userland = userlands.of(role, environment if inside else OUTSIDE)
            own = "client" if userland is userlands.clients else environment
            note = "" if userland is userlands.usual else f" ({own})"
            try:
                command = userland.process.of(workload.command(role, options, _NOWHERE))
                files = workload.files(role, options, _NOWHERE)
            except TrialFailure:  # the trial tells it
                continue
            told = note, command.argv, command.cwd
            if told not in read:
                read.add(told)
                found |= {f"{word}{note}": digest for word, digest in digests(userland, command).items()}
            found |= {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    for each in brought_by(study):
        if each.what is Brings.PROGRAM:
            with contextlib.suppress(OSError):  # its readiness tells it
                found[each.value] = digest_of(Path(each.value))
    return dict(sorted(found.items()))


def _workloads(study: Study) -> Iterator[tuple[Workload, object, str]]:
    """Each workload with the options that it has in each environment, but for those that open sites."""
    for cell in study.cells:
        workload = registry.workloads()[cell.kind]
        for arm in [arm for arm in study.arms if arm.aa_of is None]:
            options = study.options(arm, cell)
            if workload.openings(options) is None:
                yield workload, options, arm.name
