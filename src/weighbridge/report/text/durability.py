"""Durability in words."""

from weighbridge.analysis.durability import Durabilities
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.sweep import LoadSweep

MEANING = {
    "synchronous": "acknowledged writes are on the disk",
    "asynchronous": "a power cut loses the last acknowledged writes",
    "none": "acknowledged writes are in memory only",
}


def durability_words(found: Durabilities) -> str:
    """Return what a power cut leaves of a workload's data, of each environment where they differ."""
    told = []
    for kind, names in found.items():
        where = f" in {', '.join(names)}" if len(found) > 1 else ""
        told.append(f"{MEANING.get(kind, f'durability {kind}')}{where}")
    return "; ".join(told)


def durability_of(analysis: Analysis, label: str) -> str:
    """Return it for a workload and level; empty where it has none."""
    return durability_words(analysis.durability.get(label, {}))


def sweep_durability(analysis: Analysis, sweep: LoadSweep) -> str:
    """Return it for a workload under a rising load; empty where it has none."""
    return "; ".join(dict.fromkeys(filter(None, (durability_of(analysis, each.label) for each in sweep.levels))))
