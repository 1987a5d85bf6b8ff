"""The launcher itself: in an image that has nothing else, what it costs, and that nothing outlives it."""

import contextlib
import http.server
import os
import random
import resource
import signal
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median

import pytest

from weighbridge import registry
from weighbridge.facts.io_uring import about_io_uring
from weighbridge.features.kubernetes import session as sessions
from weighbridge.features.kubernetes.networking import proxy_mode
from weighbridge.features.kubernetes.session import ConnectionLoss, SessionStream
from weighbridge.hosts.local import LocalHost
from weighbridge.launcher import build
from weighbridge.launcher.launch import Launcher
from weighbridge.launcher.within import within
from weighbridge.linux import process
from weighbridge.linux.process import Process, SocketStream
from weighbridge.model.command import SITE_ENV, Command, Completed, Transport
from weighbridge.model.facts import IO_URING, IO_URING_ALLOWED
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.sampling import SampledFile
from weighbridge.model.site import Site, SiteRequest
from weighbridge.model.userland import Userland

from .conftest import open_run
from .programs import PATIENCE_S, await_that, started

RUN = "1a0c4e5f5a1b"
MIB = 2**20
NO_OP = "int main(int count, char **words) { (void)words; return count + 2; }"
STARTS = 60
_numbers = count()


@pytest.fixture(scope="module")
def run(userland: Userland) -> Iterator[RunContext]:
    with open_run(RUN) as opened:
        yield opened


