"""What the machines of a fleet are and what each lacks, asked of all at once before anything is measured."""

import contextlib
import platform
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weighbridge import registry
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.model.host import MACHINE_ID, NODE, Host, RunContext
from weighbridge.model.host_kind import HostOptions
from weighbridge.model.study import Study
from weighbridge.runner import run_lock
from weighbridge.runner.clean import sweep_and_forget
from weighbridge.runner.same_machine import boot_of
from weighbridge.user_cache import cache_folder

_AT_ONCE = 16
"""Machines that are asked at the same time."""


@dataclass(frozen=True, slots=True)
class SurveyedMachine:
    """What a machine said of itself. ``lacks``: why it cannot be measured, a part of a sentence each.

    ``notes``: what is left out there, as the study allows.
    """

    name: str
    node: str = ""
    machine_id: str = ""
    boot: str = ""
    lacks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def survey(study: Study, hosts: Mapping[str, Mapping[str, Any]], say: Callable[[str], None]) -> list[SurveyedMachine]:
    """Open each machine as a host, and see what it lacks of what the study takes. Nothing stays there.

    ``hosts``: by the machine's name how it is reached from here.
    """
    models = {kind: each.options for kind, each in registry.hosts().items()}
    run_id = secrets.token_hex(6)
    with run_lock.lock_run(run_id, "clean") as folder:
        assert folder is not None  # nobody else has this id
        try:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                asked = [
                    pool.submit(_ask, study, name, models[host["kind"]].model_validate(host), (run_id, folder), say)
                    for name, host in hosts.items()
                ]
                return [each.result() for each in asked]
        finally:
            sweep_and_forget(run_id)


def _ask(
    study: Study, name: str, options: HostOptions, run: tuple[str, Path], say: Callable[[str], None]
) -> SurveyedMachine:
    """Open a machine, ask it and close it, all in one thread: programs that reach it end with who started them."""
    with ExitStack() as stack:
        context = RunContext(*run, cache_folder(), stack)
        try:
            host = stack.enter_context(registry.hosts()[options.kind].open(name, options, context, (options,)))
            return _about(study, name, host)
        except (Unavailable, EnvironmentLost) as why:
            return SurveyedMachine(name, lacks=(_without(name, str(why)),))
        finally:
            say(name)


def _about(study: Study, name: str, host: Host) -> SurveyedMachine:
    facts = host.facts()
    lacks: list[str] = []
    notes: list[str] = []
    theirs = facts.get("architecture", platform.machine())
    if theirs != platform.machine():
        lacks.append(f"it is {theirs}, and this machine, whose userlands it gets, is {platform.machine()}")
    for arm in study.arms:
        if arm.aa_of is None and (why := registry.environments()[arm.kind].lacking_on(arm.options, host)):
            (notes if arm.optional else lacks).append(f"{arm.name}: {_without(name, why)}")
    with contextlib.suppress(OSError):
        return SurveyedMachine(
            name, facts.get(NODE, ""), facts.get(MACHINE_ID, ""), boot_of(host), tuple(lacks), tuple(notes)
        )
    return SurveyedMachine(name, lacks=tuple(lacks), notes=tuple(notes))


def _without(name: str, why: str) -> str:
    """Return a reason without the host's name, which stands before all of its reasons."""
    return why.removeprefix(f"host {name} ").removeprefix(f"host {name}: ")


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
            reasons.append(f"{first} and {each.name} are one machine under two names: remove one")
    return reasons


def require_machines(machines: Sequence[SurveyedMachine]) -> None:
    """Raise Unavailable that tells all `refusals` together."""
    if reasons := refusals(machines):
        raise Unavailable("; ".join(reasons))
