"""A world without processes: sites, programs and workloads that do what a test says."""

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weighbridge.errors import EnvironmentLost, Interrupted, Unavailable
from weighbridge.hosts.local import LocalHost
from weighbridge.model.command import Command, Completed, SiteProcess, Transport, Usage
from weighbridge.model.environment import Environment, Needs
from weighbridge.model.facts import NetworkPath
from weighbridge.model.host import Capabilities, Group, Host, HostTraits, NetworkLink, RunContext
from weighbridge.model.isolation import Layers
from weighbridge.model.measurement import Measurement, Metric, Outcome, ProgramFailed, Unparseable
from weighbridge.model.names import RunId
from weighbridge.model.options import Options
from weighbridge.model.plugin import Readiness
from weighbridge.model.sampling import Sampler
from weighbridge.model.setup import SetupStep
from weighbridge.model.site import Site, SiteEntry, SiteRequest
from weighbridge.model.study import Role, Study
from weighbridge.model.trial import Trial, TrialRecord, TrialResult
from weighbridge.model.userland import Userland, Userlands
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.runner.estimate import Forecast
from weighbridge.runner.precision import PrecisionStatus
from weighbridge.runner.session import Session
from weighbridge.store.run import RunStore
from weighbridge.study.loader import check
from weighbridge.study.source import parse

SPEED = Metric("speed", "x/s", "higher")


@dataclass
class Act:
    """What a program does: its output and code; ``hangs`` for ever; ``lasts`` seconds; never ``listens``.

    A server lasts for so long into the load, however long that took to begin.
    """

    stdout: bytes = b"42"
    stderr: bytes = b""
    returncode: int = 0
    hangs: bool = False
    lasts: float = 0.0
    listens: bool = True
    error: int = 0
    too_much: bool = False
    usage: Usage | None = None
    outside_s: float | None = None
    disconnected_s: float = 0.0
    clock_s: float | None = None
    """How long it runs by the site's clock; None: as long as it does."""
    lost: str = ""
    """The environment is lost when this happens to the program: start, poll, stop."""
    raises: BaseException | None = None


class Program:
    """A started program. Implements ``SiteProcess``."""

    def __init__(self, site: "FakeSite", command: Command, act: Act) -> None:
        self.site, self.command, self.act = site, command, act
        self.begun = time.monotonic()
        self.stopped: Completed | None = None
        if act.raises is not None:
            raise act.raises
        self._lost("start")

    def _lost(self, when: str) -> None:
        if self.act.lost == when:
            raise EnvironmentLost(f"{self.site.name} went away at {when}")

    def _over(self) -> bool:
        if self.act.hangs:
            return False
        begun = self.begun
        if self.act.lasts and self.site.role == "server":
            loads = [each.begun for each in self.site.world.programs if each.site.role != "server"]
            begun = max(loads, default=math.inf)
        return time.monotonic() >= begun + self.act.lasts

    def poll(self) -> int | None:
        self._lost("poll")
        return self.act.returncode if self.stopped or self._over() else None

    def printed(self) -> tuple[bytes, bytes]:
        return self.act.stdout, self.act.stderr

    def wait(self, timeout_s: float) -> bool:
        if not self._over():
            time.sleep(min(timeout_s, 0.005))
        return self._over()

    def stop(self, *, timed_out: bool = False) -> Completed:
        self._lost("stop")
        if self.stopped is None:
            code = self.act.returncode if self._over() else -15
            duration = time.monotonic() - self.begun if self.act.clock_s is None else self.act.clock_s
            self.stopped = Completed(
                self.command.argv, code, self.act.stdout, self.act.stderr, duration, timed_out,
                error=self.act.error, too_much=self.act.too_much, usage=self.act.usage, outside_s=self.act.outside_s,
                disconnected_s=self.act.disconnected_s,
            )  # fmt: skip
        return self.stopped


class FakeHost(LocalHost):
    """This machine with two CPUs, no files and a cable that is noted. Implements ``Host``."""

    def __init__(self, world: "World") -> None:
        super().__init__(RunId("0123456789ab"))
        self._world = world
        self.hypervisor: Group | None = None

    def read(self, path: str) -> bytes:
        raise FileNotFoundError(path)

    def cpus_online(self) -> list[int]:
        return [0, 1]

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(limit_link=self.set_link, hypervisor=self.hypervisor)

    def set_link(self, limited: bool) -> None:
        self._world.limited.append(limited)