@pytest.fixture(scope="module")
def alone(run: RunContext, tmp_path_factory: pytest.TempPathFactory) -> Userland:
    """A root folder that holds one static program and nothing else."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "no-op.c").write_text(NO_OP)
    root = folder / "root"
    for name in ("proc", "sys", "dev", "tmp", "run", "srv"):
        (root / name).mkdir(parents=True)
    subprocess.run(["cc", "-static", "-O2", "-o", root / "no-op", folder / "no-op.c"], check=True)
    with tarfile.open(folder / "root.tar", "w") as tar:
        tar.add(root / "no-op", "no-op")
    return Userland("0" * 64, root, folder / "root.tar", {})


@pytest.fixture(scope="module", params=["native", "docker"])
def site(request: pytest.FixtureRequest, run: RunContext, small_userland: Userland) -> Iterator[Site]:
    yield from opened(run, request.param, small_userland)


@pytest.fixture(scope="module", params=["native", "docker"])
def bare(request: pytest.FixtureRequest, run: RunContext, alone: Userland) -> Iterator[Site]:
    """A site in the root folder without anything."""
    yield from opened(run, request.param, alone)


def opened(run: RunContext, kind: str, userland: Userland, **options: str) -> Iterator[Site]:
    environment = registry.environments()[kind]
    name = f"{next(_numbers)}-{kind}"
    request = SiteRequest(run, LocalHost(run.id), name, "solo", userland, Limits(memory=512 * MIB))
    with environment.open(environment.options(**options), request) as site:
        yield site


def test_an_image_of_one_static_program_is_enough(bare: Site):
    done = bare.run(Command(("/no-op", "a", "b")))
    assert (done.returncode, done.stdout, done.stderr) == (5, b"", b"")
    assert done.usage is not None and done.usage.peak_memory < 8 * MIB
    assert bare.run(Command(("sh", "-c", "true"))).error
    bare.put("/tmp/there", b"kept")
    assert bare.read("/tmp/there") == b"kept"
    assert not bare.listening((("tcp", 1),))
    with pytest.raises(FileNotFoundError):
        bare.read("/var/lib/dpkg/status")


LISTENING = (
    "use Socket; select(undef, undef, undef, 0.3);"
    "socket(S, PF_INET, $ARGV[0] eq 'tcp' ? SOCK_STREAM : SOCK_DGRAM, 0);"
    "bind(S, sockaddr_in($ARGV[1], INADDR_ANY)) or die; $ARGV[0] eq 'udp' or listen(S, 5); sleep 60"
)


@pytest.mark.measures
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_who_waits_for_a_port_is_told_at_once(site: Site, transport: Transport):
    port = ((transport, site.host.free_ports()),)
    assert not site.listening(port)
    before = time.monotonic()
    with started(site, "perl", "-e", LISTENING, transport, str(port[0][1])):
        assert site.listening(port, 10)
        assert 0.3 < time.monotonic() - before < 5
    assert not site.listening(port)


@pytest.mark.measures
def test_who_waits_for_a_port_is_told_of_a_program_that_ended(site: Site):
    before = time.monotonic()
    running = site.start(Command(("sh", "-c", "sleep 0.2; exit 3")))
    assert not site.listening((("tcp", 1),), 10)
    assert time.monotonic() - before < 5
    assert running.wait(5) and running.stop().returncode == 3


@pytest.mark.measures(alone=True)
def test_what_a_start_takes(bare: Site):
    """Issue: at most 3 ms to start, run and take up a program that does nothing; here with the way there and back."""
    began, inside = [], []
    for _ in range(STARTS):
        before = time.perf_counter()
        done = bare.run(Command(("/no-op",)))
        began.append(time.perf_counter() - before)
        inside.append(done.duration_s)
        assert done.outside_s is not None and done.outside_s >= done.duration_s
    print(f"{median(inside) * 1e3:.2f} ms inside, {median(began) * 1e3:.2f} ms there and back")
    assert median(inside) < 0.003
    assert median(began) < 0.010


@pytest.mark.measures(alone=True)
def test_it_takes_little_and_nothing_while_a_program_sleeps(site: Site):
    with started(site, "sleep", "60"):
        time.sleep(0.3)
        before = site.meters()
        time.sleep(1)
        after = site.meters()
    assert after["cpu_s"] - before["cpu_s"] < 0.005
    lines = Path(f"/proc/{site.pid}/status").read_text().splitlines()  # type: ignore[attr-defined]
    (resident,) = [line for line in lines if line.startswith("VmHWM")]
    assert int(resident.split()[1]) * 1024 < 8 * MIB


@pytest.mark.measures
def test_times_and_counts_are_those_of_the_program(site: Site):
    busy = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sleep 0.2"
    done = site.run(Command(("sh", "-c", busy)))
    usage = done.usage
    assert usage is not None
    assert 0.2 < usage.cpu_user_s + usage.cpu_system_s + 0.2 <= done.duration_s + 0.02
    assert usage.switches >= 1 and usage.minor_faults > 10 and usage.peak_memory > 500_000


LEAVES = "setsid sh -c 'setsid sleep 300 & sleep 300; true' & sleep 0.2"
"""Three processes outlive it, in two sessions of their own."""


def test_nobody_outlives_the_last_program(site: Site):
    site.run(Command(("sh", "-c", LEAVES)))
    assert _alone(site), "it could be of nobody else"
    other = site.start(Command(("sleep", "300")))
    site.run(Command(("sh", "-c", LEAVES)))
    assert len(_children(site.pid)) == 4, "it may be of whoever still runs"  # type: ignore[attr-defined]
    other.stop()
    assert _alone(site)


@pytest.mark.parametrize(
    ("script", "left"),
    [
        ("sleep 0.05 & wait", False),
        ("yes | head -1; (sleep 0.05 &); sleep 0.2", False),
        ("sleep 300 & exit 0", True),
        ("setsid sleep 300 & sleep 0.1", True),
        (LEAVES, True),
        ("sleep 300 & kill -9 $!", False),
        ("setsid sleep 300 & sleep 0.1; kill -9 $!", False),
        ("sleep 300 & kill -9 $!; setsid sleep 300 & sleep 0.1", True),
    ],
)
def test_a_program_that_forks_away_is_seen(site: Site, script: str, left: bool):
    assert site.run(Command(("sh", "-c", script))).left_running is left
    assert site.run(Command(("true",))).left_running is False


def test_every_process_may_have_as_many_open_files_as_ours(site: Site):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert site.open_files == most
    assert site.run(Command(("sh", "-c", "ulimit -Sn; ulimit -Hn"))).text.split() == [str(most)] * 2


def test_orphans_are_taken_up_and_seen(site: Site):
    other = site.start(Command(("sleep", "300")))
    own_session = "setsid sh -c 'echo > /tmp/own; exec sleep 300' & until [ -e /tmp/own ]; do sleep 0.01; done"
    pid: int = site.pid  # type: ignore[attr-defined]
    await_that(partial(_has_children, pid, 1))
    before = {*_children(pid)}
    site.run(Command(("sh", "-c", own_session)))
    (orphan,) = {*_children(pid)} - before  # it outlived its leader
    os.kill(orphan, signal.SIGKILL)
    await_that(lambda: {*_children(pid)} == before)
    other.stop()
    assert _alone(site)
    states = [_state(each) for each in _children(pid)]
    assert "Z" not in states


def test_what_a_program_prints_is_known_while_it_runs(site: Site):
    script = "echo first; echo wrong >&2; until [ -e /tmp/go ]; do sleep 0.01; done; echo second; sleep 300"
    running = site.start(Command(("sh", "-c", script), 300))
    await_that(lambda: running.printed() == (b"first\n", b"wrong\n"))
    site.put("/tmp/go", b"")
    await_that(lambda: running.printed() == (b"first\nsecond\n", b"wrong\n"))
    assert running.poll() is None
    done = running.stop()
    assert (done.stdout, done.stderr) == (b"first\nsecond\n", b"wrong\n") and running.printed()[0] == done.stdout
    much = site.start(Command(("sh", "-c", "head -c 1000000 /dev/zero; echo all >&2; sleep 300"), 300))
    await_that(lambda: much.printed()[1] == b"all\n")
    assert len(much.printed()[0]) == 256 * 1024
    assert len(much.stop().stdout) == 1000000


def test_what_it_may_print_has_a_bound(site: Site):
    done = site.run(Command(("sh", "-c", "yes | head -c 80000000; sleep 600"), 600))
    assert done.too_much and len(done.stdout) == 64 * MIB
    assert done.duration_s < 300, "it was ended before its time"


def test_nobody_outlives_its_stream(run: RunContext, small_userland: Userland):
    for kind in ("native", "docker"):
        for open_site in opened(run, kind, small_userland):
            open_site.start(Command(("sh", "-c", "setsid sleep 300 & trap '' TERM; sleep 300")))
            pid: int = open_site.pid  # type: ignore[attr-defined]
            await_that(partial(_has_children, pid, 2))
            family = [pid, *_children(pid)]
        assert not [each for each in family if _state(each) not in ("", "Z")]


def test_a_site_that_is_frozen_is_closed_all_the_same(run: RunContext, small_userland: Userland):
    for kind in ("native", "docker"):
        begun = time.monotonic()
        for open_site in opened(run, kind, small_userland):
            open_site.start(Command(("sleep", "600")))
            pid: int = open_site.pid  # type: ignore[attr-defined]
            await_that(partial(_has_children, pid, 1))
            family = [pid, *_children(pid)]
            open_site.freeze()
            assert [_state(each) for each in family] != ["S", "S"], "it is not alone: it is frozen"
        assert time.monotonic() - begun < 300
        assert not [each for each in family if _state(each) not in ("", "Z")]


def test_a_big_file_and_much_input_take_no_more_than_themselves(run: RunContext, small_userland: Userland):
    """Of a memory limit of 96 MiB; and a small program's peak is its own."""
    for kind in ("native", "docker"):
        environment = registry.environments()[kind]
        limits = Limits(memory=96 * MIB)
        request = SiteRequest(run, LocalHost(run.id), f"{next(_numbers)}-{kind}", "solo", small_userland, limits)
        with environment.open(environment.options(), request) as open_site:
            open_site.put("/tmp/big", b"x" * 64 * MIB)
            done = open_site.run(Command(("wc", "-c", "/tmp/big")))
            assert done.text.split()[0] == str(64 * MIB)
            assert done.usage is not None and done.usage.peak_memory < 4 * MIB


