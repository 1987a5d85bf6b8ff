"""Which of an engine's runtimes is gVisor, and which of them may be on the host's network; its version."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge.engines import gvisor
from weighbridge.errors import Unavailable

RUNC = {"path": "runc"}
OWN = {"path": "/usr/local/bin/runsc", "runtimeArgs": ["--platform=systrap"]}
ON_THE_HOSTS = gvisor.GvisorSandbox(stack="host")
ON_HOST = {"path": "/opt/runsc", "runtimeArgs": ["--platform=kvm", "--network=host"]}

SANDBOX = b"runsc-sandbox\0--root=/r\0--platform=ptrace\0--directfs=false\0boot\0--bundle=/b\0"


def engine(**runtimes: Any) -> Any:
    client = SimpleNamespace(info=lambda: {"Runtimes": runtimes})
    return client, SimpleNamespace(name="a", read=lambda path: SANDBOX)


def test_a_container_on_the_host_s_network_gets_the_runtime_that_leaves_it_alone():
    both = engine(runc=RUNC, sandboxed=OWN, shared=ON_HOST)
    assert gvisor.runtime(*both, ON_THE_HOSTS) == "shared"
    assert gvisor.runtime(*both, gvisor.GvisorSandbox()) == "sandboxed"


@pytest.mark.parametrize("runtimes", [{}, {"runc": RUNC}, {"runsc": ON_HOST}, {"runsc": {}}])
def test_an_engine_that_does_not_know_it(runtimes: dict[str, Any]):
    with raises_sentence(Unavailable):
        gvisor.runtime(*engine(**runtimes), gvisor.GvisorSandbox())


@pytest.mark.parametrize(
    ("runtimes", "network", "lacks"),
    [
        (None, "bridge", False),
        ({"runc": RUNC}, "bridge", True),
        ({"sandboxed": OWN}, "bridge", False),
        ({"sandboxed": OWN}, "host", True),
        ({"shared": ON_HOST}, "host", False),
    ],
)
def test_that_the_users_engine_lacks_it_is_known_before_a_run(
    monkeypatch: pytest.MonkeyPatch, runtimes: dict[str, Any] | None, network: str, lacks: bool
):
    """Where none answers (None) one of ours is started, which has it."""
    closed: list[bool] = []
    client = SimpleNamespace(info=lambda: {"Runtimes": runtimes}, close=lambda: closed.append(True))
    answering = None if runtimes is None else client
    monkeypatch.setattr(gvisor, "client_from_environment", lambda: answering)
    refusal = gvisor.refusal(gvisor.GvisorSandbox(stack="host" if network == "host" else "own"))
    assert (refusal is not None) == lacks and len(closed) == (runtimes is not None)
    if refusal is not None:
        assert_sentence(f"{refusal.detail}: {refusal.remedy}")


def test_the_facts_name_version_and_platform(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gvisor, "version", lambda path: f"1 of {path}")
    told = gvisor.facts(*engine(runsc=OWN, shared=ON_HOST), ON_THE_HOSTS, 7)
    assert told["runtime"] == "runsc 1 of /opt/runsc, platform kvm"
    in_force = {name: value for name, value in told.items() if name.startswith("gVisor: ")}
    assert [*in_force.values()] == ["ptrace", "sandbox", "false", "root:self"], "by the sandbox's own command line"
    assert gvisor.facts(*engine(runsc={"path": "runsc"}), gvisor.GvisorSandbox(), 7)["runtime"].endswith(
        "platform systrap"
    )


@pytest.mark.parametrize(
    ("said", "content", "found"),
    [
        ("runsc version release-20240101.0\nspec: 1.1.0", b"", "release-20240101.0"),
        ("runsc version VERSION_MISSING", b"\0mod\tgvisor.dev/gvisor\tv0.0.0-2026-ab\th1:x\n", "v0.0.0-2026-ab"),
        ("runsc version VERSION_MISSING", b"nothing of it", "of unknown version"),
        ("", b"", "of unknown version"),
    ],
)
def test_the_version(said: str, content: bytes, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "runsc"
    program.write_bytes(content)
    monkeypatch.setattr(gvisor, "output", lambda _: said)
    assert gvisor.version(str(program)) == found


def test_an_engine_of_our_own_is_told_of_both_or_of_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gvisor.shutil, "which", lambda _: "/usr/local/bin/runsc")
    runtimes = gvisor.registration()
    assert gvisor.runtime(*engine(**runtimes), ON_THE_HOSTS) != gvisor.runtime(
        *engine(**runtimes), gvisor.GvisorSandbox()
    )
    monkeypatch.setattr(gvisor.shutil, "which", lambda _: None)
    assert gvisor.registration() == {}
    assert not gvisor.readiness().ready
    assert "go install" in gvisor.readiness().remedy


TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1
   1: 0100007F:1452 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 12346 1
"""


def test_listeners_are_looked_for_outside_of_the_sandbox():
    def read(path: str) -> bytes:
        if path != "/proc/7/net/tcp":
            raise FileNotFoundError(path)
        return TABLE.encode()

    listening = gvisor.listening_outside(SimpleNamespace(read=read), 7)  # type: ignore[arg-type]
    assert listening((("tcp", 0x1451),))
    assert not listening((("tcp", 0x1452),), 0.01)
    assert not listening((("tcp", 0x1451), ("udp", 0x1451)), 0.0)


def test_each_way_to_serve_a_container_has_a_runtime_in_an_engine_of_ours(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gvisor.shutil, "which", lambda program: f"/usr/local/bin/{program}")
    ours = engine(**gvisor.registration())
    names = {
        gvisor.GvisorSandbox(): "runsc",
        ON_THE_HOSTS: "runsc-host",
        gvisor.GvisorSandbox("ptrace", files="gofer"): "runsc-ptrace-gofer",
        gvisor.GvisorSandbox(stack="host", layer="host"): "runsc-host-layer",
    }
    assert {each: gvisor.runtime(*ours, each) for each in names} == names
