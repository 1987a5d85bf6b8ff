"""A study: its file as written, and its expanded form, with every sweep resolved and quantities in base units."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializeAsAny,
    StrictBool,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from weighbridge.model.address import CellId
from weighbridge.model.choices import CpuIdle
from weighbridge.model.explained import MOST_CROSSED, DescribedMechanism, Explains, Off
from weighbridge.model.host_kind import HostOptions
from weighbridge.model.ladder import Rung, rungs_written
from weighbridge.model.level import NO_LEVEL, Level
from weighbridge.model.options import ArmName, External, Name, Options, by_kind
from weighbridge.model.quantity import CpuList, Duration, Share, Size
from weighbridge.model.supporting_service import ComposeOptions, SupportingService
from weighbridge.model.traced import TracerName
from weighbridge.model.userland_source import SourceOptions, own_userland_key

MOST_BLOCKS = 1000
"""The most blocks that a run can have; the default of ``max`` if a study shortens trials."""


class Repetitions(Options):
    """The number of rounds: fixed, or as many as it takes until every interval is within ``target`` (a share).

    With ``within``, an uncounted pilot round decides how long each trial lasts. Study files write ``rounds``. Older
    files and all stored runs write ``blocks``, which is still read.
    """

    blocks: Annotated[
        Annotated[int, Field(ge=1, le=MOST_BLOCKS)] | None,
        Field(
            alias="rounds",
            validation_alias=AliasChoices("rounds", "blocks"),
            serialization_alias="blocks",
            description="A fixed number of rounds",
        ),
    ] = None
    target: Annotated[Share | None, Field(gt=0, lt=1, description="Target half-width of every interval")] = None
    min: Annotated[int, Field(ge=2, description="Fewest rounds, with a target")] = 10
    max: Annotated[int, Field(ge=2, le=MOST_BLOCKS, description="Most rounds, with a target; with within: 1000")] = 60
    budget: Annotated[
        Duration | None, Field(description="Time for all rounds, with trials at their written length")
    ] = None
    within: Annotated[
        Duration | None,
        Field(gt=0, description="Time for all rounds; trials get the most efficient length"),
    ] = None

    @property
    def limit_s(self) -> float | None:
        """The time limit of all rounds, in seconds; None means no limit."""
        return self.budget if self.within is None else self.within

    @model_validator(mode="before")
    @classmethod
    def _many_short_ones(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and raw.keys() >= {"rounds", "blocks"}:
            raise ValueError("use rounds or blocks, not both: blocks is the old name of rounds")
        short = isinstance(raw, dict) and raw.get("within") is not None and "max" not in raw
        return {**raw, "max": MOST_BLOCKS} if short else raw

    @model_validator(mode="after")
    def _one_rule(self) -> "Repetitions":
        if self.within is not None and (self.blocks is not None or self.target is None):
            raise ValueError("within works only with a target. Try: {target: 2%, within: 10min}")
        if self.within is not None and self.budget is not None:
            raise ValueError("use within or budget, not both: within shortens the trials, budget keeps their length")
        if (self.blocks is None) == (self.target is None):
            hint = "one of the two" if self.blocks is None else "not both"
            raise ValueError(f"give either rounds (rounds: 10) or a target (target: 2%), {hint}")
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) is more than max ({self.max}): raise max")
        return self


def _server_address(url: str) -> str:
    """Return the address of a server without its last slash. Messages never repeat it: it can hold a password."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("write the address in ASCII and without spaces: http://127.0.0.1:9090")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number, or unbalanced brackets
        usable = False
    if not usable:
        raise ValueError("write the server's address like http://127.0.0.1:9090 (http or https)")
    if "@" in parts.netloc:
        raise ValueError("leave user and password out of the address: it is stored with every run")
    if "?" in url or "#" in url:
        raise ValueError("end the address before '?' and '#', and write queries under 'queries'")
    return url.rstrip("/")


class Query(Options):
    """A PromQL ``query`` whose series are stored with every trial, and the ``unit`` of their values (B/s, s, 1)."""

    query: Annotated[str, Field(min_length=1, max_length=4000, description="PromQL")]
    unit: Annotated[str, Field(pattern=r"^\S{1,20}$", description="The unit of its values", examples=["B/s"])]


