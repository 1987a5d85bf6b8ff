"""How sites reach the companions of a study."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The companions of a run as the sites of the measured service reach them.

    ``network`` is the engine's name of their bridge, ``subnet`` its addresses (CIDR), ``link`` the bridge's own name
    on this machine, ``addresses`` by the companions' names.
    """

    network: str
    subnet: str
    link: str
    addresses: Mapping[str, str]
    images: Mapping[str, str]
    """The digests of their images by name, and of their files by ``NAME:PATH``."""
    require: Callable[[], None] = lambda: None
    """Raises EnvironmentLost where one does not run any more as it was started."""

    def hosts_file(self, own: str = "") -> bytes:
        """Return hosts(5) for a site whose own name is ``own``."""
        lines = ["127.0.0.1\tlocalhost", *([f"127.0.0.1\t{own}"] if own else [])]
        return "\n".join([*lines, *(f"{address}\t{name}" for name, address in self.addresses.items()), ""]).encode()


WAY = "way to the companions"
"""The fact of a site that says how it reaches them."""
