"""How long a study takes."""

from weighbridge import registry
from weighbridge.model.study import Study

_FIXED_S = {"native": (0.05, 0.3)}
_FIXED_OTHER_S = (0.15, 0.8)
_SITE_S = (0.1, 2.0)


def seconds(study: Study) -> tuple[float, float]:
    """Seconds (from, to) that the trials of a study take, without building the userland or repeating blocks."""
    repetitions = study.file.repetitions
    fewest, most = (repetitions.blocks or repetitions.min), (repetitions.blocks or repetitions.max)
    least = longest = 0.0
    for cell in study.cells:
        expected = registry.workloads()[cell.kind].expected_s(cell.options)
        for arm in study.arms_of(cell):
            low, high = _FIXED_S.get(arm.kind, _FIXED_OTHER_S)
            least += fewest * (expected + low)
            longest += most * (expected * 1.5 + high)
    sites = len(study.arms) * len(study.client_hosts)
    least, longest = least + sites * _SITE_S[0], longest + sites * _SITE_S[1]
    if repetitions.budget is not None:
        longest = max(least, min(longest, repetitions.budget))
    return least, longest


def clock(duration_s: float) -> str:
    """A duration as people say it: 45 s, 7 min, 2 h 5 min."""
    whole = round(duration_s)
    if whole < 90:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
