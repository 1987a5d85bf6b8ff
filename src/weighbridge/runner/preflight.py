"""Checks before a run what this machine must have, which plug-ins can be used, and which limits have no effect."""

import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.launcher import build
from weighbridge.linux import cgroup_files, delegation, firewalld, own_container, selinux, virtualisation
from weighbridge.linux.counters import memory_kib
from weighbridge.linux.cpus import cpus_online
from weighbridge.linux.kernel_files import read_here
from weighbridge.linux.memory_room import LESS, MEMINFO, mib, no_room, room_in
from weighbridge.linux.packages import install_here, join_installs
from weighbridge.linux.process import which
from weighbridge.model.environment import Environment, Needs
from weighbridge.model.plugin import Plugin, Readiness
from weighbridge.model.quantity import cpus_in
from weighbridge.model.storage import Storage
from weighbridge.model.study import Arm, Study
from weighbridge.model.userland import UserlandSpec
from weighbridge.model.userland_source import SourceOptions, UserlandSource
from weighbridge.model.workload import Workload
from weighbridge.runner import run_lock
from weighbridge.runner.estimate import clock, too_little_time
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK, MIN_BLOCKS_VERDICT
from weighbridge.study.contradictions import needs_of
from weighbridge.study.explained import not_switched
from weighbridge.userland.build import cache_folder, cached, cannot_build

_LEAST_FREE = 2 * 2**30
_OWN_PROGRAMS = "only this machine's programs (userland: host)"


def environment_readiness(environment: Environment) -> Readiness:
    """Return whether an environment can be opened and has a userland, or only this machine's programs (a caveat)."""
    state = ready(environment)
    if not state.ready or any(
        os.access(each / "about.json", os.R_OK) for each in (cache_folder() / "userlands").glob("*")
    ):
        return state
    lacking = cannot_build(UserlandSpec())
    if lacking and environment.shares_root:
        return Readiness(True, *lacking, caveat=_OWN_PROGRAMS)
    return Readiness(False, *lacking) if lacking else state


def userland_problem(spec: UserlandSpec, source: SourceOptions | None = None) -> Readiness | None:
    """Return why the userland is missing and cannot be built by this user; None if it is built or can be."""
    cache = cache_folder()
    try:
        if cached(spec, cache, source) is not None:
            return None
    except Unavailable as why:
        return Readiness(False, str(why), "see 'userland' in the study")
    lacking = cannot_build(spec, source)
    return Readiness(False, *lacking) if lacking else None


def require_userland(spec: UserlandSpec, source: SourceOptions | None = None) -> None:
    """Raise Unavailable if the userland is missing and cannot be built by this user."""
    if (problem := userland_problem(spec, source)) is not None:
        raise Unavailable(f"{problem.detail}: {problem.remedy}")


def warnings(study: Study, *, timed: bool = True) -> list[str]:
    """Return the settings of a study without effect here, and a time limit that is too short if it is ``timed``."""
    too_short = _too_short(study) if timed else []
    notes = [
        *_limits_without_effect(study),
        *_pins_of_nodes(study),
        *_unlike_the_baseline(study),
        *_limits_that_a_user_cannot_set(study),
        *too_short,
    ]
    if (inside := _own_container()) is not None:
        notes.append(": ".join(text for text in (inside.detail, inside.remedy) if text))
    return notes


def _pins_of_nodes(study: Study) -> list[str]:
    """Return a warning for pinned CPUs on cluster nodes, where kubelet chooses the CPUs."""
    if not any(host.traits.managed for host in study.file.hosts.values()):
        return []
    return [
        f"{key}: pin has no effect on nodes of a cluster, because kubelet chooses the CPUs of pods. Remove it"
        for key, own in study.all_resources.items()
        if own.pin is not None
    ]


def _unlike_the_baseline(study: Study) -> list[str]:
    """Return the facts that will differ between an environment and the baseline, besides what the study asks for."""
    facts = {}
    for arm in study.arms:
        needs = _needs(study, arm)[0]
        environment = registry.environments()[arm.kind]
        facts[arm.name] = dict(environment.foreseen_facts(arm.options, needs=needs))
        if environment.on_clusters == "privileged":
            for kind in needs.holding:
                facts[arm.name] |= registry.hosts()[kind].facts_of_native(needs)
    of_baseline = facts.get(study.file.baseline, {})
    return [
        f"environments: {name}: {fact} is {value}, but {of_baseline[fact]} in {study.file.baseline}, and this "
        "difference becomes part of the cost. Use the same 'quality' and limits in every environment"
        for name, own in facts.items()
        for fact, value in own.items()
        if value != of_baseline.get(fact, value)
    ]


