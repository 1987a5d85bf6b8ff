"""A whole machine as a QEMU guest: booted on an overlay, so that its image stays as it was, and reached by ssh."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from . import images, installed

BOOT_SECONDS = 900
"""Without KVM and beside other work; 75 s where nothing else runs.

Machines are emulated, which works everywhere; MACHINES_ACCELERATOR=kvm is faster. It is not tried by itself: a KVM
device may exist and not boot a stock kernel ("emulation failure", where the machine is a guest itself).
"""

_EMULATORS = {
    "amd64": ("qemu-system-x86_64", "-machine", "q35", "-cpu", "max"),
    "arm64": ("qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a76"),
}
"""Debian's name of an architecture -> the first words of QEMU's command."""
_CONSOLES = {"amd64": "ttyS0", "arm64": "ttyAMA0"}
_PIPX = """
mkdir -p /opt/pipx /opt/pipx-upper /opt/pipx-work
mount -t overlay overlay -o lowerdir=/carried/pipx,upperdir=/opt/pipx-upper,workdir=/opt/pipx-work /opt/pipx
ln -s /opt/pipx/venvs/weighbridge/bin/weighbridge /usr/local/bin/
"""

_FIRST_CONTAINER = """
tar -C / -c usr/bin/tini-static | docker import - first-container > /dev/null
docker network create first-network > /dev/null
for network in bridge first-network host; do
    docker run --rm --network $network --publish 127.0.0.1::9 first-container /usr/bin/tini-static --version
done
docker network rm first-network > /dev/null
docker image rm -f first-container > /dev/null
"""
"""What the machine's own engine changes with the first container of any user is no change of Weighbridge's.

Docker 28 makes ``table ip raw`` for the first one on a network that a user made, and keeps it; every Docker keeps a
mount of the machine's network for the first one in that.
"""


@dataclass(frozen=True)
class Answer:
    """What a command in the machine ended with."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Both outputs, as the user sees them."""
        return self.out + self.err


@dataclass(frozen=True)
class Guest:
    """A running machine: `ssh` reaches any of its users by one key."""

    kind: str
    """One of `images.MACHINES`."""
    folder: Path
    port: int

    def run(self, user: str, *command: str, timeout: float = 1800, stdin: str | None = None) -> Answer:
        """Run the command as the user and return what it ended with; 255 is ssh's own."""
        words = " ".join(shlex.quote(word) for word in command)
        return self.shell(user, words, timeout=timeout, stdin=stdin)

    def shell(self, user: str, line: str, timeout: float = 1800, stdin: str | None = None) -> Answer:
        """Run a line of shell as the user, in a login of its own, and return what it ended with."""
        ended = subprocess.run(
            [*self._ssh("ssh", "-p"), f"{user}@127.0.0.1", line],
            capture_output=True, text=True, errors="replace", timeout=timeout, input=stdin or "", check=False,
        )  # fmt: skip
        return Answer(ended.returncode, ended.stdout, ended.stderr)

    def must(self, user: str, *command: str, timeout: float = 1800) -> str:
        """Run what has to succeed; return its output."""
        answer = self.run(user, *command, timeout=timeout)
        assert answer.code == 0, f"{user}: {command} ended with {answer.code}: {answer.text}"
        return answer.out

    def send(self, user: str, source: Path, target: str) -> None:
        """Copy a file or folder into the machine."""
        subprocess.run([*self._ssh("scp", "-P"), "-qr", source, f"{user}@127.0.0.1:{target}"], check=True)

    def _ssh(self, program: str, port: str) -> list[str]:
        options = (
            "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "ControlMaster=auto",
            f"ControlPath={self.folder}/ssh-{self.port}-%r", "ControlPersist=600", "ServerAliveInterval=30",
            "ConnectTimeout=60", "IdentitiesOnly=yes",
        )  # fmt: skip
        key = images.ssh_key(self.folder)
        return [program, "-i", str(key), port, str(self.port), *(word for each in options for word in ("-o", each))]

    @property
    def state(self) -> Path:
        """The folder of its overlay, console and process id."""
        return self.folder / "running" / self.kind

    def answers(self) -> bool:
        """Whether a command runs in it."""
        try:
            return self.run("root", "true", timeout=90).code == 0
        except subprocess.TimeoutExpired:
            return False

    def stop(self) -> None:
        """Switch it off and delete its overlay."""
        pid = json.loads((self.state / "machine.json").read_text())["pid"]
        for user in ("root", "dockeruser", "sudouser", "plainuser", "podmanuser"):
            subprocess.run(
                [*self._ssh("ssh", "-p"), "-O", "exit", f"{user}@127.0.0.1"], capture_output=True, check=False
            )
        if _is_machine(pid):
            os.kill(pid, signal.SIGTERM)
            while _is_machine(pid):
                time.sleep(0.1)
        shutil.rmtree(self.state)


