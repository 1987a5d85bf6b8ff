"""Remarks about network paths, packets and rate limits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from weighbridge.analysis.bottleneck import limit_of_most
from weighbridge.analysis.conditions import (
    bare,
)
from weighbridge.analysis.context import Context
from weighbridge.analysis.paths import ClientPlace, PathDifference
from weighbridge.analysis.remarks.rules import AboutEnvironment, ComparisonInRun, about_comparison, about_run
from weighbridge.analysis.results import Remark, RemarkPlace
from weighbridge.model.address import ArmId
from weighbridge.model.flag import FlagCode
from weighbridge.model.quantity import TIME_UNITS


@dataclass(frozen=True, slots=True)
class OtherPacketSize(Remark):
    """A comparison of two different packet sizes, such as "1418 B"."""

    code = "packet-size"
    placement = RemarkPlace.SENTENCE
    size: str
    baseline_size: str


@about_comparison(170)
def _other_packet_size(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield a difference of sizes; a probed and a given size are equal if their bytes are."""
    baseline_size, size = (_packet_size(comparison, name) for name in comparison.sides)
    if size and baseline_size and size != baseline_size:
        yield OtherPacketSize(size, baseline_size)


def _packet_size(comparison: ComparisonInRun, environment: str) -> str:
    return bare(comparison.context.sizes.get(f"{environment}/{comparison.report.label}", ""))


@dataclass(frozen=True, slots=True)
class PacketSizes(AboutEnvironment):
    """Packet sizes of an environment that differ from the baseline's, each with the affected workloads."""

    code = "packet-size"
    baseline: str
    sizes: tuple[tuple[OtherPacketSize, tuple[str, ...]], ...]

    @property
    def labels(self) -> frozenset[str]:
        """All affected workloads."""
        return frozenset(label for _, labels in self.sizes for label in labels)


def other_sizes(sizes: Mapping[str, str], compared: Mapping[str, str]) -> Iterator[PacketSizes]:
    """Yield a remark for each environment whose packet sizes differ from the one that it is compared with."""
    for name, baseline in compared.items():
        by_size: dict[OtherPacketSize, list[str]] = {}
        for place, size in sizes.items():
            environment, _, label = place.partition("/")
            reference = sizes.get(f"{baseline}/{label}")
            if environment == name and reference is not None and bare(size) != bare(reference):
                by_size.setdefault(OtherPacketSize(bare(size), bare(reference)), []).append(label)
        if by_size:
            yield PacketSizes(name, baseline, tuple((each, tuple(labels)) for each, labels in by_size.items()))


@dataclass(frozen=True, slots=True)
class Capped(Remark):
    """Something limited most trials of one side (``trials`` out of ``total``), but not of the other side."""

    code = "capped"
    placement = RemarkPlace.SENTENCE
    environment: str
    limit: str
    trials: int
    total: int
    of_baseline: bool


@about_comparison(180)
def _capped(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield the side that was limited; if both met the same limit, the verdict already says so."""
    report, row, context = comparison.report, comparison.row, comparison.context
    if report.resource_use or row.cost is None or row.aa:
        return
    capped = []
    for name in comparison.sides:
        side = context.limits.get(ArmId(report.cell, name), ())
        if limited := limit_of_most(side, report.unit):
            capped.append(Capped(name, limited[0], limited[1], len(side), name == context.baseline))
    if len({each.limit for each in capped}) == len(capped):
        yield from capped


UDP_HEADERS = 28
"""Bytes of the headers of IPv4 (RFC 791) and UDP (RFC 768) in a packet."""


@dataclass(frozen=True, slots=True)
class Fragments(Remark):
    """An environment's datagrams (``size``) do not fit into one packet of its path; both sizes are in bytes."""

    code = "fragments"
    placement = RemarkPlace.SENTENCE
    environment: str
    size: int
    in_one_piece: int


@about_comparison(190)
def _fragments(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield the only side that fragments its datagrams, which is a cost of their size on this path."""
    fragments = []
    for name in comparison.sides:
        path, size = comparison.context.paths.of(name, comparison.report.level), _packet_size(comparison, name)
        payload = int(size.split()[0]) if size.endswith(" B") and size.split()[0].isdecimal() else 0
        if path is not None and path.mtu and payload + UDP_HEADERS > path.mtu:
            fragments.append(Fragments(name, payload, path.mtu - UDP_HEADERS))
    if len(fragments) == 1:
        yield fragments[0]


@dataclass(frozen=True, slots=True)
class NoPath(Remark):
    """The network path of one side is unknown."""

    code = "no-path"


@about_comparison(200)
def _no_path(comparison: ComparisonInRun) -> Iterator[Remark]:
    report = comparison.report
    if comparison.context.paths.missing(report.cell, *comparison.sides):
        yield NoPath()


@dataclass(frozen=True, slots=True)
class OtherPath(Remark):
    """The environments' network path differs from the baseline's.

    ``environments`` is empty in a comparison. ``place`` is None if all clients are in one place.
    """

    code = "path"
    difference: PathDifference
    environments: tuple[str, ...] = ()
    place: ClientPlace | None = None


@about_comparison(210)
def _other_path(comparison: ComparisonInRun) -> Iterator[Remark]:
    report, (baseline, environment) = comparison.report, comparison.sides
    unlike = comparison.context.paths.difference(report.cell, environment, baseline)
    if unlike:
        yield OtherPath(unlike)


@dataclass(frozen=True, slots=True)
class PathsUnrecorded(Remark):
    """The run was made before network paths were recorded."""

    code = "path"


HELD_BACK_S = (0.0395, 0.0455)
"""A latency between these limits can come from an acknowledgement that Linux delays for at least 40 ms
(TCP_DELACK_MIN in include/net/tcp.h, a 25th of a second), plus the time on the network."""


@dataclass(frozen=True, slots=True)
class DelayedAck(AboutEnvironment):
    """A latency in seconds that matches the time for which Linux delays acknowledgements, with idle CPUs."""

    code = "delayed-ack"
    placement = RemarkPlace.FIRST
    seconds: float


@about_comparison(260)
def _delayed_ack(comparison: ComparisonInRun) -> Iterator[Remark]:
    report, context = comparison.report, comparison.context
    unit_s = TIME_UNITS.get(report.unit)
    if unit_s is None or report.resource_use or not context.paths.needed(report.workload):
        return
    base_value = report.baseline_value if context.against is None else comparison.row.baseline_value
    values = zip(comparison.sides, (base_value, comparison.row.value), strict=True)
    for environment, value in values:
        limits = [each for each in context.limits.get(ArmId(report.cell, environment), ()) if each]
        idle = sum(each.code == FlagCode.NO_BOTTLENECK for each in limits)
        if value is not None and HELD_BACK_S[0] <= value * unit_s <= HELD_BACK_S[1] and 2 * idle > len(limits):
            yield DelayedAck(environment, value * unit_s)


@about_run(30)
def _other_paths(context: Context) -> Iterator[Remark]:
    paths, plan = context.paths, context.plan
    if paths.networked is None:
        if len(plan.environments) > 1:
            yield PathsUnrecorded()
        return
    alike: dict[OtherPath, dict[str, None]] = {}
    for cell in context.cells:
        for name in plan.compared_on(cell):
            if unlike := paths.difference(cell, name, plan.against(name)):
                place = paths.place(paths.client_of(cell.level)) if len(paths.clients) > 1 else None
                alike.setdefault(OtherPath(unlike, place=place), {})[name] = None
    yield from (replace(each, environments=tuple(names)) for each, names in alike.items())
