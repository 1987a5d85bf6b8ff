"""Remarks about what was measured under which conditions, and about what differs besides the isolation."""

from dataclasses import dataclass

from weighbridge.analysis.paths import ClientPlace, PathDifference
from weighbridge.analysis.remarks import AboutEnvironment, Remark, RemarkCode
from weighbridge.model.facts import HostDifference


@dataclass(frozen=True, slots=True)
class FewReadings(Remark):
    """The meters, at ``hz``, read so often in the median trial; ``wanted_hz`` would do, None where nothing would.

    ``chosen``: a pilot block has chosen the trials' lengths, so that there is nothing to be changed.
    """

    code = RemarkCode.READINGS
    hz: float
    readings: int
    wanted_hz: int | None
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class InterruptTimeApart(Remark):
    """A site's CPU time leaves out interrupts: surely, or perhaps."""

    code = RemarkCode.INTERRUPT_TIME
    sure: bool


@dataclass(frozen=True, slots=True)
class NoPath(Remark):
    """The network path of one of the two is not known."""

    code = RemarkCode.NO_PATH


@dataclass(frozen=True, slots=True)
class OtherPath(Remark):
    """The environments' network path is another one than the baseline's.

    ``environments`` is empty beside a comparison, ``place`` None where all clients are in one.
    """

    code = RemarkCode.PATH
    difference: PathDifference
    environments: tuple[str, ...] = ()
    place: ClientPlace | None = None


@dataclass(frozen=True, slots=True)
class PathsUnrecorded(Remark):
    """The run is from before network paths were recorded."""

    code = RemarkCode.PATH


@dataclass(frozen=True, slots=True)
class OtherPacketSize(Remark):
    """A comparison of two packet sizes: "1418 B"."""

    code = RemarkCode.PACKET_SIZE
    size: str
    baseline_size: str


@dataclass(frozen=True, slots=True)
class Capped(Remark):
    """Something limited most trials of one side (``trials`` of ``of``), and not of the other."""

    code = RemarkCode.CAPPED
    environment: str
    limit: str
    trials: int
    of: int
    of_baseline: bool


@dataclass(frozen=True, slots=True)
class Fragments(Remark):
    """What an environment's datagrams carry (``size``) is more than its path takes in one piece (bytes, both)."""

    code = RemarkCode.FRAGMENTS
    environment: str
    size: int
    in_one_piece: int


@dataclass(frozen=True, slots=True)
class PacketSizes(AboutEnvironment):
    """An environment's packet sizes where they are not the baseline's, each with the workloads concerned."""

    code = RemarkCode.PACKET_SIZE
    baseline: str
    sizes: tuple[tuple[OtherPacketSize, tuple[str, ...]], ...]

    @property
    def labels(self) -> frozenset[str]:
        """Every workload concerned."""
        return frozenset(label for _, labels in self.sizes for label in labels)


@dataclass(frozen=True, slots=True)
class OtherDurability(Remark):
    """The environment keeps otherwise what it acknowledged; empty where it is not known.

    Beside a comparison without ``environment`` and ``labels``.
    """

    code = RemarkCode.DURABILITY
    durability: str
    baseline_durability: str
    baseline: str
    environment: str = ""
    labels: tuple[str, ...] = ()


# -- hypervisors -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Emulated(Remark):
    """These environments were measured under emulation: what they cost is the cost of the emulators in ``layers``.

    ``baseline`` is its name where it is one of them, else empty: every cost is then one of an emulator.
    """

    code = RemarkCode.EMULATED
    environments: tuple[str, ...]
    layers: tuple[str, ...]
    baseline: str = ""


@dataclass(frozen=True, slots=True)
class EmulatedCost(AboutEnvironment):
    """A side of a comparison was measured under emulation; ``both``: the other, too (``layers`` are of both)."""

    code = RemarkCode.EMULATED
    layers: tuple[str, ...]
    both: bool = False


@dataclass(frozen=True, slots=True)
class Nested(Remark):
    """These environments were measured on a host that is a guest itself, in ``layers``, the outermost first.

    ``environments`` is empty beside a comparison whose sides both were on it.
    """

    code = RemarkCode.NESTED
    environments: tuple[str, ...]
    host: str
    layers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GuestTicks(AboutEnvironment):
    """CPU time of an environment is by the ticks of ``host``, a guest on an emulator, which tells it of no steal."""

    code = RemarkCode.GUEST_TICKS
    host: str


@dataclass(frozen=True, slots=True)
class Unverified(Remark):
    """An environment, or a ``host``, of a kind that was never seen to work on real hardware: ``what`` was not."""

    code = RemarkCode.UNVERIFIED
    environment: str
    host: str
    what: str


# -- confounders -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HostsDiffer(Remark):
    """The run's hosts differ; of a run of before this was data, ``sentence`` says how."""

    code = RemarkCode.CONFOUNDER
    difference: HostDifference | None
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class NotHonoured(AboutEnvironment):
    """A limit that an environment could not honour: which, and what its fact says."""

    code = RemarkCode.CONFOUNDER
    limit: str
    why: str


@dataclass(frozen=True, slots=True)
class NotMetered(AboutEnvironment):
    """What no meter of an environment reads, and why."""

    code = RemarkCode.CONFOUNDER
    quantity: str
    why: str


@dataclass(frozen=True, slots=True)
class OtherValue(AboutEnvironment):
    """A fact of its site that is not the baseline's; both values are empty where they are digests, or too long."""

    code = RemarkCode.CONFOUNDER
    fact: str
    baseline: str
    value: str = ""
    baseline_value: str = ""


@dataclass(frozen=True, slots=True)
class OwnOptions(AboutEnvironment):
    """Options that workloads have in this environment alone."""

    code = RemarkCode.CONFOUNDER
    workloads: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


@dataclass(frozen=True, slots=True)
class Unresolved(AboutEnvironment):
    """In ``count`` of ``trials`` the growth of the machine's memory was zero or less: it hides that of the sites."""

    code = RemarkCode.UNRESOLVED
    count: int
    trials: int

    @property
    def unresolved_in(self) -> str:
        """The environment itself."""
        return self.environment
