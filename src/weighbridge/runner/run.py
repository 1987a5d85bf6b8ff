"""One `weighbridge run`: userland, fingerprint, session, whatever comes of it; continues an interrupted run."""

import contextlib
import errno
import json
import os
import resource
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from importlib import metadata
from pathlib import Path

from weighbridge import registry, secret_values
from weighbridge.errors import DiskFull, Interrupted, RunDirectoryError, TimeTooShort, Unavailable
from weighbridge.facts.host import fingerprint, volatile_facts
from weighbridge.launcher import build as launcher
from weighbridge.linux.cpus import cpus_online
from weighbridge.linux.delegation import tree
from weighbridge.linux.process import most_open_files
from weighbridge.meters.prometheus import Watched
from weighbridge.model.facts import HALT, HOST_DIFFERENCES, IDLE_CPUS, POLL, HostDifference
from weighbridge.model.host import RunContext
from weighbridge.model.names import RunId
from weighbridge.model.plugin import Readiness
from weighbridge.model.secret import SecretName
from weighbridge.model.stored_study import secrets_of, study_json
from weighbridge.model.study import Study, StudyFile
from weighbridge.model.trial import TrialRecord
from weighbridge.runner import clean, living, run_lock
from weighbridge.runner.continuity import LAUNCHER, launcher_unknown, require_same
from weighbridge.runner.known_noise import calibration_facts
from weighbridge.runner.pollers import CannotPoll, Pollers, lacking, wants_polling
from weighbridge.runner.preflight import (
    admissions,
    hosts_readiness,
    leave_out,
    missing_cpus,
    on_this_kernel,
    ready_for,
)
from weighbridge.runner.room import lacking_room
from weighbridge.runner.session import BlockExtender, Progress, Session, ShortTime
from weighbridge.runner.signals import shield
from weighbridge.runner.storage import storage_readiness, storage_server_readiness
from weighbridge.runner.userlands import (
    PROGRAMS,
    absent_programs,
    ensure_userlands,
    measured_packages,
    measured_programs,
    userland_facts,
)
from weighbridge.store.consistency import require_same_study
from weighbridge.store.extensions import extend
from weighbridge.store.reader import run_identity
from weighbridge.store.run import RunStore
from weighbridge.study.brings import brings
from weighbridge.study.frozen import first_difference, thaw
from weighbridge.study.loader import check
from weighbridge.study.source import parse
from weighbridge.userland.build import cache_folder


def loads_of(study: Study) -> dict[str, str]:
    """The option that is the load of each of the study's workloads that has one, for the report of its curves."""
    loads = ((cell.workload, registry.workloads()[cell.kind].load(cell.options)) for cell in study.cells)
    return {workload: load for workload, load in loads if load}


def _about_workloads(study: Study) -> dict[str, str]:
    """What a report has to know of the study's workloads, as JSON, since it asks no plug-in."""
    kinds = registry.workloads()
    networked = dict.fromkeys(cell.workload for cell in study.cells if kinds[cell.kind].transports(cell.options))
    absent = [
        (cell.workload, cell.level.text, arm.name)
        for cell in study.cells
        for arm in study.arms
        if arm not in study.arms_of(cell)
    ]
    return {
        "loads": json.dumps(loads_of(study)),
        "networked": json.dumps(list(networked)),
        "server_host": study.server_host,
        "local_host": next((name for name, host in study.file.hosts.items() if host.traits.this_machine), ""),
        "absent": json.dumps(absent),
    }


