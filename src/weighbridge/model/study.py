"""A study as it is run: every sweep expanded, every quantity in its base unit."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails

from weighbridge.model.quantity import Duration, Rate, Share, Size

Role = Literal["server", "client", "solo"]
"""``server`` and ``client`` of a network workload; ``solo`` is the one process of any other workload."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,39}$")]
Level = tuple[tuple[str, str], ...]
"""The swept factors of one cell with their values as written, sorted by factor; empty where nothing is swept."""


CpuList = Annotated[str, Field(pattern=r"^\d+([,-]\d+)*$", examples=["0", "0-1"])]


class Options(BaseModel):
    """Base of what a study file may say about one environment, workload, storage or host."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="wrap")
    @classmethod
    def _no_boolean_is_a_number(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Pydantic makes 1 of true. What stays a boolean, or becomes a word (``appendonly: no``), is right."""
        made = handler(given)
        written = given if isinstance(given, Mapping) else {}
        wrong = [
            InitErrorDetails(type=f"{type(number).__name__}_type", loc=(key,), input=value)
            for key, value in written.items()
            if isinstance(value, bool) and type(number := getattr(made, key)) in (int, float)
        ]
        if wrong:
            raise ValidationError.from_exception_data(cls.__name__, wrong)
        return made


class LocalOptions(Options):
    """This machine."""

    kind: Literal["local"] = "local"


class TestbedOptions(Options):
    """A host that is made on this machine for the length of the run, joined to the others by a switch of their own.

    ``link`` is the rate of its cable in each direction in bits per second of Ethernet (preamble, FCS and gap count);
    without it none is set. Without ``offloads`` no frame is larger than the ``mtu`` (bytes) anywhere; a link above
    150 Mbit/s has none. ``cpus`` are the CPUs of this machine that belong to it.
    """

    __test__: ClassVar[bool] = False  # no test, whatever its name begins with

    kind: Literal["testbed"]
    link: Annotated[Rate, Field(ge=1e6, le=1e10, description="Rate of its cable in each direction")] | None = None
    mtu: Annotated[int, Field(ge=576, le=9000, description="Bytes of its cable's largest packet")] = 1500
    offloads: Annotated[
        bool | None, Field(description="Whether packets larger than the cable's go to it (not above 150 Mbit/s)")
    ] = None
    cpus: Annotated[CpuList | None, Field(description="CPUs of this machine that belong to it")] = None

    @property
    def fast(self) -> bool:
        """Whether the link's rate is too high for a token bucket that splits packets."""
        return self.link is not None and self.link > 150e6

    @property
    def has_offloads(self) -> bool:
        """What was asked for, or what the link allows."""
        return not self.fast if self.offloads is None else self.offloads

    @model_validator(mode="after")
    def _what_the_link_takes(self) -> "TestbedOptions":
        if self.fast and self.offloads:
            raise ValueError("a link above 150 Mbit/s cannot split large packets: leave offloads out")
        return self


class SshOptions(Options):
    """A machine that OpenSSH reaches with the user's own configuration and keys.

    ``address`` is where the other hosts reach it (default: what ``destination`` resolves to); ``interface`` is the
    interface to which macvlan, ipvlan and bridged networks are attached.
    """

    kind: Literal["ssh"]
    destination: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,252}$", description="As for ssh")]
    address: Annotated[str | None, Field(pattern=r"^[0-9.]{7,15}$", description="Its IPv4 address")] = None
    interface: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9_.@-]{1,15}$")] = None
    sudo: Annotated[bool, Field(description="Become root by sudo, which must not ask for a password")] = False
    config: Annotated[str | None, Field(description="An OpenSSH configuration file other than the user's")] = None


HostOptions = Annotated[LocalOptions | TestbedOptions | SshOptions, Field(discriminator="kind")]
"""A machine on which sites are opened."""


class Meters(Options):
    """How resource use is read during a trial: ``hz`` readings a second, from the kernel's files or by sysstat."""

    source: Literal["kernel", "sysstat", "off"] = "kernel"
    hz: Annotated[float, Field(ge=0.1, le=10, description="Readings a second")] = 1.0


