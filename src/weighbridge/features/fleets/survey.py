"""A survey of a fleet's machines and of their missing parts, before anything is measured."""

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
from weighbridge.linux.packages import missing_on
from weighbridge.linux.process import run
from weighbridge.model.address import grouped
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import MACHINE_ID, NODE, Host, RunContext
from weighbridge.model.host_kind import HostOptions
from weighbridge.model.names import RunId
from weighbridge.model.plugin import Readiness
from weighbridge.model.study import Resources, Study
from weighbridge.runner import run_lock
from weighbridge.runner.clean import sweep_and_forget
from weighbridge.runner.same_machine import boot_of
from weighbridge.runner.sites import limits_of
from weighbridge.user_cache import cache_folder

_AT_ONCE, _ANSWER_S, _LONGEST = 16, 60.0, 200
"""The number of machines surveyed in parallel; the seconds for the version of one; characters of a message."""
_SHARE = "install the same version there, or on storage that all nodes share"


@dataclass(frozen=True, slots=True)
class SurveyedMachine:
    """A machine's answers. ``lacks`` are the reasons why it cannot be measured, each part of a sentence.

    ``notes`` are parts that the study allows to skip there, and resources shared with others.
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
    """Open each machine as a host, and find the study's requirements that it does not meet. Nothing remains there.

    ``hosts`` maps names to how the machines are reached from here. ``fleet`` is the fleet's folder, if any: leftovers
    of a driver that was killed during a survey end with this one.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = [pool.submit(_ask, study, name, options, say, _id(fleet, name)) for name, options in hosts.items()]
        return _with_shared_kernels([each.result() for each in asked])


def with_weighbridge(
    machines: Sequence[SurveyedMachine], command: Callable[[str], Sequence[str]]
) -> list[SurveyedMachine]:
    """Return the machines on which runs are started, with the reasons why this Weighbridge cannot run there.

    ``command`` returns the command that starts ``weighbridge --version`` on a machine.
    """

    def asked(machine: SurveyedMachine) -> SurveyedMachine:
        obstacle = "" if machine.lacks else _other_weighbridge(run(Command(tuple(command(machine.name)), _ANSWER_S)))
        return replace(machine, lacks=(obstacle,)) if obstacle else machine

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [*pool.map(asked, machines)]


def _other_weighbridge(answer: Completed) -> str:
    """Return why a machine with this answer cannot be used; "" if it has this version."""
    here = metadata.version("weighbridge")
    if (match := re.search(r"^weighbridge (\S+)$", answer.text, re.MULTILINE)) is None:
        messages = [
            line for line in answer.stderr.decode(errors="replace").splitlines() if not line.startswith("srun: ")
        ]
        return f"Weighbridge cannot start there ({(messages or ['no message'])[-1][:_LONGEST]}): {_SHARE}"
    return "" if match[1] == here else f"its Weighbridge has version {match[1]}, but this one has {here}: {_SHARE}"


def _with_shared_kernels(machines: Sequence[SurveyedMachine]) -> list[SurveyedMachine]:
    """Return the machines with a note for those that share a kernel, as nodes of kind do."""
    by_kernel = grouped(machines, lambda machine: machine.boot)
    noted = []
    for machine in machines:
        others = [other.name for other in by_kernel[machine.boot] if machine.boot and other.name != machine.name]
        shared = f"runs on the same kernel as {', '.join(others[:3])}{' ...' * (len(others) > 3)}, so they share CPUs"
        noted.append(replace(machine, notes=(*machine.notes, shared)) if others else machine)
    return noted


def _id(fleet: str, name: str) -> RunId:
    return RunId(hashlib.sha256(f"{fleet}\0{name}".encode()).hexdigest()[:12]) if fleet else RunId.new()


