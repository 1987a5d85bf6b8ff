"""The users who try a machine, and the tests that are columns of the table in README.md."""

from dataclasses import dataclass

MACHINES = {
    "bookworm": "Debian 12 (kernel 6.1, Docker 20.10, Python 3.11)",
    "trixie": "Debian 13 (kernel 6.12, Docker 26, Python 3.13)",
    "sid": "Debian sid (kernel 7, Docker 28, Python 3.14)",
    "bookworm-arm64": "Debian 12 on arm64 (kernel 6.1, Docker 20.10, Python 3.11)",
}
"""One of `images.MACHINES` -> what it is."""

NOT_TRIED = {
    "Ubuntu 24.04": "AppArmor denies user namespaces to programs without a profile, so native runs without root need "
    "`kernel.apparmor_restrict_unprivileged_userns=0`; `debian-archive-keyring` is a separate package",
    "Fedora": "SELinux labels files in containers; firewalld has nftables rules; packages come from dnf",
    "Arch": "packages come from pacman, and mmdebstrap from the AUR; kernel, Docker and Python are the newest",
    "arm64 on real hardware": "`cpu_idle: auto` might poll; guests run under KVM instead of emulation",
}
"""Machines that were not available -> the differences that are expected there."""


@dataclass(frozen=True)
class User:
    """One kind of user: ``login`` is who reaches the machine, ``weighs_in`` what `weigh` chooses without `--in`."""

    login: str
    summary: str
    weighs_in: str
    isolated: str
    environments: tuple[str, ...]
    """Those of `inside/limits.yaml` that the user can measure."""
    workloads: tuple[str, ...] = ("tcp", "cpu")
    sudo: bool = False

    @property
    def home(self) -> str:
        """The login's home folder."""
        return "/root" if self.login == "root" else f"/home/{self.login}"


_ALL = ("native", "netns", "bridge", "published")
USERS = {
    "root": User("root", "root", "docker", "bridge", _ALL),
    "docker": User("dockeruser", "in group `docker`", "docker", "bridge", ("native", "bridge", "published")),
    "sudo": User("sudouser", "with `sudo`", "docker", "bridge", _ALL, sudo=True),
    "plain": User("plainuser", "without either", "netns", "netns", ("native", "netns"), workloads=("cpu",)),
    "podman": User("podmanuser", "rootless Podman", "podman-rootless", "podman-rootless", ("native", "podman")),
}

EACH_USER = {
    "test_what_pipx_installed_runs": "runs as installed",
    "test_doctor": "`doctor`",
    "test_weigh": "`weigh`",
    "test_report_gate_and_compare": "`report`, `gate`, `compare`",
    "test_limits_are_in_force": "a study with limits",
    "test_clean_after_kill": "kill -9, `clean`",
}
WHOLE_MACHINE = {
    "test_private_engine": "a private engine next to a stopped service",
    "test_system_containers": "LXC, nspawn, Podman",
    "test_own_image": "from its own container",
}
"""Test -> its row. Those of `EACH_USER` are run as each of `USERS`, the others as root."""