def test_a_small_programs_peak_is_its_own(bare: Site):
    """Whatever the launcher has held before, and holds of its input: a child begins in the launcher's memory."""

    def peak(stdin: bytes = b"") -> int:
        usage = bare.run(Command(("/no-op",), stdin=stdin)).usage
        assert usage is not None
        return usage.peak_memory

    bare.put("/tmp/big", b"x" * 32 * MIB)
    bare.read("/tmp/big")
    peaks = [peak(), peak(b"x" * 8 * MIB), peak(), peak(b"x" * MIB), peak()]
    print(f"{[each / MIB for each in peaks]} MiB")
    assert max(peaks) < MIB


def test_programs_have_what_the_documentation_says(site: Site, request: pytest.FixtureRequest):
    """Whatever the shell is set to from which this was started; of /dev/shm the size in KiB, and that it is empty."""
    script = "umask; nice; df -k /dev/shm | tail -1 | awk '{print $2}'; ls -A /dev/shm | wc -l"
    machines = os.statvfs("/dev/shm")
    sizes = {"native": machines.f_blocks * machines.f_frsize // 1024, "docker": 64 * 1024}
    size = sizes[request.node.callspec.params["site"]]
    assert site.run(Command(("sh", "-c", script))).text.split() == ["0022", "0", str(size), "0"]


def test_a_launcher_that_is_killed_takes_its_programs_along(run: RunContext, small_userland: Userland):
    for open_site in opened(run, "native", small_userland):
        running = open_site.start(Command(("sleep", "300")))
        pid: int = open_site.pid  # type: ignore[attr-defined]
        await_that(partial(_has_children, pid, 1))
        (child,) = _children(pid)
        os.kill(pid, signal.SIGKILL)
        assert running.wait(PATIENCE_S)
        await_that(partial(_has_ended, child))


class BehindASocket:
    """One that is the first process of a namespace, as in a pod, and what carries its stream."""

    def __init__(self, program: str, socket: str, lease_s: int) -> None:
        own = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
        self.waiting = Process(Command((*own, program, "--lease", str(lease_s), "--listen", socket)))
        self._carries = Command((program, "--connect", socket))
        self.carriers: list[Process] = []
        self.stream = SessionStream(self._connect, lambda _: ConnectionLoss("cut", 45), print)
        self.launcher = Launcher(self.stream, "site", lambda: self.stream.why, SITE_ENV)

    def _connect(self) -> tuple[Process, SocketStream]:
        carrier, stream = process.talk(self._carries)
        self.carriers.append(carrier)
        return carrier, stream


@contextmanager
def behind_a_socket(run: RunContext, folder: Path, lease_s: int = 600) -> Iterator[BehindASocket]:
    there = BehindASocket(str(build.ensure(run.cache, print)), str(folder / "stream"), lease_s)
    try:
        with there.launcher:
            yield there
        assert there.waiting.wait(PATIENCE_S) and there.waiting.poll() == 0, "it ends when it is told to"
    finally:
        there.stream.close()
        there.waiting.stop()


def test_its_stream_may_come_by_a_socket(run: RunContext, tmp_path: Path):
    with behind_a_socket(run, tmp_path) as there:
        assert there.launcher.run(Command(("echo", "there"))).stdout == b"there\n"
        there.launcher.start(Command(("sleep", "60"), deadline_s=60))
    assert not (tmp_path / "stream").exists()


def test_without_a_connection_it_ends_after_its_lease(
    run: RunContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with behind_a_socket(run, tmp_path, lease_s=1) as there:
        there.launcher.start(Command(("sleep", "60"), deadline_s=60))
        monkeypatch.setattr(there.stream, "_start_connection", lambda: setattr(there.stream, "why", "given up"))
        before = time.monotonic()
        there.carriers[-1].stop()
        assert there.waiting.wait(PATIENCE_S) and time.monotonic() - before > 0.9


def test_connections_that_break_lose_nothing(run: RunContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Killed while output comes and files go, with what was on its way: the far end is the one of C."""
    monkeypatch.setattr(sessions, "_PAUSE_S", 0.01)
    data, chances = os.urandom(5 * MIB), random.Random(20170611)
    with behind_a_socket(run, tmp_path) as there:
        over = threading.Event()

        def cut() -> None:
            while not over.wait(chances.uniform(0.005, 0.03)):
                os.kill(there.carriers[-1].pid, signal.SIGKILL)

        cutter = threading.Thread(target=cut)
        cutter.start()
        for _ in range(3):
            there.launcher.put("/tmp/wb-session", data)
            assert there.launcher.read("/tmp/wb-session") == data
            printed = there.launcher.run(Command(("sh", "-c", "cat /tmp/wb-session; rm /tmp/wb-session"), 60))
            assert printed.stdout == data
        over.set()
        cutter.join()
        assert len(there.carriers) > 10 and there.stream.disconnected_s > 0
        assert there.launcher.run(Command(("true",))).returncode == 0


def test_what_runs_in_a_site_can_be_stopped_by_signals(run: RunContext, tmp_path: Path):
    tree = "(while :; do echo x; sleep 0.01; done) & wait"
    with behind_a_socket(run, tmp_path) as there:
        launcher = there.launcher
        program = launcher.start(Command(("sh", "-c", tree), deadline_s=60))
        while not program.printed()[0]:
            program.wait(0.01)
        launcher.pause(stopped=True)
        before = program.printed()[0]
        assert not program.wait(0.3) and program.printed()[0] == before and not launcher.alone()
        launcher.pause(stopped=False)
        while program.printed()[0] == before:
            program.wait(0.01)
        launcher.pause(stopped=True)
    with behind_a_socket(run, tmp_path) as there:
        assert there.launcher.alone()
        there.launcher.pause(stopped=True)


def test_one_among_the_machines_processes_stops_its_own_alone(run: RunContext, small_userland: Userland):
    def stopped() -> set[str]:
        found = set()
        for each in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ends meanwhile
                found |= {each.parent.name} if ") T " in each.read_text() else set()
        return found

    with contextmanager(opened)(run, "native", small_userland) as native:
        others, program = stopped(), native.start(Command(("sh", "-c", "sleep 60 & echo x; wait"), deadline_s=60))
        while not program.printed()[0]:
            program.wait(0.01)
        native._launcher.pause(stopped=True)  # type: ignore[attr-defined]
        assert len(stopped() - others) == 2
        native._launcher.pause(stopped=False)  # type: ignore[attr-defined]
        assert not stopped() - others and program.stop().returncode < 0


def test_it_becomes_another_program_in_a_control_group(run: RunContext):
    host = LocalHost(run.id)
    group = host.group("within")
    try:
        done = host.run(Command(within(host, run, group, "cat", "/proc/self/cgroup"), 10))
        refused = host.run(Command(within(host, run, group, "/no/such/program"), 10))
    finally:
        assert group.remove()
    assert done.returncode == 0
    assert f"weighbridge/{run.id}/within" in done.text
    assert refused.returncode == 1
    assert b"/no/such/program" in refused.stdout


def _alone(site: Site) -> bool:
    found: bool = site._launcher.alone()  # type: ignore[attr-defined]
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [int(child), *_children(int(child))]
    return found


def _has_children(pid: int, number: int) -> bool:
    return len(_children(pid)) >= number


def _has_ended(pid: int) -> bool:
    return _state(pid) in ("", "Z")


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def test_it_reads_files_at_a_steady_rate(run: RunContext, tmp_path: Path):
    counter, group = tmp_path / "counter", tmp_path / "cgroup.procs"
    counter.write_text("0")
    group.write_text("1\n4194303\n")
    paths = (str(counter), "/proc/stat", "/proc/net/dev", "/nosuch", str(group), "/proc/loadavg")
    files = [SampledFile(path, 256 if path == "/proc/stat" else 1 << 20, path == "/proc/loadavg") for path in paths]
    with behind_a_socket(run, tmp_path) as there:
        launcher = there.launcher
        with pytest.raises(OSError, match="No such process"):
            launcher.end_sampling()
        launcher.begin_sampling(10.0, files)
        counter.write_text("1")
        assert launcher.run(Command(("sleep", "2"), deadline_s=60)).returncode == 0
        told = launcher.end_sampling()
    counters, stat, net, absent, disks, load = told.texts
    assert 18 <= len(told.at) <= 23 and told.at[0] < 0.001 and told.at == sorted(told.at)
    assert counters == ["0", *["1"] * (len(told.at) - 1)]
    assert {len(text or "") for text in stat} == {256} and "lo:" in (net[-1] or "") and {*absent} == {None}
    assert (disks[0] or "").startswith("pid: 1\nrchar: ")
    assert load[0] and load[-1] and 3 <= len([*filter(None, load)]) <= 5
    assert told.cpu_s < 0.005 * told.at[-1], "of one CPU"


def test_a_program_of_the_machine_is_asked_over_http(run: RunContext, tmp_path: Path):
    class Answering(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/proxyMode" else 404)
            self.end_headers()
            self.wfile.write(b"nftables")

        def log_message(self, *_: object) -> None: ...

    def asked(path: str) -> Completed:
        return launcher.run(Command(("/proc/self/exe", "probe-http", "127.0.0.1", str(server.server_port), path)))

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with behind_a_socket(run, tmp_path) as there:
        launcher = there.launcher
        assert proxy_mode(asked("/proxyMode").stdout, ()) == "nftables"
        assert proxy_mode(asked("/").stdout, ()) == ""
        server.shutdown()
        server.server_close()
        gone = asked("/")
    assert gone.returncode == 1 and gone.stderr == b"connect: Connection refused\n"


def test_io_uring_is_tried_inside(run: RunContext, alone: Userland):
    """A filter refuses it to a container. Without one a container is as the machine, of whatever kernel."""
    in_site = contextmanager(opened)
    launcher = partial(str, build.ensure(run.cache, run.say))
    with in_site(run, "native", alone) as site:
        native = about_io_uring(site, launcher)
    states = {}
    for seccomp in ("unconfined", "no-io-uring"):
        with in_site(run, "docker", alone, network="none", seccomp=seccomp) as site:
            states[seccomp] = about_io_uring(site, launcher)
    assert states["unconfined"] == native
    if native == {IO_URING: IO_URING_ALLOWED}:
        assert states["no-io-uring"] == {IO_URING: "refused (EPERM, seccomp)"}
