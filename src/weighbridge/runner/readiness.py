"""Whether a plug-in can be used here: its architecture and programs first, then what it says itself."""

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weighbridge import registry
from weighbridge.launcher import build
from weighbridge.linux.memory_room import LESS, MEMINFO, no_room, room_in
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import which
from weighbridge.model.environment import Environment
from weighbridge.model.plugin import Plugin, Readiness
from weighbridge.model.storage import Storage
from weighbridge.model.study import Arm, Study
from weighbridge.study.contradictions import needs_of
from weighbridge.userland.build import cache_folder


def lacking_here(plugin: Plugin) -> Readiness | None:
    """What this machine lacks for a plug-in: its architecture, programs that it starts here. None: nothing."""
    architecture = platform.machine()
    if plugin.architectures and architecture not in plugin.architectures:
        names = " or ".join(plugin.architectures)
        return Readiness(False, f"it is for {names} alone, and this machine is {architecture}", f"use one of {names}")
    missing = [name for name in plugin.programs if which(name) is None]
    if not missing:
        return None
    told = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
    return Readiness(False, told, install_here(missing, plugin.installed_by))


def ready(plugin: Environment | Storage, options: Any | None = None) -> Readiness:
    """Whether an environment or a storage can be used here, with these options where some are given."""
    return lacking_here(plugin) or _without_a_launcher(plugin) or plugin.readiness(options)


def hosts_readiness(study: Study) -> Mapping[str, Readiness]:
    """For each host that a role or storage of the study is on: whether it can be had, as far as is known here."""
    room, found = room_in(Path(MEMINFO).read_text()), {}
    for name in dict.fromkeys((study.server_host, *study.client_hosts, *study.storage_hosts)):
        options = study.file.hosts[name]
        plugin = registry.hosts()[options.kind]
        found[name] = lacking_here(plugin) or plugin.readiness(options)
        if options.memory_here and (why := no_room(options.memory_here, "this machine", room)) and found[name].ready:
            found[name] = Readiness(False, why, LESS)
        room.promised += options.memory_here
    return found


def unmet(study: Study, arm: Arm) -> Readiness | None:
    """What this machine lacks of what an environment takes in this study; None where nothing is known to be."""
    plugin = registry.environments()[arm.kind]
    for client in arm.clients or study.client_hosts:
        if (lacking := plugin.unmet(arm.options, needs=needs_of(study.file, list(study.cells), client))) is not None:
            return lacking
    return None


def _without_a_launcher(plugin: Plugin) -> Readiness | None:
    lacking = build.cannot_build(cache_folder()) if plugin.launches else None
    return Readiness(False, *lacking) if lacking else None
