"""What environments are told of the kinds of hosts."""

from weighbridge import registry
from weighbridge.model.host import HostTraits


def traits(*kinds: str) -> dict[str, HostTraits]:
    return {kind: registry.hosts()[kind].options.traits for kind in kinds}
