"""Wrappers: each preset confines as it claims, programs run in it as anywhere, and a killed run leaves nothing."""

import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.environments.wrapper import WrapperOptions
from weighbridge.environments.wrapper.preset import names, preset
from weighbridge.errors import Unavailable
from weighbridge.facts.site import about_site
from weighbridge.hosts.local import LocalHost
from weighbridge.linux.process import run
from weighbridge.model.command import Command
from weighbridge.model.facts import OUTSIDE_CONNECTIONS, OUTSIDE_WRITES
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import SiteRequest
from weighbridge.model.userland import Userland
from weighbridge.runner import clean
from weighbridge.runner import run_lock as state
from weighbridge.runner.run import run_study
from weighbridge.study.loader import load
from weighbridge.userland.sources.host import PLUGIN as HOST_PROGRAMS

from .conftest import open_run
from .inside import must_kill_what_takes_too_much, must_make_no_progress_while_frozen, sh
from .machine import Machine
from .test_unprivileged import as_user, home, user  # noqa: F401 - fixtures
from .weighing import Silent, facts, trials

RUN, OTHER = "5a5a5a5a5a5a", "5c5c5c5c5c5c"
MIB = 2**20
ENVIRONMENT: Any = registry.environments()["wrapper"]
LIMITS = Limits(cpus=0.5, memory=128 * MIB, cpuset="0")


def lacking(name: str) -> str:
    state = ENVIRONMENT.ready(WrapperOptions(preset=name))
    if not state.ready:
        return f"{state.detail}: {state.remedy}"
    if (
        name == "firejail"
        and b"existing sandbox" in run(Command(("firejail", "--noprofile", "--", "true"), 30)).stderr
    ):
        return "firejail starts no sandbox in a container, for example in the machine of these tests"
    return ""


def request_of(run: RunContext, folder: Path, name: str) -> SiteRequest:
    userland = HOST_PROGRAMS.existing(HOST_PROGRAMS.options(folder=str(folder)))
    host: Any = LocalHost(run.id)
    safe: Any = name
    return SiteRequest(run, host, safe, "server", userland, LIMITS, environment=name)


def open_site(run: RunContext, request: SiteRequest, **options: Any) -> Any:
    return run.stack.enter_context(ENVIRONMENT.open(WrapperOptions.model_validate(options), request))


