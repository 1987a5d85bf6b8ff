"""A Docker engine in a disposable host: packet filter, /run, /etc, /var/lib are its own; nothing needs protection."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weighbridge.engines.client import await_answer
from weighbridge.engines.settings import Settings, daemon_file
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.launcher.within import within
from weighbridge.linux.cgroup_files import HIDE_VERSION_2
from weighbridge.linux.filesystems import disk_in
from weighbridge.linux.packages import install_on
from weighbridge.linux.process import environment_of
from weighbridge.model.command import Command
from weighbridge.model.host import DisposableHost, RunContext
from weighbridge.model.setup import SetupStep

_SOCKET = "/run/docker.sock"
_LATE = "timeout waiting for containerd to start"
"""What dockerd ends with that has not had it in 15 s: an emulated CPU that others use is faster the second time."""


@contextmanager
def hosted_engine(run: RunContext, host: DisposableHost, settings: Settings) -> Iterator[Any]:
    """Yield the client of an engine that runs in the host until the context ends."""
    if not _is_there(host, settings):
        raise Unavailable(
            f"host {host.name} cannot see the program {settings.dockerd}: put it in a folder that the host shares"
            if settings.dockerd
            else f"no Docker engine is installed: {install_on(host, ['dockerd'])}"
        )
    with host.engine_folder() as folder, _data_of(host, folder, settings) as data:
        # containerd writes to TMPDIR what it did when it was found hanging
        environment = {**environment_of(run.id), "TMPDIR": "/run", "DOCKER_SERVICE_PREFER_OFFLINE_IMAGE": "1"}
        variables = (f"{key}={value}" for key, value in environment.items())
        argv = within(
            host, run, None, "env", "-i", *variables,
            "sh", "-c", f'{HIDE_VERSION_2}; exec "$@"', "engine",
            *settings.program, "--data-root", data, "--exec-root", "/run/docker-exec", "--host", f"unix://{_SOCKET}",
            "--pidfile", "/run/docker.pid", "--config-file", _settings_file(run, host, data),
            "--bridge", "none",
            "--exec-opt", "native.cgroupdriver=cgroupfs",
            "--shutdown-timeout", "5", "--log-level", "warn", "--dns", "127.0.0.1", *settings.arguments,
        )  # fmt: skip
        daemon = host.start(Command(argv))
        client = None
        try:
            with run.during(SetupStep("engine", host.name)):
                try:
                    client = await_answer(lambda: host.reach(_SOCKET), daemon)
                except Unavailable as error:
                    if _LATE not in str(error):
                        raise
                if client is None:  # while a thread handles an error, nothing can stop its waits
                    daemon = host.start(Command(argv))
                    client = await_answer(lambda: host.reach(_SOCKET), daemon)
            yield client
        finally:
            if client is not None and _has_containers(client):  # it would wait for each; the host is to end anyway
                host.switch_off()
            with contextlib.suppress(EnvironmentLost):
                daemon.stop()


@contextmanager
def _data_of(host: DisposableHost, folder: str, settings: Settings) -> Iterator[str]:
    """Yield the engine's data folder: in the host's folder for it, or on a disk of its own in there."""
    if settings.disk is None:
        yield folder
        return
    with disk_in(host, Path(folder), settings.disk) as at:
        yield str(at)


def _settings_file(run: RunContext, host: DisposableHost, folder: str) -> str:
    """Write a daemon.json on the host, with the settings that have no option, and return its path."""

    def is_there(path: str) -> bool:
        return host.run(Command(("test", "-x", path), 10)).returncode == 0

    content = daemon_file(is_there, run.runtimes)
    file = f"{folder}/daemon.json"
    make_folder, write_file = (
        Command(("mkdir", "-p", folder), 10),
        Command(("tee", file), 10, stdin=content.encode()),
    )
    for command in (make_folder, write_file):
        completed = host.run(command)
        if completed.returncode != 0:
            raise Unavailable(f"host {host.name}: {file} cannot be written: {completed.last_words}")
    return file


def _is_there(host: DisposableHost, settings: Settings) -> bool:
    # the version takes five seconds on an emulated CPU
    find = ("sh", "-c", 'command -v "$1"', "find", settings.program[-1])
    return host.run(Command(find, 30)).returncode == 0


def _has_containers(client: Any) -> bool:
    with contextlib.suppress(Exception):  # it can have ended
        return bool(client.api.containers(all=True))
    return False
