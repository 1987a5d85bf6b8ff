"""A Docker engine in a secluded host: packet filter, /run, /etc, /var/lib are its own; nothing needs protection."""

import contextlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weighbridge.engines import gvisor
from weighbridge.engines.client import INSTALL, await_answer
from weighbridge.engines.settings import Settings
from weighbridge.errors import Unavailable
from weighbridge.linux.process import environment_of, output
from weighbridge.model.command import Command
from weighbridge.model.host import SecludedHost
from weighbridge.model.site import RunContext

_SOCKET = "run/docker.sock"


@contextmanager
def hosted_engine(run: RunContext, host: SecludedHost, settings: Settings) -> Iterator[Any]:
    """The client of an engine that runs in the host as long as the context lasts."""
    if output(("dockerd", "--version")) is None:
        raise Unavailable(f"no Docker engine is installed: {INSTALL}")
    run.say(f"starting a Docker engine on host {host.name}")
    data = run.cache / "engines" / run.id / host.name
    data.mkdir(parents=True, exist_ok=True)
    settings_file = data / "daemon.json"
    settings_file.write_text(json.dumps(gvisor.registration()))
    # containerd writes to TMPDIR what it did when it was found hanging
    variables = (f"{key}={value}" for key, value in {**environment_of(run.id), "TMPDIR": "/run"}.items())
    argv = (
        "env", "-i", *variables,
        "dockerd", "--data-root", str(data), "--exec-root", "/run/docker-exec", "--host", f"unix:///{_SOCKET}",
        "--pidfile", "/run/docker.pid", "--config-file", str(settings_file), "--bridge", "none",
        "--exec-opt", "native.cgroupdriver=cgroupfs",
        "--shutdown-timeout", "5", "--log-level", "warn", "--dns", "127.0.0.1", *settings.arguments,
    )  # fmt: skip
    daemon = host.start(Command(argv))
    client = None
    try:
        client = await_answer(host.folder / _SOCKET, daemon)
        yield client
    finally:
        if client is not None and _has_containers(client):  # it would wait for each; the host is about to end anyway
            host.switch_off()
        daemon.stop()
        _discard(run, host)


def _has_containers(client: Any) -> bool:
    with contextlib.suppress(Exception):  # it may have gone
        return bool(client.api.containers(all=True))
    return False


def _discard(run: RunContext, host: SecludedHost) -> None:
    """Remove its folder. Where the host itself has gone, its mounts are taken apart a moment later."""
    data = run.cache / "engines" / run.id / host.name
    for _ in range(50):
        output(("rm", "-rf", "--one-file-system", str(data)), deadline_s=300)  # far faster than shutil's
        if not data.exists():
            break
        time.sleep(0.1)
    for folder in (data.parent, data.parent.parent):
        with contextlib.suppress(OSError):
            folder.rmdir()