class Prometheus(Options):
    """A Prometheus server that watches the hosts. The results of its ``queries`` are stored with each trial.

    ``step`` is the time between two values, which should be the server's scrape interval.
    """

    url: Annotated[
        str,
        AfterValidator(_server_address),
        Field(description="Its address", json_schema_extra={"pattern": r"^https?://[^\s/@?#]+(/[^\s@?#]*)?$"}),
        External.SERVER,
    ]
    queries: Annotated[dict[Name, Query], Field(min_length=1, max_length=20, description="PromQL queries, by name")]
    step: Annotated[
        Duration, Field(ge=0.1, le=3600, description="Time between two values: the server's scrape interval")
    ] = 1.0


_FORM = "write a step as NAME, or {NAME: BASE} if it adds to a step other than the previous one"


def rungs_as_written(raw: Any) -> Any:
    """Return the rungs of a ladder as written: ``NAME`` adds to the entry before it, ``{NAME: BASE}`` to BASE.

    A value that is not a list is returned unchanged. Raises ValidationError with each entry that has neither form.
    """
    if not isinstance(raw, list | tuple):
        return raw
    rungs: list[Rung] = []
    wrong: list[InitErrorDetails] = []
    for place, entry in enumerate(raw):
        match entry:
            case Rung() as rung:
                rungs.append(rung)
            case str(name):
                rungs.append(Rung(str(name), rungs[-1].name if rungs else None))
            case Mapping() if len(entry) == 1 and all(isinstance(each, str) for each in (*entry, *entry.values())):
                ((name, base),) = entry.items()
                rungs.append(Rung(str(name), str(base)))
            case _:
                error = PydanticCustomError("value_error", "{error}", {"error": _FORM})
                wrong.append(InitErrorDetails(type=error, loc=(place,), input=entry))
    if wrong:
        raise ValidationError.from_exception_data("ladder", wrong)
    return tuple(rungs)


Role = Literal["server", "client", "solo"]
"""``server`` and ``client`` of a network workload; ``solo`` is the one process of any other workload."""


class Meters(Options):
    """How resource use is read during a trial: ``hz`` readings per second, from the kernel's files or by sysstat.

    ``auto`` follows the expected length of the study's shortest trial.
    """

    source: Annotated[
        Literal["kernel", "sysstat", "off"], Field(description="The kernel's files, sysstat's sadc, or none")
    ] = "kernel"
    hz: Annotated[
        Literal["auto"] | Annotated[float, Field(ge=0.1, le=10)],
        Field(description="Readings per second; auto: enough for the study's shortest trial"),
    ] = "auto"


class Resources(Options):
    """Limits of every environment, including native, unless an environment has its own. ``None`` means no limit.

    ``cpus`` is CPU time per wall time (1.5 = one and a half CPUs), kept within every ``cpu_period``,
    ``memory`` is bytes, ``pin`` gives each role its CPUs (``{server: "0", client: "1"}``) or spreads the roles over
    the machine's CPUs (``spread``).
    """

    cpus: Annotated[float, Field(gt=0, description="CPU time per wall time: 1.5 is one and a half CPUs")] | None = (
        None
    )
    cpu_period: Annotated[
        Duration, Field(ge=0.001, le=1, description="Period in which the CPU limit is enforced")
    ] = 0.1
    memory: Annotated[
        Size | None, Field(ge=16 * 2**20, description="Memory limit of each container, guest or native program")
    ] = None
    pin: Annotated[
        Literal["spread"] | dict[Literal["server", "client"], CpuList] | None,
        Field(description="CPUs of each role; spread gives each role one CPU"),
    ] = None

    @property
    def quota_period_s(self) -> float:
        """The period in seconds within which the limit of CPU time is enforced; 0 without a limit."""
        return 0.0 if self.cpus is None else self.cpu_period

    def beneath(self, own: "Resources") -> "Resources":
        """Return these limits with the values that ``own`` sets. Other limits stay, and null lifts a limit."""
        return self.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})


