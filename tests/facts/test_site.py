"""What every kind of site says of itself, read through the site."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.facts.site import about_site
from weighbridge.linux.confinement import id_map
from weighbridge.linux.namespaces import namespaces_in
from weighbridge.model.command import Command, Completed
from weighbridge.model.facts import (
    BOUNDING_SET,
    CONFINEMENT,
    IO_URING,
    KERNEL,
    MOUNTS,
    OPEN_FILES,
    ROOT_MOUNT,
    SECCOMP_FILTERS,
    USER_MAP,
)


def site(**files: bytes) -> SimpleNamespace:
    """A site that has these files, by the last part of their names."""

    def read(path: str) -> bytes:
        name = path.rpartition("/")[2]
        if name not in files:
            raise FileNotFoundError(2, "No such file or directory")
        return files[name]

    return SimpleNamespace(read=read, open_files=1024, run=lambda command: answered(command, b"0\n"))


def answered(command: Command, output: bytes, code: int = 0) -> Completed:
    return Completed(command.argv, code, output, b"", 0.0)


@pytest.mark.parametrize("release", ["6.1.0-44-amd64", "4.4.0"])
def test_the_kernel_is_the_one_that_the_site_tells(release: str):
    found = about_site(site(osrelease=f"{release}\n".encode(), somaxconn=b"4096\n"))
    assert found[KERNEL] == release
    assert found["backlog of a listener"] == "4096 (net.core.somaxconn)"
    assert found["packages"] == "unreadable: No such file or directory"


def test_an_unreadable_kernel_is_omitted():
    """It is no other kernel than the baseline's."""
    found = about_site(site())
    assert KERNEL not in found and found[OPEN_FILES] == "1024"


STATUS = b"""Name:\tweighbridge-launcher
CapInh:\t0000000000000000
CapEff:\t%s
CapBnd:\t00000000a80425fb
NoNewPrivs:\t%s
Seccomp:\t%s
"""
LINKS = {
    name: f"{name}:[{4026531835 + number}]" for number, name in enumerate(("cgroup", "ipc", "mnt", "net", "pid"))
}


def confined(own: tuple[str, ...] = (), **files: bytes) -> SimpleNamespace:
    """A site with some namespaces of its own, on a host that tells its own."""
    inside = {name: (link.replace("402", "999") if name in own else link) for name, link in LINKS.items()}
    site_ = site(**files, **{name: link.encode() for name, link in inside.items()})
    host = SimpleNamespace(layers=(), namespaces=lambda: namespaces_in(lambda kind: LINKS.get(kind, "")))
    return SimpleNamespace(**vars(site_), host=host, layers=())


def test_how_it_is_confined_is_what_its_own_proc_tells():
    box = confined(
        ("mnt", "pid"), status=STATUS % (b"00000000a80425fb", b"1", b"2"), current=b"docker-default (enforce)\n"
    )
    facts = about_site(box)
    assert (facts["seccomp"], facts["new privileges"]) == ("filter", "never")
    assert {"chown", "net_raw"} <= {*facts["capabilities"].split()} and "sys_admin" not in facts["capabilities"]
    assert (facts["AppArmor profile"], facts["namespaces"]) == ("docker-default (enforce)", "mnt pid")
    bare = about_site(confined(status=STATUS % (b"000001ffffffffff", b"0", b"0"), current=b"unconfined\0"))
    assert [bare[key] for key in CONFINEMENT] == ["off", "all", "allowed", "unconfined", "none"]


MOUNTINFO = b"""42 41 254:0 / / rw,relatime - ext4 /dev/vda rw
50 42 254:0 / / ro,nosuid,relatime - overlay weighbridge rw
51 50 0:23 / /run\\040x rw - tmpfs tmpfs rw
52 50 0:24"""


def test_the_details_of_the_confinement_are_facts():
    status = STATUS % (b"0", b"1", b"2") + b"Seccomp_filters:\t3\n"
    facts = about_site(confined(status=status, mountinfo=MOUNTINFO, uid_map=b"         0       1000          1\n"))
    assert (facts[SECCOMP_FILTERS], facts[USER_MAP]) == ("3", "0 is 1000") and "net_raw" in facts[BOUNDING_SET]
    assert (facts[ROOT_MOUNT], facts[MOUNTS]) == ("overlay, read-only", "3")
    none = about_site(confined(status=b"", mountinfo=b"", uid_map=b"0 0"))
    assert not {SECCOMP_FILTERS, USER_MAP, BOUNDING_SET, ROOT_MOUNT, MOUNTS} & {*none}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("         0          0 4294967295\n", "as on the host"),
        ("0 1000 1\n", "0 is 1000"),
        ("0 1000 1\n1 100000 65536\n", "0 is 1000, 1-65536 are 100000-165535"),
        ("0 0", ""),
        ("a b c", ""),
        ("", ""),
        ("0 0 \u0661", ""),
    ],
)
def test_a_map_of_users_in_words(text: str, words: str):
    assert id_map(text) == words


