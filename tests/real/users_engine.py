"""A Docker engine as a user has one, with things of the user's in it."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import docker

from weighbridge.engines import firewall
from weighbridge.engines.machine_lock import exclusive_machine_lock
from weighbridge.engines.private import HOST_FOLDERS, with_private_folders
from weighbridge.hosts.testbed import JOIN
from weighbridge.linux.cgroups import Cgroup, remove_top
from weighbridge.model.userland import Userland
from weighbridge.runner import run_lock as state

from .machine import Machine

GROUP = "/weighbridge/own-engine-of-a-test"


class _NotOfARun(str):
    """A group beside those of runs, which `weighbridge clean` must not remove."""

    @property
    def parts(self) -> tuple[str, ...]:
        return (str(self),)


@contextmanager
def own_engine(userland: Userland, folder: Path, *inside: str) -> Iterator[docker.DockerClient]:
    """An engine that is not Weighbridge's, with a container, a network and an image that are not either.

    ``inside`` is a launcher for the engine. One at a time: it changes the host's packet filter.
    """
    with ExitStack() as stack:
        client = stack.enter_context(bare_engine(folder, *inside))
        with userland.archive().open("rb") as data:
            chunks = iter(lambda: data.read(2**20), b"")
            client.api.import_image_from_stream(chunks, repository="foreign", tag="1")
        network = client.networks.create("foreign", driver="bridge")
        stack.callback(network.remove)
        container = client.containers.run(
            "foreign:1", ["sleep", "infinity"], name="foreign", network="foreign", detach=True, cgroup_parent=GROUP
        )
        stack.callback(container.remove, force=True)
        yield client


@contextmanager
def bare_engine(folder: Path, *inside: str) -> Iterator[docker.DockerClient]:
    """An engine that is not Weighbridge's, with nothing in it."""
    Machine.as_it_is()  # when another run has ended
    with ExitStack() as stack:
        _prepare(stack, folder)
        _start(stack, folder, *inside)
        yield stack.enter_context(contextlib.closing(_await(folder)))


def _prepare(stack: ExitStack, folder: Path) -> None:
    """The folders that an engine needs, and everything as it was when the stack ends."""
    state.base().mkdir(exist_ok=True)
    stack.callback(lambda: state.known_runs() or state.base().rmdir())
    (state.base() / "own-engine").mkdir()  # so that no run removes the folder, which is what engines lock
    stack.callback((state.base() / "own-engine").rmdir)
    stack.enter_context(exclusive_machine_lock(state.base(), print))
    for path in HOST_FOLDERS.values():
        if not path.exists():
            path.mkdir()
            stack.callback(path.rmdir)
    for name in HOST_FOLDERS:
        (folder / name).mkdir()
    (folder / "daemon.json").write_text("{}")
    firewall.remember(folder)
    stack.callback(firewall.restore, folder)


def _start(stack: ExitStack, folder: Path, *inside: str) -> None:
    """dockerd by the product's own way in: a mount namespace and a control group, so that nothing can be left."""
    group = Cgroup(_NotOfARun(GROUP.removeprefix("/weighbridge/"))).create()  # type: ignore[arg-type]
    stack.callback(remove_top)
    stack.callback(group.remove)
    sockets = stack.enter_context(TemporaryDirectory(prefix="wb-", dir="/tmp"))  # their paths have 107 bytes at most
    dockerd = with_private_folders(
        folder, *inside, "dockerd", "--data-root", f"{folder}/data", "--exec-root", sockets,
        "--host", f"unix://{folder}/d.sock", "--pidfile", f"{folder}/pid", "--bridge", "none", "--config-file",
        f"{folder}/daemon.json", "--exec-opt", "native.cgroupdriver=cgroupfs",
    )  # fmt: skip
    with (folder / "log").open("wb") as log:
        engine = subprocess.Popen(
            ("sh", "-c", JOIN, "join", *map(str, group.procs), "--", *dockerd),
            stdout=subprocess.DEVNULL, stderr=log, start_new_session=True,
            env={**os.environ, "TMPDIR": str(folder)},  # containerd writes there why it hung
        )  # fmt: skip
    stack.callback(engine.wait)
    stack.callback(group.kill)

    def ask_it_to_end() -> None:
        os.killpg(engine.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            engine.wait(10)

    stack.callback(ask_it_to_end)


def _await(folder: Path) -> docker.DockerClient:
    deadline = time.monotonic() + 40
    while True:
        try:
            client = docker.DockerClient(base_url=f"unix://{folder}/d.sock", timeout=60)
            client.ping()
            return client
        except (docker.errors.DockerException, OSError):
            assert time.monotonic() < deadline, (folder / "log").read_text(errors="replace")[-2000:]
            time.sleep(0.05)


def socket_of(client: docker.DockerClient) -> str:
    """The path of the engine's socket."""
    return str(client.api.get_adapter(client.api.base_url).socket_path)
