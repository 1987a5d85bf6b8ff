"""Options of an engine's containers besides their network: confinement, limit of processes, init.

Docker and podman share these options. This module translates them for each engine and for a Compose file.
"""

import errno
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.linux.confinement import lacking, status_field
from weighbridge.model.environment import EnvironmentOptions
from weighbridge.model.facts import APPARMOR, CAPABILITIES, NEW_PRIVILEGES, confinement_of_container

NO_IO_URING = {
    "defaultAction": "SCMP_ACT_ALLOW",
    "syscalls": [
        {
            "names": ["io_uring_setup", "io_uring_enter", "io_uring_register"],
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": errno.EPERM,
        }
    ],
}
"""A profile that refuses io_uring as Docker's own profile does since version 25, and allows everything else."""
ALL = "ALL"
"""Every capability, as engines and Compose files say it."""


class ConfinedOptions(EnvironmentOptions):
    """How the kernel confines a container, its limit of processes, and whether an init starts its program."""

    seccomp: Annotated[
        Literal["default", "unconfined", "no-io-uring"],
        Field(description="System call filter: the engine's, none, or a filter that refuses io_uring alone"),
    ] = "default"
    apparmor: Annotated[
        Literal["default", "unconfined"], Field(description="AppArmor profile (if the kernel has AppArmor)")
    ] = "default"
    capabilities: Annotated[
        Literal["default", "all", "none"], Field(description="Capabilities of its programs; default: the engine's")
    ] = "default"
    no_new_privileges: Annotated[
        bool, Field(description="Programs cannot gain privileges through set-user-id (no_new_privs)")
    ] = False
    cgroup_namespace: Annotated[
        Literal["private", "host"] | None,
        Field(description="Private view of the control groups, or the view of the host; default: the engine's"),
    ] = None
    pids_limit: Annotated[
        int | None,
        Field(ge=16, le=2**22, description="Largest number of processes and threads; default: the native limit"),
    ] = None
    init: Annotated[bool, Field(description="Use the engine's init (tini, catatonit) as the first process")] = False


def docker_options(options: ConfinedOptions, read: Callable[[str], bytes] | None = None) -> dict[str, Any]:
    """Return the arguments of the SDK's ``create`` but for `security_options` and the limit of processes.

    ``read`` reads a file of the engine's host: Docker fails if it must give a capability that no process has there.
    """
    words: dict[str, Any] = {"init": True} if options.init else {}
    if options.capabilities == "none":
        words["cap_drop"] = [ALL]
    elif options.capabilities == "all":
        absent = [] if read is None else _lacking_on(read)
        words |= {"cap_add": [ALL], **({"cap_drop": absent} if absent else {})}
    if options.cgroup_namespace is not None:
        words["cgroupns"] = options.cgroup_namespace
    return words


def _lacking_on(read: Callable[[str], bytes]) -> list[str]:
    """Return the capabilities that no process has on a host, for example in a container, in Docker's words."""
    bounding = status_field(read("/proc/1/status").decode(errors="replace"), "CapBnd")
    return [f"CAP_{name.upper()}" for name in lacking(bounding)]


def podman_words(options: ConfinedOptions, init: str | None) -> list[str]:
    """Return the arguments of ``podman create`` but for the limit of processes; ``init`` is the path of an init."""
    words = [word for each in security_options(options) for word in ("--security-opt", each)]
    if options.capabilities != "default":
        words += ["--cap-add" if options.capabilities == "all" else "--cap-drop", ALL]
    words += ["--cgroupns", options.cgroup_namespace] if options.cgroup_namespace is not None else []
    words += ["--init"] if options.init else []
    return [*words, "--init-path", init] if options.init and init is not None else words


def compose_keys(options: ConfinedOptions) -> dict[str, Any]:
    """Return the keys of a Compose file's service."""
    keys = docker_options(options)
    if namespace := keys.pop("cgroupns", None):
        keys["cgroup"] = namespace
    keys |= {} if options.pids_limit is None else {"pids_limit": options.pids_limit}
    return {**keys, "security_opt": security} if (security := security_options(options)) else keys


def security_options(options: ConfinedOptions) -> list[str]:
    """Return the security options, in the words of both engines."""
    filters = {"unconfined": ["seccomp=unconfined"], "no-io-uring": [f"seccomp={json.dumps(NO_IO_URING)}"]}
    profiles = ["apparmor=unconfined"] if options.apparmor == "unconfined" else []
    privileges = ["no-new-privileges:true"] if options.no_new_privileges else []
    return [*filters.get(options.seccomp, ()), *profiles, *privileges]


def confinement(options: ConfinedOptions) -> Mapping[str, str]:
    """Return what a container has of `weighbridge.model.facts.CONFINEMENT` by its kind and these options."""
    asked = {
        APPARMOR: "unconfined" if options.apparmor == "unconfined" else None,
        CAPABILITIES: "none" if options.capabilities == "none" else None,
        NEW_PRIVILEGES: "never" if options.no_new_privileges else None,
    }
    own = confinement_of_container(filtered=options.seccomp != "unconfined")
    return own | {fact: value for fact, value in asked.items() if value is not None}
