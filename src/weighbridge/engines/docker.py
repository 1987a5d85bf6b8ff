"""The Docker engine of a host: the user's if one answers, else our own for the length of the run."""

import contextlib
import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from weighbridge.engines.client import ask_by, client_from_environment, client_of, quietly, readiness
from weighbridge.engines.hosted import hosted_engine
from weighbridge.engines.labelled import LABEL, remove_labelled
from weighbridge.engines.layers import (
    executable,
    file_layer,
    folder_as_layer,
    image_archive,
    lower_layer,
    random_files,
)
from weighbridge.engines.private import private_engine, program_readiness
from weighbridge.engines.settings import PROGRAM, USUAL, Settings
from weighbridge.engines.shared_root import bare_layer
from weighbridge.errors import Unavailable
from weighbridge.launcher import build
from weighbridge.linux import cancellation, delegation
from weighbridge.linux.cgroup_files import TOP
from weighbridge.linux.cgroups import Cgroup
from weighbridge.linux.slices import slice_of
from weighbridge.model.host import Host, RunContext
from weighbridge.model.names import GroupName
from weighbridge.model.once import Once
from weighbridge.model.setup import SetupStep
from weighbridge.model.userland import Userland

_CHUNK = 2**20
LAUNCHER = "/weighbridge-launcher"
"""The path of the first process of containers in their image."""


