"""What differs between the environments of a run besides the isolation."""

from collections.abc import Iterable, Mapping, Sequence

from weighbridge.analysis.paths import Paths
from weighbridge.analysis.plan import Plan
from weighbridge.analysis.results import Remark
from weighbridge.model.idle import IDLE_CPUS, POLL
from weighbridge.model.interrupts import FACT
from weighbridge.model.stored_study import StoredFile

Fact = tuple[str, str, str, float]
"""Scope, key, value, when."""

COMPARED = ("userland", "packages", "user")
"""Facts of a site that have to be the same in every environment, beside those that start with ``version``."""

OUTSIDE = "outside"
"""Scope of the roles that are in no environment: what is said of them is about every environment."""

HOST_DIFFERENCES = "host differences"
"""Scope of what differs between the hosts of a run: clock, kernel, packages, CPU."""


NOT_THIS_PATH = "the calibration of this machine is for one host without cables, not for this path"

POLLED = (
    "idle CPUs of this machine polled and did not halt, in every environment (cpu_idle): programs that "
    "wait for each other are faster than on CPUs that halt, and what waking a CPU adds to a cost is not in it"
)

NOT_POLLED = "the calibration of this machine is for idle CPUs that halt, not for this run's"

UNRECORDED = "the network paths were not recorded: whether they differ between the environments is not known"

PACKET_SIZES = "packet sizes"
"""Scope of the size of what each workload sends in each environment: "ENVIRONMENT/WORKLOAD LABEL" -> "1418 B"."""


def confounders(
    facts: Iterable[Fact], baseline: str, environments: Sequence[str], study: StoredFile | None = None
) -> tuple[Remark, ...]:
    """Give what differs besides the isolation, from the facts of scopes ``environment`` or ``environment/role``.

    A key that starts with ``not honoured`` is one by itself; those in `COMPARED` and with ``version`` at the start
    are one where the value differs from that of the baseline's same role (or, where the baseline has none, from the
    userland's). The text starts with the name of the environment concerned and a colon. What differs between the
    hosts (scope "host differences": what -> sentence) is about every environment and starts with "hosts:". Packet
    sizes that differ (code ``packet-size``) and options that a workload of `study` has in one environment alone
    are confounders too.
    """
    facts = list(facts)
    by_site: dict[tuple[str, str], dict[str, str]] = {}
    hosts: dict[str, str] = {}
    for scope, key, value, _ in facts:
        if scope == HOST_DIFFERENCES:
            hosts[key] = value
        name, _, role = scope.partition("/")
        by_site.setdefault((name, role), {})[key] = value
    found = [f"hosts: {text}" for text in hosts.values()]
    for (name, role), site in by_site.items():
        if name in (*environments, OUTSIDE):
            reference = {**by_site.get(("userland", ""), {}), **by_site.get((baseline, role), {})}
            found += [f"{name}: {text}" for text in _not_honoured(site)]
            if name not in (baseline, OUTSIDE):
                found += [f"{name}: {text}" for text in _different(site, reference, baseline)]
    sizes = _sizes(packet_sizes(facts), baseline, environments)
    own = [text for name in environments for text in _own_options(study, name, sizes)]
    return (
        *(Remark("confounder", text) for text in dict.fromkeys([*found, *own])),
        *(Remark("packet-size", f"{name}: {text}") for name, (text, _) in sizes.items()),
    )


def _not_honoured(site: dict[str, str]) -> list[str]:
    found = []
    for key, value in site.items():
        if key.startswith("not honoured"):
            what = key.removeprefix("not honoured").lstrip(": ")
            found.append(f"not honoured: {value if value.startswith(what) else f'{what}: {value}'}")
    return found


def _different(site: dict[str, str], reference: dict[str, str], baseline: str) -> list[str]:
    found = []
    for key, value in site.items():
        if (key in COMPARED or key.startswith("version")) and reference.get(key, value) != value:
            what = key.removeprefix("version").lstrip(": ") or "version"
            long = len(value) > 40 or len(reference[key]) > 40  # a digest says nothing to a reader
            how = f"not the same as in {baseline}" if long else f"{value}, but {reference[key]} in {baseline}"
            found.append(f"{what}: {how}")
    return found