def can_decide(blocks: int) -> bool:
    """Return whether a run of this many blocks can give a verdict."""
    return blocks >= MIN_BLOCKS_VERDICT


def too_few_blocks(study: Study) -> str:
    """Return why a study is refused because its blocks cannot give a verdict; "" if they can, or in a quick test."""
    repetitions = study.file.repetitions
    most = repetitions.blocks or repetitions.max
    if study.file.rehearsal or can_decide(most):
        return ""
    blocks = "1 round" if most == 1 else f"{most} rounds"
    return (
        f"repetitions: {blocks} cannot give a verdict. Use at least {MIN_BLOCKS_VERDICT}, or make it a quick test "
        "(--quick-test)"
    )


_CONTROLLERS = {"cpus": "cpu", "memory": "memory", "pin": "cpuset"}
"""Maps each limit of a study to the controller of control groups that sets it."""


def _limits_that_a_user_cannot_set(study: Study) -> list[str]:
    """Return warnings for limits that this user cannot set on sites that have a control group of Weighbridge."""
    grouped = [arm.name for arm in study.arms if registry.environments()[arm.kind].limited_by_host]
    every = [study.resources_of(name) for name in grouped]
    limits = [name for name in _CONTROLLERS if any(getattr(each, name) is not None for each in every)]
    on_this_machine = any(host.traits.this_machine for host in study.file.hosts.values())
    if not (limits and grouped and on_this_machine and os.geteuid() != 0):
        return []
    if why := delegation.lacking():
        what = f"resources: {', '.join(limits)}: the limit has no effect in {', '.join(grouped)}"
        return [f"{what}, because {why}. Try: {delegation.remedy()}"]
    delegated = delegation.controllers()
    if not (missing := [name for name in limits if _CONTROLLERS[name] not in delegated]):
        return []
    controllers = " ".join(_CONTROLLERS[name] for name in missing)
    return [
        f"resources: {', '.join(missing)}: the limit has no effect in {', '.join(grouped)}, because systemd does "
        f"not delegate {controllers} to this user. As root, add 'Delegate=cpu cpuset io memory pids' to "
        "user@.service (systemctl edit), and log in again"
    ]


def _too_short(study: Study) -> list[str]:
    if (short := too_little_time(study)) is None:
        return []
    blocks = study.file.repetitions.blocks or study.file.repetitions.min
    effect = (
        f"the run ends with fewer; below {MIN_BLOCKS_SIGNED_RANK} rounds verdicts are exploratory, and below "
        f"{MIN_BLOCKS_VERDICT} there are none"
    )
    return [
        f"repetitions: {clock(short[0])} is too short for {blocks} rounds, which need {clock(short[1])}: {effect}"
    ]


def _limits_without_effect(study: Study) -> list[str]:
    cpu_count, problems = len(cpus_online()), []
    if not any(host.traits.here for host in study.file.hosts.values()):
        return []  # the study uses other machines
    memory = memory_kib(Path(MEMINFO).read_text()).get("MemTotal", 0) << 10
    for key, own in study.all_resources.items():
        if own.cpus is not None and own.cpus > cpu_count:
            problems.append(f"{key}: cpus: {own.cpus:g} is more than the {cpu_count} of this machine")
        if own.memory is not None and own.memory > memory:
            problems.append(f"{key}: memory: {mib(own.memory)} is more than the {mib(memory)} of this machine")
    return [f"{text}, so the limit has no effect" for text in problems]


def missing_cpus(study: Study) -> list[str]:
    """Return the CPUs that a study names and that this machine does not have: the study cannot be run here."""
    online = cpus_online()
    return [
        f"{what}: this machine has no CPU {lacking[0]}: choose from {', '.join(map(str, online))}"
        for what, cpus in _pinned(study)
        if (lacking := sorted({*cpus_in(cpus)} - {*online}))
    ]


def _pinned(study: Study) -> Iterator[tuple[str, str]]:
    """Yield the lists of CPUs of this machine in a study, each with its key."""
    hosts = study.file.hosts
    for name, host in hosts.items():
        if host.own_cpus is not None:
            yield f"hosts: {name}: cpus", host.own_cpus
    for key, own in study.all_resources.items():
        for role, cpus in own.pin.items() if isinstance(own.pin, dict) else ():
            placed = study.client_hosts if role == "client" else (study.server_host,)
            if any(hosts[host].traits.here for host in placed):
                yield f"{key}: pin: {role}", cpus


def source_readiness(source: UserlandSource) -> Readiness:
    """Return whether this user can build a userland from a source, whatever a study asks for."""
    if (missing := lacking_here(source)) is not None:
        return missing
    lacking = source.cannot_build(None, UserlandSpec(), cache_folder())
    return Readiness(False, *lacking) if lacking else Readiness(True, source.summary)


