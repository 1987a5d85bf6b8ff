"""Hosts that are reached by ssh: a real sshd on testbed hosts, all that can be wrong with one, its loss."""

import contextlib
import os
import shutil
import signal
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from weighbridge.errors import DiskFull, EnvironmentLost, Unavailable, UserlandError
from weighbridge.hosts.options import SshOptions
from weighbridge.hosts.remote import start
from weighbridge.hosts.remote.start import program
from weighbridge.hosts.ssh import SshHost, ssh_host
from weighbridge.linux.process import RUN_VARIABLE
from weighbridge.model.command import Command
from weighbridge.model.host import Limits
from weighbridge.model.userland import Userland

from .conftest import open_run
from .far import Far, far_hosts, make_key
from .programs import PATIENCE_S, await_that
from .weighing import facts, going, run_id, trials, weighbridge

RUN = "55a55a55a55a"
pytestmark = pytest.mark.skipif(
    not Path("/usr/sbin/sshd").exists() or shutil.which("sudo") is None, reason="needs openssh-server and sudo"
)


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Far]]:
    """Two machines, each with an engine; userlands that they got stay there."""
    with far_hosts(tmp_path_factory.mktemp("far"), "a", "b", engines=True) as hosts:
        yield hosts


@contextmanager
def reached(far: Far, config: Path | None = None, *, sudo: bool = False) -> Iterator[SshHost]:
    """The machine as a host of a run."""
    options = SshOptions(kind="ssh", destination=far.host.name, config=str(config or far.config), sudo=sudo)
    with open_run(RUN) as run, ssh_host(far.host.name, options, run) as host:
        yield host


def left_on(far: Far, run: str = RUN) -> str:
    """What a run left on the machine: processes, control groups, sockets, half a userland, things of Docker."""
    processes = [
        environ.parent.name
        for environ in (far.host.folder / "proc").glob("[0-9]*/environ")
        if run in _text(environ) or run in _text(environ.with_name("cmdline"))
    ]
    look = (
        f"ls -d /sys/fs/cgroup/*/weighbridge/{run}/; ls -d /run/weighbridge*; "
        "ls -d /var/cache/weighbridge/userlands/.rec*; docker ps -aq; docker images -q; "
        "docker network ls -q --filter label=weighbridge.run"
    )
    return f"{processes}" * bool(processes) + far.inside("sh", "-c", f"({look}) 2>/dev/null; true")


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_bytes().decode(errors="replace")
    return ""


def swarm_of(far: Far) -> str:
    """The state of the engine in a swarm, and whether it has the bridge that an engine makes for one."""
    names = far.inside("docker", "network", "ls", "--format", "{{.Name}}").split()
    state = far.inside("docker", "info", "--format", "{{.Swarm.LocalNodeState}}").strip()
    return " ".join([state, *({"docker_gwbridge"} & {*names})])


def form_swarm(far: Far) -> None:
    """As somebody on that machine does it. An engine that others keep busy may never make the bridge: then again."""
    for patience_s in (PATIENCE_S / 6, PATIENCE_S):
        far.inside("docker", "swarm", "init", "--advertise-addr", far.host.address)
        deadline = time.monotonic() + patience_s
        while (found := swarm_of(far)) != "active docker_gwbridge" and time.monotonic() < deadline:
            time.sleep(0.1)
        if found == "active docker_gwbridge":
            return
        far.inside("docker", "swarm", "leave", "--force")
    raise AssertionError(f"no swarm: {found}")


def nothing_left(*fars: Far, run: str = RUN) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while found := [left for far in fars if (left := left_on(far, run))]:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    for far in fars:
        while (swarm := swarm_of(far)) != "inactive":
            assert time.monotonic() < deadline, swarm
            time.sleep(0.1)


def test_a_host_does_what_is_asked_of_it(far: list[Far]):
    with reached(far[0]) as host:
        assert (host.root, host.address, host.interface) == (True, far[0].host.address, "eth0")
        done = host.run(Command(("sh", "-c", "cat; echo no >&2; exit 3"), stdin=b"yes"))
        assert (done.stdout, done.stderr, done.returncode, done.timed_out) == (b"yes", b"no\n", 3, False)
        slow = host.run(Command(("sleep", "600"), 0.2))
        assert slow.timed_out and slow.returncode == -signal.SIGTERM and slow.duration_s < 300
        held = host.start(Command(("cat",)), hold=True)
        held.send(b"written")
        while held.output_so_far() != b"written":
            assert not held.wait(0.01)
        assert held.output_so_far(5) == b"en" and held.stop().stdout == b"written"
        with pytest.raises(FileNotFoundError):
            host.read("/nonexistent")
        with pytest.raises(Unavailable, match=r"host a: .*'nonexistent'"):
            host.run(Command(("nonexistent",)))
        assert host.dedicated_host("bridged") is host
        with pytest.raises(Unavailable, match="testbed"):
            host.dedicated_host("another")
        _groups(host)
        known, clock = host.facts(), host.clock()
        assert abs(clock.ahead_s) <= clock.within_s + 0.01 and known["architecture"] == os.uname().machine
    nothing_left(far[0])


