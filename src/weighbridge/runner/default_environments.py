"""What `weigh` compares with native where nobody says: the first choice that is ready, and what others lack."""

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
    """The environments of the first choice that is ready, by the names of ``weigh --in``; none where none is."""

    ready: Mapping[str, Readiness]
    passed_over: Mapping[str, Readiness]
    """Why not those of the choices before it; of all choices where none is ready."""

    @property
    def remedies(self) -> str:
        """What makes each environment that is not ready so, the simplest first: ``bubblewrap (apt-get ...)``."""
        return ", ".join(f"{name} ({state.remedy})" for name, state in reversed([*self.passed_over.items()]))


def default_environments(userland: str, *, server: bool) -> DefaultEnvironments:
    """Return what a program of a userland of this kind is weighed in; a ``server`` needs a network to its client."""
    passed_over: dict[str, Readiness] = {}
    for names in USUAL_OF_SERVERS if server else USUAL:
        states = {name: _state(name, userland, server=server) for name in names}
        if all(state.ready for state in states.values()):
            return DefaultEnvironments(states, passed_over)
        passed_over |= {name: state for name, state in states.items() if not state.ready}
    return DefaultEnvironments({}, passed_over)


def _state(name: str, userland: str, *, server: bool) -> Readiness:
    """Whether a program of the userland can be weighed in what ``weigh --in`` calls so, as far as is known."""
    options = dict(registry.weighed_in()[name])
    plugin = registry.environments()[options.pop("kind")]
    of_this_machine = not registry.userlands()[userland].packed
    if of_this_machine and not plugin.shares_root:
        return _NO_SHARED_ROOT
    needs = Needs(network=server, of_this_machine=of_this_machine)
    return preflight.ready(plugin, plugin.options.model_validate(options), needs)
