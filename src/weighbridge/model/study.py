"""A study as it is run: every sweep expanded, every quantity in its base unit."""

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializeAsAny,
)

from weighbridge.model.companion import Companion
from weighbridge.model.compose import ComposeOptions
from weighbridge.model.cpus import CpuList
from weighbridge.model.host_options import HostOptions
from weighbridge.model.idle import CpuIdle
from weighbridge.model.ladder import Rung, rungs_as_written, rungs_written
from weighbridge.model.level import Level, cell_label
from weighbridge.model.monitoring import Prometheus
from weighbridge.model.options import Brings, Name, Options, by_kind
from weighbridge.model.quantity import Duration, Share, Size
from weighbridge.model.repetitions import Repetitions
from weighbridge.model.source_options import SourceOptions, own_userland_key

__all__ = [
    "CLIENT",
    "Arm",
    "Brings",
    "Cell",
    "CpuList",
    "Level",
    "Meters",
    "Name",
    "Options",
    "Placement",
    "Prometheus",
    "Repetitions",
    "Resources",
    "Role",
    "Study",
    "StudyFile",
]

Role = Literal["server", "client", "solo"]
"""``server`` and ``client`` of a network workload; ``solo`` is the one process of any other workload."""


class Meters(Options):
    """How resource use is read during a trial: ``hz`` readings a second, from the kernel's files or by sysstat.

    ``auto`` follows the expected length of the study's shortest trial.
    """

    source: Literal["kernel", "sysstat", "off"] = "kernel"
    hz: Annotated[
        Literal["auto"] | Annotated[float, Field(ge=0.1, le=10)],
        Field(description="Readings a second; auto: enough for the study's shortest trial"),
    ] = "auto"


class Resources(Options):
    """Limits that every environment gets, native too. ``None`` is no limit.

    ``cpus`` is CPU time per wall time (1.5 = one and a half CPUs), kept within every ``cpu_period``,
    ``memory`` is bytes, ``pin`` gives each role its CPUs (``{server: "0", client: "1"}``) or spreads the roles over
    the machine's CPUs (``spread``).
    """

    cpus: Annotated[float, Field(gt=0)] | None = None
    cpu_period: Annotated[Duration, Field(ge=0.001, le=1)] = 0.1
    memory: Annotated[Size, Field(ge=16 * 2**20)] | None = None
    pin: Literal["spread"] | dict[Literal["server", "client"], CpuList] | None = None

    @property
    def quota_period_s(self) -> float:
        """Seconds within which the limit of CPU time is kept, each time anew; 0 without one."""
        return 0.0 if self.cpus is None else self.cpu_period


class Placement(Options):
    """Which host each role is on. A list for ``client`` sweeps where the clients of the study's servers are.

    ``storage``: where the servers of storage are (NFS); by default on the host of the site that mounts it.
    """

    client: Name | Annotated[list[Name], Field(min_length=1)] | None = None
    server: Name | None = None
    storage: Name | None = None

    @property
    def clients(self) -> tuple[str, ...]:
        """The hosts on which clients are, in turn; empty where the study says nothing of it."""
        return () if self.client is None else (self.client,) if isinstance(self.client, str) else tuple(self.client)

    @property
    def named(self) -> tuple[str, ...]:
        """Every host that is named, the server's first."""
        return (*((self.server,) if self.server else ()), *self.clients, *((self.storage,) if self.storage else ()))


_Branch = Annotated[dict[Name, Name], Field(min_length=1, max_length=1)]


def _packages() -> Any:
    return {"kind": "packages"}


def _this_machine() -> dict[str, Any]:
    return {"local": {"kind": "local"}}


