"""How long the period of a CPU limit is."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import CPU_LIMIT
from weighbridge.model.measurement import THROTTLED_PERIODS, THROTTLED_TIME
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm

SHORT_S = 0.01
"""Seconds. A shorter one has quotas of less than the kernel's tick, by which each CPU overruns them."""


class CpuPeriod(Mechanism):
    """Threads use up a quota together, and all wait for the rest of its period: the shorter it is, the less."""

    kind = "cpu-period"
    summary = "the period of a CPU limit: in a long period, a program can use up its quota early and must then wait"
    title = "CPU limit's period"
    switched = "own period → 10 ms"
    remedy = "a shorter period (docker run --cpu-period), or no more threads than CPUs"
    source = "Linux kernel documentation, scheduler/sched-bwc"
    counters: ClassVar = (THROTTLED_TIME, THROTTLED_PERIODS)
    proof = Proof(fact=CPU_LIMIT, off=r".* in each 10 ms")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with the same limit, kept within 10 ms."""
        own = subject.arm.resources
        if own is None or own.quota_period_s <= SHORT_S or own.quota_period_s == subject.resources.quota_period_s:
            return None
        return subject.with_arm(resources=own.model_copy(update={"cpu_period": SHORT_S}))


PLUGIN = CpuPeriod()
