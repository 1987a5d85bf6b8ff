"""What a host that there is only once may be changed for: one purpose in a run."""

from weighbridge.errors import Unavailable


class Claim:
    """The one purpose of a host; testbed hosts need none, since another one is quickly made."""

    def __init__(self, whose: str) -> None:
        self._whose = whose
        self._purpose = ""

    def take(self, purpose: str) -> None:
        """Take it for ``purpose``; Unavailable where it is taken for another one."""
        if self._purpose not in ("", purpose):
            raise Unavailable(
                f"{self._whose} cannot be changed for '{self._purpose}' and for '{purpose}' in one study: "
                "use hosts of kind testbed, or a study for each"
            )
        self._purpose = purpose