class Engine:
    """An engine that answers, with the images and networks that this run made in it.

    ``private`` says that it is ours. ``settings`` are what it was started with; of the user's they are not known,
    and taken for the usual ones.
    """

    def __init__(self, client: Any, run: RunContext, host: Host, settings: Settings, *, private: bool) -> None:
        self.client = client
        self.host = host
        self.settings = settings
        self.private = private
        self.disposable = private and host.capabilities.disposable is not None
        """Whether it and all that is in it end with its host: nothing has to be removed one by one."""
        self._run = run
        self._images = Once()
        self.runtimes = Once()
        """The OCI runtimes that its containers have, with their facts, by the study's names."""
        self.layered = False
        """Whether a layer of its images is an unchanged file system of the host."""
        self._replaced: set[str] = set()
        """The folders of layers in whose place a folder of the host is mounted."""
        about = client.version()  # the engine starts its programs for it: seconds on an emulated CPU
        self.version: str = about.get("Version", "?")
        parts = {str(part.get("Name")): str(part.get("Version")) for part in about.get("Components") or ()}
        own = {} if settings.dockerd is None else {PROGRAM: settings.dockerd}
        self.programs: dict[str, str] = {name: parts[name] for name in ("containerd", "runc") if name in parts} | own
        """Facts: the reported versions of its programs, and its own file if a study names it."""
        self._architecture: str = about.get("Arch", "")

    @functools.cached_property
    def cgroup_parent(self) -> str | None:
        """The control group of containers, or the slice of systemd; None means the engine's own choice.

        If the engine allows it, this is the group of native programs or a sibling. Both then compete for CPUs at the
        same place in the tree, under the limits of the same groups. By default an engine puts containers into
        ``docker`` or ``system.slice``.
        """
        if self.private:
            return f"/{TOP}/{self._run.id}"
        if self.rootless or not self.host.this_machine:
            return None
        by_systemd = self._system.get("CgroupDriver") == "systemd"
        if os.geteuid() != 0:
            return delegation.user_slice() if by_systemd and self._system.get("CgroupVersion") == "2" else None
        if by_systemd:
            return slice_of(self._run.id)
        with contextlib.suppress(Unavailable):  # it is made here, so that what it changes above it is taken back
            return f"/{TOP}/{Cgroup(GroupName(self._run.id)).create().name}"
        return None

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels that mark all objects of this run."""
        return {LABEL: self._run.id}

    @property
    def cli_options(self) -> tuple[str, ...]:
        """Return the options with which the command ``docker`` on its host asks this engine and no other."""
        adapter = getattr(self.client.api, "_custom_adapter", None)  # the SDK names no address of a socket
        socket = getattr(adapter, "socket_path", "") if self.host.this_machine else ""
        return ("--host", f"unix://{socket}") if socket else ()

    @functools.cached_property
    def rootless(self) -> bool:
        """Whether the engine is rootless: root of its containers is the user who started it."""
        return "name=rootless" in (self._system.get("SecurityOptions") or ())

    @functools.cached_property
    def _system(self) -> Mapping[str, Any]:
        """Return the constant information about the engine and its machine, asked once."""
        about: Mapping[str, Any] = self.client.info()
        return about

    def image(self, userland: Userland, files: int = 0) -> str:
        """Return the id of the userland's image, imported at first use.

        ``files`` are the bytes of additional files in it (`weighbridge.engines.layers.random_files`).
        """
        return self._images.get((userland.digest, files), lambda: self._imported(userland, files))

    def _imported(self, userland: Userland, files: int) -> str:
        tag = f"weighbridge:{self._run.id}-{userland.digest[:12]}" + (f"-{files}" if files else "")
        program = build.ensure(self._run.cache, self._run.say).read_bytes()
        layer = self.host.capabilities.image_layer if userland.tar is not None else None
        with self._run.during(SetupStep("image", self.host.name)):
            if userland.of_this_machine:
                folders = bare_layer(userland.root, LAUNCHER, program)
                self._import(tag, itertools.chain(random_files(files), [folders]))
            elif layer is None or not self._layer(tag, layer(userland), userland, program, files):
                self._run.say(f"importing the root filesystem into Docker on host {self.host.name}")
                with userland.archive().open("rb") as data:
                    pieces = iter(partial(_next_piece, data), b"")
                    launcher = executable(LAUNCHER, program)
                    self._import(tag, itertools.chain([launcher], random_files(files), pieces))
        return str(self.client.images.get(tag).id)

    def _import(self, tag: str, pieces: Iterable[bytes]) -> None:
        """Make an image with one layer, from the pieces of its archive, which the engine unpacks."""
        repository, _, version = tag.partition(":")
        self.client.api.import_image_from_stream(
            iter(pieces),  # a file object would get two contradicting headers
            repository=repository,
            tag=version,
            changes=[f"LABEL {LABEL}={self._run.id}"],
        )

    def _layer(self, tag: str, folder: Path, userland: Userland, program: bytes, files: int) -> bool:
        """Make an image whose lower layer is a folder of the host; return whether the engine can have that."""
        stands = file_layer(f"userland-{userland.digest}", b"")  # no two userlands have a layer in common
        upper = b"".join([*random_files(files), file_layer(LAUNCHER, program)])
        self.client.images.load(image_archive(tag, self.labels, self._architecture, (stands, upper)))
        if (lower := lower_layer(self.client.images.get(tag))) is None:
            return False
        if lower not in self._replaced:  # images with different files have this layer in common
            folder_as_layer(self.host, lower, str(folder))
            self._replaced.add(lower)
        self.layered = True
        return True

    @contextmanager
    def volume(self, name: str, options: Mapping[str, str] | None = None) -> Iterator[str]:
        """Yield a volume of the local driver for the site ``name``, removed at the end; new and empty without
        options.
        """
        own = f"weighbridge-{self._run.id}-{name}"
        volume = self.client.volumes.create(own, driver_opts=dict(options or {}), labels=self.labels)
        if (volume.attrs.get("Labels") or {}).get(LABEL) != self._run.id:
            raise Unavailable(f"the engine already has a volume {own} that this run did not create: remove it")
        try:
            yield str(volume.name)
        finally:
            quietly(volume.remove, force=True)

    def remove_all(self) -> None:
        """Remove every container, network and image of this run."""
        remove_labelled(ask_by(self.client), self._run.id)


def _next_piece(data: IO[bytes]) -> bytes:
    cancellation.check()  # an import can need minutes
    return data.read(_CHUNK)


def engine_of(run: RunContext, host: Host, settings: Settings = USUAL) -> Engine:
    """Return the engine of a host, the same for the whole run. Raises Unavailable if it cannot have the settings."""
    host_engine = run.share(f"docker {host.name}", lambda: engine(run, host, settings))
    if host_engine.settings != settings:
        raise Unavailable(
            f"one engine cannot run with and without '{host_engine.settings.words or settings.words}': use hosts of "
            "kind testbed, or write two studies"
        )
    return host_engine


@contextmanager
def engine(run: RunContext, host: Host, settings: Settings = USUAL) -> Iterator[Engine]:
    """Return an engine on a host. The run's objects in it are removed at the end; a private engine is stopped."""
    has = host.capabilities
    if has.disposable is not None:
        with hosted_engine(run, has.disposable, settings) as client:
            yield from _using(Engine(client, run, host, settings, private=True))
        return
    client = client_from_environment() if has.engine is None else client_of(has.engine.engine_url())
    if client is not None:
        if settings != USUAL:
            raise Unavailable(
                f"'{settings.words}' changes a whole engine, and this run did not start the engine on host "
                f"{host.name}: use hosts of kind testbed, or stop that engine"
            )
        yield from _using(Engine(client, run, host, settings, private=False))
        return
    state = readiness() if settings.dockerd is None else program_readiness(settings.dockerd)
    if not state.ready:
        raise Unavailable(f"{state.detail}: {state.remedy}")
    with private_engine(run, host, settings) as client:
        yield from _using(Engine(client, run, host, settings, private=True))


def _using(engine: Engine) -> Iterator[Engine]:
    try:
        yield engine
    finally:
        if not engine.disposable:
            with contextlib.suppress(Exception):
                engine.remove_all()
        with contextlib.suppress(Exception):
            engine.client.close()
