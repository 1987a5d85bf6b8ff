"""This machine's own root filesystem with its installed programs."""

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.errors import Unavailable
from weighbridge.model.command import ProcessDefaults
from weighbridge.model.options import ABSOLUTE, External
from weighbridge.model.site import DATA, NO_START_FOLDERS, SITES_OWN
from weighbridge.model.userland import Userland, UserlandSpec
from weighbridge.model.userland_source import SourceOptions, UserlandSource
from weighbridge.userland.products.root import packages_in

_ROOT = Path("/")


class HostRootOptions(SourceOptions):
    """``folder`` is the working directory; each site writes to it in memory, so it does not change.

    Everything else of this machine is read-only, and /run is empty, as is /tmp unless it is ``folder``. ``env`` are
    variables of the programs, in addition to the few of every site.
    """

    kind: Literal["host"] = "host"
    folder: Annotated[
        Annotated[str, Field(min_length=1, pattern=r"^[^,:\\\n]*$"), ABSOLUTE] | None,
        Field(description="The working directory"),
        External.FILE,
    ] = None
    env: Annotated[dict[str, str], External.VARIABLE, Field(description="Environment variables of the programs")] = (
        Field(default_factory=dict)
    )


class HostRoot(UserlandSource):
    """The source without a build: sites of this machine use its files, natively and in Docker's containers."""

    kind = "host"
    summary = "this machine's installed programs, for environments on this machine"
    options = HostRootOptions
    packed = False

    def existing(self, options: Any) -> Userland:
        """Return the root folder of this machine, with a digest of the installed packages and their versions.

        The digest is empty if no package is known, for example without dpkg; digests of the programs then replace it.
        """
        versions = packages_in(_ROOT)
        digest = hashlib.sha256(repr(sorted(versions.items())).encode()).hexdigest() if versions else ""
        if options.folder in ("/", *NO_START_FOLDERS):
            raise Unavailable(f"userland: {options.folder} cannot be the working directory: use a folder inside it")
        if options.folder is not None and not Path(options.folder).is_dir():
            raise Unavailable(f"userland: there is no directory {options.folder}")
        process = ProcessDefaults(options.env, options.folder or "/")
        return Userland(digest, _ROOT, None, versions, process, options.folder or "")

    def lacks(self, options: Any, program: str) -> tuple[str, str] | None:
        """Return why a path has no file, unless it is in a folder that each site has separately."""
        folder = options.folder or "/"
        place = Path(os.path.normpath(Path(folder, program)))
        in_site = place.parts[1:2] and place.parts[1] in (*SITES_OWN, DATA.strip("/"))
        if place.exists() or (in_site and not (options.folder and place.is_relative_to(folder))):
            return None
        if program.startswith("/") or options.folder:
            return f"there is no {place}", "check the path"
        return f"there is no {place}, because programs start in /", "name a folder: userland: {kind: host, folder: .}"

    def key(self, options: Any, spec: UserlandSpec) -> str:
        """Return the beginning of the digest of the installed packages."""
        return self.existing(options).digest[:16]

    def build(
        self, options: Any, spec: UserlandSpec, work: Path, cache: Path, say: Callable[[str], None]
    ) -> Mapping[str, str]:
        """Raise Unavailable: it is never built."""
        raise Unavailable("this machine's own root filesystem is not packed")


PLUGIN = HostRoot()