@given(st.text(max_size=100))
def test_any_text_is_a_map_or_none(text: str):
    assert "\n" not in id_map(text)


def test_namespaces_that_its_host_does_not_tell_are_not_called_its_own():
    box = confined(("mnt", "pid"))
    box.host.namespaces = lambda: {"pid": 1}
    assert about_site(box)["namespaces"] == "pid"
    box.host.namespaces = dict
    assert "namespaces" not in about_site(box)


def test_what_its_proc_does_not_tell_is_omitted():
    """A label of SELinux is none of AppArmor, and a kernel of its own has namespaces of its own."""
    of_selinux = confined(("mnt",), current=b"system_u:system_r:container_t:s0:c1,c2")
    of_selinux.layers = ("QEMU",)
    assert not {*about_site(of_selinux)} & {*CONFINEMENT}


REFUSED = {
    "Docker 25 on Debian 13": (b"1\n", b"0\n", b"2", b"0\n", "refused (EPERM, seccomp)"),
    "podman, whose filter answers so": (b"38\n", b"0\n", b"2", b"0\n", "refused (ENOSYS, seccomp)"),
    "another filter": (b"13\n", b"0\n", b"2", b"0\n", "refused (EACCES, seccomp)"),
    "refused outside, too": (b"1\n", b"0\n", b"2", b"1\n", "refused (EPERM)"),
    "a kernel without it, in a container": (b"38\n", None, b"2", b"38\n", "refused (ENOSYS)"),
    "a host that gives no answer": (b"1\n", b"0\n", b"2", b"", "refused (EPERM)"),
    "switched off for all": (b"1\n", b"2\n", b"0", b"1\n", "refused (EPERM, kernel.io_uring_disabled = 2)"),
    "switched off, in a container": (b"1\n", b"2\n", b"2", b"1\n", "refused (EPERM, kernel.io_uring_disabled = 2)"),
    "switched off for users": (b"1\n", b"1\n", b"0", b"0\n", "refused (EPERM, kernel.io_uring_disabled = 1)"),
    "by the filter or the setting": (b"1\n", b"1\n", b"2", b"0\n", "refused (EPERM)"),
    "gVisor": (b"38\n", None, b"0", b"0\n", "refused (ENOSYS, the kernel has none)"),
    "a limit of locked memory": (b"12\n", None, b"0", b"0\n", "not known (ENOMEM)"),
    "the same limit in a container": (b"12\n", b"0\n", b"2", b"0\n", "not known (ENOMEM)"),
    "a limit of open files": (b"24\n", b"0\n", b"2", b"0\n", "not known (EMFILE)"),
    "an error without a name": (b"4095\n", None, b"0", b"0\n", "not known (error 4095)"),
    "allowed": (b"0\n", b"0\n", b"2", b"0\n", "allowed"),
}
"""Answers of the probe: its output, the setting, the seccomp mode, its output on the host, and the fact."""


def probed(output: bytes, setting: bytes | None, mode: bytes, outside: bytes) -> SimpleNamespace:
    """A site whose probe has this output, and whose host's probe has another."""
    files = {} if setting is None else {"io_uring_disabled": setting}
    box = confined(status=STATUS % (b"0", b"0", mode), **files)
    box.run = lambda command: answered(command, output)
    on_host = {("/launcher", "probe-io-uring"): outside}
    box.host.run = lambda command: answered(command, on_host[command.argv])
    return box


@pytest.mark.parametrize(("output", "setting", "mode", "outside", "state"), REFUSED.values(), ids=REFUSED)
def test_whether_its_programs_can_use_io_uring(
    output: bytes, setting: bytes | None, mode: bytes, outside: bytes, state: str
):
    assert about_site(probed(output, setting, mode, outside), lambda: "/launcher")[IO_URING] == state


def test_a_filter_is_not_blamed_without_an_answer_of_the_same_kernel_outside():
    box = probed(b"1\n", b"0\n", b"2", b"0\n")
    assert about_site(box)[IO_URING] == "refused (EPERM)"
    box.layers = ("kvm",)
    assert about_site(box, lambda: "/launcher")[IO_URING] == "refused (EPERM)"


@pytest.mark.parametrize(("output", "code"), [(b"", 0), (b"0\n", 1), (b"no such probe\n", 0)])
def test_without_an_answer_of_the_probe_nothing_is_known_of_io_uring(output: bytes, code: int):
    box = confined(status=STATUS % (b"0", b"0", b"0"))
    box.run = lambda command: answered(command, output, code)
    assert IO_URING not in about_site(box)