@dataclass
class FakeSite:
    """Implements ``Site``; it refuses to run anything while it is frozen."""

    world: "World"
    name: str
    place: str
    role: str
    frozen: bool = False
    closed: bool = False
    address: str = "198.51.100.1"
    listen: str = "0.0.0.0"
    host: Host = field(init=False)
    links: tuple[NetworkLink, ...] = ()
    open_files: int = 1024
    layers: Layers = field(init=False)
    title: str = field(init=False)
    counted: bool = True
    round_trip_s: float = 0.0
    reached: Mapping[int, int] = field(default_factory=dict)
    assigned_ports: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.host, self.title = FakeHost(self.world), self.place
        self.layers = (*self.host.layers, *self.world.layers.get(self.place, ()))

    def start(self, command: Command) -> Program:
        assert not self.frozen, f"{self.name} is frozen"
        assert not self.closed
        self.world.started.append((self.place, command.argv, self.world.awake()))
        program = Program(self, command, self.world.act(self, command))
        self.world.programs.append(program)
        return program

    def run(self, command: Command) -> Completed:
        assert not self.frozen
        self.world.ran.append((self.name, command.argv))
        self.world.given.append(command.stdin)
        if command.argv == self.world.fails:
            return Completed(command.argv, 1, b"", b"no space left", 0.0)
        return Completed(command.argv, 0, b"", b"", 0.0)

    def read(self, path: str) -> bytes:
        assert not self.frozen
        return path.encode()

    def put(self, path: str, data: bytes, mode: int = 0o644) -> None:
        assert not self.frozen
        self.world.modes[self.name, path] = mode
        self.world.files[self.name, path] = data

    def listening(self, ports: Sequence[tuple[str, int]], within_s: float = 0.0) -> bool:
        assert not self.frozen
        time.sleep(min(within_s, 0.002))
        mine = [p for p in self.world.programs if p.site is self and p.command.listens and not p.stopped]
        return self.world.port_in_use or any(p.act.listens and p.poll() is None for p in mine)

    def freeze(self) -> None:
        self.frozen = True

    def thaw(self) -> None:
        self.frozen = False

    def meters(self) -> dict[str, float]:
        return {"cpu_s": 1.0, "memory_bytes": 4096.0, "oom_kills": self.world.oom_kills()}

    def memory(self) -> dict[str, int]:
        return {"total": 2**34, "available": 2**33}

    def guest_meters(self) -> dict[str, float]:
        if self.layers == self.host.layers:
            return {}
        self.world.guest_cpu_s += 1.5
        return {"guest_cpu_s": self.world.guest_cpu_s, "guest_steal_s": 0.25}

    sampler: Sampler | None = None
    opening_phases: Mapping[str, float] = field(default_factory=dict)

    def entering(self) -> SiteEntry | None:
        return self.world.entry

    def scope(self) -> dict[str, str]:
        return {"cpuacct.usage": f"/groups/{self.name}/cpuacct.usage"}

    def facts(self) -> dict[str, str]:
        return {"place": self.place}


class Layer(Environment):
    """An environment of the fake world."""

    summary = "a layer that a test made up"
    options = Options

    def __init__(self, world: "World", kind: str) -> None:
        self.kind = kind
        self.world = world

    def as_host(self, traits: HostTraits) -> Options | None:
        return Options() if self.kind == "native" else None

    def ready(self, options: Any | None = None, needs: Needs | None = None) -> Readiness:
        return (self.kind == "fake" and self.world.not_ready) or Readiness(True)

    def opens_in_order(self, options: Any) -> str:
        return self.world.orders.get(self.kind, "")

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[FakeSite]:
        if request.name.split("-")[1] in self.world.cannot_open:
            raise EnvironmentLost(f"cannot open {request.name}")
        if (why := self.world.unavailable.get("-".join(request.name.split("-")[1:]))) is not None:
            raise Unavailable(why)
        self.world.at_open(request)
        site = FakeSite(self.world, request.name, "-".join(request.name.split("-")[1:-1]), request.role)
        self.world.sites.append(site)
        self.world.requests.append(request)
        try:
            yield site
        finally:
            site.closed = True


class Load(Options):
    """Options of the fake workloads."""

    n: int = 1
    warm: bool = False


ROLES: tuple[Role, ...] = ("server", "client")