def _groups(host: SshHost) -> None:
    group = host.group("some")
    assert group.limit(Limits(cpus=0.5, memory=2**28)) == {}
    join = 'for f in "$@"; do echo 0 > "$f"; done; exec sleep 100'
    process = host.start(Command(("sh", "-c", join, "join", *(str(path) for path in group.procs))))
    await_that(lambda: host.read(f"/proc/{process.pid}/comm") == b"sleep\n")
    group.freeze()
    group.thaw()
    assert host.meters_of(process.pid)["memory_bytes"] == group.meters()["memory_bytes"] > 0
    group.kill()
    assert process.wait(PATIENCE_S) and process.stop().returncode == -signal.SIGKILL
    assert group.remove()


def test_a_study_on_two_machines(
    far: list[Far], small_userland: Userland, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = tmp_path / "run"
    done = weighbridge("run", write(tmp_path, far, "host"), "--out", run, "--yes")
    assert done.code == 0, done
    assert "sending the root filesystem" in done.stderr
    assert {row["outcome"] for row in trials(run)} == {"ok"}
    assert any("ms ahead of" in value for (_, key), value in facts(run).items() if "clock" in key)
    nothing_left(*far, run=run_id(run))
    assert run_id(run) not in weighbridge("clean", "--check").stdout
    monkeypatch.setattr(SshHost, "_bring", lambda *_: pytest.fail("it was sent again"))
    for each in far:
        with reached(each) as host:
            assert host.userland(small_userland).name == "root"


def write(folder: Path, far: list[Far], network: str = "", blocks: int = 1) -> Path:
    """A study across the two machines, natively and, where a network is named, in Docker."""
    path = folder / "study.yaml"
    docker = f"{network}: {{kind: docker, network: {network}}}" if network else "again: {kind: native}"
    hosts = "\n".join(f"  {f.host.name}: {{kind: ssh, destination: {f.host.name}, config: {f.config}}}" for f in far)
    path.write_text(
        f"""study: far
question: Does it run?
hosts:
{hosts}
placement: {{client: a, server: b}}
inside: [server, client]
resources: {{memory: 512MiB}}
baseline: native
aa: false
environments:
  native: {{kind: native}}
  {docker}
workloads:
  tcp: {{kind: iperf3, amount: 16MiB}}
repetitions: {{blocks: {blocks}}}
"""
    )
    return path


def wrong_key(far: Far) -> Path:
    return far.config_with("wrong", IdentityFile=str(make_key(far.folder / "other")))


def changed_key(far: Far) -> Path:
    other = make_key(far.folder / "other-host").with_suffix(".pub").read_text()
    (far.folder / "known-other").write_text(f"{far.host.address} {other}")
    return far.config_with("changed", UserKnownHostsFile=str(far.folder / "known-other"))


def forced(far: Far, name: str, command: str) -> Path:
    return far.config_with(
        name, IdentityFile=str(far.key(name, f'{command} exec /bin/sh -c \\"$SSH_ORIGINAL_COMMAND\\"'))
    )


_OLDER = """#!/usr/bin/python3
import sys
sys.version_info, sys.version = (3, 8), "3.8.1 (made older by a test)"
exec(sys.argv[sys.argv.index("-c") + 1])
"""


def older_python(far: Far) -> Path:
    program = far.folder / "old/python3"
    program.parent.mkdir()
    program.write_text(_OLDER)
    program.chmod(0o755)
    return forced(far, "oldpython", f"PATH={far.folder}/old:$PATH")


def without_sudo(far: Far) -> Path:
    programs = far.folder / "few"
    programs.mkdir()
    (programs / "env").symlink_to("/usr/bin/env")
    return forced(far, "nosudo", f"PATH={programs}")


def no_server(far: Far) -> Path:
    return far.config_with("port", HostName=f"{far.host.address}\n  Port 2222")


def unknown_key(far: Far) -> Path:
    return far.config_with("new", UserKnownHostsFile="/dev/null")


def any_key(far: Far) -> Path:
    return far.config_with("any", UserKnownHostsFile="/dev/null\n  StrictHostKeyChecking no\n  Tunnel yes")


def unknown_name(far: Far) -> Path:
    return far.config_with("name", HostName="n.invalid", ProxyCommand="none")


WRONG: dict[str, tuple[Callable[[Far], Path], bool, str]] = {
    "wrong key": (wrong_key, False, "accepts none of this user's keys.*authorized_keys"),
    "changed host key": (changed_key, False, "differs from the key in known_hosts.*ssh-keygen -f"),
    "unknown host key": (unknown_key, False, "is unknown. Check it and accept it once with: ssh -F /"),
    "any host key": (any_key, False, "is unknown. Check it and accept it once with: ssh -F /"),
    "no server": (no_server, False, "no ssh server listens there"),
    "no such name": (unknown_name, False, "the name n.invalid is unknown"),
    "sudo asks": (
        lambda far: far.config_with("asked", User="asked"),
        True,
        "sudo asks for a password there.*NOPASSWD",
    ),
    "no sudo": (without_sudo, True, "sudo is not installed there"),
    "no python": (lambda far: forced(far, "nopython", "PATH=/nonexistent"), False, "python3 is not installed there"),
    "old python": (older_python, False, "its python3 has version 3.8.1"),
    "bad configuration": (
        lambda far: far.config_with("bad", User="root\n  No yes"),
        False,
        "Bad configuration option",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_host_that_cannot_be_used(far: list[Far], what: str):
    config, sudo, told = WRONG[what]
    with (
        pytest.raises(Unavailable, match=rf"^host b \(b\): .*(?:{told})"),
        reached(far[1], config(far[1]), sudo=sudo),
    ):
        pytest.fail("it was reached")
    nothing_left(far[1])


def test_the_command_line_says_it_in_one_sentence(far: list[Far], tmp_path: Path):
    study = write(tmp_path, far)
    study.write_text(study.read_text().replace(str(far[1].config), str(wrong_key(far[1]))))
    before = [left_on(each, f"{RUN_VARIABLE}=") for each in far]
    done = weighbridge("run", study, "--out", tmp_path / "run", "--yes")
    done.must_fail(Unavailable.exit_code, "host b (b)", "authorized_keys")
    assert not (tmp_path / "run").exists(), "nothing was measured"
    deadline = time.monotonic() + PATIENCE_S
    while (now := [left_on(each, f"{RUN_VARIABLE}=") for each in far]) != before:
        assert time.monotonic() < deadline, now
        time.sleep(0.1)


def test_a_shell_that_talks_is_no_matter(far: list[Far]):
    config = forced(far[0], "noisy", "echo welcome; printf last;")
    with reached(far[0], config) as host:
        assert host.run(Command(("echo", "here"))).text == "here\n"


def test_the_engine_by_its_socket(far: list[Far]):
    plain = far[0].config_with("plain", User="plain")
    with reached(far[0], plain) as host, pytest.raises(Unavailable, match="'docker'"):
        host.engine_url()
    for user, sudo in (("root", False), ("trusted", True)):
        with reached(far[0], far[0].config_with(user, User=user), sudo=sudo) as host:
            assert host.root
            with contextlib.closing(docker.DockerClient(base_url=host.engine_url())) as client:
                assert client.info()["Name"] == far[0].inside("hostname").strip()
                client.networks.create("forgotten", labels={"weighbridge.run": RUN})
        nothing_left(far[0])


def test_an_ordinary_user(far: list[Far]):
    with reached(far[0], far[0].config_with("plain", User="plain")) as host:
        assert not host.root and host.run(Command(("id", "-un"))).text == "plain\n"
        with pytest.raises(Unavailable):
            host.group("some")


def test_a_userland_is_checked_and_needs_space(far: list[Far], userland: Userland, tmp_path: Path):
    (tmp_path / "root.tar").write_bytes(os.urandom(2**20))
    damaged = replace(userland, digest="0" * 64, tar=tmp_path / "root.tar")
    with reached(far[1]) as host, pytest.raises(UserlandError):
        host.userland(damaged)
    nothing_left(far[1])
    plain = far[1].config_with("plain", User="plain")
    far[1].inside("mount", "-t", "tmpfs", "-o", "size=32M,mode=1777", "small", "/home/plain")
    try:
        with reached(far[1], plain) as host, pytest.raises(DiskFull, match=r"/home/plain/\.cache"):
            host.userland(userland)
        assert far[1].inside("find", "/home/plain", "-name", "root*") == ""
    finally:
        far[1].inside("umount", "/home/plain")


LEFT_CLEAN = pytest.mark.promise("a machine that ssh reaches is left clean, however the connection to it ends")
LOSSES: dict[str, Callable[[Far, SshHost], None]] = {
    "its agent killed": lambda far, host: os.kill(_outer(far, host.pid), signal.SIGKILL),
    "its sshd killed": lambda far, host: os.kill(_parent(_outer(far, host.pid)), signal.SIGKILL),
    "its network cut": lambda far, host: far.host.plug(up=False),
}


def _outer(far: Far, inner: int) -> int:
    """The number on this machine of a process of the host."""
    for status in Path("/proc").glob("[0-9]*/status"):
        numbers = [line.split()[1:] for line in _text(status).splitlines() if line.startswith("NSpid:")]
        same = _link(status.with_name("ns") / "pid") == _link(Path(f"/proc/{far.host.pid}/ns/pid"))
        if same and numbers and numbers[0][-1] == str(inner):
            return int(status.parent.name)
    raise AssertionError(f"no process {inner}")


def _link(path: Path) -> str:
    with contextlib.suppress(OSError):
        return str(path.readlink())
    return ""


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def sooner() -> bytes:
    """The program of an agent that ends after 15 s of silence, not 45."""
    text = zlib.decompress(program())
    assert text.count(b"SILENCE_S = 45.0") == 1
    return zlib.compress(text.replace(b"SILENCE_S = 45.0", b"SILENCE_S = 15.0"))


@LEFT_CLEAN
@pytest.mark.parametrize(
    "loss", ["its network cut", *(pytest.param(loss, marks=pytest.mark.long) for loss in (*LOSSES,)[:2])]
)
def test_a_host_that_is_lost(far: list[Far], loss: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(start, "program", sooner)
    with ExitStack() as stack:
        line = next(line for line in far[0].config.read_text().splitlines() if "ProxyCommand" in line)
        by_the_cable = line.split(maxsplit=1)[1].replace(str(far[0].host.pid), str(far[1].host.pid))
        config = far[0].config_with("across", ProxyCommand=by_the_cable)
        host = stack.enter_context(reached(far[0], config))
        process = host.start(Command(("sh", "-c", "(setsid sleep 1000 &); exec sleep 1000")))
        group = host.group("some")
        host.in_swarm("", made_bridge=True)
        form_swarm(far[0])
        try:
            LOSSES[loss](far[0], host)
            with pytest.raises(EnvironmentLost, match=r"host a\b"):
                process.wait(PATIENCE_S)
            for call in (process.poll, process.stop, group.freeze, group.remove, host.facts):
                with pytest.raises(EnvironmentLost, match=r"host a\b"):
                    call()
        finally:
            far[0].host.plug(up=True)
        nothing_left(far[0])


@LEFT_CLEAN
@pytest.mark.parametrize("killed", ["this process", pytest.param("its sshd", marks=pytest.mark.long)])
def test_killed_in_the_middle_of_a_run(far: list[Far], tmp_path: Path, killed: str):
    run = tmp_path / "run"
    us = killed == "this process"
    study = write(tmp_path, far, "overlay" if us else "", blocks=4)
    with going("run", study, "--out", run, "--yes", files=tmp_path) as going_on:
        going_on.await_that(lambda: len(trials(run)) >= 2)
        if us:
            assert [swarm_of(each) for each in far] == ["active docker_gwbridge"] * 2
            going_on.end(signal.SIGKILL)
        else:
            far[1].inside("sh", "-c", "pkill -KILL -f '[s]shd: root'")
            done = going_on.end()
            print(done)
            assert "Traceback" not in done.stderr
            assert done.code == EnvironmentLost.exit_code and "host b" in done.stderr, done
    nothing_left(*far, run=run_id(run))
    assert len([row for row in trials(run) if row["outcome"] == "ok"]) >= 2
    assert weighbridge("clean").code == 0


def test_a_swarm_of_somebody_else_stays(far: list[Far]):
    form_swarm(far[0])
    with reached(far[0]) as host:
        host.in_swarm("of-ours-which-they-left", made_bridge=True)
    assert swarm_of(far[0]) == "active docker_gwbridge"
    with reached(far[0]) as host:
        host.in_swarm(far[0].inside("docker", "info", "--format", "{{.Swarm.NodeID}}").strip(), made_bridge=True)
    nothing_left(far[0])