class Placement(Options):
    """The host of each role. A list for ``client`` sweeps the host of the clients.

    ``storage`` is the host of storage servers (NFS); the default is the host of the site that mounts the storage.
    """

    client: Annotated[
        Name | Annotated[list[Name], Field(min_length=1)] | None,
        Field(description="Host of the clients; a list sweeps it"),
    ] = None
    server: Annotated[Name | None, Field(description="Host of the servers and of programs without a server")] = None
    storage: Annotated[Name | None, Field(description="Host of the NFS server")] = None

    @property
    def clients(self) -> tuple[str, ...]:
        """The hosts of clients; empty if the study does not name them."""
        return () if self.client is None else (self.client,) if isinstance(self.client, str) else tuple(self.client)

    @property
    def separate_hosts(self) -> bool:
        """Whether the servers are on one host, and all clients on others."""
        return self.server is not None and bool(self.clients) and self.server not in self.clients

    @property
    def named(self) -> tuple[str, ...]:
        """All hosts that are named, the server's first."""
        return (*((self.server,) if self.server else ()), *self.clients, *((self.storage,) if self.storage else ()))


_Crossed = Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_CROSSED)]
_Branch = Annotated[dict[Name, Name], Field(min_length=1, max_length=1)]


def _packages() -> Any:
    return {"kind": "packages"}


def _this_machine() -> dict[str, Any]:
    return {"local": {"kind": "local"}}


class StudyFile(Options):
    """The top level of a study file, as written."""

    study: Annotated[Name, Field(description="The study's name")]
    question: Annotated[str, Field(min_length=1, description="The question that the study answers, in one sentence")]
    hosts: dict[Name, Annotated[SerializeAsAny[HostOptions], by_kind("hosts", "a host")]] = Field(
        default_factory=_this_machine, min_length=1, validate_default=True, description="The machines, by name"
    )
    placement: Annotated[Placement, Field(description="Host of each role; a list of client hosts sweeps them")] = (
        Placement()
    )
    inside: list[Literal["client", "server"]] = Field(
        default_factory=lambda: ["server"],  # type: ignore[arg-type]
        min_length=1,
        description="Which roles are in the environment; the others run natively on their host",
    )
    userland: Annotated[SerializeAsAny[SourceOptions], by_kind("userland", "a userland")] = Field(
        default_factory=_packages, validate_default=True, description="Root filesystem with the programs"
    )
    client_userland: Annotated[
        SerializeAsAny[SourceOptions] | None,
        by_kind("userland", "a userland"),
        Field(description="Root filesystem with the clients' programs, if they need another one"),
    ] = None
    companions: Annotated[
        dict[Name, SupportingService],
        Field(description="Supporting services, which the measured programs reach by name"),
    ] = Field(default_factory=dict)
    compose: Annotated[
        ComposeOptions | None,
        Field(description="A service of a Compose file and its load; it becomes a workload with supporting services"),
    ] = None
    """Only a study file has this key: `weighbridge.study.compose_key` replaces it."""
    resources: Resources = Resources()
    baseline: Annotated[Name, Field(description="The environment to compare the others with")]
    aa: Annotated[bool, Field(description="Measure the baseline a second time in every round (the control)")] = True
    environments: dict[Name, dict[str, Any]] = Field(min_length=1, description="What to compare, by name")
    workloads: dict[Name, dict[str, Any]] = Field(min_length=1, description="What to measure in each, by name")
    repetitions: Repetitions = Repetitions(blocks=10)
    rehearsal: Annotated[bool, Field(description="Run even with too few rounds for a verdict (a quick test)")] = False
    equivalence: Annotated[
        Share, Field(gt=0, lt=1, description="Equivalence margin: costs smaller than this do not matter")
    ] = 0.03
    seed: Annotated[int, Field(ge=0, description="Seed of the random order of trials")] = 1
    meters: Meters = Meters()
    cpu_idle: Annotated[
        CpuIdle,
        Field(description="Whether idle CPUs of this machine halt or poll; auto means poll on a virtual machine"),
    ] = "halt"
    prometheus: Annotated[
        Prometheus | None, Field(description="A Prometheus server; its series are stored with each trial")
    ] = None
    ladder: Annotated[
        tuple[Rung, ...],
        BeforeValidator(rungs_as_written, json_schema_input_type=list[Name | _Branch]),
        PlainSerializer(rungs_written),
        Field(description="Environments in order; each adds a step to the previous one, or to the one that it names"),
    ] = ()
    explain: Annotated[
        StrictBool | tuple[ArmName, ...] | dict[ArmName, _Crossed],
        Field(
            description="Say why environments cost what they do, by switching off what they do; or which ones; or,"
            " by environment, which mechanisms to switch, in every combination"
        ),
    ] = False
    placebo: Annotated[
        StrictBool,
        Field(description="With explain: measure each environment once more with nothing switched, at no true cost"),
    ] = False
    trace: Annotated[
        TracerName | None,
        Field(
            description="A tracer that watches the explained environments once more after the blocks, uncounted:"
            " perf (functions) or bpftrace (events of the kernel)"
        ),
    ] = None
    profiles: Annotated[
        dict[Name, dict[str, Any]],
        Field(description="Named changes to this study, merged into it by --profile; never part of a run"),
    ] = Field(default_factory=dict)

    def source(self, role: Role) -> SourceOptions:
        """Return the source of a role's userland, if its environment does not have its own."""
        return self.userland if role != "client" else self.client_userland or self.userland