class FakeWorkload(Workload):
    """Prints a number; an exit code or anything else is a failure."""

    summary = "prints a number"
    packages = ("fake",)
    options = Load
    kind = "fake"
    deadline_s = 5.0
    wants: Command | None = None
    its_load = ""

    def transports(self, options: Load) -> tuple[Transport, ...]:
        return ("tcp",)

    def load(self, options: Load) -> str:
        return self.its_load

    def prepare(self, options: Load, at: Endpoint) -> Command | None:
        return self.wants

    def files(self, role: Role, options: Load, at: Endpoint) -> dict[str, bytes]:
        return {f"/tmp/of-{role}": b"page"} if self.wants else {}

    def metrics(self, options: Load) -> tuple[Metric, ...]:
        return (SPEED,)

    def command(self, role: Role, options: Load, at: Endpoint) -> Command:
        listens: tuple[tuple[Transport, int], ...] = (("tcp", at.port),) if role == "server" else ()
        return Command((role, str(options.n)), deadline_s=self.deadline_s, listens=listens)

    def warm_up(self, options: Load, at: Endpoint) -> Command | None:
        return Command(("warm-up",), deadline_s=self.deadline_s) if options.warm else None

    def expected_s(self, options: Load) -> float:
        return 0.0

    def parse(self, options: Load, completed: Mapping[str, Completed]) -> TrialResult:
        done = completed[self.roles(options)[-1]]
        if done.returncode != 0:
            raise ProgramFailed(f"exit code {done.returncode}: {done.last_words}")
        try:
            return TrialResult((Measurement(SPEED, float(done.stdout)),))
        except ValueError:
            raise Unparseable(f"not a number: {done.text!r}") from None


class FakeSolo(FakeWorkload):
    """The same alone."""

    kind = "fake-solo"

    def transports(self, options: Load) -> tuple[Transport, ...]:
        return ()


@dataclass
class World:
    """What there is, and what happens in it: ``act`` says what each started program does."""

    act: Callable[[FakeSite, Command], Act] = lambda *_: Act(hangs=False)
    sites: list[FakeSite] = field(default_factory=list)
    requests: list[SiteRequest] = field(default_factory=list)
    programs: list[Program] = field(default_factory=list)
    started: list[tuple[str, tuple[str, ...], set[str]]] = field(default_factory=list)
    limited: list[bool] = field(default_factory=list)
    """Whether the host's cable was to be limited, at each stage."""
    port_in_use: bool = False
    path: NetworkPath | None = field(default_factory=lambda: NetworkPath(transport="tcp", interfaces=()))
    ran: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    modes: dict[tuple[str, str], int] = field(default_factory=dict)
    given: list[bytes] = field(default_factory=list)
    """What was on the standard input of each of those that ran."""
    files: dict[tuple[str, str], bytes] = field(default_factory=dict)
    fails: tuple[str, ...] = ()
    guest_cpu_s: float = 0.0
    oom_kills: Callable[[], float] = lambda: 0.0
    cannot_open: set[str] = field(default_factory=set)
    at_open: Callable[[SiteRequest], None] = lambda _: None
    """Called in the thread that opens a site."""
    orders: dict[str, str] = field(default_factory=dict)
    """What `Environment.opens_in_order` returns, by kind."""
    unavailable: dict[str, str] = field(default_factory=dict)
    """Sites that cannot be opened, by environment and role (``two-server``), and why."""
    not_ready: Readiness | None = None
    """What is said of the kind ``fake``, where not that it is ready."""
    layers: dict[str, Layers] = field(default_factory=dict)
    """The hypervisors of each environment's sites."""
    entry: SiteEntry | None = None
    """How the host enters each site."""
    solo: FakeSolo = field(default_factory=FakeSolo)
    network: FakeWorkload = field(default_factory=FakeWorkload)

    def __post_init__(self) -> None:
        self.environments = {kind: Layer(self, kind) for kind in ("native", "fake")}
        self.workloads = {"fake": self.network, "fake-solo": self.solo}

    def awake(self) -> set[str]:
        """The sites that are not frozen."""
        return {site.name for site in self.sites if not site.frozen}

    def left(self) -> list[object]:
        """What still runs or is open."""
        return [p for p in self.programs if p.stopped is None] + [site for site in self.sites if not site.closed]


def usual(site: FakeSite, command: Command) -> Act:
    """A server that stays until it is stopped, clients that print 42."""
    return Act(stdout=b"", hangs=True) if command.argv[0] == "server" else Act()


