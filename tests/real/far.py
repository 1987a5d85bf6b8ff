"""Machines reached by ssh: testbed hosts with a real sshd, users, rules for sudo and an engine of their own."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from weighbridge.hosts.options import TestbedOptions
from weighbridge.hosts.testbed import TestbedHost, testbed_host
from weighbridge.linux import network, process
from weighbridge.model.command import Command

from .conftest import open_run

PORT = 22
# /home and /var/cache are the machine's own otherwise; sudo and users are the host's, as its /etc is
_FURNISH = """set -e
mount -t tmpfs weighbridge /home
mkdir -p /run/sshd "$1/cache"
mount --bind "$1/cache" /var/cache
for user in plain trusted asked; do useradd --create-home --shell /bin/sh --password '*' $user; done
printf 'trusted ALL=(ALL) NOPASSWD: ALL\\nasked ALL=(ALL) ALL\\n' > /etc/sudoers.d/weighbridge
"""
_SSHD = """Port {port}
ListenAddress {address}
HostKey {folder}/host
AuthorizedKeysFile /run/authorized
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
"""
# from the machine's own network there is no way to a testbed host: a program in its network dials for us
_CONFIG = """Host {name}
  HostName {address}
  User root
  IdentitiesOnly yes
  IdentityFile {folder}/id
  UserKnownHostsFile {folder}/known
  ProxyCommand nsenter --target {pid} --net -- {python} {dial} %h %p
"""


@dataclass(frozen=True)
class Far:
    """One such machine: the testbed host, its folder with keys and configuration, its sshd."""

    host: TestbedHost
    folder: Path
    sshd: process.Process

    @property
    def config(self) -> Path:
        """The OpenSSH configuration under which its name is known."""
        return self.folder / "config"

    def config_with(self, what: str, **changed: str) -> Path:
        """Another configuration, in which some lines differ."""
        lines = self.config.read_text().splitlines()
        for key, value in changed.items():
            lines = [f"  {key} {value}" if line.strip().startswith(f"{key} ") else line for line in lines]
        path = self.folder / f"config-{what}"
        path.write_text("\n".join(lines) + "\n")
        return path

    def key(self, name: str, forced: str = "") -> Path:
        """A further key, which is accepted with a forced command where one is given."""
        path = make_key(self.folder / name)
        if forced:
            with (self.host.folder / "run/authorized").open("a") as file:
                file.write(f'command="{forced}" {path.with_suffix(".pub").read_text()}')
        return path

    def inside(self, *argv: str) -> str:
        """What a command prints on the machine."""
        done = self.host.run(Command(argv))
        assert done.returncode == 0, done
        return done.text


def make_key(path: Path) -> Path:
    """A key pair without a passphrase."""
    done = (
        path.exists() or process.output(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path))) is not None
    )
    assert done
    return path


@contextmanager
def far_hosts(folder: Path, *names: str, run_id: str = "0fa70fa70fa7", engines: bool = False) -> Iterator[list[Far]]:
    """Machines with these names, in a run of their own; with ``engines`` each has a Docker engine."""
    with open_run(run_id) as run, ExitStack() as stack:
        found = []
        for name in names:
            host = stack.enter_context(testbed_host(name, TestbedOptions(kind="testbed"), run))
            found.append(_furnish(host, folder / name))
            stack.callback(found[-1].sshd.stop)
            if engines:
                stack.callback(_engine(host, folder / name, run_id).stop)
        yield found


def _furnish(host: TestbedHost, folder: Path) -> Far:
    folder.mkdir(mode=0o755)
    done = host.run(Command(("sh", "-c", _FURNISH, "furnish", str(folder))))
    assert done.returncode == 0, done
    for key in ("host", "id"):
        make_key(folder / key)
    (host.folder / "run/authorized").write_text((folder / "id.pub").read_text())  # users may read it there
    (folder / "sshd_config").write_text(_SSHD.format(port=PORT, address=host.address, folder=folder))
    (folder / "known").write_text(f"{host.address} {(folder / 'host.pub').read_text()}")
    dial = Path(__file__).with_name("dial.py")
    config = _CONFIG.format(
        name=host.name, address=host.address, folder=folder, pid=host.pid, python=sys.executable, dial=dial
    )
    (folder / "config").write_text(config)
    sshd = host.start(Command(("/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "sshd_config"))))
    for _ in range(500):
        if network.listening((("tcp", PORT),), host.pid):
            assert isinstance(sshd, process.Process)
            return Far(host, folder, sshd)
        assert not sshd.wait(0.02), sshd.stop()
    raise AssertionError("sshd does not listen")


def _engine(host: TestbedHost, folder: Path, run_id: str) -> process.Process:
    engine = host.start(
        Command(
            (
                "dockerd", "--data-root", str(folder / "docker"), "--exec-root", "/run/docker-exec",
                "--host", "unix:///run/docker.sock", "--pidfile", "/run/docker.pid", "--bridge", "none",
                "--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent", f"/weighbridge/{run_id}/{host.name}",
                "--shutdown-timeout", "5", "--log-level", "warn",
            ),
            env={"TMPDIR": "/run"},  # containerd writes there what it did when it was found hanging
        )
    )  # fmt: skip
    assert isinstance(engine, process.Process)
    for _ in range(400):
        if host.run(Command(("docker", "--host", "unix:///run/docker.sock", "version"))).returncode == 0:
            return engine
        assert not engine.wait(0.1), engine.stop()
    raise AssertionError("dockerd does not answer")
