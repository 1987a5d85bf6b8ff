"""A Docker engine: the user's where one answers, else - for root - a private one for the length of the run."""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weighbridge import process
from weighbridge.cgroups import Cgroup
from weighbridge.engines import firewall
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.model.command import Command
from weighbridge.model.plugin import Readiness
from weighbridge.model.site import SITE_ENV, HostProcess, RunContext, Userland

LABEL = "weighbridge.run"
START_S = 40.0
API_TIMEOUT_S = 60
_CHUNK = 2**20
INSTALL = "apt-get install docker.io"
_HOST_FOLDERS = (Path("/etc/docker"), Path("/run/docker"), Path("/run/containerd"))
_MADE = "made-folders"

# In a mount namespace of its own, so that no mount of the engine outlives its processes. The host's folders get
# private contents: dockerd would leave its key, its run-time data and containerd's sockets there.
_START = """set -e
group=$1 scratch=$2; shift 2
for f in $group; do echo 0 > "$f"; done
mount --bind "$scratch/etc" /etc/docker
mount --bind "$scratch/run" /run/docker
mount --bind "$scratch/containerd" /run/containerd
exec "$@"
"""


def client_from_environment() -> Any:
    """The SDK's client for DOCKER_HOST, the current context or the default socket; None where no engine answers."""
    import docker
    from docker.errors import DockerException

    for base in (os.environ.get("DOCKER_HOST"), _context_host(), "unix:///var/run/docker.sock"):
        if not base:
            continue
        try:
            client = docker.DockerClient(
                base_url=base, timeout=API_TIMEOUT_S, use_ssh_client=base.startswith("ssh://")
            )
            client.ping()
            return client
        except (DockerException, OSError):
            if base == os.environ.get("DOCKER_HOST"):
                return None  # the user named this engine: no other one may silently take its place
    return None


def _context_host() -> str | None:
    from docker.context import ContextAPI

    with contextlib.suppress(Exception):
        context = ContextAPI.get_current_context()
        if context is not None and context.name != "default":
            return str(context.Host)
    return None


def readiness() -> Readiness:
    """Whether an engine answers or a private one could be started; starts nothing."""
    client = client_from_environment()
    if client is not None:
        version = client.version().get("Version", "?")
        client.close()
        return Readiness(True, f"the engine that answers, Docker {version}")
    if host := os.environ.get("DOCKER_HOST"):
        return Readiness(False, f"no engine answers at DOCKER_HOST={host}", "start it, or unset DOCKER_HOST")
    system = "" if os.geteuid() == 0 else ":/usr/sbin:/sbin"  # not on an ordinary user's path
    if shutil.which("dockerd", path=os.environ.get("PATH", os.defpath) + system) is None:
        return Readiness(False, "no Docker engine is installed", INSTALL)
    if os.geteuid() != 0:
        remedy = "run as root, or ask for membership in the group 'docker'"
        return Readiness(False, "no Docker engine answers this user, and only root may start a private one", remedy)
    return Readiness(True, "a private dockerd is started for the run")


class Engine:
    """An engine that answers, with the images and networks that this run made in it."""

    def __init__(self, client: Any, run: RunContext, *, private: bool) -> None:
        self.client = client
        self.private = private
        self.cgroup_parent = f"/weighbridge/{run.id}" if private else None
        self._run = run
        self._images: dict[str, str] = {}
        self.version: str = client.version().get("Version", "?")

    @property
    def labels(self) -> dict[str, str]:
        """The labels by which everything of this run is found."""
        return {LABEL: self._run.id}

    def image(self, userland: Userland) -> str:
        """The id of the userland's image, imported at first use."""
        if userland.digest not in self._images:
            self._run.say("importing the userland into Docker")
            repository, tag = "weighbridge", f"{self._run.id}-{userland.digest[:12]}"
            with userland.tar.open("rb") as data:
                self.client.api.import_image_from_stream(
                    iter(lambda: data.read(_CHUNK), b""),  # a file object would get two contradicting headers
                    repository=repository,
                    tag=tag,
                    changes=[f"LABEL {LABEL}={self._run.id}"],
                )
            self._images[userland.digest] = self.client.images.get(f"{repository}:{tag}").id
        return self._images[userland.digest]

    def remove_all(self) -> None:
        """Remove every container, network and image of this run."""
        remove_labelled(self.client, f"{LABEL}={self._run.id}")


def remove_labelled(client: Any, label: str) -> None:
    """Remove every container, network and image with a label (``weighbridge.run`` or ``weighbridge.run=ID``)."""
    for container in client.containers.list(all=True, filters={"label": label}):
        with contextlib.suppress(Exception):
            container.remove(force=True, v=True)
    for network in client.networks.list(filters={"label": label}):
        with contextlib.suppress(Exception):
            network.remove()
    for image in client.images.list(filters={"label": label}):
        with contextlib.suppress(Exception):
            client.images.remove(image.id, force=True)


def labelled(client: Any, label: str = LABEL) -> list[tuple[str, str, str]]:
    """Everything with our label: (run id, "container" / "network" / "image", its name)."""
    found = [
        (c.labels.get(LABEL, ""), "container", c.name)
        for c in client.containers.list(all=True, filters={"label": label})
    ]
    networks = client.networks.list(filters={"label": label})
    found += [(n.attrs.get("Labels", {}).get(LABEL, ""), "network", n.name) for n in networks]
    found += [(i.labels.get(LABEL, ""), "image", i.id) for i in client.images.list(filters={"label": label})]
    return found