TEXT = """\
study: made-up
question: What does it cost?
meters: {{source: off}}
{more}
baseline: native
environments: {{native: {{kind: native}}, one: {{kind: fake{one}}}, two: {{kind: fake{two}}}}}
workloads: {{{workloads}}}
repetitions: {{{repetitions}}}
"""


def study(
    workloads: str = "net: {kind: fake}, cpu: {kind: fake-solo}",
    *,
    blocks: int = 2,
    more: str = "",
    repetitions: str = "",
    optional: Collection[str] = (),
) -> Study:
    """A study of three environments in the fake world (whose registry must be in place)."""
    given = {name: ", optional: true" if name in optional else "" for name in ("one", "two")}
    repetitions = repetitions or f"blocks: {blocks}"
    text = TEXT.format(workloads=workloads, repetitions=repetitions, more=more, **given)
    return check(parse(text, "made-up.yaml"))


@contextmanager
def context(tmp_path: Path) -> Iterator[RunContext]:
    """What the sites of a run share."""
    with ExitStack() as stack:
        yield RunContext(RunId("0123456789ab"), tmp_path, tmp_path, stack)


USERLAND = Userlands(Userland("d" * 64, Path("/nonexistent/root"), Path("/nonexistent/root.tar"), {}))


@dataclass
class Told:
    """Progress that is noted."""

    lines: list[str] = field(default_factory=list)
    begun: list[Trial] = field(default_factory=list)
    records: list[TrialRecord] = field(default_factory=list)
    counts: list[tuple[int, int]] = field(default_factory=list)
    left: list[Forecast] = field(default_factory=list)
    steps: list[Sequence[SetupStep]] = field(default_factory=list)
    statuses: list[Sequence[PrecisionStatus]] = field(default_factory=list)
    at_begin: Callable[[Trial], None] = lambda _: None
    interrupt_at: int = 0
    """The number of the trial at whose begin the run is interrupted."""
    layers: Mapping[str, object] | None = None
    noticed: list[tuple[int, object]] = field(default_factory=list)
    """After how many trials what was told of others."""
    times: list[tuple[int, float, Forecast]] = field(default_factory=list)
    """After how many trials what was told of the time."""
    estimates: list[tuple[int, Sequence[object]]] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.lines.append(text)

    def layers_known(self, layers: Mapping[str, object]) -> None:
        self.layers = layers

    def waits(self, steps: Sequence[SetupStep]) -> None:
        self.steps.append(steps)

    def trial_started(self, trial: Trial, finished: int, total: int, left: Forecast) -> None:
        self.begun.append(trial)
        self.counts.append((finished, total))
        self.left.append(left)
        self.at_begin(trial)
        if len(self.begun) == self.interrupt_at:
            raise Interrupted(2)

    def trial_finished(self, record: TrialRecord) -> None:
        self.records.append(record)

    def precision_checked(self, blocks: int, statuses: Sequence[PrecisionStatus]) -> None:
        self.lines.append(f"looked after {blocks}")
        self.statuses.append(statuses)

    def interference_noticed(self, out_of_reach: object) -> None:
        self.noticed.append((len(self.records), out_of_reach))

    def time_known(self, trial_s: float, left: Forecast) -> None:
        self.times.append((len(self.records), trial_s, left))

    def costs_estimated(self, blocks: int, estimates: Sequence[object]) -> None:
        self.estimates.append((blocks, estimates))


@contextmanager
def begun(path: Path, made: Study) -> Iterator[tuple[RunStore, RunContext]]:
    """The run in a directory, which begins with the study or goes on."""
    with RunStore(path / "run", writable=True) as store, context(path) as run:
        if "study" not in store.info():
            store.begin(made, {"run_id": run.id})
        yield store, run


def go(path: Path, made: Study, told: Told | None = None, **session: Any) -> Told:
    """Run a session into a directory, as ``run_study`` does."""
    told = told or Told()
    with begun(path, made) as (store, run):
        Session(made, store, run, USERLAND, told, **session).go()
    return told


def finished(path: Path) -> dict[Trial, Outcome]:
    """The trials in a directory, and how they ended."""
    with RunStore(path / "run") as store:
        return store.finished()


if TYPE_CHECKING:
    from weighbridge.runner.session import Progress

    def _are_what_they_stand_for(site: FakeSite, program: Program, told: Told) -> tuple[Site, SiteProcess, Progress]:
        return site, program, told
