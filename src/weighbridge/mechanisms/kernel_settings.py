"""Settings of the kernel that an environment has of its own."""

from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class KernelSettings(Mechanism):
    """Those of its network and IPC namespaces (sysctl)."""

    kind = "kernel-settings"
    summary = "kernel settings (sysctls) that the study sets for the environment"
    title = "kernel settings (sysctls)"
    switched = "the study's → the kernel's defaults"
    remedy = "keep the kernel's defaults"
    source = "Linux kernel documentation, admin-guide/sysctl"

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment without them."""
        return subject.with_arm(sysctls={}) if subject.arm.sysctls else None


PLUGIN = KernelSettings()
