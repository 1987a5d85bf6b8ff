"""The arguments of a guest's first process, as its source init.c reads them. Pure."""

from collections.abc import Iterable, Sequence
from typing import Protocol


class Addressed(Protocol):
    """A network of a guest: its own address there, the mask, the gateway, and the MTU in bytes."""

    @property
    def guest_address(self) -> str: ...  # noqa: D102

    @property
    def mask(self) -> str: ...  # noqa: D102

    @property
    def gateway(self) -> str: ...  # noqa: D102

    @property
    def mtu(self) -> int: ...  # noqa: D102


def words(
    name: str, modules: Iterable[str], disks: Sequence[str], network: Addressed | None, open_files: int
) -> tuple[str, ...]:
    """Return the first process's arguments. ``disks`` are the devices of the root folder and, optionally, the
    data."""
    arguments = ["--modules", ",".join(modules)]
    for option, device in zip(("--disk", "--data"), disks, strict=False):
        arguments += [option, device]
    if network is not None:
        arguments += ["--address", network.guest_address, "--mask", network.mask, "--mtu", str(network.mtu)]
        if network.gateway:
            arguments += ["--gateway", network.gateway]
    return (*arguments, "--files", str(open_files), "--name", name)
