"""What confines a site in force is compared with what its environment was asked for."""

from pathlib import Path

import pytest

from weighbridge.model.facts import ASKED_CONFINEMENT
from weighbridge.store.run import RunStore

from .test_session import go
from .world import FakeSite, Layer, World, study

pytestmark = pytest.mark.measures  # its programs last by the clock


@pytest.fixture(autouse=True)
def _two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weighbridge.runner.stage.cpus_online", lambda: [0, 1])


@pytest.mark.parametrize(("mode", "honoured"), [("2", True), ("0", False)])
def test_a_filter_that_is_not_in_force_is_not_honoured(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, honoured: bool
):
    """An engine whose default profile is "unconfined" notes "default" all the same."""

    def read(site: FakeSite, path: str) -> bytes:
        return f"Seccomp:\t{mode}\n".encode() if path == "/proc/self/status" else b""

    monkeypatch.setattr(FakeSite, "read", read)
    monkeypatch.setattr(Layer, "confinement", lambda *_: {"seccomp": "filter"})
    go(tmp_path, study("cpu: {kind: fake-solo}", blocks=1))
    with RunStore(tmp_path / "run") as store:
        facts = {(scope, key): value for scope, key, value, _ in store.facts()}
    assert facts["one/server", "seccomp"] == {"2": "filter", "0": "off"}[mode]
    assert facts["one/server", ASKED_CONFINEMENT] == "seccomp"
    assert (("one/server", "not honoured: seccomp") not in facts) == honoured