def readiness_of(study: Study) -> Mapping[str, Readiness]:
    """For each environment of the study, by name, whether it can be opened here.

    What hosts with a kernel and programs of their own can run is not known before they are started. A program that a
    study brings is not examined before the study is approved.
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
        if not study.approved and brings(arm.options):
            readiness[arm.name] = Readiness(True, "it is checked after you agree")
            continue
        state = ready_for(study, arm)
        served = storage_readiness(arm) if state.ready else state
        readiness[arm.name] = state if served.ready else served
    return readiness


def refusals(study: Study, environments: Mapping[str, Readiness]) -> list[str]:
    """Why a run of the study is refused here before anything is started: where, what is missing, and what helps.

    ``environments``: by name whether each can be opened (`readiness_of`).
    """
    reasons = [str(CannotPoll(why))] if study.file.cpu_idle == "poll" and (why := lacking()) else []
    reasons += missing_cpus(study)
    lacking_hosts: dict[str, list[str]] = {}
    for name, host in hosts_readiness(study).items():
        if not host.ready:
            lacking_hosts.setdefault(f"{host.detail}: {host.remedy}", []).append(name)
    for why, names in lacking_hosts.items():
        which = f"host{'s' * (len(names) > 1)} {', '.join(names)}"
        reasons.append(f"{_line(study, 'hosts', names[0])}{which}: {why}")
    missing: dict[str, list[str]] = {}
    for name, why in lacking_room(study).items():
        missing.setdefault(why, []).append(name)
    for arm in study.arms:
        if not (readiness := environments[arm.name]).ready:
            missing.setdefault(f"{readiness.detail}: {readiness.remedy}", []).append(arm.name)
    reasons += [
        f"{_line(study, 'environments', names[0])}{', '.join(names)}: {why}" for why, names in missing.items()
    ]
    absent: dict[str, str] = {}
    for workload, why in absent_programs(study):
        absent.setdefault(why, workload)
    return reasons + [f"{_line(study, 'workloads', workload)}{workload}: {why}" for why, workload in absent.items()]


def _line(study: Study, section: str, name: str) -> str:
    """Where an entry stands in the study file, as the beginning of what is told of it; "" where that is not known."""
    line = study.lines.get((section, name))
    return f"{line}: " if line else ""


def require_ready(study: Study) -> list[str]:
    """Raise Unavailable that names each environment that cannot be opened, why, and what makes it ready.

    Likewise where its Prometheus server does not answer; StudyError where that refuses a query. Gives what a person
    should know of it. Which environments may be missing `weighbridge.runner.preflight` says before.
    """
    if reasons := refusals(study, readiness_of(study)):
        raise Unavailable("; ".join(reasons))
    return require_prometheus(study)


def require_prometheus(study: Study) -> list[str]:
    """Contact the Prometheus server of an approved study; return notes for the user.

    Raises Unavailable if it does not answer, StudyError if it refuses a query.
    """
    return Watched(study.file.prometheus).require() if study.file.prometheus and study.approved else []


def study_of(store: RunStore) -> Study:
    """The study that is frozen in a run. Of a run from before version 5 of the store its text is checked again."""
    text, stored = store.info().get("study_text"), store.study()
    if text is None:
        raise RunDirectoryError(f"{store.directory} is damaged: it has no study")
    if stored is None:
        return check(parse(text, f"{store.directory} (the study in this run)"))
    require_same_study(store, stored)
    return thaw(stored, text, store.directory)


def run_study(
    study: Study | None,
    directory: Path,
    progress: Progress,
    after: Callable[[RunStore], None],
    blocks: int | None = None,
    extender: BlockExtender | None = None,
    *,
    short_time: ShortTime = "keep",
    timed: bool = True,
) -> None:
    """Run a study into a directory, or continue the run that is in it.

    ``study`` may be None to continue; ``blocks`` then changes how many blocks the run has in all; ``extender`` may
    ask for more when they are done. ``short_time``: what is done where the study's time is too short for a verdict;
    TimeTooShort where that refuses it. Not ``timed``: the study does not know how long its programs take. ``after``
    is called with the store at the end, also when the run failed or was interrupted, so that a report shows what
    there is. Of a new run that was refused, or ended before its first trial, nothing stays.
    """
    with RunStore(directory, writable=True) as store, _kept_once_measured(store):
        continued = "study_text" in store.info()
        if continued and (held := living.holder(store.run_id)) is not None:  # also a run of another user
            raise RunDirectoryError(f"run {store.run_id} is still running ({held}): wait until it ends")
        study = _begin_or_continue(study, store, progress, blocks)
        run_id = store.run_id
        cache = cache_folder()
        with run_lock.claim(run_id, cache, store.directory) as folder:
            with ExitStack() as refused:
                refused.callback(run_lock.forget, run_id)
                if continued:  # what a killed process of this same run left, whose memory is then free
                    _say_failures(progress, clean.sweep(run_id))
                # whoever begins a run was told of what is left out before it was asked whether to start
                study = leave_out(study, store, readiness_of, progress.say if continued else lambda _: None)
                for note in require_ready(study):
                    progress.say(note)
                refused.pop_all()
            keep = True
            try:
                _session(study, store, run_id, folder, cache, progress, extender, short_time=short_time, timed=timed)
            except BaseException as ended:
                keep = continued or (bool(store.finished()) and not isinstance(ended, TimeTooShort))
                raise
            finally:
                with shield():
                    if keep:
                        _end(store, after, progress, run_id)
                    else:
                        _discard(store, progress, run_id)


@contextlib.contextmanager
def _kept_once_measured(store: RunStore) -> Iterator[None]:
    """Remove a run that begins here where it ends before its first trial: nothing can be continued or reported."""
    continued = "study_text" in store.info()
    try:
        yield
    except BaseException as ended:
        if not continued and not store.finished():
            if isinstance(ended, Interrupted):
                ended.nothing_kept = True
            store.discard()
        raise


def _end(store: RunStore, after: Callable[[RunStore], None], progress: Progress, run_id: RunId) -> None:
    """Clean up after a run, and have its report written."""
    with ExitStack() as ending:  # last one first, and each whatever becomes of the others
        ending.callback(_tell, after, store)
        ending.callback(lambda: store.add_facts("after", volatile_facts()))
        ending.callback(lambda: _say_failures(progress, clean.sweep_and_forget(run_id)))


def _discard(store: RunStore, progress: Progress, run_id: RunId) -> None:
    """Clean up after a run that was refused, of which nothing is kept: a better one may have its directory."""
    with ExitStack() as ending:
        ending.callback(store.discard)
        ending.callback(lambda: _say_failures(progress, clean.sweep_and_forget(run_id)))


def _note_others(store: RunStore, run_id: RunId, noted: set[str]) -> None:
    """Keep which other runs measure on this machine now: what they use of it is in this run's numbers.

    Those that are ``noted`` already are not kept again; new ones are added to them.
    """
    new = {other: where for other, where in living.others(run_id).items() if other not in noted}
    noted.update(new)
    notes = {other: HostDifference(kind="beside", values=((other, where),)) for other, where in new.items()}
    if notes:
        documents = {f"run {other}": note.model_dump_json(exclude_defaults=True) for other, note in notes.items()}
        store.add_facts(HOST_DIFFERENCES, documents)


def _say_failures(progress: Progress, failures: Iterable[str]) -> None:
    for each in failures:
        progress.say(f"{each} ('weighbridge clean' tries again)")


def _tell(after: Callable[[RunStore], None], store: RunStore) -> None:
    try:
        after(store)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull.of(store.directory) from error
        problem = f"the report in {store.directory} cannot be written ({error.strerror})"
        message = f"{problem}. Finished trials are kept; try 'weighbridge report' later"
        raise RunDirectoryError(message) from error


def _begin_or_continue(study: Study | None, store: RunStore, progress: Progress, blocks: int | None) -> Study:
    info = store.info()
    study = None if study is None else on_this_kernel(study)
    if "study_text" not in info:
        if study is None:
            raise RunDirectoryError(f"{store.directory} contains no run: name a study to run")
        run_id = RunId.new()
        made_by = {"run_id": run_id, "version": metadata.version("weighbridge")}
        names = secrets_of(study)
        _require_secrets(names, progress, continued=False)
        study_document = study_json(study)
        secret_values.refuse_values_in(study.text, study_document)  # of values that were given since it was checked
        identity = run_identity(run_id, study.text, study_document)
        store.begin(study, {**made_by, **_about_workloads(study)}, secret_values.digests(names, identity))
        return study
    frozen = study_of(store)
    if study is not None and study.text != frozen.text:
        raise RunDirectoryError(
            f"{store.directory} contains a run of another study, of another version of it, or with another number "
            "of rounds. Choose a new --out, or omit the study to continue that run (--rounds sets its total)"
        )
    if study is not None and (place := first_difference(frozen, study)):
        raise RunDirectoryError(  # what was approved is the study, and what is run is what the run has kept
            f"the run in {store.directory} has a different {place}: omit the study to continue it"
        )
    secret_values.expect(store.secrets() or {}, store.identity)
    _require_secrets(secrets_of(frozen), progress, continued=True)
    if blocks is not None:
        extend(store, frozen.file.repetitions, blocks)
    progress.say(f"continuing the run in {store.directory}, which has {len(store.finished()):,} finished trials")
    if store.study() is None:
        store.keep_study(frozen)  # last: what is refused leaves an older run as it was
    return frozen


def _require_secrets(names: Sequence[SecretName], progress: Progress, *, continued: bool) -> None:
    """Find the values that a study needs, and report which ones differ from an earlier run.

    Raises SecretError if one is missing, or has changed since the run that is continued began.
    """
    compared = secret_values.require(names, same=continued)
    if changed := [name for name, how in compared.items() if how == "changed"]:
        progress.say(f"the value of {', '.join(changed)} has changed since the run began")
    if unknown := [name for name, how in compared.items() if how == "unknown"]:
        progress.say(
            f"Weighbridge cannot check whether {', '.join(unknown)} has changed, because another user or machine "
            "began this run."
        )


def _raise_open_files() -> None:
    """As many open files as the system allows, for us and all that we start: a load of thousands needs them."""
    most = most_open_files()
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextlib.contextmanager
def usual_priority() -> Iterator[None]:
    """Take the usual priority (nice 0) meanwhile, where that is allowed, for all that is started.

    An engine of ours would give its containers the nice value of the user's shell, which a native site sheds.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    try:
        yield
    finally:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