@contextmanager
def engine(run: RunContext) -> Iterator[Engine]:
    """The engine for this run. What the run made in it is removed at the end; a private one is stopped."""
    client = client_from_environment()
    if client is not None:
        yield from _using(Engine(client, run, private=False))
        return
    state = readiness()
    if not state.ready:
        raise Unavailable(f"{state.detail}: {state.remedy}")
    with _private(run) as client:
        yield from _using(Engine(client, run, private=True))


def _using(engine: Engine) -> Iterator[Engine]:
    try:
        yield engine
    finally:
        with contextlib.suppress(Exception):
            engine.remove_all()
        with contextlib.suppress(Exception):
            engine.client.close()


@contextmanager
def _private(run: RunContext) -> Iterator[Any]:
    run.say("starting a private Docker engine")
    data, socket = run.cache / "engines" / run.id, run.state / "docker.sock"
    try:
        with _alone(run.state.parent, run.say):
            _prepare(run, data)
            group = Cgroup(f"{run.id}/engine").create()
            argv = (
                "unshare", "--mount", "--propagation", "private", "sh", "-c", _START, "start",
                " ".join(str(path) for path in group.procs), str(data),
                "dockerd", "--data-root", str(data / "data"), "--exec-root", str(data / "exec"),
                "--host", f"unix://{socket}", "--pidfile", str(data / "docker.pid"), "--bridge", "none",
                "--exec-opt", "native.cgroupdriver=cgroupfs", "--config-file", str(data / "etc/daemon.json"),
                "--shutdown-timeout", "5", "--log-level", "warn",
            )  # fmt: skip
            # the user's variables (LD_PRELOAD, locale, ...) are no part of the engine that is measured
            daemon = process.Process(Command(argv), env={**SITE_ENV, process.RUN_VARIABLE: run.id}, inherit=False)
            try:
                yield _await_answer(socket, daemon)
            finally:
                daemon.stop()
    finally:
        discard_private(run.id, run.state, run.cache)


@contextmanager
def _alone(base: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Inside, no other private engine runs: each changes the host's packet filter and folders, and undoes that."""
    folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another run to end: it has a private Docker engine, and two would disturb each other")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _prepare(run: RunContext, data: Path) -> None:
    """Note how the host is, once: a note that is already there was left by a killed run, and is the true one."""
    base = run.state.parent
    if not (base / _MADE).exists():
        made = [str(folder) for folder in _HOST_FOLDERS if not folder.exists()]
        (base / _MADE).write_text("\n".join(made))
    firewall.remember(base)
    for folder in (*(data / name for name in ("data", "etc", "run", "containerd")), *_HOST_FOLDERS):
        folder.mkdir(parents=True, exist_ok=True)
    (data / "etc/daemon.json").write_text("{}")


def _await_answer(socket: Path, daemon: HostProcess) -> Any:
    import docker
    from docker.errors import DockerException

    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if daemon.poll() is not None:
            break
        if socket.exists():
            with contextlib.suppress(DockerException, OSError):
                client = docker.DockerClient(base_url=f"unix://{socket}", timeout=API_TIMEOUT_S)
                client.ping()
                return client
        daemon.wait(0.05)
    raise Unavailable(f"a private dockerd did not start: {daemon.stop().last_words}")


def discard_private(run_id: str, state: Path, cache: Path) -> None:
    """Remove everything that a private engine left: processes, links, filter rules, folders."""
    with contextlib.suppress(Unavailable):  # no control groups are mounted: then nothing is in any
        group = Cgroup(run_id)
        group.kill()
        group.remove()
    for link in sorted(Path("/sys/class/net").glob(f"{bridge_prefix(run_id)}*")):
        process.output(("ip", "link", "delete", link.name))
    _restore_host(state.parent)
    shutil.rmtree(cache / "engines" / run_id, ignore_errors=True)
    with contextlib.suppress(OSError):
        (cache / "engines").rmdir()


def _restore_host(base: Path) -> None:
    """Bring the host's packet filter and folders back, unless a living run's engine needs them: it will do so."""
    with contextlib.suppress(FileNotFoundError, BlockingIOError):
        folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            firewall.restore(base)
            made = (base / _MADE).read_text().split()
            for path in made:
                with contextlib.suppress(OSError):
                    Path(path).rmdir()
            (base / _MADE).unlink()
        finally:
            os.close(folder)


def bridge_prefix(run_id: str) -> str:
    """How the names of the run's Linux bridges begin (at most 15 characters with what follows)."""
    return f"wb-{run_id[-6:]}-"


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn the SDK's failures into EnvironmentLost (the engine went away) or Unavailable (it refused)."""
    from docker.errors import APIError, DockerException
    from requests.exceptions import RequestException

    try:
        yield
    except APIError as error:
        if "is not running" in str(error.explanation) or "No such container" in str(error.explanation):
            raise EnvironmentLost(f"{what}: {error.explanation}") from error
        raise Unavailable(f"{what}: Docker refuses: {error.explanation or error}") from error
    except (DockerException, RequestException, OSError) as error:
        raise EnvironmentLost(f"{what}: the Docker engine no longer answers ({type(error).__name__})") from error
