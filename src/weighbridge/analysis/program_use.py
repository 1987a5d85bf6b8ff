"""Resource use of each program in a trial, reported by the launcher of its site (getrusage(2)).

For comparison, also the use of the whole site: the launcher, and everything else that ran there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import median

from weighbridge.analysis.metered import PLACES
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.analysis.use_by_level import one_a_block
from weighbridge.model.address import grouped
from weighbridge.store.run import RunStore

SITE_CPU = "cpu_s"
"""CPU time of a site over the whole trial, including its warm-up."""
GUEST_CPU, GUEST_STEAL = "guest_cpu_s", "guest_steal_s"
"""The same seen by the site's own kernel, if it has one, without its devices and hypervisor."""
OF_SITES = (SITE_CPU, GUEST_CPU, GUEST_STEAL)
UNITS = {
    "program_cpu_user_s": "s", "program_cpu_system_s": "s", "program_peak_bytes": "B", "program_switches": "count",
    "program_preemptions": "count", "program_minor_faults": "count", "program_major_faults": "count",
    "program_outside_s": "s",
}  # fmt: skip
"""Recorded values of each program with their units. The last is its wall time seen from outside the site."""


@dataclass(frozen=True, slots=True)
class ProgramUse:
    """One program in one environment: medians over the blocks by the names in `UNITS` and `OF_SITES` (seconds)."""

    environment: str
    role: str
    blocks: int
    medians: Mapping[str, float]


def program_use(store: RunStore, analysis: Analysis) -> dict[str, tuple[ProgramUse, ...]]:
    """Return the resource use of each role's program by label; empty for runs before launchers reported it."""
    samples: dict[tuple[int, str], dict[str, float]] = {}
    for sample in store.samples(*UNITS, *OF_SITES):
        if sample.site in PLACES:
            samples.setdefault((sample.trial, sample.site), {})[sample.name] = sample.value
    by_label = {}
    for label in analysis.labels:
        arms = grouped(analysis.trials_of.get(label, ()), attrgetter("environment"))
        chosen = {name: one_a_block(arms.get(name, [])) for name in analysis.environments}
        rows = [_use(samples, name, role, trials) for role in PLACES for name, trials in chosen.items()]
        if uses := tuple(row for row in rows if row is not None):
            by_label[label] = uses
    return by_label


def _use(
    samples: Mapping[tuple[int, str], Mapping[str, float]], environment: str, role: str, trials: Sequence[TrialRow]
) -> ProgramUse | None:
    """Return the medians of an environment's trials; None if no launcher reported anything."""
    read = [mine for trial in trials if (mine := samples.get((trial.id, role))) is not None and UNITS.keys() & mine]
    names = [name for name in (*UNITS, *OF_SITES) if any(name in mine for mine in read)]
    medians = {name: median(mine[name] for mine in read if name in mine) for name in names}
    return ProgramUse(environment, role, len(read), medians) if read else None
