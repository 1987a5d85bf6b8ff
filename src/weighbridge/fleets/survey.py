"""What the machines of a fleet are and what each lacks, asked of all at once before anything is measured."""

import contextlib
import hashlib
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib import metadata

from weighbridge import registry
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.linux.process import run
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import MACHINE_ID, NODE, Host, RunContext
from weighbridge.model.host_kind import HostOptions
from weighbridge.model.names import RunId
from weighbridge.model.study import Resources, Study
from weighbridge.runner import run_lock
from weighbridge.runner.clean import sweep_and_forget
from weighbridge.runner.same_machine import boot_of
from weighbridge.runner.sites import limits_of
from weighbridge.user_cache import cache_folder

_AT_ONCE, _ANSWER_S, _LONGEST = 16, 60.0, 200
"""Machines that are asked at the same time; how long one may take to tell its Weighbridge."""
_SHARE = "install the same version there, or on storage that all nodes share"


@dataclass(frozen=True, slots=True)
class SurveyedMachine:
    """What a machine said of itself. ``lacks``: why it cannot be measured, a part of a sentence each.

    ``notes``: what is left out there, as the study allows, and what it shares with others.
    """

    name: str
    node: str = ""
    machine_id: str = ""
    boot: str = ""
    lacks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def survey(
    study: Study, hosts: Mapping[str, HostOptions], say: Callable[[str], None], fleet: str = ""
) -> list[SurveyedMachine]:
    """Open each machine as a host, and see what it lacks of what the study takes. Nothing stays there.

    ``hosts``: by the machine's name how it is reached from here. ``fleet``: its folder, where it has one: what was
    left by a driver that was killed while it asked goes with this survey.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = [pool.submit(_ask, study, name, options, say, _id(fleet, name)) for name, options in hosts.items()]
        return _with_shared_kernels([each.result() for each in asked])


def with_weighbridge(
    machines: Sequence[SurveyedMachine], command: Callable[[str], Sequence[str]]
) -> list[SurveyedMachine]:
    """Return the machines, where runs are started, with what each lacks of this Weighbridge.

    ``command``: by its name what starts ``weighbridge --version`` on one.
    """

    def asked(machine: SurveyedMachine) -> SurveyedMachine:
        why = "" if machine.lacks else _other_weighbridge(run(Command(tuple(command(machine.name)), _ANSWER_S)))
        return replace(machine, lacks=(why,)) if why else machine

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [*pool.map(asked, machines)]


def _other_weighbridge(answer: Completed) -> str:
    """Return what a machine lacks whose Weighbridge answered so; "" where it has this version."""
    here = metadata.version("weighbridge")
    if (match := re.search(r"^weighbridge (\S+)$", answer.text, re.MULTILINE)) is None:
        said = [line for line in answer.stderr.decode(errors="replace").splitlines() if not line.startswith("srun: ")]
        return f"Weighbridge cannot start there ({(said or ['no message'])[-1][:_LONGEST]}): {_SHARE}"
    return "" if match[1] == here else f"its Weighbridge has version {match[1]}, but this one has {here}: {_SHARE}"


def _with_shared_kernels(machines: Sequence[SurveyedMachine]) -> list[SurveyedMachine]:
    """Note of machines that have one kernel that they are on one machine, as nodes of kind are."""
    on_kernel: dict[str, list[str]] = {}
    for each in machines:
        if each.boot:
            on_kernel.setdefault(each.boot, []).append(each.name)
    noted = []
    for each in machines:
        others = [name for name in on_kernel.get(each.boot, ()) if name != each.name]
        shared = f"runs on the same kernel as {', '.join(others[:3])}{' ...' * (len(others) > 3)}, so they share CPUs"
        noted.append(replace(each, notes=(*each.notes, shared)) if others else each)
    return noted


def _id(fleet: str, name: str) -> RunId:
    """Return the id under which a machine is asked: of one fleet always the same."""
    return RunId(hashlib.sha256(f"{fleet}\0{name}".encode()).hexdigest()[:12]) if fleet else RunId.new()


def _ask(study: Study, name: str, options: HostOptions, say: Callable[[str], None], run_id: RunId) -> SurveyedMachine:
    """Open a machine, ask it and close it, all in one thread: programs that reach it end with who started them.

    Each is a run of its own: in a cluster one object owns what a run has made.
    """
    killed = run_id in run_lock.known_runs()
    left = True
    with run_lock.lock_run(run_id, "clean") as folder:
        if folder is None:
            return SurveyedMachine(name, lacks=("another process of this fleet is checking it: wait until it ends",))
        try:
            with ExitStack() as stack:
                context = RunContext(run_id, folder, cache_folder(), stack)
                host = stack.enter_context(registry.hosts()[options.kind].open(name, options, context, (options,)))
                about = _about(study, name, host)
                if not options.traits.managed:
                    about = replace(about, notes=(*about.notes, *_limits_without_effect(study, host)))
            left = killed
        except (Unavailable, EnvironmentLost) as why:
            return SurveyedMachine(name, lacks=(_without(name, str(why)),))
        finally:
            if left:
                sweep_and_forget(run_id)
            else:
                run_lock.forget(run_id)
            say(name)
    return about


def _about(study: Study, name: str, host: Host) -> SurveyedMachine:
    facts = host.facts()
    lacks: list[str] = []
    notes: list[str] = []
    theirs = facts.get("architecture", platform.machine())
    if theirs != platform.machine():
        lacks.append(
            f"it is {theirs}, but its root filesystems come from this machine, which is {platform.machine()}"
        )
    for arm in study.arms:
        if arm.aa_of is None and (why := registry.environments()[arm.kind].lacking_on(arm.options, host)):
            (notes if arm.optional else lacks).append(f"{arm.name}: {_without(name, why)}")
    with contextlib.suppress(OSError):
        return SurveyedMachine(
            name, facts.get(NODE, ""), facts.get(MACHINE_ID, ""), boot_of(host), tuple(lacks), tuple(notes)
        )
    return SurveyedMachine(name, lacks=tuple(lacks), notes=tuple(notes))


def _limits_without_effect(study: Study, host: Host) -> list[str]:
    """Which of the study's limits have no effect there, and why: a user who is not root tries them on a group."""
    if host.root:
        return []
    environments: dict[tuple[str, str], list[str]] = {}
    for arm in study.arms:
        if arm.aa_of is None and registry.environments()[arm.kind].limited_by_host:
            for limit, why in _refused_limits(study.resources_of(arm.name), host).items():
                environments.setdefault((limit, _without(host.name, why)), []).append(arm.name)
    limits: dict[tuple[str, str], list[str]] = {}
    for (limit, why), names in environments.items():
        limits.setdefault((", ".join(names), why), []).append(limit)
    return [f"the limit of {', '.join(of)} has no effect in {names}: {why}" for (names, why), of in limits.items()]


