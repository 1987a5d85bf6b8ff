import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from sentences import raises_sentence
from weighbridge import registry
from weighbridge.linux import packages, static_c
from weighbridge.linux.packages import distribution_of, distributions, install, install_here, install_on
from weighbridge.model.plugin import Readiness
from weighbridge.runner.preflight import lacking_here
from weighbridge.storage.tmpfs import Tmpfs

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nID=debian\n'
UBUNTU = 'NAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\nID_LIKE=debian\n'
FEDORA = 'NAME="Fedora Linux"\nVERSION="42 (Server Edition)"\nID=fedora\n'
ROCKY = 'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\n'
ARCH = 'NAME="Arch Linux"\nID=arch\nBUILD_ID=rolling\n'
TUMBLEWEED = 'NAME="openSUSE Tumbleweed"\nID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n'
ALPINE = 'NAME="Alpine Linux"\nID=alpine\n'
NIXOS = "NAME=NixOS\nID=nixos\n"


@pytest.mark.parametrize(
    ("os_release", "command"),
    [
        (DEBIAN, "apt-get install docker.io gcc libc6-dev"),
        (UBUNTU, "apt-get install docker.io gcc libc6-dev"),
        (FEDORA, "dnf install moby-engine gcc glibc-static"),
        (ROCKY, "dnf install moby-engine gcc glibc-static"),
        (ARCH, "pacman -S docker gcc glibc"),
        (TUMBLEWEED, "zypper install docker gcc glibc-devel-static"),
        (ALPINE, "apk add docker gcc musl-dev"),
        (NIXOS, "install dockerd and cc and libc.a with your package manager"),
        ("", "install dockerd and cc and libc.a with your package manager"),
        ('ID="debian', "install dockerd and cc and libc.a with your package manager"),  # a quote that does not end
    ],
)
def test_what_is_missing_is_named_in_the_words_of_the_distribution(os_release, command):
    assert install(["dockerd", "cc", "libc.a"], distribution_of(os_release)) == command


def test_what_a_distribution_does_not_have_is_said_so():
    wanted = ["dockerd", "mmdebstrap", "systemd-nspawn"]
    assert install(wanted, distribution_of(ARCH)) == "pacman -S docker systemd; install mmdebstrap from the AUR"
    none = "install mmdebstrap yourself (this distribution has no package)"
    assert install(wanted, distribution_of(TUMBLEWEED)) == f"zypper install docker systemd-container; {none}"
    assert install(["VBoxManage"], distribution_of(FEDORA)) == "install VirtualBox from RPM Fusion"


@dataclass
class Away:
    files: dict[str, str]

    def read(self, path):
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path].encode()


def test_a_host_is_asked_for_its_own_distribution():
    assert install_on(Away({"/etc/os-release": FEDORA}), ["rpc.nfsd"]) == "dnf install nfs-utils"
    assert install_on(Away({"/usr/lib/os-release": ALPINE}), ["mkfs.xfs"]) == "apk add xfsprogs"
    assert install_on(Away({}), ["mkfs.xfs"]) == "install mkfs.xfs with your package manager"


def test_a_plug_in_says_how_to_install_what_no_table_knows(monkeypatch, tmp_path):
    file = tmp_path / "os-release"
    file.write_text(FEDORA)
    monkeypatch.setattr(packages, "OS_RELEASE", (tmp_path / "none", file))
    monkeypatch.setattr("weighbridge.linux.process.shutil.which", lambda *_, **__: None)

    class Theirs(Tmpfs):
        programs: ClassVar = ("mount", "their-tool")
        installed_by: ClassVar = {"their-tool": "cargo install their-tool"}

    class Silent(Tmpfs):
        programs: ClassVar = {"their-tool": "their-package"}  # as plug-ins gave it before

    told = "dnf install util-linux; cargo install their-tool"
    assert lacking_here(Theirs()) == Readiness(False, "mount and their-tool are not installed", told)
    assert lacking_here(Silent()).remedy == "install their-tool with your package manager"


@pytest.mark.parametrize("kind", ["xen", "virtualbox", "guest"])
def test_what_is_for_another_architecture_is_not_to_be_installed(monkeypatch, kind):
    plugin = {**registry.environments(), **registry.hosts()}[kind]  # before: each module is imported once
    monkeypatch.setattr("weighbridge.runner.preflight.platform.machine", lambda: "aarch64")
    told = "it needs x86_64, and this machine is aarch64"
    assert lacking_here(plugin) == Readiness(False, told, "use a machine with that architecture")


def test_every_program_of_ours_is_in_the_table_for_every_distribution():
    known = distributions(packages.TABLE.read_text())
    assert [*known] == ["debian", "fedora", "arch", "suse", "alpine"]
    sections = (registry.environments, registry.hosts, registry.storage, registry.userlands, registry.workloads)
    programs = {name for section in sections for plugin in section().values() for name in plugin.programs}
    assert {"ip", "qemu-system-x86_64", "systemd-nspawn"} < programs
    for distribution in known.values():
        assert programs - {*distribution.packages} == set(), distribution.name
        for cell in distribution.packages.values():
            assert all(re.fullmatch(r"-|[A-Za-z0-9][A-Za-z0-9+._-]*(@[A-Za-z_/]+)?", word) for word in cell), cell
    assert all("-" not in cell for cell in known["debian"].packages.values()), "Debian has them all"


def test_a_line_of_the_table_that_lacks_a_distribution_is_named():
    table = "distribution debian arch\ninstall apt-get,install pacman,-S\nip iproute2 iproute2\nshort one\n"
    with raises_sentence(ValueError):
        distributions(table)


def test_no_module_names_a_package_manager_itself():
    source = Path(packages.__file__).parents[1]
    words = re.compile(r"(apt-get|apt|dnf|zypper) install|pacman -S|apk add")
    found = [
        path.name for path in source.rglob("*.py") if path.name != "packages.py" and words.search(path.read_text())
    ]
    assert sorted(found) == ["decisions.py", "planned.py"], "two docstrings, whose example it is"


def test_a_compiler_without_a_static_libc_is_not_enough(monkeypatch, tmp_path):
    file = tmp_path / "os-release"
    file.write_text(FEDORA)
    monkeypatch.setattr(packages, "OS_RELEASE", (file,))
    monkeypatch.setattr(static_c, "_ROOT", tmp_path)
    monkeypatch.setattr(static_c, "which", lambda name: f"/usr/bin/{name}")
    assert static_c.missing() == ("libc.a",)
    assert install_here(static_c.missing()) == "dnf install glibc-static"
    (tmp_path / "usr/lib64").mkdir(parents=True)
    (tmp_path / "usr/lib64/libc.a").touch()
    assert static_c.missing() == ()
    monkeypatch.setattr(static_c, "which", lambda _: None)
    assert static_c.missing() == ("cc", "libc.a")
    assert static_c.missing_for_musl() == ("musl-gcc",)
    assert install_here(static_c.missing_for_musl()) == "dnf install musl-gcc musl-libc-static"


def test_where_an_unknown_distribution_has_its_libc_is_not_guessed(monkeypatch, tmp_path):
    file = tmp_path / "os-release"
    file.write_text(NIXOS)
    monkeypatch.setattr(packages, "OS_RELEASE", (file,))
    monkeypatch.setattr(static_c, "_ROOT", tmp_path)
    monkeypatch.setattr(static_c, "which", lambda name: f"/usr/bin/{name}")
    assert static_c.missing() == ()
