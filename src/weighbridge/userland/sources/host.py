"""This machine's own root file system: the programs that are installed here."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from weighbridge.errors import Unavailable
from weighbridge.model.source_options import SourceOptions
from weighbridge.model.userland import Userland, UserlandSpec
from weighbridge.model.userland_source import UserlandSource
from weighbridge.userland.products.root import packages_in


class HostOptions(SourceOptions):
    """It has no options."""

    kind: Literal["host"] = "host"


class HostRoot(UserlandSource):
    """Nothing is built: it is for native sites of this machine, since it is not packed for engines or others."""

    kind = "host"
    summary = "the programs that are installed on this machine, for native sites"
    options = HostOptions

    def existing(self, options: Any) -> Userland:
        """The root folder of this machine; its digest is that of the installed packages and their versions."""
        versions = packages_in(Path("/"))
        return Userland(
            hashlib.sha256(repr(sorted(versions.items())).encode()).hexdigest(), Path("/"), None, versions
        )

    def key(self, options: Any, spec: UserlandSpec) -> str:
        """That of what is installed."""
        return self.existing(options).digest[:16]

    def build(
        self, options: Any, spec: UserlandSpec, work: Path, cache: Path, say: Callable[[str], None]
    ) -> Mapping[str, str]:
        """It is never built."""
        raise Unavailable("this machine's own root file system is not packed")


PLUGIN = HostRoot()
