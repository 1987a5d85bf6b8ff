"""Flags files that a trial reads more than once. Only the first read comes from the disk."""

from weighbridge.model.flag import Flag, FlagCode

_ONCE = 1.05


def read_again(times: float) -> tuple[Flag, ...]:
    """Return the flag of a trial with empty page caches that read its files ``times`` times through them."""
    return (Flag(FlagCode.READ_AGAIN, figures={"times": round(times, 1)}),) if times > _ONCE else ()
