"""Chooses the environments that `weigh` compares with native by default, and explains why others are not ready."""

from collections.abc import Mapping
from dataclasses import dataclass

from weighbridge import registry
from weighbridge.model.environment import Needs
from weighbridge.model.plugin import Readiness
from weighbridge.runner import preflight
from weighbridge.study.weighed import USUAL, USUAL_OF_SERVERS

_NO_SHARED_ROOT = Readiness(
    False, "its containers cannot run this machine's programs, so it needs --image", "give --image"
)


@dataclass(frozen=True, slots=True)
class DefaultEnvironments:
    """The environments of the first choice that is ready, by their names in ``weigh --in``; {} if none is."""

    ready: Mapping[str, Readiness]
    passed_over: Mapping[str, Readiness]
    """The reasons why the environments of earlier choices are not ready."""

    @property
    def remedies(self) -> str:
        """The remedy for each environment that is not ready, the simplest first: ``bubblewrap (apt-get ...)``."""
        return ", ".join(f"{name} ({state.remedy})" for name, state in reversed([*self.passed_over.items()]))


def default_environments(userland: str, *, server: bool) -> DefaultEnvironments:
    """Return the default environments for a program of this kind of userland; a ``server`` needs a network."""
    passed_over: dict[str, Readiness] = {}
    for names in USUAL_OF_SERVERS if server else USUAL:
        states = {name: _state(name, userland, server=server) for name in names}
        if all(state.ready for state in states.values()):
            return DefaultEnvironments(states, passed_over)
        passed_over |= {name: state for name, state in states.items() if not state.ready}
    return DefaultEnvironments({}, passed_over)


def _state(name: str, userland: str, *, server: bool) -> Readiness:
    """Return whether a program of the userland can be weighed in an environment, by its name in ``weigh --in``."""
    options = dict(registry.environment_named(name) or {})
    plugin = registry.environments()[options.pop("kind")]
    of_this_machine = not registry.userlands()[userland].packed
    if of_this_machine and not plugin.shares_root:
        return _NO_SHARED_ROOT
    needs = Needs(network=server, of_this_machine=of_this_machine)
    return preflight.ready(plugin, plugin.options.model_validate(options), needs)
