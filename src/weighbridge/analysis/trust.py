"""Whether a session can be trusted, by its A/A arm.

**Its noise floor** is the median over the headline metrics (the first of each workload) in which the A/A arm is not
hidden: behind a limit there is no noise to see. The largest one is named beside it.

**Trusted**: a 99 % interval per metric would raise a false alarm in one session of seven with fifteen metrics. The
session is untrusted if, for any metric, the A/A arm's 99 % interval excludes "no cost" and its p-value is at most 1 %
after Holm across the metrics: at most one false alarm in a hundred sessions, however many metrics there are. Of fewer
blocks than any verdict needs (`MIN_BLOCKS_VERDICT`) nothing is said of it.
"""

from collections.abc import Sequence
from statistics import median

from weighbridge.analysis.results import MetricReport, Trust, TrustReason
from weighbridge.statistics import Cost, holm
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import excludes_no_cost

DISTRUST = 0.01
"""Chance of calling a good session untrusted."""


def session_trust(
    metrics: Sequence[MetricReport], at_99: Sequence[tuple[MetricReport, Cost, float]], aa_arm: str | None
) -> Trust:
    """Judge the session. ``at_99``: per metric the A/A arm's cost at 99 % confidence and its p-value."""
    seen = [each for each in metrics if each.headline and not (each.aa and each.aa.hidden)]
    floors = [(each.noise_floor, each) for each in seen if each.noise_floor is not None]
    middle = median(floor for floor, _ in floors) if floors else None
    ranges = sorted((floor, each.noise) for floor, each in floors if each.noise is not None)
    noise = ranges[len(ranges) // 2][1] if ranges else None
    largest, largest_in = max(floors, key=lambda each: each[0]) if floors else (None, None)
    blocks = max((each.aa.blocks for each in metrics if each.headline and each.aa), default=0)
    usable = [each for each in at_99 if each[1].blocks >= MIN_BLOCKS_VERDICT]
    after_holm = holm([p for _, _, p in usable])
    shifted = tuple(
        report
        for (report, cost, _), p in zip(usable, after_holm, strict=True)
        if excludes_no_cost(cost) and p <= DISTRUST
    )
    if aa_arm is None:
        trusted, reason = None, TrustReason.NO_AA_ARM
    elif not usable:
        trusted, reason = None, TrustReason.FEW_BLOCKS
    else:
        trusted, reason = not shifted, TrustReason.SHIFTED if shifted else TrustReason.HOLDS
    return Trust(trusted, reason, middle, noise, largest, largest_in, blocks, shifted)
