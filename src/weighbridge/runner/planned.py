"""A run before it begins: its study on this machine, what is left out, and the reasons to refuse it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.meters.prometheus import Watched
from weighbridge.model.decisions import LeftOut
from weighbridge.model.options import External
from weighbridge.model.plugin import Readiness
from weighbridge.model.study import Study
from weighbridge.model.trial import Trial
from weighbridge.runner import estimate, known_noise
from weighbridge.runner.pollers import CannotPoll
from weighbridge.runner.pollers import lacking as cannot_poll
from weighbridge.runner.preflight import (
    admissions,
    hosts_readiness,
    lacking_here,
    missing_cpus,
    on_this_kernel,
    ready_for,
    ready_unapproved,
)
from weighbridge.runner.room import lacking_room
from weighbridge.runner.set_up_time import omits_unapproved, set_up_s
from weighbridge.runner.storage import storage_readiness, storage_server_readiness
from weighbridge.runner.userlands import absent_programs, userland_problems
from weighbridge.study import schedule
from weighbridge.study.external import names_external


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run that has not started: its study, and the answers of this machine.

    Its figures come from the study alone. Until the study is approved, nothing that it names is started, read or
    contacted.
    """

    declared: Study
    """The study, including the environments that are left out."""
    study: Study
    """The study as it will be measured."""
    left_out: tuple[LeftOut, ...]
    readiness: Mapping[str, Readiness]
    refusals: tuple[str, ...]
    """The reasons to refuse the run: where, what is missing, and what helps."""

    @property
    def blocks(self) -> int:
        """The number of rounds, or the fewest if the study has a target."""
        return self.study.file.repetitions.blocks or self.study.file.repetitions.min

    @property
    def most_blocks(self) -> int:
        """The largest number of rounds."""
        return self.study.file.repetitions.blocks or self.study.file.repetitions.max

    @property
    def trials(self) -> Iterator[Trial]:
        """The trials of the fewest rounds, in running order."""
        return (trial for number in range(1, self.blocks + 1) for trial in schedule.block(self.study, number))

    @property
    def set_up_s(self) -> float:
        """The expected duration of the set-up, with the present contents of the cache."""
        return set_up_s(self.study)

    @property
    def set_up_omits_unapproved(self) -> bool:
        """Whether `set_up_s` omits root filesystems whose sources the user has not approved."""
        return omits_unapproved(self.study)

    @property
    def trials_s(self) -> tuple[float, float]:
        """The expected duration of the trials of the fewest and of the most rounds."""
        return estimate.seconds(self.study)

    @property
    def decidable(self) -> known_noise.Decidable:
        """The costs that a run of this size can detect, and its possible verdicts."""
        return known_noise.decidable(self.study)

    @property
    def nothing_left(self) -> str:
        """The reason to refuse the run if no environment is left to compare with the baseline; otherwise ""."""
        return nothing_left(self.declared, self.left_out)

    @property
    def missing_root_filesystems(self) -> tuple[Readiness, ...]:
        """For each root filesystem that is missing and cannot be built by this user: the reason."""
        return tuple(userland_problems(self.study))

    @property
    def reasons(self) -> list[str]:
        """Everything that is missing on this machine."""
        problems = (f"{problem.detail}: {problem.remedy}" for problem in self.missing_root_filesystems)
        return [why for why in (self.nothing_left, *self.refusals, *problems) if why]

    def require(self) -> None:
        """Check the environments and the root filesystems. Raises as `require_environments` does."""
        self.require_environments()
        for problem in self.missing_root_filesystems:
            raise Unavailable(f"{problem.detail}: {problem.remedy}")

    def require_environments(self) -> list[str]:
        """Return notes for the user. Raises Unavailable with the reasons to refuse the run, StudyError."""
        if reasons := self.nothing_left or "; ".join(self.refusals):
            raise Unavailable(reasons)
        return require_prometheus(self.study)


def plan(study: Study, left_out: Sequence[LeftOut] | None = None, *, frozen: bool = False) -> PlannedRun:
    """Plan a run of a study on this machine, without the optional environments that cannot be opened here.

    A run that has trials continues without the environments that it had ``left_out``, and leaves out no others. A
    ``frozen`` study is stored in a run, and keeps the arms with which the run began.
    """
    declared = study if frozen else on_this_kernel(study)
    chosen = declared if left_out is None else _without(declared, left_out)
    readiness = readiness_of(chosen)
    absent = not_ready(chosen, readiness) if left_out is None else tuple(left_out)
    rest = _without(chosen, absent)
    return PlannedRun(declared, rest, absent, readiness, tuple(refusals(rest, readiness)))