def _ask(study: Study, name: str, options: HostOptions, say: Callable[[str], None], run_id: RunId) -> SurveyedMachine:
    """Open a machine, survey it and close it, in one thread, because its programs end with the starting thread.

    Each is a separate run: in a cluster, one object owns a run's objects.
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
                answers = _about(study, name, host)
                if not options.traits.managed:
                    answers = replace(answers, notes=(*answers.notes, *_limits_without_effect(study, host)))
            left = killed
        except (Unavailable, EnvironmentLost) as error:
            return SurveyedMachine(name, lacks=(_without(name, str(error)),))
        finally:
            if left:
                sweep_and_forget(run_id)
            else:
                run_lock.forget(run_id)
            say(name)
    return answers


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
        if arm.aa_of is not None or host.this_machine:
            continue
        plugin = registry.environments()[arm.kind]
        why = missing_on(host, plugin.host_programs)
        state = Readiness(False, why) if why else plugin.ready_on(arm.options, host)
        if not state.ready:
            (notes if arm.optional else lacks).append(f"{arm.name}: {_without(name, state.detail)}")
    with contextlib.suppress(OSError):
        return SurveyedMachine(
            name, facts.get(NODE, ""), facts.get(MACHINE_ID, ""), boot_of(host), tuple(lacks), tuple(notes)
        )
    return SurveyedMachine(name, lacks=tuple(lacks), notes=tuple(notes))


def _limits_without_effect(study: Study, host: Host) -> list[str]:
    """Return which of the study's limits have no effect there, and why: without root, they are tried on a group."""
    if host.root:
        return []
    environments: dict[tuple[str, str], list[str]] = {}
    for arm in study.arms:
        if arm.aa_of is None and registry.environments()[arm.kind].limited_by_host:
            for limit, reason in _refused_limits(study.resources_of(arm.name), host).items():
                environments.setdefault((limit, _without(host.name, reason)), []).append(arm.name)
    limits: dict[tuple[str, str], list[str]] = {}
    for (limit, reason), names in environments.items():
        limits.setdefault((", ".join(names), reason), []).append(limit)
    return [
        f"the limit of {', '.join(parts)} has no effect in {names}: {reason}"
        for (names, reason), parts in limits.items()
    ]


def _refused_limits(resources: Resources, host: Host) -> Mapping[str, str]:
    limits = limits_of(resources, "server", host)
    asked = {"cpus": limits.cpus, "memory": limits.memory, "pin": limits.cpuset}
    if all(value is None for value in asked.values()):
        return {}
    try:
        group = host.group("survey")
    except Unavailable as error:
        return {name: str(error) for name, value in asked.items() if value is not None}
    try:
        return group.limit(limits)
    finally:
        group.remove()


def _without(name: str, reason: str) -> str:
    """Return a reason without the host's name, which already precedes all of its reasons."""
    return reason.removeprefix(f"host {name} ").removeprefix(f"({name}): ").removeprefix(f"host {name}: ")


def notes_of(machines: Sequence[SurveyedMachine]) -> list[str]:
    """Return the notes of these machines, each sentence once with all of its machines."""
    names: dict[str, list[str]] = {}
    for machine in machines:
        for note in machine.notes:
            names.setdefault(note, []).append(machine.name)
    return [f"{', '.join(machine_names)}: {note}" for note, machine_names in names.items()]


def refusals(machines: Sequence[SurveyedMachine]) -> list[str]:
    """Return why a fleet of these machines is refused: missing requirements, and one machine under two names."""
    lacking = grouped((machine for machine in machines if machine.lacks), lambda machine: "; ".join(machine.lacks))
    reasons = [
        f"{', '.join(machine.name for machine in group)}{'' if reason.startswith('(') else ':'} {reason}"
        for reason, group in lacking.items()
    ]
    known: dict[tuple[str, str], str] = {}
    for machine in machines:
        if not machine.machine_id:
            continue
        first = known.setdefault((machine.machine_id, machine.boot), machine.name)
        if first != machine.name:
            reasons.append(f"{first} and {machine.name} are two names for one machine: remove one of them")
    return reasons


def require_machines(machines: Sequence[SurveyedMachine]) -> None:
    """Raise Unavailable with all `refusals` together."""
    if reasons := refusals(machines):
        raise Unavailable("; ".join(reasons))
