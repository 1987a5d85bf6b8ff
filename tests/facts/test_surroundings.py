"""What a site has around its programs, read from its own /proc."""

from types import SimpleNamespace

import pytest

from weighbridge.facts.surroundings import about_surroundings, about_sysctls, about_variables, room_of

NATIVE = """\
22 1 254:0 / / ro,relatime - ext4 /dev/vda rw
23 22 0:6 / /dev rw,nosuid - devtmpfs devtmpfs rw,size=4096k,nr_inodes=3000
24 23 0:23 / /dev/shm rw,nosuid,nodev - tmpfs tmpfs rw,inode64
25 22 0:24 / /tmp rw,relatime - tmpfs weighbridge-0123456789ab rw
26 23 0:25 / /dev/shm rw,nosuid,nodev - tmpfs weighbridge-0123456789ab rw,size=12582912k,nr_inodes=99
"""
DOCKER = "31 30 0:41 / / ro - overlay overlay ro\n32 31 0:42 / /dev/shm rw - tmpfs shm rw,size=65536k,inode64\n"
SANDBOX = "31 30 0:41 / / ro - ext4 x rw\n32 31 0:42 / /dev rw - tmpfs tmpfs rw,mode=755\n"
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max stack size            8388608              unlimited            bytes
Max core file size        0                    0                    bytes
Max open files            1048576              1048576              files
"""


def site(mounts: str, limits: str = "", *, own_kernel: bool = False) -> SimpleNamespace:
    files = {
        "/proc/self/mountinfo": mounts, "/proc/self/limits": limits, "/proc/meminfo": "MemTotal: 2097152 kB\n",
        "/proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
        "/proc/self/environ": "PATH=/bin\0MALLOC_ARENA_MAX=1\0A=x=y\0",
    }  # fmt: skip

    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path].encode()

    return SimpleNamespace(read=read, layers=("QEMU",) if own_kernel else (), host=SimpleNamespace(layers=()))


@pytest.mark.parametrize(
    ("mounts", "shared", "temporary"),
    [
        (NATIVE, "12288 MiB", "1024 MiB"),
        (DOCKER, "64 MiB", "on overlay"),
        (SANDBOX, "1024 MiB", "on ext4"),
        (DOCKER.replace("65536k", "0k"), "no limit", "on overlay"),
        ("", "", ""),
    ],
)
def test_what_its_folders_in_memory_hold(mounts: str, shared: str, temporary: str):
    """Half of the memory where the kernel names no size; the mount that hides another one counts."""
    box = site(mounts)
    assert (room_of(box, "/dev/shm"), room_of(box, "/tmp")) == (shared, temporary)  # type: ignore[arg-type]
    facts = about_surroundings(box)  # type: ignore[arg-type]
    assert facts == {
        key: value for key, value in (("size of /dev/shm", shared), ("size of /tmp", temporary)) if value
    }


def test_the_limits_of_its_processes_are_facts_where_its_kernel_is_its_hosts():
    facts = about_surroundings(site("", LIMITS))  # type: ignore[arg-type]
    assert facts == {"ulimit: stack size": "8388608, at most unlimited", "ulimit: core file size": "0"}
    assert about_surroundings(site("", LIMITS, own_kernel=True)) == {}  # type: ignore[arg-type]


def test_settings_of_the_kernel_are_as_the_site_sees_them():
    names = ("net.ipv4.tcp_rmem", "net.core.no_such")
    assert about_sysctls(site(""), names) == {"sysctl net.ipv4.tcp_rmem": "4096 131072 6291456"}  # type: ignore[arg-type]


def test_variables_are_as_its_launcher_has_them():
    for names, told in (({"A", "MALLOC_ARENA_MAX"}, "A=x=y, MALLOC_ARENA_MAX=1"), ({"B"}, "none")):
        assert about_variables(site(""), names) == {"variables of the study": told}  # type: ignore[arg-type]
