"""Other machines than this one, played on it: what setup.sh would install there, and what `doctor` says.

A machine is a root folder with an os-release, programs that only write down how they were called, or a namespace in
which something is hidden or closed.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import weighbridge
from documents import doctor_rows

ROOT = Path(__file__).parents[2]
SYSTEMS = {
    "debian": "ID=debian\n", "ubuntu": "ID=ubuntu\nID_LIKE=debian\n", "fedora": "ID=fedora\n",
    "rocky": 'ID="rocky"\nID_LIKE="rhel centos fedora"\n', "arch": "ID=arch\n",
    "tumbleweed": 'ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n', "alpine": "ID=alpine\n",
    "nixos": "ID=nixos\n",
}  # fmt: skip
APT = "apt-get install -y -qq --no-install-recommends"
MANAGERS = ("apt-get", "dnf", "pacman", "zypper", "apk")
HERE = ("mvn", "javac", "go", "ip", "nsenter", "ethtool", "iptables", "ssh", "tini")
"""What the played machines have."""


@dataclass
class Played:
    """A machine with its own programs, of which ``calls`` has how they were called."""

    folder: Path
    user: int = 0
    processor: str = "x86_64"

    def has(self, program: str, does: str = "") -> None:
        path = self.folder / "bin" / program
        path.write_text(f'#!/bin/sh\necho "{program} $*" >> "{self.folder}/calls"\n{does}\n')
        path.chmod(0o755)

    def set_up(self, *words: str) -> subprocess.CompletedProcess[str]:
        self.has("id", f"echo {self.user}")
        self.has("uname", f"echo {self.processor}")
        return subprocess.run(
            ["/bin/sh", self.folder / "scripts/setup.sh", *words],
            capture_output=True, text=True, timeout=60, check=False,
            env={"PATH": str(self.folder / "bin"), "SETUP_ROOT": str(self.folder / "root")},
        )  # fmt: skip

    @property
    def installed(self) -> list[str]:
        calls = (self.folder / "calls").read_text().splitlines()
        return [call for call in calls if call.split()[0] in MANAGERS and " update" not in call]


def played(folder: Path, system: str, python: str = "3.12") -> Played:
    for path in ("bin", "scripts", "src/weighbridge/linux", "root/etc", "root/usr/lib/x86_64-linux-gnu"):
        (folder / path).mkdir(parents=True)
    shutil.copy(ROOT / "scripts/setup.sh", folder / "scripts")
    shutil.copy(ROOT / "src/weighbridge/linux/packages.txt", folder / "src/weighbridge/linux")
    (folder / "root/etc/os-release").write_text(f'NAME="Some words"\n{SYSTEMS[system]}')
    (folder / "bin/dirname").symlink_to(shutil.which("dirname"))
    made = Played(folder)
    for program in (*MANAGERS, *HERE):
        made.has(program)
    old = tuple(map(int, python.split("."))) < (3, 11)
    answers = f'*version_info*) exit {int(old)};; --version) echo Python {python};; *"venv .venv") exit 7;;'
    asked = f'case "$*" in {answers} esac'
    made.has("python3", asked)
    return made


@pytest.mark.parametrize(
    ("system", "command"),
    [
        ("debian", f"{APT} docker.io mmdebstrap gcc libc6-dev debian-archive-keyring"),
        ("ubuntu", f"{APT} docker.io mmdebstrap gcc libc6-dev debian-archive-keyring"),
        ("fedora", "dnf install -y -q moby-engine mmdebstrap gcc glibc-static debian-keyring"),
        ("rocky", "dnf install -y -q moby-engine mmdebstrap gcc glibc-static debian-keyring"),
        ("arch", "pacman -S --noconfirm --needed docker gcc glibc debian-archive-keyring"),
        ("tumbleweed", "zypper --non-interactive install docker gcc glibc-devel-static"),
        ("alpine", "apk add docker gcc musl-dev"),
    ],
)  # fmt: skip
def test_setup_installs_by_the_package_manager_of_the_system(tmp_path: Path, system: str, command: str):
    machine = played(tmp_path, system)
    done = machine.set_up()
    assert machine.installed == [command], done
    assert "setup: installing Weighbridge into .venv" in done.stdout and done.returncode == 7, "it went on to the end"
    lacking = {"arch": "mmdebstrap (the_AUR)", "tumbleweed": "mmdebstrap debian-archive-keyring.gpg",
               "alpine": "mmdebstrap (edge/testing) debian-archive-keyring.gpg (edge/testing)"}  # fmt: skip
    told = f"no package of these: install them by hand, or do without: {lacking.get(system, '')}"
    assert (told in done.stdout) == (system in lacking), done


def test_what_is_there_is_not_installed(tmp_path: Path):
    machine = played(tmp_path, "fedora")
    for program in ("dockerd", "mmdebstrap", "cc"):
        machine.has(program)
    for file in ("usr/lib64/libc.a", "usr/share/keyrings/debian-archive-keyring.pgp"):
        (tmp_path / "root" / file).parent.mkdir(parents=True)
        (tmp_path / "root" / file).touch()
    done = machine.set_up()
    assert machine.installed == [] and "installing the packages" not in done.stdout, done


def test_a_python_that_is_too_old_is_refused_before_anything_is_installed(tmp_path: Path):
    machine = played(tmp_path, "debian", python="3.9")
    done = machine.set_up()
    told = (
        "setup: Weighbridge needs Python 3.11 or newer, and python3 is Python 3.9: "
        "name another, as in PYTHON=python3.13 scripts/setup.sh\n"
    )
    assert (done.returncode, done.stderr, done.stdout) == (1, told, "")
    assert machine.installed == []


def test_on_an_unknown_system_what_is_missing_is_listed(tmp_path: Path):
    machine = played(tmp_path, "nixos")
    done = machine.set_up()
    assert done.returncode == 1 and machine.installed == []
    assert done.stderr == (
        "setup: how this system (nixos) installs packages is not known: "
        "install these programs and files by hand, and call again: "
        "dockerd mmdebstrap cc libc.a debian-archive-keyring.gpg\n"
    )


def test_who_is_not_root_is_told_the_command(tmp_path: Path):
    machine = played(tmp_path, "arch")
    machine.user = 1000
    done = machine.set_up()
    assert done.returncode == 1 and machine.installed == []
    assert (
        done.stderr
        == "setup: packages are missing, which root can install: pacman -S docker gcc glibc debian-archive-keyring\n"
    )


def test_the_tests_tools_are_named_for_each_system(tmp_path: Path):
    machine = played(tmp_path, "fedora")
    machine.set_up("dev")
    (command,) = machine.installed
    assert {"qemu-system-x86-core", "shadow-utils", "syslinux", "systemd-container"} < {*command.split()}


def test_what_a_cluster_of_the_tests_takes_is_asked_for_by_name(tmp_path: Path):
    machine = played(tmp_path, "debian")
    machine.set_up("dev")
    machine.set_up("dev", "kubernetes")
    without, with_it = ({*call.split()} for call in machine.installed)
    assert {"etcd-server", "containernetworking-plugins", "nftables", "ipset"} <= with_it - without


def test_guests_of_the_tests_have_the_architecture_of_the_machine(tmp_path: Path):
    machine = played(tmp_path, "alpine")
    machine.processor = "aarch64"
    machine.set_up("dev")
    (command,) = machine.installed
    assert "qemu-system-aarch64" in command.split() and "qemu-system-x86_64" not in command


CLOSE = """
import ctypes, os, sys
here, there = os.pipe(), os.pipe()
child = os.fork()
if not child:
    assert ctypes.CDLL(None, use_errno=True).unshare(0x10000000) == 0
    os.write(here[1], b"x"), os.read(there[0], 1)
    os.setgid(0), os.setuid(0)
    open("/proc/sys/user/max_user_namespaces", "w").write("0")
    os.setgroups([]), os.setgid(54321), os.setuid(54321)
    os.execvp(sys.argv[1], sys.argv[1:])
