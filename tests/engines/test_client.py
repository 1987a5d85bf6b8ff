"""What the engine's failures are told as."""

import pytest
from docker.errors import APIError

from weighbridge.engines.client import engine_errors
from weighbridge.errors import EnvironmentLost, Unavailable

DIALING = (
    'connection error: desc = "transport: Error while dialing dial unix /x/containerd/containerd.sock: connect: '
    'connection refused": unavailable'
)


@pytest.mark.parametrize(
    ("explanation", "kind"),
    [
        (DIALING, EnvironmentLost),
        ("error reading from server: EOF: unavailable", EnvironmentLost),
        ("transport is closing: unknown", EnvironmentLost),
        ("Container 5a88 is not running", EnvironmentLost),
        ("No such container: 5a88", EnvironmentLost),
        ("driver failed programming external connectivity: address already in use", Unavailable),
        ("operation not supported", Unavailable),
    ],
)
def test_an_engine_that_lost_something_is_no_engine_that_refuses(explanation: str, kind: type[Exception]):
    with pytest.raises(kind) as caught, engine_errors("opening a site"):
        raise APIError("500 Server Error", explanation=explanation)
    assert str(caught.value).startswith("opening a site: ")
