"""What `weighbridge weigh` weighs a program in where nobody says: what can be had here."""

from collections.abc import Mapping, Sequence
from typing import Any

from weighbridge.cli.output import err

_ENGINE_SHOWS = (
    "a container engine would also show the cost of its bridge, address translation and system call filter"
)


def usual_inside(userland: Mapping[str, Any], *, server: bool) -> Sequence[str]:
    """Return the names of the first choice that is ready here, of the first one of all where none is.

    Says so where that is not what is usual, and what it does not show.
    """
    from weighbridge.study.weighed import USUAL, USUAL_OF_SERVERS

    choices = USUAL_OF_SERVERS if server else USUAL
    reasons: dict[str, str] = {}
    for names in choices:
        lacking = {name: why for name in names if (why := _lacking(name, userland, server=server))}
        if not lacking:
            if names != choices[0]:
                _tell(names, reasons)
            return names
        reasons |= lacking
    return choices[0]


def _lacking(name: str, userland: Mapping[str, Any], *, server: bool) -> str:
    """Why a program of the userland cannot be weighed in what has this name; "" where nothing is known."""
    from weighbridge import registry
    from weighbridge.model.environment import Needs
    from weighbridge.runner.preflight import ready

    options = dict(registry.weighed_in()[name])
    plugin = registry.environments()[options.pop("kind")]
    of_this_machine = not registry.userlands()[userland["kind"]].packed
    if of_this_machine and not plugin.shares_root:
        return "its containers cannot have this machine's own programs (an image they can: --image)"
    inside = plugin.options.model_validate(options)
    state = ready(plugin, inside)
    if not state.ready:
        return state.detail
    unmet = plugin.unmet(inside, needs=Needs(network=server, of_this_machine=of_this_machine))
    return unmet.detail if unmet is not None else ""


def _tell(names: Sequence[str], reasons: Mapping[str, str]) -> None:
    why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    shows = "" if {*names} - {"netns"} else f"; {_ENGINE_SHOWS}"
    err().print(f"note: weighed in {', '.join(names)} ({why}){shows}", markup=False, soft_wrap=True)
