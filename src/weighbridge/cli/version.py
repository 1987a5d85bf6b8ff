"""`weighbridge --version`: the version, and the digest of the launcher that times the programs."""

import platform
from importlib import import_module, metadata

from weighbridge.errors import Unavailable
from weighbridge.launcher import build
from weighbridge.user_cache import cache_folder


def version_text() -> str:
    """Return the version and, on a second line, the launcher's digest (which runs store) and its origin."""
    return f"weighbridge {_version()}\nlauncher {_launcher()}"


def print_version(*, as_json: bool) -> None:
    """Print the version."""
    if as_json:
        output, documents = map(import_module, ("weighbridge.cli.output", "weighbridge.cli.documents"))
        output.print_json(documents.VersionDocument(weighbridge=_version(), launcher=_launcher()))
    else:
        print(version_text())


def _version() -> str:
    return metadata.version("weighbridge")


def _launcher() -> str:
    if (program := build.prebuilt()) is not None:
        return f"{build.digest(program)} (built with this package, for {platform.machine()})"
    try:
        cache = cache_folder()
        if (program := build.cached(cache)) is not None:
            return f"{build.digest(program)} (compiled on this machine)"
        lacking = build.cannot_build(cache)
    except Unavailable as error:
        return f"not built: {error}"
    return f"not built: {': '.join(lacking)}" if lacking else "not built: the first run compiles it"