@pytest.fixture(scope="module", params=names())
def sites(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A site of each network that the preset can have, in a folder with a file."""
    if why := lacking(request.param):
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("work")
    (folder / "data").write_text("as it was")
    before = Machine.as_it_is()
    with open_run(RUN) as run:
        opened = {
            network: open_site(
                run, request_of(run, folder, f"{request.param}-{network}"), preset=request.param, network=network
            )
            for network in preset(request.param).network
        }
        yield {**opened, "folder": folder, "preset": request.param}
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("data", "as it was")]
    before.must_be_unchanged()


def each(sites: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from ((network, sites[network]) for network in ("none", "host") if network in sites)


def test_it_is_confined_as_it_claims(sites: dict[str, Any]):
    """Opening proved it. What a program of the site says agrees with the facts."""
    one = preset(sites["preset"])
    for network, site in each(sites):
        facts = {**site.facts(), **about_site(site)}
        status = sh(site, "cat /proc/self/status").text
        assert ("Seccomp:\t2" in status) is (facts["seccomp"] == "filter")
        assert ("NoNewPrivs:\t1" in status) is (facts["new privileges"] == "never")
        assert (facts[OUTSIDE_WRITES] == "allowed") is ("write" in one.lacks)
        assert (facts[OUTSIDE_CONNECTIONS] == "allowed") is (network == "host")
        assert not [key for key in facts if key.startswith("not honoured")], facts
        assert sh(site, "echo x > /run/tried").returncode == 0 or "write" not in one.lacks


def test_programs_run_as_anywhere(sites: dict[str, Any]):
    folder = sites["folder"]
    for _, site in each(sites):
        done = site.run(Command(("sh", "-c", 'echo "$WORD"; echo no >&2; exit 7'), env={"WORD": "yes"}))
        assert (done.stdout, done.stderr, done.returncode) == (b"yes\n", b"no\n", 7)
        done = sh(
            site, f"cd {folder} && cat data && echo changed > data && echo more > new && cat data new && rm new"
        )
        assert done.text.splitlines() == ["as it waschanged", "more"], done
        assert sh(site, "echo x > /tmp/x && cat /tmp/x").text == "x\n"
        assert sh(site, "sleep 60", 1.0).timed_out
        killed = sh(site, "kill -TERM $$")
        assert killed.returncode in (-15, 143)
        assert site.open_files == int(sh(site, "ulimit -n").text)
        site.put("/tmp/put", b"\0data" * 1000)
        assert site.read("/tmp/put") == b"\0data" * 1000


def test_limits_and_freezing_reach_its_programs(sites: dict[str, Any]):
    for _, site in each(sites):
        must_kill_what_takes_too_much(site)
        must_make_no_progress_while_frozen(site)


def test_a_server_is_reached_from_its_host(sites: dict[str, Any]):
    if "host" not in sites:
        pytest.skip("it cannot have the host's network")
    server = "import socket; s = socket.create_server(('127.0.0.1', 20100)); s.accept()[0].sendall(b'served')"
    listener = sites["host"].start(Command(("/usr/bin/python3", "-c", server), 60))
    assert sites["host"].listening((("tcp", 20100),), 10)
    with socket.create_connection(("127.0.0.1", 20100), 10) as client:
        assert client.recv(6) == b"served"
    listener.stop()


@pytest.mark.parametrize("name", ["nsjail", "firejail", "unshare"])
def test_a_switch_leaves_a_mechanism_out(name: str, tmp_path: Path, machine: Machine):
    if why := lacking(name):
        pytest.skip(why)
    fact_off = {"seccomp": ("seccomp", "off")}
    with open_run(OTHER) as run:
        for number, mechanism in enumerate(preset(name).switches):
            site = open_site(run, request_of(run, tmp_path, f"{name}-{number}"), preset=name, omit=[mechanism])
            facts = {**site.facts(), **about_site(site)}
            if mechanism in fact_off:
                fact, value = fact_off[mechanism]
                assert facts[fact] == value, mechanism
            elif mechanism == "pid-namespace":
                assert "pid" not in facts["namespaces"].split()


def test_your_own_command_is_read_and_not_believed(tmp_path: Path, machine: Machine):
    with open_run(OTHER) as run:
        site = open_site(run, request_of(run, tmp_path, "own"), command=["setpriv", "--no-new-privs", "--"])
        facts = {**site.facts(), **about_site(site)}
    assert facts["new privileges"] == "never" and facts[OUTSIDE_WRITES] == facts[OUTSIDE_CONNECTIONS] == "allowed"


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["/nonexistent/box", "--"], "/nonexistent/box"),
        (["sh", "-c", "echo refused >&2; exit 3"], "the wrapper ended with exit code 3: refused$"),
        (["sh", "-c", "echo hello; exec /run/weighbridge-launcher"], "standard output"),
    ],
)
def test_a_wrapper_that_does_not_start_it_is_one_sentence(
    tmp_path: Path, machine: Machine, words: list[str], match: str
):
    with open_run(OTHER) as run:
        with pytest.raises(Unavailable, match=match) as caught:
            open_site(run, request_of(run, tmp_path, "own"), command=words)
        assert "\n" not in str(caught.value)


def test_a_claim_that_does_not_hold_refuses_the_site(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    liar = preset("setpriv").model_copy(update={"denies": frozenset({"write"})})
    monkeypatch.setattr("weighbridge.environments.wrapper.preset", lambda _: liar)
    with open_run(OTHER) as run, pytest.raises(Unavailable, match="claims"):
        open_site(run, request_of(run, tmp_path, "liar"), preset="setpriv")


def test_a_wrapper_that_denies_only_what_it_knows_is_refused(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    script = 'mount -o remount,ro /run && mount -o remount,ro /dev/shm && exec "$@"'
    claims = {"command": ("sh", "-c", script, "fake"), "denies": frozenset({"write"})}
    fake = preset("setpriv").model_copy(update=claims)
    monkeypatch.setattr("weighbridge.environments.wrapper.preset", lambda _: fake)
    with open_run(OTHER) as run, pytest.raises(Unavailable, match="lets its programs write to /run"):
        open_site(run, request_of(run, tmp_path, "fake"), preset="setpriv", omit=[*fake.switches])


def test_a_root_filesystem_that_contains_the_wrapper(small_userland: Userland, tmp_path: Path, machine: Machine):
    with open_run(OTHER) as run:
        request = replace(request_of(run, tmp_path, "packed"), userland=small_userland)
        site = open_site(run, request, preset="setpriv")
        assert sh(site, "echo up").text == "up\n"
        if not (small_userland.root / "usr/bin/landrun").exists():
            with pytest.raises(Unavailable, match="landrun"):
                open_site(run, replace(request, name=replace_name("packed-2")), preset="landrun")


def replace_name(name: str) -> Any:
    return name


@pytest.mark.parametrize("name", names())
def test_what_a_killed_run_leaves_is_found_and_removed(name: str, tmp_path: Path, machine: Machine):
    if why := lacking(name):
        pytest.skip(why)
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:  # a run that is killed: nothing of it is closed
        try:
            with open_run(OTHER) as run:
                site = open_site(run, request_of(run, tmp_path, name), preset=name)
                site.start(Command(("sleep", "600"), 900))
                os.write(go, b"1")
                os.kill(os.getpid(), 9)
        finally:
            os._exit(1)
    os.close(go)
    assert os.read(ready, 1) == b"1"
    os.waitpid(child, 0)
    left = {leftover.kind for leftover in clean.find().left if leftover.run == OTHER}
    assert {"control group", "state folder"} <= left
    clean.sweep(OTHER)
    state.forget(OTHER)
    assert not [leftover for leftover in clean.find().left if leftover.run == OTHER]


STUDY = """
study: sandboxes
question: What does a sandbox cost?
baseline: native
aa: false
userland: host
environments:
  native: {kind: native}
  closed: {kind: wrapper, preset: unshare}
  own: {kind: wrapper, command: [setpriv, --no-new-privs, --]}
workloads:
  dd: {kind: command, run: dd if=/dev/zero of=/dev/null bs=1 count=1000}
  entry: {kind: boot, duration: 0s}
repetitions: {rounds: 1}
"""


def test_a_study(tmp_path: Path, machine: Machine):
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    run_study(load(str(path)), tmp_path / "run", Silent(), lambda _: None)
    rows = trials(tmp_path / "run")
    assert {row["outcome"] for row in rows} == {"ok"} and len(rows) == 6, [row["message"] for row in rows]
    told = facts(tmp_path / "run")
    assert told["closed/server", OUTSIDE_CONNECTIONS].startswith("refused")
    assert told["closed/server", "not covered: write"] and told["own/server", "new privileges"] == "never"


def test_a_user_weighs_a_program(machine: Machine, user: Path):  # noqa: F811
    (user / "note").write_text("mine")
    os.chown(user / "note", 54321, 54321)
    program = ("sh", "-c", "cat note; id -u; echo > new")
    done = as_user(user, "weigh", "--in", "unshare", "--rounds", "1", "--out", user / "run", "--", *program)
    assert done.code in (0, 4), done
    rows = trials(user / "run")
    assert {(row["environment"], row["outcome"]) for row in rows} == {
        (name, "ok") for name in ("native", "unshare", "native-again")
    }, done
    told = facts(user / "run")
    assert told["unshare/server", "users of the site"] == "0 is 54321" and not (user / "new").exists()