class Arm(BaseModel):
    """One environment of a study under its name; ``aa_of`` names the baseline that it repeats.

    ``userland`` is the source of its programs, if it has its own; clients with a userland of their own keep that.
    ``workloads`` has the options of workloads in this environment only, complete and checked, by cell. ``clients``
    are the hosts whose clients it is measured with; None means all. An ``optional`` environment is left out, with a
    message, if it cannot be opened before the first trial. ``shm_size`` is the size of its sites' /dev/shm in bytes;
    None means the default of its kind. ``sysctls`` are kernel settings of its sites.
    """

    model_config = ConfigDict(frozen=True)
    name: str
    kind: str
    options: Any
    aa_of: str | None = None
    userland: SerializeAsAny[SourceOptions] | None = None
    workloads: dict[CellId, Any] = {}
    clients: tuple[str, ...] | None = None
    optional: bool = False
    resources: Resources | None = None
    """Its own limits, completed by the study's; None means the study's."""
    shm_size: int | None = None
    sysctls: dict[str, str] = {}
    explains: Explains | None = None
    """The environment whose cost it explains; None if it belongs to the study itself."""

    @property
    def declared(self) -> bool:
        """Whether the study declares it as an environment: it does not control or explain another one."""
        return self.aa_of is None and self.explains is None

    def is_of(self, environments: Collection[str]) -> bool:
        """Return whether it is one of these environments, or explains the cost of one."""
        return self.name in environments or (self.explains is not None and self.explains.environment in environments)

    def source(self, role: Role, file: StudyFile) -> SourceOptions:
        """Return the source of the userland of a role inside this environment."""
        others = role == "client" and file.client_userland is not None
        return file.source(role) if self.userland is None or others else self.userland


class Cell(BaseModel):
    """One workload at one level, on which the arms are compared. ``client`` is its client's host, "" for none."""

    model_config = ConfigDict(frozen=True)
    workload: str
    kind: str
    level: Level = NO_LEVEL
    options: Any
    client: str = ""
    link: Literal["none"] | None = None
    """``none``: while it is measured, the cables of testbed hosts have no rate limit."""
    disk_speed: str | None = None
    """The speed of its data disks during its trials (`weighbridge.model.host.SPEEDS`); None means no limit."""
    sites: int = 1
    """The number of sites of an environment in which it runs at a time."""

    @property
    def id(self) -> CellId:
        """Return the workload and level as one key."""
        return CellId(self.workload, self.level)

    @property
    def label(self) -> str:
        """The workload's name with its level, for users: ``redis (clients=50)``."""
        return self.id.label


