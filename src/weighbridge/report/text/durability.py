"""Durability in words."""

from weighbridge.analysis.conditions import Durabilities
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.sweep import LoadSweep
from weighbridge.model.power_cut import PowerCut, Promise, Verdict

MEANING = {
    "synchronous": "acknowledged writes are on the disk",
    "asynchronous": "a power cut loses the last acknowledged writes",
    "none": "acknowledged writes are in memory only",
}

PROMISES = {
    Promise.FSYNC: "write and fsync",
    Promise.O_DSYNC: "write with O_DSYNC",
    Promise.WRITE: "plain write",
    Promise.COMMIT: "commit",
}
"""What was done before a record was acknowledged."""
HOW_CHECKED = (
    "each disk had a write cache that loses at the cut what was not flushed; a record counts as acknowledged if that "
    "was known before the cut"
)


def how_kept(cut: PowerCut) -> str:
    """Return what was done before a record was acknowledged: ``commit of db``."""
    return PROMISES[cut.promise] + (f" of {cut.workload}" if cut.workload else "")


def power_cut_verdict(cut: PowerCut) -> str:
    """Return what was kept: ``kept all 187``, ``claims synchronous, lost 3 of 187 (first: 184; 1 torn)``."""
    if cut.verdict is Verdict.KEPT:
        return f"kept all {cut.acknowledged}"
    about = [f"first: {cut.first_lost}"]
    about += [f"{count} {what}" for count, what in ((cut.torn, "torn"), (cut.displaced, "out of place")) if count]
    about += [f"its server said: {cut.failure}"] if cut.failure else []
    lost = f"lost {cut.lost} of {cut.acknowledged} ({'; '.join(about)})"
    if cut.verdict is Verdict.OVERCLAIMED:
        return f"claims {cut.claimed}, {lost}"
    if cut.promise is Promise.WRITE:
        return f"{lost}, as nothing was synced"
    return f"{lost}, as claimed ({cut.claimed})"


def power_cut_lines(analysis: Analysis) -> list[str]:
    """Return a line for each check by power cut of the run."""
    return [
        f"records acknowledged in {cut.environment} ({cut.storage}, {how_kept(cut)}), after a power cut: "
        f"{power_cut_verdict(cut)}"
        for cut in analysis.power_cuts
    ]


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