def _pollers(file: StudyFile, run: RunContext) -> Pollers | None:
    """What keeps idle CPUs from halting, where that is asked for. Raises Unavailable where it cannot be."""
    if not wants_polling(file):
        return None
    try:
        pollers = run.stack.enter_context(closing(Pollers(run.state, run.id, cpus_online())))
    except Unavailable as why:
        if file.cpu_idle == "poll":
            raise
        run.say(f"{why}; they halt, which makes measurements on a virtual machine noisy")
        return None
    run.say(
        "idle CPUs are kept awake until the run ends (cpu_idle), because waking them adds noise: it is normal that "
        "all CPUs look busy"
    )
    return pollers


def _launcher(study: Study, cache: Path, progress: Progress) -> str:
    """The digest of the launcher, built if need be; empty where no environment of the study starts one."""
    if not any(registry.environments()[arm.kind].launches for arm in study.arms):
        return ""
    return launcher.digest(launcher.ensure(cache, progress.say))


def _session(
    study: Study,
    store: RunStore,
    run_id: RunId,
    folder: Path,
    cache: Path,
    progress: Progress,
    extender: BlockExtender | None,
    *,
    short_time: ShortTime,
    timed: bool,
) -> None:
    _raise_open_files()
    userlands = ensure_userlands(study, cache, progress.say)
    about = userland_facts(study, userlands)
    with usual_priority(), ExitStack() as stack:
        run = RunContext(run_id, folder, cache, stack, progress.say, progress.step, userlands)
        with contextlib.suppress(Unavailable):  # before anything starts, so that all of the run is in one place
            tree(run_id)
        before = volatile_facts()
        pollers = _pollers(study.file, run)
        timed_by = _launcher(study, cache, progress)
        facts = {**fingerprint(), LAUNCHER: timed_by, IDLE_CPUS: HALT if pollers is None else POLL}
        programs = measured_programs(study, userlands)
        require_same(store, facts, about, programs)
        if timed_by and launcher_unknown(store):
            progress.say("an unknown launcher started this run, so the times of short programs can differ")
        store.begin_session({key: value for key, value in facts.items() if value})
        store.add_facts("before", before)
        store.add_facts("calibration", calibration_facts())
        for scope, scope_facts in (about | measured_packages(study, userlands)).items():
            store.add_facts(scope, scope_facts)
        store.add_facts(PROGRAMS, programs)
        session = Session(
            study, store, run, userlands, progress, volatile_facts, pollers=pollers, extender=extender,
            short_time=short_time, timed=timed,
        )  # fmt: skip
        add_series = Watched(study.file.prometheus).completed if study.file.prometheus else session.completed
        noted: set[str] = set()

        def completed(record: TrialRecord) -> TrialRecord:
            _note_others(store, run_id, noted)  # one may come and go while this run lasts
            return add_series(record)

        session.completed = completed
        session.go()
