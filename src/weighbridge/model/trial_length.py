"""How long the trials of a workload are made, where a study has that chosen from a pilot block."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from weighbridge.model.level import cell_label

_Seconds = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Length:
    """How the trials of a workload are given a length: by the amount of their work, as programs count whole seconds.

    ``shortest_s``: the shortest that is sound, in seconds of work. ``option``: the one that says the amount; where it
    is None, ``duration`` says the seconds. ``rate``: from what a trial measured, by metric, the amount per second.
    """

    shortest_s: float
    option: str
    rate: Callable[[Mapping[str, float]], float]
    fewest: int = 1
    """The least number of steps that is sound: a slow environment makes all trials longer."""
    step: float = 1
    """Amounts are multiples of it."""
    shortens_warm_up: bool = False
    """Whether the warm-up becomes shorter in proportion."""

    def per_second(self, found: Mapping[str, float]) -> float | None:
        """The amount per second; None where what was measured does not tell it, or it is nothing."""
        try:
            rate = self.rate(found)
        except (KeyError, ZeroDivisionError):
            return None
        return rate if 0 < rate < math.inf else None

    def lasted_s(self, options: Any, per_second: float) -> float:
        """For how many seconds a trial with ``options`` worked at this rate."""
        amount = getattr(options, self.option)
        return float(options.duration) if amount is None else amount / per_second

    def lasting(self, options: Any, seconds: float, per_second: float) -> Any:
        """Options under which a trial works for about so many seconds at this rate."""
        steps = max(self.fewest, round(per_second * seconds / self.step))
        return options.model_copy(update={self.option: steps if self.step == 1 else round(steps * self.step, 6)})

    def rounded(self, seconds: float, shortest_s: float, per_second: float) -> float:
        """The seconds, nearest to these and not below the shortest, that whole steps last at this rate."""
        of_a_second = per_second / self.step
        least = math.ceil(round(shortest_s * of_a_second, 9))
        return max(least, round(seconds * of_a_second)) / of_a_second


def by_seconds(shortest_s: float, measured: str, step: float = 1) -> Length:
    """Give the length of a program that is told the seconds, in multiples of ``step``, as its ``duration``.

    ``measured``: the metric that is above zero where a trial measured anything.
    """
    return Length(shortest_s, "duration", lambda found: found[measured] / found[measured], step=step)


class TrialLength(BaseModel):
    """The length chosen for a workload at a level, in seconds of its work.

    ``asked_s`` is how long the work lasted in the pilot block, as the study says it; ``beside_s`` is what a trial
    takes beside it: servers that start, connections, a warm-up, what is saved.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    workload: str
    level: str
    asked_s: _Seconds
    chosen_s: _Seconds
    beside_s: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]


def chosen_length(asked_s: float, shortest_s: float, beside_s: float, warm_up: float = 0.0) -> float:
    """Seconds of work with which trials give a comparison its precision in nearly the shortest time.

    Of fresh trials of length L the values have the variance b^2 + w^2 / L: what differs between starts, and what
    differs within them. Each takes L + c, so that a precision takes a time in proportion to (b^2 + w^2 / L)(c + L),
    which is least, (b sqrt(c) + w)^2, at L = (w / b) sqrt(c). With L = c it is 2 (b^2 c + w^2): at most twice the
    least, whatever b and w are, and no other length has such a bound that is smaller. So trials work for as long as
    the rest of them takes (``beside_s``), never for less than is sound or for longer than was asked for. Nothing that
    was measured decides it, so that it can favour no result. A warm-up of k L (``warm_up``: k) makes a trial take
    (1 + k) L + c, for which the same holds at L = c / (1 + k).
    """
    return min(asked_s, max(shortest_s, beside_s / (1 + warm_up)))


def length_text(length: TrialLength) -> str:
    """As people read it: ``tcp (clients=2): 0.3 s in place of 1 s, with 0.04 s beside it``."""
    label = cell_label(length.workload, json.loads(length.level))
    return (
        f"{label}: {length.chosen_s:.2g} s in place of {length.asked_s:.2g} s, with {length.beside_s:.2g} s beside it"
    )


_EVERY = TypeAdapter(tuple[TrialLength, ...])


def lengths_text(lengths: Sequence[TrialLength]) -> str:
    """Return them as a run keeps them: JSON."""
    return _EVERY.dump_json(tuple(lengths)).decode()


def lengths_of(text: str) -> tuple[TrialLength, ...]:
    """Read what `lengths_text` gives. Raises ValidationError."""
    return _EVERY.validate_json(text)
