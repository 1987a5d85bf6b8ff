"""The request for a site on this machine, which opens nothing by itself."""

from contextlib import ExitStack
from pathlib import Path

from weighbridge.hosts.local import LocalHost
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.names import RunId, SafeName
from weighbridge.model.site import SiteRequest
from weighbridge.model.userland import Userland

RUN = RunId("0123456789ab")


def requested(userland: Userland, environment: str = "") -> SiteRequest:
    nowhere = Path("/nonexistent")
    return SiteRequest(
        RunContext(RUN, nowhere, nowhere, ExitStack()),
        LocalHost(RUN),
        SafeName("1-site"),
        "server",
        userland,
        Limits(),
        environment=environment,
    )
