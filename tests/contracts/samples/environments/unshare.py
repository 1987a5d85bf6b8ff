"""A sample: native in a network namespace of its own that leads nowhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from weighbridge.hosts.chroot import chroot_site
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs
from weighbridge.model.site import Site, SiteRequest


class UnshareOptions(EnvironmentOptions):
    """It has no options of its own."""


class Unshare(Environment):
    """What a network namespace alone costs."""

    kind = "unshared"
    summary = "native in a network namespace that leads nowhere"
    options = UnshareOptions
    mounts = frozenset({"folder"})
    storage = "directory"
    programs: ClassVar = ("unshare",)

    def check(self, options: Any, needs: Needs) -> list[str]:
        return ["its network leads nowhere"] if needs.network and needs.inside == {"server"} else []

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        with chroot_site(request, own_network=True) as site:
            yield site


PLUGIN = Unshare()
