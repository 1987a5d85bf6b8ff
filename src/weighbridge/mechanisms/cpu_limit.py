"""A limit of CPU time that the baseline has not."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import CPU_LIMIT
from weighbridge.model.measurement import THROTTLED_PERIODS, THROTTLED_TIME
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class CpuLimit(Mechanism):
    """A quota in each period: who has used it up waits for the next one."""

    kind = "cpu-limit"
    summary = "a CPU limit that only this environment has"
    title = "CPU limit"
    switched = "own limit → the study's"
    remedy = "a higher limit, a shorter period, or no more threads than CPUs"
    source = "Linux kernel documentation, scheduler/sched-bwc"
    off_with = frozenset({"cpu-period"})
    counters: ClassVar = (THROTTLED_TIME, THROTTLED_PERIODS)
    proof = Proof(fact=CPU_LIMIT)

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with the study's limit of CPU time, if any."""
        own, usual = subject.arm.resources, subject.resources
        if own is None or (own.cpus, own.quota_period_s) == (usual.cpus, usual.quota_period_s):
            return None
        return subject.with_usual_limits(own, "cpus", "cpu_period")


PLUGIN = CpuLimit()
