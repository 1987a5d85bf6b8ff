"""How long a host's kernel waits for the next interrupt of a guest whose virtual CPU is idle."""

from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm

_SETTING = "/sys/module/kvm/parameters/halt_poll_ns"


class HaltPolling(Mechanism):
    """KVM polls before it gives up the CPU: the guest wakes up sooner, and the host's CPU is busy meanwhile."""

    kind = "halt-polling"
    summary = "KVM's polling while a guest waits; it cannot be switched off for one guest"
    title = "halt polling (KVM)"
    switched = "on → off"
    remedy = f"{_SETTING}: larger for latency, 0 for CPU time, for all guests of the host"
    source = "Linux kernel documentation, virt/kvm/halt-polling"

    def off(self, subject: Subject) -> Arm | None:
        """Raise ValueError where there may be such polling: nobody can switch it for one guest. None elsewhere."""
        accelerators = [getattr(arm.options, "accelerator", "tcg") for arm in (subject.arm, subject.baseline)]
        waits = subject.networked or subject.stores
        if not waits or accelerators[0] == "tcg" or accelerators[1] != "tcg":  # the baseline has it as well
            return None
        raise ValueError(f"{_SETTING} applies to all guests of this machine, and emulated guests (TCG) do not use it")


PLUGIN = HaltPolling()
