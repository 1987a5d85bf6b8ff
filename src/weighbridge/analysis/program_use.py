"""What the programs of trials used, each alone, as the launcher of its site tells it (getrusage(2)).

Beside it what the whole site used: the launcher, and whatever else ran there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from weighbridge.analysis.metered import PLACES
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.analysis.use_by_level import one_a_block
from weighbridge.model.address import grouped
from weighbridge.store.run import RunStore

SITE_CPU = "cpu_s"
"""What a site's meters gave of the whole trial, its warm-up too."""
GUEST_CPU, GUEST_STEAL = "guest_cpu_s", "guest_steal_s"
"""The same as the site's own kernel sees it, where it has one: without its devices and its hypervisor."""
OF_SITES = (SITE_CPU, GUEST_CPU, GUEST_STEAL)
UNITS = {
    "program_cpu_user_s": "s", "program_cpu_system_s": "s", "program_peak_bytes": "B", "program_switches": "count",
    "program_preemptions": "count", "program_minor_faults": "count", "program_major_faults": "count",
    "program_outside_s": "s",
}  # fmt: skip
"""What is kept of each program, with its unit; the last is its wall time as seen from outside of the site."""


@dataclass(frozen=True, slots=True)
class ProgramUse:
    """One program in one environment: medians over the blocks by the names in `UNITS` and `OF_SITES` (seconds)."""

    environment: str
    role: str
    blocks: int
    medians: Mapping[str, float]


def program_use(store: RunStore, analysis: Analysis) -> dict[str, tuple[ProgramUse, ...]]:
    """Give by workload label what each role's program used; nothing of runs from before launchers told it."""
    samples: dict[tuple[int, str], dict[str, float]] = {}
    for sample in store.samples(*UNITS, *OF_SITES):
        if sample.site in PLACES:
            samples.setdefault((sample.trial, sample.site), {})[sample.name] = sample.value
    arms = grouped(analysis.trials, lambda trial: (trial.label, trial.environment))
    by_label = {}
    for label in analysis.labels:
        chosen = {name: one_a_block(arms.get((label, name), [])) for name in analysis.environments}
        rows = [_use(samples, name, role, trials) for role in PLACES for name, trials in chosen.items()]
        if uses := tuple(row for row in rows if row is not None):
            by_label[label] = uses
    return by_label


def _use(
    samples: Mapping[tuple[int, str], Mapping[str, float]], environment: str, role: str, trials: Sequence[TrialRow]
) -> ProgramUse | None:
    """The medians of an environment's trials; None where no launcher told anything."""
    read = [mine for trial in trials if (mine := samples.get((trial.id, role))) is not None and UNITS.keys() & mine]
    names = [name for name in (*UNITS, *OF_SITES) if any(name in mine for mine in read)]
    medians = {name: median(mine[name] for mine in read if name in mine) for name in names}
    return ProgramUse(environment, role, len(read), medians) if read else None
