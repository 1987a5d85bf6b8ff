"""A sample: native in what says of itself that it is a guest under emulation."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import Field

from weighbridge.hosts.chroot import chroot_site
from weighbridge.linux.deletion import OwnFolder, remove_trees
from weighbridge.model.cleanup import Cleanup, Leftover, OrphanedRun, RunFolders
from weighbridge.model.environment import Environment, EnvironmentOptions
from weighbridge.model.isolation import Layer
from weighbridge.model.site import Site, SiteRequest


class EmulatorOptions(EnvironmentOptions):
    """``hardware``: with the support of the processor, which nobody has tried."""

    hardware: Annotated[bool, Field(description="With the support of the processor")] = False


class Snapshots(Cleanup):
    """The folder beside the data of runs in which an emulator would keep the memory of one."""

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        for folder in folders.data.parent.glob("snapshots/*"):
            yield Leftover(folder.name, "snapshot", str(folder))

    def remove(self, run: OrphanedRun) -> None:
        remove_trees(OwnFolder.of(run.data.parents[1] / "snapshots", run.id))


class Emulator(Environment):
    """It translates nothing: what is native inside is native."""

    kind = "emulator"
    summary = "native, but said to be a guest under emulation"
    options = EmulatorOptions
    mounts = frozenset({"folder"})
    storage = "directory"
    cleanup = (Snapshots(),)

    def unverified(self, options: Any | None = None) -> str:
        return "no processor with such support was there" if options is not None and options.hardware else ""

    def variants(self) -> dict[str, Any]:
        return {"emulator (hardware)": EmulatorOptions(hardware=True)}

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        with chroot_site(request) as site:
            site.layers += (Layer("Sample, emulator", emulated=not options.hardware),)
            yield site


PLUGIN = Emulator()
