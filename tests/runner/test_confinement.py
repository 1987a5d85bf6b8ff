"""What is in force in a site is compared with what its environment was asked for."""

from pathlib import Path

import pytest

from weighbridge.model.facts import ASKED_CONFINEMENT, ASKED_FOR
from weighbridge.model.study import Resources
from weighbridge.store.run import RunStore

from .world import FakeSite, Layer, World, go, study

pytestmark = pytest.mark.measures  # its programs last by the clock


@pytest.mark.parametrize(("mode", "honoured"), [("2", True), ("0", False)])
def test_a_filter_that_is_not_in_force_is_not_honoured(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, honoured: bool
):
    """An engine whose default profile is "unconfined" notes "default" all the same."""

    def read(site: FakeSite, path: str) -> bytes:
        return f"Seccomp:\t{mode}\n".encode() if path == "/proc/self/status" else b""

    monkeypatch.setattr(FakeSite, "read", read)
    monkeypatch.setattr(FakeSite, "facts", lambda _: {"seccomp": "default"})
    monkeypatch.setattr(Layer, "confinement", lambda *_: {"seccomp": "filter"})
    go(tmp_path, study("cpu: {kind: fake-solo}", blocks=1))
    with RunStore(tmp_path / "run") as store:
        facts = {(scope, key): value for scope, key, value, _ in store.facts()}
    assert facts["one/server", "seccomp"] == {"2": "filter", "0": "off"}[mode]
    assert facts["one/server", ASKED_CONFINEMENT] == "seccomp"
    assert (("one/server", "not honoured: seccomp") not in facts) == honoured


@pytest.mark.parametrize(("size", "honoured"), [("65536k", True), ("1024k", False)])
def test_what_the_study_gives_one_environment_is_noted_and_checked(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str, honoured: bool
):
    """Its own limits, what its /dev/shm holds, settings of the kernel: which of the facts were asked for."""
    mounts = f"32 31 0:42 / /dev/shm rw - tmpfs shm rw,size={size}".encode()
    monkeypatch.setattr(Layer, "takes", frozenset({"shm_size", "sysctls"}))
    monkeypatch.setattr(FakeSite, "read", lambda _, path: {"/proc/self/mountinfo": mounts}.get(path, b"128\n"))
    made = study("cpu: {kind: fake-solo}", blocks=1)
    own = {"shm_size": 2**26, "sysctls": {"net.core.somaxconn": "128"}, "resources": Resources(cpus=0.5)}
    arms = tuple(arm.model_copy(update=own) if arm.name == "one" else arm for arm in made.arms)
    go(tmp_path, made.model_copy(update={"arms": arms}))
    with RunStore(tmp_path / "run") as store:
        facts = {(scope, key): value for scope, key, value, _ in store.facts()}
    assert facts["one/server", "limits"] == "0.5 CPU" and facts["two/server", "limits"] == "none"
    assert facts["one/server", ASKED_FOR] == "limits, sysctl net.core.somaxconn, size of /dev/shm"
    assert facts["two/server", ASKED_FOR] == ""
    assert (
        facts["one/server", "sysctl net.core.somaxconn"] == facts["two/server", "sysctl net.core.somaxconn"] == "128"
    )
    assert (("one/server", "not honoured: size of /dev/shm") not in facts) == honoured
    given = {request.environment: request for request in world.requests}
    assert (given["one"].shm_size, given["one"].sysctls) == (2**26, {"net.core.somaxconn": "128"})
    assert (given["two"].shm_size, given["two"].sysctls, given["one"].limits.cpus) == (None, {}, 0.5)