def packet_sizes(facts: Iterable[Fact]) -> dict[str, str]:
    """Give the facts of scope "packet sizes": "ENVIRONMENT/WORKLOAD LABEL" -> "1418 B", perhaps "1472 B (probed)"."""
    return {key: value for scope, key, value, _ in facts if scope == PACKET_SIZES}


def interrupt_times(facts: Iterable[Fact]) -> frozenset[str]:
    """Give the `InterruptTime` of this machine and of the other hosts; empty for a run made before it was noted.

    Where all roles were elsewhere this machine's is among them too.
    """
    return frozenset(value for scope, key, value, _ in facts if key == FACT and scope.partition(" ")[0] == "host")


def bare(size: str) -> str:
    """A packet size without how it was found: a probed and a given size are the same when they are as large."""
    return size.split(" (", maxsplit=1)[0]


def _sizes(
    sizes: Mapping[str, str], baseline: str, environments: Sequence[str]
) -> dict[str, tuple[str, frozenset[str]]]:
    """Of each environment with other packet sizes than the baseline: a sentence, and the workloads concerned."""
    found = {}
    for name in environments:
        by_size: dict[str, list[str]] = {}
        for place, size in sizes.items():
            environment, _, label = place.partition("/")
            reference = sizes.get(f"{baseline}/{label}")
            if environment == name and reference is not None and bare(size) != bare(reference):
                by_size.setdefault(f"packets of {bare(size)}, but {bare(reference)} in {baseline}", []).append(label)
        if by_size:
            text = "; ".join(f"{how} ({', '.join(labels)})" for how, labels in by_size.items())
            found[name] = (text, frozenset(label for labels in by_size.values() for label in labels))
    return found


def _own_options(
    study: StoredFile | None, environment: str, sizes: Mapping[str, tuple[str, frozenset[str]]]
) -> list[str]:
    """The options that workloads have in one environment alone, but for those that the packet sizes tell already."""
    own = study.environments.get(environment) if study is not None else None
    told = {label.split(" (")[0] for label in sizes[environment][1]} if environment in sizes else set()
    found = []
    for workload, options in (own.workloads or {}).items() if own is not None else ():
        if workload not in told:
            shown = ", ".join(f"{key}: {value}" for key, value in options.items())
            found.append(f"{workload} ({shown})")
    return [f"{environment}: options of its own in {', '.join(found)}"] if found else []


def different_paths(paths: Paths, plan: Plan, labels: Mapping[tuple[str, str], str]) -> tuple[Remark, ...]:
    """Give, for each environment, where its network path differs from the baseline's: code ``path``.

    A run from before paths were recorded says that.
    """
    if paths.networked is None:
        return (Remark("path", UNRECORDED),) if len(plan.environments) > 1 else ()
    several = len(paths.clients) > 1
    alike: dict[tuple[str, str], dict[str, None]] = {}
    for workload, level in labels:
        for name in plan.compared_on(workload, level):
            if text := paths.difference(workload, level, name, plan.baseline):
                where = f", {paths.place(paths.client_of(level))}" if several else ""
                alike.setdefault((where, text), {})[name] = None
    return tuple(Remark("path", f"{', '.join(names)}{where}: {text}") for (where, text), names in alike.items())


def polled(facts: Iterable[Fact]) -> bool:
    """Whether the run's idle CPUs polled: then nobody waited for one to wake up, in any environment."""
    return any((scope, key, value) == ("host", IDLE_CPUS, POLL) for scope, key, value, _ in facts)


def calibrated(facts: Iterable[Fact]) -> tuple[str, ...]:
    """What the machine's last calibration says of this run: each line once, the latest; empty where there is none.

    It was made with one host and without cables, whose idle CPUs halt: of another run only that is said.
    """
    facts, lines, elsewhere = list(facts), {}, False
    for scope, key, value, _ in facts:
        if scope == "calibration":
            lines[key] = f"{key} {value}"
        elsewhere = elsewhere or (scope.startswith("host ") and key == "kind")
    if lines and elsewhere:
        return (NOT_THIS_PATH,)
    if lines and polled(facts):
        return (NOT_POLLED,)
    return tuple(lines.values())
