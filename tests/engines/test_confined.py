"""How engines and Compose files are told what a study changes of a container beside its network."""

import json
from typing import Any

import pytest

from weighbridge.engines import confined
from weighbridge.engines.confined import ConfinedOptions


def options(**given: Any) -> ConfinedOptions:
    return ConfinedOptions.model_validate(given)


EVERYTHING: dict[str, Any] = {
    "seccomp": "unconfined", "apparmor": "unconfined", "no_new_privileges": True, "capabilities": "none",
    "cgroup_namespace": "private", "pids_limit": 100, "init": True,
}  # fmt: skip
SECURITY = ["seccomp=unconfined", "apparmor=unconfined", "no-new-privileges:true"]


def test_each_engine_and_a_compose_file_are_told_all_of_it():
    asked = options(**EVERYTHING)
    assert confined.security_options(asked) == SECURITY
    assert confined.docker_options(asked) == {"cap_drop": ["ALL"], "cgroupns": "private", "init": True}
    assert confined.podman_words(asked, "/usr/bin/catatonit") == [
        *(word for each in SECURITY for word in ("--security-opt", each)),
        "--cap-drop", "ALL", "--cgroupns", "private", "--init", "--init-path", "/usr/bin/catatonit",
    ]  # fmt: skip
    assert confined.compose_keys(asked) == {
        "init": True, "cap_drop": ["ALL"], "cgroup": "private", "pids_limit": 100, "security_opt": SECURITY,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("bounding", "dropped"),
    [("000001ffffffffff", {}), ("000001fffeffffff", {"cap_drop": ["CAP_SYS_RESOURCE"]}), ("", {})],
)
def test_docker_is_not_asked_for_a_capability_that_nobody_has(bounding: str, dropped: dict[str, Any]):
    first = {"/proc/1/status": f"Name:\tinit\nCapBnd:\t{bounding}\n".encode()}
    words = confined.docker_options(options(capabilities="all"), first.__getitem__)
    assert words == {"cap_add": ["ALL"], **dropped}


def test_what_is_asked_for_must_be_in_force():
    usual = confined.confinement(options())
    assert usual["seccomp"] == "filter" and "new privileges" not in usual and usual["capabilities"] == ""
    asked = confined.confinement(options(**EVERYTHING))
    assert asked == {
        "capabilities": "none", "AppArmor profile": "unconfined", "namespaces": "", "new privileges": "never"
    }  # fmt: skip


def test_a_filter_can_refuse_io_uring_alone():
    asked = options(seccomp="no-io-uring")
    (words,) = confined.security_options(asked)
    name, _, profile = words.partition("=")
    (refused,) = json.loads(profile)["syscalls"]
    assert name == "seccomp" and json.loads(profile)["defaultAction"] == "SCMP_ACT_ALLOW"
    assert refused["names"] == ["io_uring_setup", "io_uring_enter", "io_uring_register"]
    assert (refused["action"], refused["errnoRet"]) == ("SCMP_ACT_ERRNO", 1)
    assert confined.confinement(asked)["seccomp"] == "filter"