def _server_address(url: str) -> str:
    """The address of a server without the slash at its end. No message repeats it: it may hold a password."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("an address has no spaces and only ASCII characters: http://127.0.0.1:9090")
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, brackets that do not close
        known = False
    if not known:
        raise ValueError("write the server's address like http://127.0.0.1:9090 (http or https)")
    if "@" in parts.netloc:
        raise ValueError("an address with a user or password is not taken: it would be kept with every run")
    if "?" in url or "#" in url:
        raise ValueError("the address ends before '?' and '#': queries have a key of their own")
    return url.rstrip("/")


class Query(Options):
    """A PromQL ``query`` whose series are kept with every trial, and the ``unit`` of their values (B/s, s, 1)."""

    query: Annotated[str, Field(min_length=1, max_length=4000, description="PromQL")]
    unit: Annotated[str, Field(pattern=r"^\S{1,20}$", description="The unit of its values", examples=["B/s"])]


class Prometheus(Options):
    """A Prometheus server that watches the hosts: what its ``queries`` give for each trial's time is kept with it.

    ``step`` is the time between two values: the interval in which the server scrapes what they are about.
    """

    url: Annotated[
        str,
        AfterValidator(_server_address),
        Field(description="Its address", json_schema_extra={"pattern": r"^https?://[^\s/@?#]+(/[^\s@?#]*)?$"}),
    ]
    queries: dict[Name, Query] = Field(min_length=1, max_length=20)
    step: Annotated[Duration, Field(ge=0.1, le=3600)] = 1.0


class Resources(Options):
    """Limits that every environment gets, native too. ``None`` is no limit.

    ``cpus`` is CPU time per wall time (1.5 = one and a half CPUs), kept within every ``cpu_period`` (default 100 ms),
    ``memory`` is bytes, ``pin`` gives each role its CPUs (``{server: "0", client: "1"}``) or spreads the roles over
    the machine's CPUs (``spread``).
    """

    cpus: Annotated[float, Field(gt=0)] | None = None
    cpu_period: Annotated[Duration, Field(ge=0.001, le=1)] | None = None
    memory: Annotated[Size, Field(ge=16 * 2**20)] | None = None
    pin: Literal["spread"] | dict[Literal["server", "client"], CpuList] | None = None


class Repetitions(Options):
    """How often: a fixed number of ``blocks``, or until every interval is within ``target`` (a share)."""

    blocks: Annotated[int, Field(ge=1, le=1000)] | None = None
    target: Annotated[Share, Field(gt=0, lt=1)] | None = None
    min: Annotated[int, Field(ge=2)] = 10
    max: Annotated[int, Field(ge=2, le=1000)] = 60
    budget: Duration | None = None

    @model_validator(mode="after")
    def _one_rule(self) -> "Repetitions":
        if (self.blocks is None) == (self.target is None):
            raise ValueError("say either how many blocks (blocks: 10) or how precise (target: 2%), not both")
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) is more than max ({self.max})")
        return self


def _this_machine() -> dict[str, HostOptions]:
    return {"local": LocalOptions()}


class StudyFile(Options):
    """The top level of a study file, as written."""

    study: Annotated[Name, Field(description="The study's name")]
    question: Annotated[str, Field(min_length=1, description="What it asks, in one sentence")]
    hosts: dict[Name, HostOptions] = Field(default_factory=_this_machine, min_length=1)
    placement: dict[Literal["client", "server"], Name] = Field(default_factory=dict)
    inside: list[Literal["client", "server"]] = Field(default_factory=lambda: ["server"], min_length=1)  # type: ignore[arg-type]
    resources: Resources = Resources()
    baseline: Name
    aa: Annotated[bool, Field(description="Measure the baseline a second time, as the A/A arm")] = True
    environments: dict[Name, dict[str, Any]] = Field(min_length=1)
    workloads: dict[Name, dict[str, Any]] = Field(min_length=1)
    repetitions: Repetitions = Repetitions(blocks=10)
    equivalence: Annotated[Share, Field(gt=0, lt=1)] = 0.03
    seed: Annotated[int, Field(ge=0)] = 1
    meters: Meters = Meters()
    prometheus: Annotated[
        Prometheus | None, Field(description="A Prometheus server whose series are kept with each trial")
    ] = None
    ladder: Annotated[
        list[Name], Field(description="Environments in the order in which each adds one step, drawn as a waterfall")
    ] = []
    profiles: Annotated[
        dict[Name, dict[str, Any]],
        Field(description="Named changes to this study, merged into it by --profile; never part of a run"),
    ] = {}


class Arm(BaseModel):
    """One environment of a study under its name; ``aa_of`` names the baseline that it repeats.

    ``workloads`` are the options that workloads have in this environment only, whole and checked, by cell
    (workload, level).
    """

    model_config = ConfigDict(frozen=True)
    name: str
    kind: str
    options: Any
    aa_of: str | None = None
    workloads: dict[tuple[str, Level], Any] = {}


class Cell(BaseModel):
    """One workload at one level: what the arms are compared on."""

    model_config = ConfigDict(frozen=True)
    workload: str
    kind: str
    level: Level = ()
    options: Any
    link: Literal["none"] | None = None
    """``none``: while it is measured, the cables of testbed hosts have no rate limit."""

    @property
    def label(self) -> str:
        """The workload's name with its level, as people read it: ``redis (clients=50)``."""
        swept = ", ".join(f"{factor}={value}" for factor, value in self.level)
        return f"{self.workload} ({swept})" if swept else self.workload


class Study(BaseModel):
    """A checked study. ``text`` is the file as it was read; it is frozen into the run."""

    model_config = ConfigDict(frozen=True)
    text: str
    file: StudyFile
    arms: tuple[Arm, ...]
    cells: tuple[Cell, ...]

    @property
    def baseline(self) -> Arm:
        """The arm that the others are compared with."""
        return next(arm for arm in self.arms if arm.name == self.file.baseline)

    def options(self, arm: Arm, cell: Cell) -> Any:
        """The options of a workload in an environment: the cell's, unless the environment has its own."""
        return arm.workloads.get((cell.workload, cell.level), cell.options)

    def host_of(self, role: Role) -> str:
        """The name of the host of a role: its placement, else the first host; ``solo`` is where servers are."""
        return self.file.placement.get("client" if role == "client" else "server", next(iter(self.file.hosts)))
