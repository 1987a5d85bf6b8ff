"""Functions that switch a mechanism off, for mechanisms that need more than other values of one option."""

from collections.abc import Callable, Mapping

from weighbridge.model.mechanism import Subject, SwitchOff, differs
from weighbridge.model.study import Arm

NFS_VERSION = "4.2"
"""The version that mounts use by default."""
POLLING = "/sys/module/kvm/parameters/halt_poll_ns"
_SHORT_PERIOD_S = 0.01
"""Seconds. A shorter period has quotas below the kernel's tick, and each CPU exceeds such a quota."""
_NETWORK_OPTIONS = (
    "publish", "publish_on", "publish_by", "userland_proxy", "attach", "parent", "subnet", "gateway", "addresses",
    "ipvlan_mode", "encrypted", "reach", "policy", "mtu", "no_offloads", "vxlan_offload", "bridge_netfilter",
    "conntrack", "filter_rules",
)  # fmt: skip
_GVISOR_OPTIONS = ("runsc_platform", "runsc_network", "runsc_files", "runsc_layer")
_USER_MODE = ("slirp4netns", "pasta")
_APPARMOR_ENABLED = "/sys/module/apparmor/parameters/enabled"
_SELINUX_ENFORCED = "/sys/fs/selinux/enforce"


def without_part(kind: str) -> SwitchOff:
    """Return the function that starts a sandbox without a mechanism that its preset can leave out."""

    def without(subject: Subject) -> Arm | None:
        if kind not in (subject.option("removable") or ()):
            return None
        return subject.with_options(omit=(*subject.option("omit"), kind))

    return without


def first_of(*switches: SwitchOff) -> SwitchOff:
    """Return the function that uses the first of these that has something to switch off."""
    return lambda subject: next((arm for switch in switches if (arm := switch(subject)) is not None), None)


def set_keys(off: Mapping[str, object]) -> SwitchOff:
    """Return the function that sets the common keys ``off``, if one of them has another value."""
    return lambda subject: subject.with_arm(**off) if differs(subject.arm, off) else None


def set_storage(off: Mapping[str, object]) -> SwitchOff:
    """Return the function that sets the options ``off`` of the environment's storage, if one has another value."""

    def without(subject: Subject) -> Arm | None:
        storage = subject.option("storage")
        return subject.with_options(storage=storage.model_copy(update={**off})) if differs(storage, off) else None

    return without


def use_usual_storage(kind: str) -> SwitchOff:
    """Return the function that replaces storage of one kind with the environment's usual storage."""

    def without(subject: Subject) -> Arm | None:
        return subject.with_usual_storage() if getattr(subject.option("storage"), "kind", None) == kind else None

    return without


def without_address_translation(subject: Subject) -> Arm | None:
    """Return the environment whose clients use the container's own address."""
    if not (subject.networked and subject.option("publish")) or subject.option("joined") in _USER_MODE:
        return None  # only published ports reach a user's network
    if subject.separate_hosts and subject.can_be("attach", "interface"):
        return subject.with_options(publish=False, attach="interface")  # other hosts reach no other bridge
    return subject.with_options(publish=False)


def without_docker_proxy(subject: Subject) -> Arm | None:
    """Return the environment whose port is published by address translation."""
    on_loopback = subject.option("publish_on") == "loopback" and subject.option("userland_proxy")
    is_on = subject.networked and subject.option("publish")
    if not (is_on and (on_loopback or subject.option("publish_by") == "proxy")):
        return None
    return subject.with_options(publish_on="gateway", publish_by="nat")


def with_network_of_host(subject: Subject) -> Arm | None:
    """Return the environment on its host's network. A guest always has its own network."""
    network = subject.option("joined") or subject.option("network")
    if not subject.networked or network in (None, "host", "none") or not subject.can_be("network", "host"):
        return None
    return subject.with_options(without=_NETWORK_OPTIONS, network="host")


def with_bridge_of_root(subject: Subject) -> Arm | None:
    """Return the environment as root's container at its own address on a bridge."""
    if not subject.networked or subject.option("joined") not in _USER_MODE:
        return None
    profile = getattr(subject.baseline.options, "apparmor", "unconfined")  # a user's containers have no profile
    return subject.with_options(rootless=False, network="bridge", publish=False, apparmor=profile)