class StudyFile(Options):
    """The top level of a study file, as written."""

    study: Annotated[Name, Field(description="The study's name")]
    question: Annotated[str, Field(min_length=1, description="What it asks, in one sentence")]
    hosts: dict[Name, Annotated[SerializeAsAny[HostOptions], by_kind("hosts", "a host")]] = Field(
        default_factory=_this_machine, min_length=1, validate_default=True
    )
    placement: Annotated[
        Placement, Field(description="Which host each role is on; a list of hosts for the client sweeps them")
    ] = Placement()
    inside: list[Literal["client", "server"]] = Field(default_factory=lambda: ["server"], min_length=1)  # type: ignore[arg-type]
    userland: Annotated[SerializeAsAny[SourceOptions], by_kind("userland", "a userland")] = Field(
        default_factory=_packages, validate_default=True, description="Where the programs come from"
    )
    client_userland: Annotated[
        SerializeAsAny[SourceOptions] | None,
        by_kind("userland", "a userland"),
        Field(description="Where those of servers' clients come from, if from elsewhere"),
    ] = None
    companions: Annotated[
        dict[Name, Companion],
        Field(description="Services that stay where they are, which the measured ones reach by name"),
    ] = Field(default_factory=dict)
    compose: Annotated[
        ComposeOptions | None,
        Field(
            description="A Compose file's service and its load: a workload, userlands and companions are made of it"
        ),
    ] = None
    """Of a file alone: `weighbridge.study.compose_key` puts in its place what it stands for."""
    resources: Resources = Resources()
    baseline: Name
    aa: Annotated[bool, Field(description="Measure the baseline a second time, as the A/A arm")] = True
    environments: dict[Name, dict[str, Any]] = Field(min_length=1)
    workloads: dict[Name, dict[str, Any]] = Field(min_length=1)
    repetitions: Repetitions = Repetitions(blocks=10)
    equivalence: Annotated[Share, Field(gt=0, lt=1)] = 0.03
    seed: Annotated[int, Field(ge=0)] = 1
    meters: Meters = Meters()
    cpu_idle: Annotated[
        CpuIdle,
        Field(description="Idle CPUs of this machine halt, or poll; auto: they poll where a hypervisor has them"),
    ] = "halt"
    prometheus: Annotated[
        Prometheus | None, Field(description="A Prometheus server whose series are kept with each trial")
    ] = None
    ladder: Annotated[
        tuple[Rung, ...],
        BeforeValidator(rungs_as_written, json_schema_input_type=list[Name | _Branch]),
        PlainSerializer(rungs_written),
        Field(description="Environments of which each adds one step to the entry before it, or to the one it names"),
    ] = ()
    profiles: Annotated[
        dict[Name, dict[str, Any]],
        Field(description="Named changes to this study, merged into it by --profile; never part of a run"),
    ] = Field(default_factory=dict)

    def source(self, role: Role) -> SourceOptions:
        """Where the userland of a role comes from, but in an environment with one of its own."""
        return self.userland if role != "client" else self.client_userland or self.userland


DISK_SPEED = "disk_speed"
"""The factor of a level that says how fast the disks of the data are, where the study sweeps that."""
SITES = "sites"
"""The factor of a level that says in how many sites at a time a workload runs, where the study sweeps that."""
CLIENT = "client"
"""The factor of a level that says on which host the client is, where the study's placement sweeps it."""


class Arm(BaseModel):
    """One environment of a study under its name; ``aa_of`` names the baseline that it repeats.

    ``userland`` is where its programs come from, if from elsewhere than those of others; the study's clients, where
    they have a userland of theirs, keep it. ``workloads`` are the options that workloads have in this environment
    only, whole and checked, by cell (workload, level). ``clients`` are the hosts whose clients it is measured with;
    None: all. An ``optional`` one is left out, and the run says so, where it cannot be opened before the first trial.
    """

    model_config = ConfigDict(frozen=True)
    name: str
    kind: str
    options: Any
    aa_of: str | None = None
    userland: SerializeAsAny[SourceOptions] | None = None
    workloads: dict[tuple[str, Level], Any] = {}
    clients: tuple[str, ...] | None = None
    optional: bool = False

    def source(self, role: Role, file: StudyFile) -> SourceOptions:
        """Where the userland of a role that is inside of it comes from."""
        others = role == "client" and file.client_userland is not None
        return file.source(role) if self.userland is None or others else self.userland