def workload_readiness(workload: Workload) -> Readiness:
    """Return whether the userland of a workload is built or can be."""
    spec = workload.userland()
    if cached(spec, cache_folder()) is not None:
        return Readiness(True, "its root filesystem is built")
    problem = userland_problem(spec)
    if problem is not None and spec == UserlandSpec():  # it has no program of its own, and uses any userland's
        return Readiness(True, problem.detail, problem.remedy, _OWN_PROGRAMS)
    return problem or Readiness(True, "its root filesystem is built when the study first runs")


def checks() -> dict[str, Readiness]:
    """Return by name: root, control groups, CPUs, disk, SELinux and firewalld if active, and our container."""
    root = os.geteuid() == 0
    version = cgroup_files.version()
    cpus = len(cpus_online())
    return {
        "root": Readiness(root, "" if root else "only root can start a private Docker engine",
                          "" if root else "run as root"),
        "control groups": _control_groups(version),
        "CPUs": Readiness(cpus > 1, f"{cpus}" + ("" if cpus > 1 else ", shared by server and client"),
                          "" if cpus > 1 else "give the machine a second CPU"),
        "disk": _disk(cache_folder()),
        **_guards(),
        **({} if (inside := _own_container()) is None else {own_container.FACT: inside}),
    }  # fmt: skip


def _own_container() -> Readiness | None:
    """Return what a container around Weighbridge changes; None if Weighbridge does not run in a container."""
    if not (engine := own_container.engine()):
        return None
    detail = (
        f"Weighbridge runs in a {engine} container, so native programs run there, too: their files are in its "
        "layers, and its limits apply to them"
    )
    if not (options := own_container.missing_options(run_lock.ROOTS)):
        return Readiness(True, detail)
    return Readiness(
        False,
        f"{detail}; the container does not see the whole machine",
        f"start the container with {' '.join(options)}",
    )


def _control_groups(version: int) -> Readiness:
    """Return whether root or this user can limit native programs."""
    if not version:
        return Readiness(False, "no control groups are mounted", "mount -t cgroup2 none /sys/fs/cgroup")
    if why := delegation.lacking():
        return Readiness(
            False,
            f"version {version}; limits of native programs have no effect (reported as a confounder): {why}",
            delegation.remedy(),
        )
    whose = "" if os.geteuid() == 0 else ", in a systemd scope of this user"
    return Readiness(True, f"version {version}{whose}")


def _guards() -> dict[str, Readiness]:
    """Return the security systems that can refuse something to a site, if they are active."""
    guards = {}
    if selinux.state() == "enforcing":
        detail = f"enforcing, but not for containers with files of this machine ({selinux.WITHOUT_LABELS})"
        guards[selinux.FACT] = Readiness(True, detail)
    if firewalld.runs():
        detail = "running: its zones can block bridges and published ports; the run tests each path and reports that"
        guards[firewalld.FACT] = Readiness(True, detail)
    return guards


def _disk(cache: Path) -> Readiness:
    """Return whether userlands and images can be stored: the disk has room, and this user can write to the cache."""
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        return Readiness(False, f"this user cannot write to {existing}", "set WEIGHBRIDGE_CACHE to your own folder")
    free = shutil.disk_usage(existing).free
    if free <= _LEAST_FREE:
        detail = f"{free / 2**30:.1f} GiB free at {cache}"
        return Readiness(False, detail, "make room, or set WEIGHBRIDGE_CACHE to a larger disk")
    return Readiness(True, f"{free / 2**30:.1f} GiB free at {cache}")


def lacking_here(plugin: Plugin) -> Readiness | None:
    """Return what is missing here for a plug-in: its architecture, root or programs. None if nothing is."""
    architecture = platform.machine()
    if plugin.architectures and architecture not in plugin.architectures:
        names = " or ".join(plugin.architectures)
        return Readiness(
            False, f"it needs {names}, and this machine is {architecture}", "use a machine with that architecture"
        )
    if plugin.root_makes and os.geteuid() != 0:
        return Readiness(False, f"only root can create {plugin.root_makes}", "run as root")
    missing = [name for name in plugin.programs if which(name) is None]
    if not missing:
        return None
    detail = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
    return Readiness(False, detail, install_here(missing, plugin.installed_by))


def ready(plugin: Environment | Storage, options: Any | None = None, needs: Needs | None = None) -> Readiness:
    """Return whether an environment or storage can be used here, with these options and the study's ``needs``."""
    state = lacking_here(plugin) or _without_a_launcher(plugin)
    if state is None:
        state = plugin.ready(options, needs) if isinstance(plugin, Environment) else plugin.ready(options)
    if state.ready or not plugin.needs_virtualisation(options) or not (why := virtualisation.lacking()):
        return state
    if needs is not None and plugin.ready(options).ready:
        return state  # the study's needs are the obstacle
    return Readiness(False, why, virtualisation.ELSEWHERE)


