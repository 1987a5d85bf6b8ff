"""Estimates how long the set-up of a run takes: root filesystems, hosts, engines and sites."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from weighbridge import registry
from weighbridge.errors import Unavailable, UserlandError
from weighbridge.linux.cpus import cpus_online
from weighbridge.model.options import Options
from weighbridge.model.study import Arm, Role, Study
from weighbridge.runner.userlands import userland_of
from weighbridge.study.external import names_external
from weighbridge.userland.build import cache_folder, cached

_COMPILED_S = 20.0
"""Seconds to build a Maven or Go project of a root filesystem."""
_STUDY_S = 3.0
"""Seconds to begin a run, to probe the paths of its servers, and to write its report."""


def set_up_s(study: Study) -> float:
    """Return the expected seconds of a run in addition to its trials, with the present contents of the cache.

    Hosts and sites that do not depend on one another open at the same time. So the longest chain decides, or the sum
    if there are more chains than CPUs.
    """
    hosts = {name: study.file.hosts[name] for name in (study.server_host, *study.client_hosts, *study.storage_hosts)}
    kinds, cache = registry.hosts(), cache_folder()
    first_s = {name: kinds[each.kind].opening_s(each) for name, each in hosts.items()}
    chains_s = dict(_chains(study))
    opening_s = max(first_s.values(), default=0.0) + max(chains_s.values(), default=0.0)
    working_s = (sum(first_s.values()) + sum(chains_s.values())) / len(cpus_online())
    builds_s = _userlands_s(study) + _builds_s(study, cache)
    return _STUDY_S + builds_s + max(opening_s, working_s)


def _userlands_s(study: Study) -> float:
    """Return the seconds to build the root filesystems that are not in the cache."""
    spec, cache, total_s = userland_of(study), cache_folder(), 0.0
    for source in study.sources.values():
        if _waits_for_approval(study, source):
            continue
        try:
            missing = cached(spec, cache, source) is None
        except (Unavailable, UserlandError):  # the run reports it
            continue
        if missing:
            plugin = registry.userlands()["packages" if source is None else source.kind]
            total_s += plugin.build_s + _COMPILED_S * (len(spec.maven) + len(spec.golang))
    return total_s


def omits_unapproved(study: Study) -> bool:
    """Return whether `set_up_s` omits root filesystems, which are not read before the user approves their sources."""
    return any(_waits_for_approval(study, source) for source in study.sources.values())


def _waits_for_approval(study: Study, source: Options | None) -> bool:
    return not study.approved and names_external(source)


def _builds_s(study: Study, cache: Path) -> float:
    """Return the seconds to build the files of hosts and environments that are not in the cache."""
    hosts = {repr(each): registry.hosts()[each.kind].build_s(each, cache) for each in study.file.hosts.values()}
    arms = {arm.kind: registry.environments()[arm.kind].build_s(arm.options, cache) for arm in study.arms}
    return max(hosts.values(), default=0.0) + sum(arms.values())


def _chains(study: Study) -> Iterator[tuple[tuple[str, str, str], float]]:
    """Yield the seconds to open each host that is made for a purpose, with its engine and sites."""
    sites: Counter[tuple[str, str, str]] = Counter()
    for arm in study.arms:
        for (host, role), number in _sites(study, arm).items():
            plugin, traits = registry.environments()[arm.kind], study.file.hosts[host].own_traits
            purpose = plugin.purpose(arm.options, role) if traits.disposable else ""
            sites[host, purpose, arm.kind] += number
    at_once = len(cpus_online())
    for (host, purpose, kind), number in sites.items():
        options, plugin = study.file.hosts[host], registry.environments()[kind]
        host_kind = registry.hosts()[options.kind]
        own_s = host_kind.opening_s(options) if purpose else 0.0
        inside_s = plugin.engine_s + max(1.0, number / at_once) * plugin.opening_s
        yield (host, purpose, kind), own_s + host_kind.slowdown(options) * inside_s


def _sites(study: Study, arm: Arm) -> dict[tuple[str, Role], int]:
    """Return how many sites an environment opens for each role on a host."""
    numbers: dict[tuple[str, Role], int] = {}
    for cell in study.cells:
        if arm not in study.arms_of(cell):
            continue
        for role in registry.workloads()[cell.kind].roles(cell.options):
            host = (cell.client or study.client_hosts[0]) if role == "client" else study.server_host
            if role == "solo" or role in study.file.inside:
                numbers[host, role] = max(numbers.get((host, role), 0), cell.sites)
    return numbers
