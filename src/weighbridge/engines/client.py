"""The SDK's client of a Docker engine: whose engine answers, what is ours in it, and its failures in one sentence."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from weighbridge.engines.labelled import Ask, EngineContents
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.linux.packages import install_here
from weighbridge.linux.remedies import join_group_of
from weighbridge.model.command import HostProcess
from weighbridge.model.plugin import Readiness

START_S = 240
"""The time limits for our engine to come up and to answer, which can be minutes on a busy emulated CPU."""
API_TIMEOUT_S = 60
_SOCKET = Path("/var/run/docker.sock")
_CONTAINERD_GONE = ("containerd.sock", ": unavailable", "transport is closing")
"""The text of gRPC's errors if the program below the engine has ended; the engine has no code for it."""


def client_from_environment() -> Any:
    """Return the SDK's client for DOCKER_HOST, the current context or the default socket; None without an answer."""
    if not _has_address():
        return None
    import docker
    from docker.errors import DockerException

    for base in (os.environ.get("DOCKER_HOST"), _context_host(), f"unix://{_SOCKET}"):
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
                return None  # the user named this engine: do not replace it silently
    return None


def _has_address() -> bool:
    """Return whether there can be an engine. The SDK, which loads slowly, is not needed to see that there is none."""
    contexts = Path(os.environ.get("DOCKER_CONFIG") or os.path.expanduser("~/.docker"))  # noqa: PTH111 - never raises
    return bool(os.environ.get("DOCKER_HOST")) or contexts.exists() or _SOCKET.exists()


def client_of(url: str) -> Any:
    """Return the SDK's client of the engine at ``url``. Raises Unavailable if none answers there."""
    import docker
    from docker.errors import DockerException

    try:
        client = docker.DockerClient(base_url=url, timeout=API_TIMEOUT_S)
        client.ping()
    except (DockerException, OSError) as error:
        raise Unavailable(f"no Docker engine answers at {url}: {error}") from error
    return client


def answers() -> bool:
    """Return whether the user's own engine answers on this machine."""
    client = client_from_environment()
    if client is None:
        return False
    client.close()
    return True


def gives_other_ids() -> bool:
    """Return whether the user's engine maps its containers' users to unused ids (userns-remap)."""
    if (client := client_from_environment()) is None:
        return False
    with contextlib.closing(client):
        return "name=userns" in (client.info().get("SecurityOptions") or ())


def _context_host() -> str | None:
    from docker.context import ContextAPI

    with contextlib.suppress(Exception):
        context = ContextAPI.get_current_context()
        if context is not None and context.name != "default":
            return str(context.Host)
    return None


def readiness() -> Readiness:
    """Return whether an engine answers or a private one could be started; starts nothing."""
    client = client_from_environment()
    if client is not None:
        version = client.version().get("Version", "?")
        client.close()
        return Readiness(True, f"the running engine, Docker {version}")
    if host := os.environ.get("DOCKER_HOST"):
        return Readiness(False, f"no engine answers at DOCKER_HOST={host}", "start it, or unset DOCKER_HOST")
    system = "" if os.geteuid() == 0 else ":/usr/sbin:/sbin"  # not on an ordinary user's path
    path = os.environ.get("PATH", os.defpath) + system
    if shutil.which("dockerd", path=path) is None:
        return Readiness(False, "no Docker engine is installed", install_here(["dockerd"]))
    if os.geteuid() != 0:
        other = join_group_of(_SOCKET) or "start a Docker engine that this user can access"
        why = "no Docker engine answers this user, and only root can start a private one"
        return Readiness(False, why, f"run as root, or {other}")
    if shutil.which("iptables", path=path) is None:
        why = "dockerd needs iptables, which is not installed"
        return Readiness(False, why, install_here(["iptables"]))
    return Readiness(True, "the run starts a private dockerd")


def ask_by(client: Any) -> Ask:
    """Return a function that asks a client's engine without the SDK's objects."""

    def ask(method: str, path: str) -> Any:
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        try:
            answer = client.api.request(method, f"{client.api.base_url}{path}", timeout=API_TIMEOUT_S)
            answer.raise_for_status()
            return answer.json() if answer.content.strip() else None
        except (DockerException, RequestException, OSError, ValueError) as error:
            raise OSError(f"the Docker engine failed at {method} {path}: {error}") from error

    return ask


@contextmanager
def users_engine() -> Iterator[Ask | None]:
    """Return a function that asks this user's engine on this machine; None if none answers."""
    client = client_from_environment()
    if client is None:
        yield None
        return
    with contextlib.closing(client):
        yield ask_by(client)


class UsersEngineContents(EngineContents):
    """The objects of a run in the user's own engine, on any machine."""

    @property
    def elsewhere(self) -> EngineContents:
        """Return the cleanup of the engine that answers there."""
        return EngineContents()

    def _engine(self) -> AbstractContextManager[Ask | None]:
        return users_engine()


def await_answer(reach: Callable[[], Path | None], daemon: HostProcess) -> Any:
    """Return the client of an engine that was just started. Raises Unavailable with its last words if none answers.

    ``reach`` returns the socket of this machine that leads to the engine's, or None until there is one.
    """
    import docker
    from docker.errors import DockerException

    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if daemon.poll() is not None:
            break
        if (socket := reach()) is not None:
            with contextlib.suppress(DockerException, OSError):
                client = docker.DockerClient(base_url=f"unix://{socket}", timeout=START_S)
                client.ping()
                return client
        daemon.wait(0.05)
    raise Unavailable(f"dockerd did not start: {daemon.stop().last_words}")


def quietly(action: Any, *arguments: Any, **named: Any) -> None:
    """Call ``action``, ignoring failures: the engine can be gone, and the end of the run removes the rest."""
    with contextlib.suppress(Exception):
        action(*arguments, **named)


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn the SDK's failures into EnvironmentLost (the engine went away) or Unavailable (it refused)."""
    from docker.errors import APIError, DockerException
    from requests.exceptions import RequestException

    try:
        yield
    except APIError as error:
        explanation = str(error.explanation)
        if any(words in explanation for words in _CONTAINERD_GONE):
            raise EnvironmentLost(f"{what}: containerd no longer answers the Docker engine") from error
        if "is not running" in explanation or "No such container" in explanation:
            raise EnvironmentLost(f"{what}: {explanation}") from error
        raise Unavailable(f"{what}: Docker refused: {error.explanation or error}") from error
    except (DockerException, RequestException, OSError) as error:
        raise EnvironmentLost(f"{what}: the Docker engine no longer answers ({type(error).__name__})") from error
