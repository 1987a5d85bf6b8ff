"""How two machines' clocks differ."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """By how many seconds another machine's clock is ahead of this one's, and within how many that is known."""

    ahead_s: float
    within_s: float

    def __str__(self) -> str:
        return f"{1000 * self.ahead_s:+.3f} ms ahead of this machine's (± {1000 * self.within_s:.3f} ms)"
