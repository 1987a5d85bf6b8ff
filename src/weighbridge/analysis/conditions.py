"""Under what the machine measured all environments alike: idle CPUs, and its last calibration."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from weighbridge.analysis.confounders import Fact
from weighbridge.model.facts import IDLE_CPUS, POLL, idle_code


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the machine's last calibration says. ``about``: whether it is about this run.

    It was made with one host and without cables, whose idle CPUs halt: it says nothing of another path, or of CPUs
    that poll.
    """

    about: Literal["this-run", "another-path", "halting-cpus"]
    facts: Mapping[str, str]


def polled(facts: Iterable[Fact]) -> bool:
    """Whether the run's idle CPUs polled: then nobody waited for one to wake up, in any environment."""
    return any((scope, key, idle_code(value)) == ("host", IDLE_CPUS, POLL) for scope, key, value, _ in facts)


def calibration_of(facts: Iterable[Fact]) -> Calibration | None:
    """Give the machine's last calibration, the latest of the run's facts; None where there is none."""
    facts = list(facts)
    found = {key: value for scope, key, value, _ in facts if scope == "calibration"}
    if not found:
        return None
    if any(scope.startswith("host ") and key == "kind" for scope, key, _, _ in facts):
        return Calibration("another-path", found)
    return Calibration("halting-cpus" if polled(facts) else "this-run", found)