def _refused_limits(resources: Resources, host: Host) -> Mapping[str, str]:
    limits = limits_of(resources, "server", host)
    asked = {"cpus": limits.cpus, "memory": limits.memory, "pin": limits.cpuset}
    if all(value is None for value in asked.values()):
        return {}
    try:
        group = host.group("survey")
    except Unavailable as why:
        return {name: str(why) for name, value in asked.items() if value is not None}
    try:
        return group.limit(limits)
    finally:
        group.remove()


def _without(name: str, why: str) -> str:
    """Return a reason without the host's name, which stands before all of its reasons."""
    return why.removeprefix(f"host {name} ").removeprefix(f"({name}): ").removeprefix(f"host {name}: ")


def notes_of(machines: Sequence[SurveyedMachine]) -> list[str]:
    """Return what is noted of these machines, each sentence once with all machines that it is true of."""
    names: dict[str, list[str]] = {}
    for each in machines:
        for note in each.notes:
            names.setdefault(note, []).append(each.name)
    return [f"{', '.join(of)}: {note}" for note, of in names.items()]


def refusals(machines: Sequence[SurveyedMachine]) -> list[str]:
    """Return why a fleet of these machines is refused: what each lacks, and which are one under two names."""
    sentences: dict[str, list[str]] = {}
    for each in machines:
        if each.lacks:
            sentences.setdefault("; ".join(each.lacks), []).append(each.name)
    reasons = [f"{', '.join(names)}{'' if why.startswith('(') else ':'} {why}" for why, names in sentences.items()]
    known: dict[tuple[str, str], str] = {}
    for each in machines:
        if not each.machine_id:
            continue
        first = known.setdefault((each.machine_id, each.boot), each.name)
        if first != each.name:
            reasons.append(f"{first} and {each.name} are two names for one machine: remove one of them")
    return reasons


def require_machines(machines: Sequence[SurveyedMachine]) -> None:
    """Raise Unavailable that tells all `refusals` together."""
    if reasons := refusals(machines):
        raise Unavailable("; ".join(reasons))
