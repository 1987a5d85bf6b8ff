"""The steps of the set-up of a run, which the user sees while the run waits for them."""

from dataclasses import dataclass
from typing import Literal

SetupKind = Literal["host", "engine", "image", "site", "services"]


@dataclass(frozen=True, slots=True)
class SetupStep:
    """A host, engine or site that starts, an image that is imported, or Services that a cluster creates."""

    kind: SetupKind
    name: str
    """The title of the site; otherwise the name of the host, or of the cluster's site."""
    number: int = 0
    """Its number among ``total`` of the same kind; 0 if they are not counted."""
    total: int = 0
    clients: str = ""
    """The host of the clients for which a site starts, if several hosts have clients."""