class Study(BaseModel):
    """A checked study. ``text`` is the file as it was read, which is stored in the run.

    ``lines`` has the positions of environments and hosts in the file (``FILE:LINE``), by section and name.
    ``compose`` is the absolute path of its Compose file. A stored study has neither.
    """

    model_config = ConfigDict(frozen=True)
    text: str
    file: StudyFile
    arms: tuple[Arm, ...]
    cells: tuple[Cell, ...]
    lines: dict[tuple[str, str], str] = Field(default_factory=dict, repr=False)
    compose: str = Field(default="", repr=False)
    approved: bool = Field(default=True, repr=False)
    """Whether the user has agreed that Weighbridge reads, starts and contacts the resources that the study names."""
    mechanisms: tuple[DescribedMechanism, ...] = ()
    """The mechanisms of the environments whose costs are explained, in the order of their arms."""

    def __eq__(self, other: object) -> bool:
        """Return whether the two are the same study; positions and other data for messages do not count."""
        if not isinstance(other, Study):
            return NotImplemented
        return (self.text, self.file, self.arms, self.cells) == (other.text, other.file, other.arms, other.cells)

    __hash__ = None  # type: ignore[assignment]

    @property
    def baseline(self) -> Arm:
        """The arm with which the others are compared."""
        return next(arm for arm in self.arms if arm.name == self.file.baseline)

    @property
    def sources(self) -> dict[str, SourceOptions]:
        """The sources of its userlands, each by its key in the study; an A/A arm uses the baseline's."""
        clients = {} if self.file.client_userland is None else {"client_userland": self.file.client_userland}
        own = {
            own_userland_key(arm.name): arm.userland
            for arm in self.arms
            if arm.userland is not None and arm.aa_of is None
        }
        return {"userland": self.file.userland, **clients, **own}

    def arms_by_off(self, environment: str) -> dict[Off, str]:
        """Return the names of an environment's arms by the mechanisms that are off in them."""
        explaining = {
            frozenset(arm.explains.off): arm.name
            for arm in self.arms
            if arm.explains is not None and arm.explains.environment == environment
        }
        return {frozenset(): environment, **explaining}

    def resources_of(self, environment: str) -> Resources:
        """Return the limits of an environment's sites: its own, or the study's."""
        own = (arm.resources for arm in self.arms if arm.name == environment)
        return next((each for each in own if each is not None), self.file.resources)

    @property
    def all_resources(self) -> dict[str, Resources]:
        """The limits of the study, and the own limits of environments, each by its key in the study."""
        own = {f"environments: {arm.name}: resources": arm.resources for arm in self.arms if arm.aa_of is None}
        return {"resources": self.file.resources, **{key: each for key, each in own.items() if each is not None}}

    def without(self, environments: Collection[str]) -> "Study":
        """Return the study without environments that cannot be opened. Its file and text stay as written."""
        if not environments:
            return self
        return self.model_copy(update={"arms": tuple(arm for arm in self.arms if not arm.is_of(environments))})

    def options(self, arm: Arm, cell: Cell) -> Any:
        """Return the options of a workload in an environment: the environment's own, or the cell's."""
        return arm.workloads.get(cell.id, cell.options)

    def arms_of(self, cell: Cell) -> tuple[Arm, ...]:
        """Return the environments that are measured on a cell: those that clients on its client's host reach."""
        return tuple(arm for arm in self.arms if not cell.client or arm.clients is None or cell.client in arm.clients)

    @property
    def server_host(self) -> str:
        """The name of the host of servers, and of workloads without a server: as placed, else the first."""
        return self.file.placement.server or next(iter(self.file.hosts))

    @property
    def client_hosts(self) -> tuple[str, ...]:
        """The names of the hosts of clients: as placed, else the first host alone."""
        return self.file.placement.clients or (next(iter(self.file.hosts)),)

    @property
    def storage_hosts(self) -> tuple[str, ...]:
        """The name of the host of storage servers, if one is placed."""
        return (self.file.placement.storage,) if self.file.placement.storage else ()


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter as text, with its value and unit; the unit can be empty."""

    parameter: str
    value: str
    unit: str = ""