def is_installation(remedy: str) -> bool:
    """Return whether a remedy is a command of this machine's package manager and nothing else."""
    return bool(remedy) and remedy == join_installs([remedy])


def most_helpful(remedies: Sequence[tuple[str, str]]) -> tuple[str, list[str]]:
    """Return the most helpful of (name, remedy), with the names it helps; installations of packages count as one."""
    helped: dict[str, list[str]] = {}
    install = join_installs(remedy for _, remedy in remedies if remedy == join_installs([remedy]))
    for name, remedy in remedies:
        helped.setdefault(install if remedy == join_installs([remedy]) else remedy, []).append(name)
    helped.pop("", None)
    best = min(helped, key=lambda remedy: (-len(helped[remedy]), remedy != install, len(remedy)), default="")
    return best, helped.get(best, [])


def hosts_readiness(study: Study) -> Mapping[str, Readiness]:
    """Return whether each host is ready. Weighbridge contacts no other machine before the study is approved."""
    room, readiness = room_in(Path(MEMINFO).read_text()), {}
    for name in dict.fromkeys((study.server_host, *study.client_hosts, *study.storage_hosts)):
        options = study.file.hosts[name]
        plugin = registry.hosts()[options.kind]
        unknown = not (study.approved or options.traits.here)
        readiness[name] = lacking_here(plugin) or (Readiness(True) if unknown else plugin.ready(options))
        if (
            options.memory_here
            and (why := no_room(options.memory_here, "this machine", room))
            and readiness[name].ready
        ):
            readiness[name] = Readiness(False, why, LESS)
        room.promised += options.memory_here
    return readiness


def admissions(study: Study) -> Mapping[str, Readiness]:
    """Return the environments that cannot have sites on hosts where another program starts everything.

    The hosts themselves report the reason. An environment without a known problem is omitted. Weighbridge does not
    contact hosts before the study is approved.
    """
    refused: dict[str, Readiness] = {}
    if not study.approved:
        return refused
    placed = {"server": (study.server_host,), "client": study.client_hosts}
    for name in dict.fromkeys(host for role in study.file.inside for host in placed[role]):
        options = study.file.hosts[name]
        plugin = registry.hosts()[options.kind]
        if not options.traits.managed or lacking_here(plugin) is not None:
            continue
        asked = {}
        for arm in study.arms:
            needs = _needs(study, arm)[0]
            environment = registry.environments()[arm.kind]
            if environment.on_clusters == "privileged":
                asked[arm.name] = plugin.makes_for_native(needs)
            else:
                asked[arm.name] = environment.makes(arm.options, needs=needs)
        admitted = plugin.admits(options, asked)
        refused |= {arm: state for arm, state in admitted.items() if not state.ready and arm not in refused}
    return refused


def ready_for(study: Study, arm: Arm) -> Readiness:
    """Return whether an environment can be opened here, with each client that the study measures it with."""
    plugin = registry.environments()[arm.kind]
    states = (ready(plugin, arm.options, needs) for needs in _needs(study, arm))
    first = next(states)
    return next((state for state in states if not state.ready), first) if first.ready else first


def ready_unapproved(study: Study, arm: Arm) -> Readiness:
    """Return what is known of an environment that names programs or files, before the user agrees to the study."""
    return registry.environments()[arm.kind].ready_unapproved(arm.options, _needs(study, arm)[0])


def _needs(study: Study, arm: Arm) -> list[Needs]:
    """Return the different requirements on an environment, of each client that the study measures it with."""
    different: list[Needs] = []
    for client in arm.clients or study.client_hosts:
        if (needs := needs_of(study.file, list(study.cells), client, arm)) not in different:
            different.append(needs)
    return different


def _without_a_launcher(plugin: Plugin) -> Readiness | None:
    lacking = build.cannot_build(cache_folder()) if plugin.launches else None
    return Readiness(False, *lacking) if lacking else None


def on_this_kernel(study: Study) -> Study:
    """Return the study without switching mechanisms that this kernel does not have; they become ``refused``.

    If the hosts of the sites have kernels of their own, the sites' facts show it later.
    """
    placed = {"server": (study.server_host,), "client": study.client_hosts}
    holding = [name for role in study.file.inside for name in placed[role]]
    if any(study.file.hosts[name].traits.own_kernel for name in holding):
        return study
    every = registry.mechanisms()
    explaining = dict.fromkeys(each.kind for each in study.mechanisms if not each.refused)
    reasons = {kind: every[kind].absent(read_here) for kind in explaining if kind in every}
    return not_switched(study, {kind: why for kind, why in reasons.items() if why})
