"""Where a workload's roles find one another."""

from dataclasses import dataclass

from weighbridge.model.site import DATA


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a workload's server is: it binds to ``listen``, its client connects to ``address``.

    The next number, ``data_port``, is the workload's too, for programs whose data has a connection of its own.
    ``client`` is the address of the client's site, to which it binds. ``udp_payload`` is the largest UDP payload in
    bytes that does not fragment between them, probed where some workload of the study uses UDP (else None).
    """

    listen: str
    address: str
    port: int
    client: str = ""
    udp_payload: int | None = None
    data: str = DATA
    """The folder below which a site's programs keep data; each of several sites on one storage has its own."""

    @property
    def data_port(self) -> int:
        """The second port; it is published only where the workload says ``has_data_port``."""
        return self.port + 1
