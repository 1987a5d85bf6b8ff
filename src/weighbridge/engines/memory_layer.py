"""A folder of this machine that a container can write to: a volume that is a layer in memory over it.

The memory is a volume too, and the engine mounts both, so that any user of the engine can do this without being root.
Files that a container's root wrote into a folder of the user could not be removed by the user; the engine removes
volumes by label.
"""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from weighbridge.engines.client import engine_errors, quietly
from weighbridge.engines.container import started, why_lost
from weighbridge.engines.docker import LAUNCHER, Engine
from weighbridge.engines.shared_root import binds
from weighbridge.errors import Unavailable
from weighbridge.launcher.launch import Launcher
from weighbridge.linux.process import environment_of
from weighbridge.model.command import Command
from weighbridge.model.host import RunContext
from weighbridge.model.userland import Userland

_MEMORY, _FOLDER = "/weighbridge-memory", "/weighbridge-folder"
"""The paths of the memory and of the folder below the layer in the keeper."""
_MAKE = """set -e
mkdir "$1" "$1/upper" "$1/work"
chown "$(stat -c %u:%g "$2")" "$1/upper"
chmod "$(stat -c %a "$2")" "$1/upper"
"""
_MAKE_S = 20.0


class _Keeper:
    """A container that keeps the memory mounted for all sites, which the engine would unmount without one."""

    def __init__(self, launcher: Launcher, mountpoint: str) -> None:
        self._launcher = launcher
        self._mountpoint = mountpoint

    @classmethod
    @contextmanager
    def started(cls, engine: Engine, run: RunContext, userland: Userland) -> Iterator["_Keeper"]:
        """Start the container. Raises Unavailable and EnvironmentLost."""
        name = f"memory-{hashlib.sha256(userland.layered.encode()).hexdigest()[:8]}"
        with ExitStack() as stack:
            memory = stack.enter_context(engine.volume(name, {"type": "tmpfs", "device": "tmpfs", "o": "mode=0755"}))
            with engine_errors("creating a folder in memory"):
                mountpoint = str(engine.client.volumes.get(memory).attrs["Mountpoint"])
                if {*mountpoint} & {*",:\\"}:
                    raise Unavailable(
                        f"the engine stores volumes at {mountpoint}, but the path of a layer cannot contain , : or "
                        "\\. Give the engine another data folder, or use an image"
                    )
                container = engine.client.containers.create(
                    engine.image(userland),
                    [],
                    entrypoint=[LAUNCHER],
                    stdin_open=True,
                    log_config={"type": "none"},
                    name=f"weighbridge-{run.id}-{name}",
                    labels=engine.labels,
                    network_mode="none",
                    read_only=True,
                    volumes={
                        memory: {"bind": _MEMORY, "mode": "rw"},
                        userland.layered: {"bind": _FOLDER, "mode": "ro"},
                    },
                    mounts=binds(userland, ()),
                    cgroup_parent=engine.cgroup_parent,
                    environment=environment_of(run.id),
                )
                stack.callback(quietly, container.remove, force=True, v=True)
                attached = started(container)
            why, variables = why_lost(engine, container, attached), environment_of(run.id)
            yield cls(stack.enter_context(Launcher(attached, name, why, variables)), mountpoint)

    def make(self, site: str, folder: str) -> str:
        """Make the two folders of a site's layer, the upper one as ``folder`` is; gives the mount's options."""
        self._must("sh", "-c", _MAKE, "make", f"{_MEMORY}/{site}", _FOLDER)
        own = f"{self._mountpoint}/{site}"
        return f"lowerdir={folder},upperdir={own}/upper,workdir={own}/work"

    def remove(self, site: str) -> None:
        """Release the memory that a site's layer has taken."""
        self._must("rm", "-rf", f"{_MEMORY}/{site}")

    def _must(self, *words: str) -> None:
        completed = self._launcher.run(Command(words, _MAKE_S))
        if completed.returncode != 0:
            raise Unavailable(f"a container's folder in memory cannot be created: {completed.last_words}")


@contextmanager
def layered_folder(engine: Engine, run: RunContext, site: str, userland: Userland) -> Iterator[str]:
    """Make a volume that is a layer in memory over the userland's folder, which stays as it is; gives its name.

    Its memory is charged to the processes that write to it, as natively. Raises Unavailable and EnvironmentLost.
    """
    folder = userland.layered
    keeper = run.share(f"memory {engine.host.name} {folder}", lambda: _Keeper.started(engine, run, userland))
    options = keeper.make(site, folder) + (",userxattr" if engine.rootless else "")
    with ExitStack() as stack:
        stack.callback(quietly, keeper.remove, site)
        yield stack.enter_context(
            engine.volume(f"{site}-folder", {"type": "overlay", "device": "overlay", "o": options})
        )
