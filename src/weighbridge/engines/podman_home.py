"""Podman's storage, configuration and mounts for a run, so that the user's podman stays untouched.

For root they are in a mount namespace with empty /run and /var/lib/containers. For root, rootless podman belongs to
an account that exists only in there. Any other user needs no namespace because podman makes its own.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.launcher import build
from weighbridge.launcher.within import within
from weighbridge.linux.cgroup_files import HIDE_VERSION_2
from weighbridge.linux.folders import is_own_folder
from weighbridge.linux.process import environment_of, mounted_by
from weighbridge.model.command import Command
from weighbridge.model.host import Group, Host, RunContext
from weighbridge.model.names import RunId

ACCOUNT = 0x6FFF0000
"""The first user number of rootless podman if Weighbridge runs as root; its containers have the next ones.

They are at the end of the numbers that are set aside for containers (systemd's uids and gids)."""
_LAST = 0xFFFF
INSIDE = "/run/weighbridge"
"""The namespace's folder of ours."""
LAUNCHER = f"{INSIDE}/launcher"
_READY_S = 20.0

# Devices that every user may open on an ordinary machine are closed on some: these are copies. The lock of iptables
# stays everybody's.
_MAKE = r"""set -e
data=$1 launcher=$2 name=$3 account=$4 last=$5
touch /run/xtables.lock
mount -t tmpfs -o mode=755 "$name" /mnt
mkdir /mnt/weighbridge
( cd /mnt/weighbridge && mkdir data etc home networks runtime )
touch /mnt/xtables.lock
mount --bind /run/xtables.lock /mnt/xtables.lock
mount --bind "$data" /mnt/weighbridge/data
cp "$launcher" /mnt/weighbridge/launcher
chmod 755 /mnt/weighbridge/launcher
printf '%s\n' '[engine]' 'lock_type="file"' \
    '[network]' 'network_backend="netavark"' 'network_config_dir="/run/weighbridge/networks"' \
    'default_subnet_pools=[{"base"="10.89.0.0/16","size"=22},{"base"="10.90.0.0/15","size"=22}]' \
    > /mnt/weighbridge/containers.conf
printf '%s\n' '[storage]' 'driver="overlay"' 'graphroot="/run/weighbridge/data/storage"' \
    'runroot="/run/weighbridge/runtime/run"' > /mnt/weighbridge/storage.conf
mount --rbind /mnt /run
umount -l /mnt
if [ -d /var/lib/containers ]; then
    mount -t tmpfs "$name" /var/lib/containers
else
    mount -t tmpfs "$name" /var/lib
fi
cd /run/weighbridge
if [ "$account" != 0 ]; then
    chown "$account:$account" home runtime data networks
    chmod 700 home runtime data
    { cat /etc/passwd; echo "weighbridge:x:$account:$account::/run/weighbridge/home:/bin/sh"; } > etc/passwd
    { cat /etc/group; echo "weighbridge:x:$account:"; } > etc/group
    echo "weighbridge:$((account + 1)):$last" | tee etc/subuid > etc/subgid
    for file in passwd group subuid subgid; do mount --bind "etc/$file" "/etc/$file"; done
    for device in net/tun fuse; do
        [ -e "/dev/$device" ] || continue
        mknod -m 666 "etc/${device#*/}" c $(stat -c '0x%t 0x%T' "/dev/$device")
        mount --bind "etc/${device#*/}" "/dev/$device"
    done
fi
mount --make-rshared /
echo "ready $$"
exec cat
"""

NETWORKS = f"{INSIDE}/networks"
"""Where root's podman has a file for each network."""
_PUT = 'chown "$3" "$1" && mkdir "$2" && mount --bind "$1" "$2"'

PutFolder = Callable[[Host, str, str], str]
"""Mounts a folder of the host under a name, so that containers can mount it and write to it; returns its path."""


class Home:
    """The beginning of a podman command: ``prefix``, and ``program``, which is podman with its options."""

    def __init__(
        self, prefix: tuple[str, ...], program: tuple[str, ...], launcher: str, put_folder: PutFolder
    ) -> None:
        self.prefix = prefix
        self.program = program
        self.launcher = launcher
        """Where podman finds the first process of its containers."""
        self.put_folder = put_folder

    def argv(self, *words: str) -> tuple[str, ...]:
        """Return the argument list of a podman command."""
        return (*self.prefix, *self.program, *words)


@contextmanager
def home_of_root(run: RunContext, host: Host, group: Group, data: Path, *, rootless: bool) -> Iterator[Home]:
    """Yield podman's folders and command, in a mount namespace that lasts as the context does. Raises Unavailable."""
    account = ACCOUNT if rootless else 0
    launcher = host.program(build.ensure(run.cache, run.say))
    words = (str(data), launcher, mounted_by(run.id), str(account), str(_LAST))
    script = f"{HIDE_VERSION_2}\n{_MAKE}"
    unshare = ("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "podman", *words)
    process, stream = host.talk(Command(within(host, run, group, *unshare)))
    try:
        try:
            answer = stream.receive(_READY_S).decode(errors="replace").split()
        except TimeoutError:
            answer = []
        if answer[:1] != ["ready"]:
            raise Unavailable(f"podman's mounts cannot be created: {process.stop().last_words}")
        become = ("setpriv", "--reuid", str(account), "--regid", str(account), "--clear-groups") if rootless else ()
        enter = ("nsenter", f"--mount=/proc/{answer[1]}/ns/mnt", "--", *become)
        variables = {
            **environment_of(run.id),
            "HOME": f"{INSIDE}/home",
            "TMPDIR": f"{INSIDE}/data",
            "CONTAINERS_CONF": f"{INSIDE}/containers.conf",
            "CONTAINERS_STORAGE_CONF": f"{INSIDE}/storage.conf",
            **({"XDG_RUNTIME_DIR": f"{INSIDE}/runtime"} if rootless else {}),
        }

        def put_folder(on: Host, folder: str, name: str) -> str:
            destination = f"{INSIDE}/{name}"
            owner = f"{account}:{account}"
            completed = on.run(Command((*enter[:3], "sh", "-c", _PUT, "put", folder, destination, owner), 10))
            if completed.returncode != 0:
                raise Unavailable(f"podman cannot use the folder {folder}: {completed.last_words}")
            return destination

        program = _podman(variables, f"{INSIDE}/data/storage", f"{INSIDE}/runtime")
        yield Home((*within(host, run, group), *enter), program, LAUNCHER, put_folder)
    finally:
        stream.end()
        process.stop()


@contextmanager
def home_of_user(run: RunContext, host: Host, data: Path) -> Iterator[Home]:
    """Yield the same for a user who is not root: with the user's subordinate ids and folders of the run's own."""
    program = program_of_user(run.id, run.state, data)
    launcher = host.program(build.ensure(run.cache, run.say))
    yield Home(within(host, run, None), program, launcher, lambda _host, folder, _name: folder)


APART = Path("/var/tmp")  # noqa: S108 - one folder per run, which other users cannot enter
"""The place of a user's podman storage if a container has a layer over the folder that it would be in.

If the storage were mounted from there onto that folder, the layer would be refused (EINVAL of crun 1.28, Linux 7.2).
"""


def store_apart(run_id: RunId) -> None:
    """Have the storage of a run's podman outside of the user's cache. Raises Unavailable."""
    try:
        _apart(run_id).mkdir(mode=0o700)
    except OSError as error:
        raise Unavailable(f"{_apart(run_id)}, for podman's storage, cannot be created: {error.strerror}") from None


def storage_of_user(run_id: RunId, data: Path) -> Path:
    """Return the path of a user's podman storage: in the run's data, or elsewhere after `store_apart`."""
    return _apart(run_id) if is_own_folder(_apart(run_id)) else data / "storage"


def _apart(run_id: RunId) -> Path:
    return APART / f"weighbridge-{run_id}-storage"


def runtime_of_user(state: Path) -> Path:
    """Return the folder of podman's sockets and notes, to which podman allows 50 characters at most."""
    return state / "pod"


def program_of_user(run_id: RunId, state: Path, data: Path) -> tuple[str, ...]:
    """Podman for a user who is not root, with all that it writes in folders of the run."""
    runtime = runtime_of_user(state)
    runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    (runtime / "containers.conf").write_text('[engine]\nlock_type="file"\n')
    graphroot = storage_of_user(run_id, data)
    storage = f'[storage]\ndriver="overlay"\ngraphroot="{graphroot}"\nrunroot="{runtime}/run"\n'
    (runtime / "storage.conf").write_text(storage)
    variables = {
        **environment_of(run_id),
        "HOME": str(data),
        "TMPDIR": str(data),
        "XDG_RUNTIME_DIR": str(runtime),
        "CONTAINERS_CONF": str(runtime / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(runtime / "storage.conf"),
    }
    return _podman(variables, str(graphroot), str(runtime))


def _podman(variables: dict[str, str], graphroot: str, runtime: str) -> tuple[str, ...]:
    settings = tuple(f"{name}={value}" for name, value in variables.items())
    folders = ("--root", graphroot, "--runroot", f"{runtime}/run")
    return ("env", "-i", *settings, "podman", *folders, "--cgroup-manager=cgroupfs", "--events-backend=file")
