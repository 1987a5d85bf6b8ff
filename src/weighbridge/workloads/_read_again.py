"""Files that are read more than once in a trial, of which only the first time is from their disk."""

from weighbridge.model.flag import Flag, FlagCode

_ONCE = 1.05


def read_again(times: float) -> tuple[Flag, ...]:
    """The flag of a trial with empty page caches that read its files ``times`` over through them."""
    return (Flag(FlagCode.READ_AGAIN, figures={"times": round(times, 1)}),) if times > _ONCE else ()