def running(kind: str, folder: Path) -> Guest | None:
    """Return the machine of a kind that was left running, or None."""
    try:
        about = json.loads((folder / "running" / kind / "machine.json").read_text())
    except FileNotFoundError:
        return None
    return Guest(kind, folder, about["port"]) if _is_machine(about["pid"]) else None


def boot(kind: str, folder: Path, port: int | None = None, memory: str = "6G", *, anew: bool = True) -> Guest:
    """Build what is not kept yet, boot the machine and return it as soon as it can be used.

    ``anew``: as it was built; else with what an earlier boot has left on its overlay.
    """
    qemu, built, second = images.emulator(folder), images.image(kind, folder), installed.disk(folder, kind)
    guest = Guest(kind, folder, port or _free_port())
    overlay = guest.state / "overlay.qcow2"
    if anew:
        shutil.rmtree(guest.state, ignore_errors=True)
    guest.state.mkdir(parents=True, exist_ok=True)
    if not overlay.exists():
        create = ("qemu-img", "create", "-q", "-f", "qcow2", "-b", built / "root.ext4", "-F", "raw", overlay)
        _in_root(qemu, folder, *create).wait()
    accelerator = os.environ.get("MACHINES_ACCELERATOR", "tcg,thread=multi,tb-size=1024")
    process = _in_root(
        qemu, folder, *_EMULATORS[images.architecture_of(kind)], "-accel", accelerator, "-smp", "2", "-m", memory,
        "-nodefaults", "-no-user-config", "-display", "none",
        "-kernel", built / "vmlinuz", "-initrd", built / "initrd",
        "-append", "root=/dev/vda rw mitigations=off quiet tsc=reliable no_timer_check "
        f"console={_CONSOLES[images.architecture_of(kind)]}",
        "-drive", f"file={overlay},if=none,id=d,format=qcow2,cache=unsafe,discard=unmap",
        "-device", "virtio-blk-pci,drive=d",
        "-drive", f"file={second},if=none,id=e,format=raw,readonly=on", "-device", "virtio-blk-pci,drive=e",
        "-netdev", f"user,id=n,restrict=on,hostfwd=tcp:127.0.0.1:{guest.port}-:22",
        "-device", "virtio-net-pci,netdev=n,romfile=", "-device", "virtio-rng-pci",
        "-serial", f"file:{guest.state / 'console'}",
    )  # fmt: skip
    (guest.state / "machine.json").write_text(json.dumps({"pid": process.pid, "port": guest.port}))
    ends = time.monotonic() + BOOT_SECONDS
    while not guest.answers():
        console = guest.state / "console"
        log = console.read_text(errors="replace")[-2000:] if console.exists() else ""
        if process.poll() is not None or time.monotonic() > ends:
            raise RuntimeError(f"the machine {kind} does not answer: {log}")
        time.sleep(3)
    guest.must("root", "mount", "-o", "ro", "/dev/vdb", "/carried")
    guest.must("root", "sh", "-c", _PIPX)
    guest.must("root", "sh", "-c", _FIRST_CONTAINER)
    guest.must("root", "sh", "-c", "systemctl is-system-running --wait || true")
    return guest


def _in_root(qemu: Path, folder: Path, *command: str | Path) -> subprocess.Popen[bytes]:
    """Start a program of the emulator's root folder in mounts of its own: nothing is left to unmount."""
    inside = f"{qemu}{folder}"
    line = (
        f'mkdir -p "{inside}" && mount --bind "{folder}" "{inside}" && mount --bind /dev "{qemu}/dev" && '
        f'mount -t proc proc "{qemu}/proc" && exec chroot "{qemu}" "$@"'
    )
    log = (folder / "qemu-messages.log").open("a")
    return subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", line, "sh", *command],
        stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
    )  # fmt: skip


def _is_machine(pid: int) -> bool:
    try:
        return b"qemu" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":  # boot a machine and leave it running, or stop it
    wanted, rest = sys.argv[1], sys.argv[2:]
    existing = running(wanted, images.machines_folder())
    if rest == ["stop"]:
        if existing:
            existing.stop()
    else:
        started = time.monotonic()
        print(existing or boot(wanted, images.machines_folder(), int(rest[0]) if rest else None))
        print(f"after {time.monotonic() - started:.0f} s", flush=True)
