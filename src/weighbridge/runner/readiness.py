"""Whether a plug-in can be used here: its programs first, then what it says itself."""

from typing import Any

from weighbridge.launcher import build
from weighbridge.linux.process import which
from weighbridge.model.plugin import Environment, Plugin, Readiness
from weighbridge.model.storage import Storage
from weighbridge.userland.build import cache_folder


def missing_programs(plugin: Plugin) -> Readiness | None:
    """What is not installed of the programs that a plug-in starts here, and how to get it; None: nothing."""
    missing = {name: package for name, package in plugin.programs.items() if which(name) is None}
    if not missing:
        return None
    names, packages = " and ".join(missing), " ".join(dict.fromkeys(missing.values()))
    return Readiness(
        False, f"{names} {'is' if len(missing) == 1 else 'are'} not installed", f"apt-get install {packages}"
    )


def ready(plugin: Environment | Storage, options: Any | None = None) -> Readiness:
    """Whether an environment or a storage can be used here, with these options where some are given."""
    return missing_programs(plugin) or _without_a_launcher(plugin) or plugin.readiness(options)


def _without_a_launcher(plugin: Plugin) -> Readiness | None:
    lacking = build.cannot_build(cache_folder()) if plugin.launches else None
    return Readiness(False, *lacking) if lacking else None
