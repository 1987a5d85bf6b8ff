"""How many processes and threads a container may have."""

from weighbridge.model.explained import Proof
from weighbridge.model.facts import PROCESSES
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class ProcessLimit(Mechanism):
    """Each fork is counted in every group above; at the limit it fails, and a pool of threads stays smaller."""

    kind = "pids-limit"
    summary = "a limit of processes and threads (pids cgroup) that only this environment has"
    title = "limit of processes (pids)"
    switched = "own limit → the native limit"
    remedy = "a higher limit (--pids-limit), or fewer threads"
    source = "Linux kernel documentation, admin-guide/cgroup-v2: PID"
    proof = Proof(fact=PROCESSES)

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with the limit that native programs have."""
        return subject.with_options(without=("pids_limit",)) if subject.option("pids_limit") else None


PLUGIN = ProcessLimit()
