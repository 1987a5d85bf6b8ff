"""Names of environments for people: the only module that makes them.

An environment that was measured in hypervisors is never named without them, unless every environment was in the same
ones: a notice on top then says so once (`common_layers`). Code that writes a name for people calls `display_name`,
inside `use_display_names` round the whole report. An analysis has the names of the study throughout. Documents for
machines have the names of the study, too, and list the layers separately.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from weighbridge.analysis.conditions import NO_HYPERVISOR, Isolation
from weighbridge.analysis.results import Analysis
from weighbridge.model.isolation import SiteLayers
from weighbridge.model.stored_study import BASE, HEAD

if TYPE_CHECKING:
    from weighbridge.model.study import Study


_NAMES: ContextVar[Mapping[str, str]] = ContextVar("names of environments")


CONTROL = "control"
"""The word after the name of the baseline that is measured a second time."""


def display_name(environment: str) -> str:
    """Return the name of an environment in the current report: ``xen (Xen PVH)``."""
    return _NAMES.get({}).get(environment, environment)


def join_names(environments: Iterable[str]) -> str:
    """Return several as `display_name`, with commas between them."""
    return ", ".join(map(display_name, environments))


@contextmanager
def use_display_names(names: Mapping[str, str]) -> Iterator[None]:
    """Use `names` (from `names_of`) for environments while this context is open."""
    token = _NAMES.set(names)
    try:
        yield
    finally:
        _NAMES.reset(token)


def reference_words(analysis: Analysis) -> str:
    """Return the environment that others are compared with, for people."""
    names = {analysis.plan.against(name) for name in analysis.others}
    return "the base in the same environment" if len(names) > 1 else display_name(analysis.baseline)


def names_of(analysis: Analysis) -> dict[str, str]:
    """Return the names for people of native versions, the control, and environments in different hypervisors."""
    names = names_of_native_versions(analysis)
    if not common_layers(analysis):
        names |= {name: environment_name(names.get(name, name), each) for name, each in analysis.isolation.items()}
    if analysis.aa_arm is not None:
        names[analysis.aa_arm] = name_of_control(names.get(analysis.baseline, analysis.baseline))
    return names


def name_of_control(baseline: str) -> str:
    """Return ``native (control)`` or ``base (native, control)`` for the name of a baseline."""
    return f"{baseline[:-1]}, {CONTROL})" if baseline.endswith(")") else f"{baseline} ({CONTROL})"


def names_of_native_versions(analysis: Analysis) -> dict[str, str]:
    """Return ``head (native)`` and ``base (native)`` if versions were also measured elsewhere; else nothing.

    Elsewhere, the study's own names include the environment: ``head-docker``.
    """
    versions = (BASE, HEAD) if len(analysis.plan.pairs) > 1 else ()
    return {name: f"{name} (native)" for name in versions}


def names_of_study(study: "Study") -> dict[str, str]:
    """Return the name for people of a study's control, before anything was measured."""
    return {arm.name: f"{arm.aa_of} ({CONTROL})" for arm in study.arms if arm.aa_of is not None}


def common_layers(analysis: Analysis) -> str:
    """Return the hypervisors that all environments were measured in: ``inside QEMU, TCG: emulated``; else nothing."""
    words = {layers_of_environment(name, analysis) for name in analysis.environments}
    return words.pop().strip("()") if len(words) == 1 else ""


def names_over_runs(isolations: Iterable[Mapping[str, Isolation]]) -> dict[str, str]:
    """Return the same for a fleet's runs, each of which names the hypervisors of its environments."""
    layers: dict[str, dict[str, None]] = {}
    for isolation in isolations:
        for name, each in isolation.items():
            layers.setdefault(name, {})[environment_name("", each)] = None
    return {name: f"{name} {' or '.join(ways)}" for name, ways in layers.items()}


def environment_name(name: str, isolation: Isolation) -> str:
    """Return ``xen (Xen PVH inside QEMU, TCG: emulated)``; without hypervisors the name alone."""
    within = dict.fromkeys(layers_words(site) for site in isolation.sites)
    return f"{name} ({'; '.join(within)})".lstrip() if within else name


def layers_of_environment(name: str, analysis: Analysis) -> str:
    """Return the text after an environment's name: ``(QEMU, TCG: emulated)``; empty without hypervisors."""
    return environment_name("", analysis.isolation.get(name, NO_HYPERVISOR))


def layers_words(site: SiteLayers) -> str:
    """Return a site's layers, innermost first: ``QEMU, KVM``; ``inside QEMU, TCG: emulated`` for a native one."""
    return f"{'' if site.own else 'inside '}{site.names}{': emulated' if site.emulated else ''}"