def with_all_capabilities(subject: Subject) -> Arm | None:
    """Return the environment with all capabilities. The engine's default set counts only if a study names it."""
    own = subject.option("capabilities")
    if own in (None, "all") or (own == "default" and "capabilities" not in subject.named):
        return None
    return subject.with_options(capabilities="all")


def no_apparmor(read: Callable[[str], bytes]) -> str:
    """Return the reason if the kernel has no AppArmor, and mention SELinux if the kernel has that."""
    if _has_value(read, _APPARMOR_ENABLED, b"Y"):
        return ""
    selinux = _has_value(read, _SELINUX_ENFORCED, b"0", b"1")
    return "this kernel has no AppArmor" + (", and Weighbridge does not switch off SELinux" if selinux else "")


def _has_value(read: Callable[[str], bytes], path: str, *values: bytes) -> bool:
    try:
        return read(path).strip() in values
    except OSError:
        return False


def with_usual_runtime(subject: Subject) -> Arm | None:
    """Return the environment with the usual runtime of the engine or the cluster.

    Docker's usual runtime gets the baseline's seccomp filter and AppArmor profile, or none, because programs in
    gVisor have neither.
    """
    if subject.option("runtime") == "runsc":
        filters = {name: getattr(subject.baseline.options, name, "unconfined") for name in ("seccomp", "apparmor")}
        return subject.with_options(without=_GVISOR_OPTIONS, runtime="default", **filters)
    return subject.with_options(runtime_class="") if subject.option("runtime_class") else None


def with_engines_runtime(subject: Subject) -> Arm | None:
    """Return the environment with the engine's usual OCI runtime; gVisor is a mechanism of its own."""
    usual = subject.option("runtime") in (None, "default", "runc", "runsc")
    return None if usual else subject.with_options(runtime="default")


def with_layer_of_engine(subject: Subject) -> Arm | None:
    """Return the environment whose files go through gVisor to the engine's writable layer."""
    in_layer = getattr(subject.option("storage"), "kind", None) == "layer" and subject.option("runtime") == "runsc"
    return subject.with_options(runsc_layer="host") if in_layer and subject.option("runsc_layer") == "own" else None


def with_disk_of_baseline(subject: Subject) -> Arm | None:
    """Return the environment with the baseline's disk, if any."""
    storage = subject.option("storage")
    usual = getattr(getattr(subject.baseline.options, "storage", None), "disk", None)
    if getattr(storage, "disk", usual) == usual:
        return None
    return subject.with_options(storage=storage.model_copy(update={"disk": usual}))


def with_usual_cpu_limit(subject: Subject) -> Arm | None:
    """Return the environment with the study's CPU limit, if any."""
    own, usual = subject.arm.resources, subject.resources
    if own is None or (own.cpus, own.quota_period_s) == (usual.cpus, usual.quota_period_s):
        return None
    return subject.with_usual_limits(own, "cpus", "cpu_period")


def with_short_period(subject: Subject) -> Arm | None:
    """Return the environment with the same CPU limit and a period of 10 ms."""
    own = subject.arm.resources
    if own is None or own.quota_period_s <= _SHORT_PERIOD_S or own.quota_period_s == subject.resources.quota_period_s:
        return None
    return subject.with_arm(resources=own.model_copy(update={"cpu_period": _SHORT_PERIOD_S}))


def with_usual_memory_limit(subject: Subject) -> Arm | None:
    """Return the environment with the study's memory limit, if any."""
    own = subject.arm.resources
    return None if own is None or own.memory == subject.resources.memory else subject.with_usual_limits(own, "memory")


def with_file_limit_of_baseline(subject: Subject) -> Arm | None:
    """Return the environment with the baseline's limit of open files."""
    if "open_files" not in type(subject.arm.options).model_fields:
        return None
    own, usual = subject.option("open_files"), getattr(subject.baseline.options, "open_files", None)
    return None if own == usual else subject.with_options(open_files=usual)


def cannot_stop_polling(subject: Subject) -> Arm | None:
    """Raise ValueError if KVM can poll for the guest and not for the baseline. Return None otherwise."""
    own, usual = (getattr(arm.options, "accelerator", "tcg") for arm in (subject.arm, subject.baseline))
    if not (subject.networked or subject.stores) or own == "tcg" or usual != "tcg":
        return None
    raise ValueError(f"{POLLING} applies to all guests of this machine, and emulated guests (TCG) do not use it")
