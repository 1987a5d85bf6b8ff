"""The bit by which a program's set-user-id files give it nothing."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import NEW_PRIVILEGES
from weighbridge.model.measurement import ALL_CPU, CPU_SYSTEM
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class NoNewPrivileges(Mechanism):
    """It counts when a program is started: set-user-id, file capabilities and changes of profile have no effect."""

    kind = "no-new-privileges"
    summary = "no-new-privileges (no_new_privs), if a study requests it"
    title = "no new privileges (no_new_privs)"
    switched = "on → off"
    remedy = "no_new_privileges: false, if you trust the program"
    source = "Linux kernel documentation, userspace-api/no_new_privs"
    counters: ClassVar = (ALL_CPU, CPU_SYSTEM.name)
    proof = Proof(fact=NEW_PRIVILEGES, off="allowed")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment whose programs may gain privileges."""
        return subject.with_options(no_new_privileges=False) if subject.option("no_new_privileges") else None


PLUGIN = NoNewPrivileges()