def readiness_of(study: Study) -> Mapping[str, Readiness]:
    """Return by name whether each environment of the study can be opened here.

    Hosts with their own kernel and programs are checked when they start. Before the study is approved, no program
    that it names is examined, except whether PATH has its name.
    """
    placed = {"server": (study.server_host,), "client": study.client_hosts}
    holding = [name for role in study.file.inside for name in placed[role]]
    elsewhere = all(study.file.hosts[name].traits.own_kernel for name in holding)
    readiness = {}
    admitted = admissions(study)
    for arm in study.arms:
        if elsewhere:
            later = Readiness(True, "its hosts are checked when they start")
            served = storage_server_readiness(study, arm)
            readiness[arm.name] = admitted.get(arm.name, later) if served.ready else served
            continue
        if not study.approved and names_external(arm.options):
            readiness[arm.name] = ready_unapproved(study, arm)
            continue
        state = ready_for(study, arm)
        served = storage_readiness(arm) if state.ready else state
        readiness[arm.name] = state if served.ready else served
    return readiness


def refusals(study: Study, environments: Mapping[str, Readiness]) -> list[str]:
    """Return the reasons to refuse a run of the study here: where, what is missing, and what helps."""
    reasons = [str(CannotPoll(why))] if study.file.cpu_idle == "poll" and (why := cannot_poll()) else []
    hosts, own = hosts_readiness(study).items(), ((arm.name, environments[arm.name]) for arm in study.arms)
    absent: dict[str, str] = {}
    for workload, why in absent_programs(study):
        absent.setdefault(why, workload)
    return [
        *reasons,
        *missing_cpus(study),
        *_lines(study, "hosts", _unready(hosts), "host"),
        *_lines(study, "environments", [*lacking_room(study).items(), *_unready(own)]),
        *_lines(study, "workloads", ((workload, why) for why, workload in absent.items())),
    ]


def _unready(states: Iterable[tuple[str, Readiness]]) -> Iterator[tuple[str, str]]:
    return ((name, f"{state.detail}: {state.remedy}") for name, state in states if not state.ready)


def _lines(study: Study, section: str, reasons: Iterable[tuple[str, str]], noun: str = "") -> Iterator[str]:
    """Yield each reason once, after the names to which it applies and the line of the first in the study file."""
    names_by_reason: dict[str, list[str]] = {}
    for name, why in reasons:
        names_by_reason.setdefault(why, []).append(name)
    for why, names in names_by_reason.items():
        line = study.lines.get((section, names[0]))
        what = f"{noun}{'s' * (len(names) > 1)} " if noun else ""
        yield f"{f'{line}: ' if line else ''}{what}{', '.join(names)}: {why}"


def describe_locations(study: Study) -> list[str]:
    """Return the owner of each host's machine and the objects created there, if the host's options do not say so.

    No program reads a kubeconfig that the study names before the study is approved.
    """
    kinds = registry.hosts()
    names = (study.server_host, *study.client_hosts, *study.storage_hosts)
    hosts = (study.file.hosts[name] for name in names)
    used = (host for host in hosts if study.approved or not names_external(host, External.KUBECONFIG))
    lines = (kinds[host.kind].describe_location(host) for host in used if lacking_here(kinds[host.kind]) is None)
    return [*dict.fromkeys(line for line in lines if line)]


def require_prometheus(study: Study) -> list[str]:
    """Contact the study's Prometheus server; return notes. Raises Unavailable, StudyError if it refuses a query."""
    return Watched(study.file.prometheus).require() if study.file.prometheus and study.approved else []


def not_ready(study: Study, readiness: Mapping[str, Readiness]) -> tuple[LeftOut, ...]:
    """Return the optional environments that cannot be opened here."""
    return tuple(
        LeftOut(environment=arm.name, kind=arm.kind, why=state.detail, remedy=state.remedy)
        for arm in study.arms
        if arm.optional and not (state := readiness[arm.name]).ready
        if arm.explains is None or readiness[arm.explains.environment].ready  # else both are left out
    )


def without_left_out(study: Study, left_out: Sequence[LeftOut]) -> Study:
    """Return the study without these environments. Raises Unavailable if none is left to compare with."""
    if why := nothing_left(study, left_out):
        raise Unavailable(why)
    return _without(study, left_out)


def _without(study: Study, left_out: Sequence[LeftOut]) -> Study:
    return study.without([each.environment for each in left_out])


def nothing_left(study: Study, left_out: Sequence[LeftOut]) -> str:
    """Return the reason to refuse the study if nothing is left to compare with the baseline; otherwise ""."""
    rest = _without(study, left_out)
    if not left_out or any(arm.declared and arm.name != study.file.baseline for arm in rest.arms):
        return ""
    why = "; ".join(left_out_line(each) for each in left_out)
    return f"no environment is left to compare with {study.file.baseline}: {why}"


def left_out_line(left_out: LeftOut) -> str:
    """Return one line for the progress: ``podman is skipped: podman is not installed; apt-get install podman``."""
    return f"{left_out.environment} is skipped: {left_out.reason}"
