"""The profile of AppArmor that an engine gives its containers."""

from collections.abc import Callable
from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import APPARMOR
from weighbridge.model.measurement import ALL_CPU, CPU_SYSTEM
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm

_ENABLED = "/sys/module/apparmor/parameters/enabled"
_SELINUX = "/sys/fs/selinux/enforce"


class AppArmorProfile(Mechanism):
    """The kernel compares each file that is opened, and each mount, signal and socket, with the profile's rules."""

    kind = "apparmor"
    summary = "the AppArmor profile of Docker and Podman containers, if the kernel has AppArmor"
    title = "AppArmor profile"
    switched = "default → unconfined"
    remedy = "apparmor: unconfined, or a shorter profile, if you trust the program"
    source = "Docker documentation, AppArmor security profiles for Docker; apparmor(7)"
    counters: ClassVar = (ALL_CPU, CPU_SYSTEM.name)
    proof = Proof(fact=APPARMOR, off="unconfined")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment without a profile; gVisor's and an ordinary user's containers have none."""
        without = subject.option("runtime") == "runsc" or subject.option("rootless")
        if subject.option("apparmor") != "default" or without:
            return None
        return subject.with_options(apparmor="unconfined")

    def absent(self, read: Callable[[str], bytes]) -> str:
        """Return that the kernel has no AppArmor, or SELinux in its place."""
        if _is(read, _ENABLED, b"Y"):
            return ""
        selinux = _is(read, _SELINUX, b"0", b"1")
        return "this kernel has no AppArmor" + (", and Weighbridge does not switch off SELinux" if selinux else "")


def _is(read: Callable[[str], bytes], path: str, *values: bytes) -> bool:
    try:
        return read(path).strip() in values
    except OSError:
        return False


PLUGIN = AppArmorProfile()
