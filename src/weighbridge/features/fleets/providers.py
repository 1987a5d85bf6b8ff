"""Finds the provider of a fleet's machines, by the word of ``--on`` or by a fleet's definition."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from weighbridge import registry
from weighbridge.errors import RunDirectoryError, StudyError
from weighbridge.features.fleets.folder import Fleet
from weighbridge.features.fleets.machine_provider import MachineProvider, ProviderOptions
from weighbridge.features.fleets.study import own_host, with_own
from weighbridge.model.host_kind import HostOptions
from weighbridge.model.spelling import nearest
from weighbridge.model.study import Study
from weighbridge.model.validation import first_problem, problem_of
from weighbridge.study.source import plain

Provided = tuple[MachineProvider, ProviderOptions]


@functools.cache
def providers() -> Mapping[str, MachineProvider]:
    """Return every provider of a fleet's machines by its kind."""
    plugins = registry.discover("weighbridge.features.fleets.on", "weighbridge.fleets")
    return registry.register(plugins, MachineProvider)  # type: ignore[type-abstract]


def provided_by(word: str, given: Mapping[str, Any]) -> Provided:
    """Return the provider for ``--on WORD``, and its options including the ``given`` ones.

    Raises ValueError with one sentence if the word is unknown, or an option is wrong; StudyError for a file.
    """
    for provider in providers().values():
        if (named := provider.named_by(word)) is not None:
            return provider, _checked(provider, word, {**named, **given})
    kinds = [kind for kind, provider in providers().items() if provider.named_by(kind) is not None]
    known = f" nor one of {', '.join(kinds)}" if kinds else ""
    raise ValueError(f"--on {plain(word, 60)}: this is neither a file{known}{nearest(word, kinds)}")


def hosts_of_machines(study: Study, provided: Provided, machines: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the hosts of machines that are reached from here, by name, with the options of the study's own host."""
    (provider, options), study_host = provided, own_host(study)
    return {machine: with_own(study_host, provider.host(options, machine)) for machine in machines}


def host_options(study: Study, provided: Provided, machines: Sequence[str]) -> dict[str, HostOptions]:
    """Return the checked options of machines' hosts, by name. StudyError names the machine with a wrong one."""
    models = {kind: each.options for kind, each in registry.hosts().items()}
    checked = {}
    for machine, host in hosts_of_machines(study, provided, machines).items():
        try:
            checked[machine] = models[host["kind"]].model_validate(host)
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] == "extra_forbidden":
                key = plain(".".join(map(str, first["loc"])), 60)
                raise StudyError(f"machine {machine}: '{key}' is not an option of {host['kind']} hosts") from None
            raise StudyError(f"machine {machine}: {plain(problem_of(error))}") from None
    return checked


def _checked(provider: MachineProvider, word: str, given: Mapping[str, Any]) -> ProviderOptions:
    try:
        return provider.options.model_validate({"kind": provider.kind, **given})
    except ValidationError as error:
        first, (_, problem) = error.errors()[0], first_problem(error)
    option = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        raise ValueError(f"--{option.replace('_', '-')} does not apply to --on {plain(word)}")
    if first["type"] == "missing":
        raise ValueError(f"--on {plain(word)} needs --{option.replace('_', '-')}")
    raise ValueError(f"--{option.replace('_', '-')}: {plain(problem)}" if option else plain(problem))


def provider_of(fleet: Fleet) -> Provided:
    """Return the provider of a fleet's machines. Raises RunDirectoryError if it is unknown here."""
    kind = str(fleet.on.get("kind", ""))
    provider = providers().get(kind)
    if provider is None:
        raise RunDirectoryError(
            f"the fleet's machines come from '{plain(kind, 60)}', which this Weighbridge does not know"
        )
    try:
        return provider, provider.options.model_validate(fleet.on)
    except ValidationError as error:
        raise RunDirectoryError(f"the fleet is damaged: on.{plain(problem_of(error))}") from None
