"""Settings of a whole engine, which only our own engine can have."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from weighbridge.engines import gvisor, runtimes
from weighbridge.model.command import SITE_ENV
from weighbridge.model.storage import DiskOptions

PROGRAM = "dockerd"


def daemon_file(is_there: Callable[[str], bool] = lambda path: True, runtimes_by_path: Sequence[str] = ()) -> str:
    """Return the daemon.json of the private engine, for settings that have no option.

    ``is_there`` returns whether the engine's host has a program at a path. ``runtimes_by_path`` are the OCI runtimes
    of the study. Images are kept by a storage driver, as in every engine before Docker 29, which chooses containerd's
    store.
    """
    table = {**gvisor.registration(is_there), **runtimes.registration(runtimes_by_path, is_there)}
    return json.dumps({**({"runtimes": table} if table else {}), "features": {"containerd-snapshotter": False}})


@dataclass(frozen=True, slots=True)
class Settings:
    """``userland_proxy``: docker-proxy runs for each published port. ``nat``: netfilter carries published ports.

    Without ``nat`` docker-proxy is the path of a published port (dockerd's ``--iptables=false``). ``disk`` holds all
    of its data; None: the host's own disk does. ``dockerd`` is the path of the program on this machine, with which
    those in its folder are used (containerd, runc, ...); None means the one in the host's PATH.
    """

    userland_proxy: bool = True
    nat: bool = True
    disk: DiskOptions | None = None
    dockerd: str | None = None

    @property
    def program(self) -> tuple[str, ...]:
        """Return the words that start the engine, before its arguments: its own folder comes first on its PATH."""
        if self.dockerd is None:
            return (PROGRAM,)
        return ("env", f"PATH={Path(self.dockerd).parent}:{SITE_ENV['PATH']}", self.dockerd)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return dockerd's arguments. Later versions look for docker-proxy in system folders before their PATH."""
        own = Path(self.dockerd).parent / "docker-proxy" if self.dockerd else None
        proxy = (f"--userland-proxy-path={own}",) if own is not None and own.is_file() else ()
        proxy = proxy if self.userland_proxy else ("--userland-proxy=false",)
        return (*proxy, *(() if self.nat else ("--iptables=false",)))

    @property
    def purpose(self) -> str:
        """Return a name for a host that is used with these settings; empty for the usual ones."""
        return self._joined("-", f"{PROGRAM}-{hashlib.sha256((self.dockerd or '').encode()).hexdigest()[:8]}")

    @property
    def words(self) -> str:
        """Return ``purpose`` in words, for a sentence."""
        return self._joined(", ", f"{PROGRAM}: {self.dockerd}")

    def _joined(self, between: str, program: str) -> str:
        parts = {
            program: self.dockerd is not None,
            "noproxy": not self.userland_proxy,
            "nonat": not self.nat,
            self.disk.purpose if self.disk else "": self.disk is not None,
        }
        return between.join(name for name, applies in parts.items() if applies)


USUAL = Settings()
