"""What the engine's failures are told as."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from docker.errors import APIError

from sentences import assert_sentence
from weighbridge import registry
from weighbridge.engines import client
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


@pytest.mark.parametrize(
    "failure", [APIError("409 Client Error: Conflict"), ConnectionError(), ValueError("no JSON")]
)
def test_an_engine_that_is_asked_and_fails_is_told_as_one(failure: Exception):
    """By ``clean``, say, where Docker's APIError is an OSError as those of files are."""

    def request(*_: object, **__: object) -> None:
        raise failure

    ask = client.ask_by(SimpleNamespace(api=SimpleNamespace(base_url="http+docker://here", request=request)))
    with pytest.raises(OSError, match=r"^the Docker engine failed at DELETE /networks/a: "):
        ask("DELETE", "/networks/a")


def test_a_private_engine_takes_iptables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(client, "client_from_environment", lambda: None)
    monkeypatch.setattr(client.os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert client.readiness().detail == "no Docker engine is installed"
    for program in ("dockerd", "iptables"):
        assert not client.readiness().ready
        (tmp_path / program).touch(mode=0o755)
        if program == "dockerd":
            ready = client.readiness()
            assert_sentence(ready.detail)
            assert "iptables" in ready.remedy
    assert client.readiness().ready


def test_a_user_has_memory_as_storage_in_containers_alone(monkeypatch: pytest.MonkeyPatch):
    tmpfs = registry.storage()["tmpfs"]
    assert tmpfs.ready().caveat == ("" if os.geteuid() == 0 else "in containers of a running engine")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert (tmpfs.ready().ready, tmpfs.ready().caveat) == (True, "in containers of a running engine")