class Cell(BaseModel):
    """One workload at one level: what the arms are compared on. ``client`` is the host of its client, "" for none."""

    model_config = ConfigDict(frozen=True)
    workload: str
    kind: str
    level: Level = ()
    options: Any
    client: str = ""
    link: Literal["none"] | None = None
    """``none``: while it is measured, the cables of testbed hosts have no rate limit."""
    disk_speed: str | None = None
    """How fast the disks of its data are meanwhile (`weighbridge.model.disk.SPEEDS`); None: as they are."""
    sites: int = 1
    """In how many sites of an environment it runs at a time."""

    @property
    def label(self) -> str:
        """The workload's name with its level, as people read it: ``redis (clients=50)``."""
        return cell_label(self.workload, self.level)


class Study(BaseModel):
    """A checked study. ``text`` is the file as it was read; it is frozen into the run.

    ``lines``: where environments and hosts stand in the file (``FILE:LINE``), by section and name; ``compose``: the
    Compose file that was read for it, absolute. Of what a run has kept neither is known.
    """

    model_config = ConfigDict(frozen=True)
    text: str
    file: StudyFile
    arms: tuple[Arm, ...]
    cells: tuple[Cell, ...]
    lines: dict[tuple[str, str], str] = Field(default_factory=dict, repr=False)
    compose: str = Field(default="", repr=False)

    def __eq__(self, other: object) -> bool:
        """Whether the two are the same study, wherever they were read from: the rest is for messages alone."""
        if not isinstance(other, Study):
            return NotImplemented
        return (self.text, self.file, self.arms, self.cells) == (other.text, other.file, other.arms, other.cells)

    __hash__ = None  # type: ignore[assignment]

    @property
    def baseline(self) -> Arm:
        """The arm that the others are compared with."""
        return next(arm for arm in self.arms if arm.name == self.file.baseline)

    @property
    def sources(self) -> dict[str, SourceOptions]:
        """Where its userlands come from, each by the key that says so; an A/A arm's is that of the baseline."""
        clients = {} if self.file.client_userland is None else {"client_userland": self.file.client_userland}
        own = {
            own_userland_key(arm.name): arm.userland
            for arm in self.arms
            if arm.userland is not None and arm.aa_of is None
        }
        return {"userland": self.file.userland, **clients, **own}

    def without(self, environments: Collection[str]) -> "Study":
        """The study as it is run where these environments cannot be opened. Its file and text stay as written."""
        if not environments:
            return self
        return self.model_copy(update={"arms": tuple(arm for arm in self.arms if arm.name not in environments)})

    def options(self, arm: Arm, cell: Cell) -> Any:
        """The options of a workload in an environment: the cell's, unless the environment has its own."""
        return arm.workloads.get((cell.workload, cell.level), cell.options)

    def arms_of(self, cell: Cell) -> tuple[Arm, ...]:
        """The environments that are measured on a cell: those that clients on its client's host reach."""
        return tuple(arm for arm in self.arms if not cell.client or arm.clients is None or cell.client in arm.clients)

    @property
    def server_host(self) -> str:
        """The name of the host of servers, and of workloads without a counterpart: as placed, else the first."""
        return self.file.placement.server or next(iter(self.file.hosts))

    @property
    def client_hosts(self) -> tuple[str, ...]:
        """The names of the hosts of clients: as placed, else the first host alone."""
        return self.file.placement.clients or (next(iter(self.file.hosts)),)

    @property
    def storage_hosts(self) -> tuple[str, ...]:
        """The name of the host of servers of storage, where one is placed."""
        return (self.file.placement.storage,) if self.file.placement.storage else ()