os.read(here[0], 1)
for ids in ("uid_map", "gid_map"):
    open(f"/proc/{child}/{ids}", "w").write("0 0 65536")
os.write(there[1], b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
"""Runs a command as a user in a user namespace below which there can be no other."""


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path("/var/tmp") / f"weighbridge-test-home-{os.getpid()}"
    folder.mkdir()
    os.chown(folder, 54321, 54321)
    yield folder
    shutil.rmtree(folder)


def rows(home: Path, *before: str, python: str) -> dict[str, dict[str, str]]:
    """What `doctor` says, by name, of the machine that ``before`` makes of this one."""
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    environment = {
        "HOME": str(home), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{Path(weighbridge.__file__).parents[1]}:{libraries}",
    }  # fmt: skip
    argv = [*before, python, "-m", "weighbridge", "doctor", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=200, env=environment, cwd=home, check=False)
    if "No module named" in done.stderr:
        pytest.skip(f"no interpreter that another user can read: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done
    return {row["name"]: row for row in doctor_rows(json.loads(done.stdout))}


def test_closed_user_namespaces_are_named_with_their_setting(home: Path):
    told = rows(home, sys.executable, "-c", CLOSE, python="/usr/bin/python3")
    why, remedy = (
        "this user cannot create user namespaces: user.max_user_namespaces is 0",
        "sysctl -w user.max_user",
    )
    assert told["native"]["detail"] == why and remedy in told["native"]["remedy"]
    assert not [row for row in told.values() if "this kernel has no" in row["detail"]], "it was not allowed to look"


def test_debians_keys_are_missed_before_anything_is_built(home: Path):
    hide = 'for at in /usr/share/keyrings /etc/apt; do mount -t tmpfs none "$at"; done; exec "$@"'
    told = rows(home, "unshare", "--mount", "sh", "-c", hide, "sh", python=sys.executable)
    for name in ("packages", "iperf3"):
        assert "debian-archive-keyring.gpg), which are not installed" in told[name]["detail"], told[name]
        assert not told[name]["ready"] and told[name]["remedy"].endswith("debian-archive-keyring")
