"""What the first process of a guest is told: the words that its source, init.c, reads. Pure."""

from collections.abc import Iterable, Sequence
from typing import Protocol


class Addressed(Protocol):
    """A network that a guest is on: its own address there, the mask, the gateway, and the MTU in bytes."""

    @property
    def own(self) -> str: ...  # noqa: D102

    @property
    def mask(self) -> str: ...  # noqa: D102

    @property
    def gateway(self) -> str: ...  # noqa: D102

    @property
    def mtu(self) -> int: ...  # noqa: D102


def words(
    name: str, modules: Iterable[str], disks: Sequence[str], network: Addressed | None, open_files: int
) -> tuple[str, ...]:
    """Return the first process's arguments. ``disks`` are devices: the root folder's and, where given, the data's."""
    arguments = ["--modules", ",".join(modules)]
    for what, device in zip(("--disk", "--data"), disks, strict=False):
        arguments += [what, device]
    if network is not None:
        arguments += ["--address", network.own, "--mask", network.mask, "--mtu", str(network.mtu)]
        if network.gateway:
            arguments += ["--gateway", network.gateway]
    return (*arguments, "--files", str(open_files), "--name", name)
