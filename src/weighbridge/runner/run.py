"""One `weighbridge run`, from the check of its study to its report; also continues an interrupted run."""

import contextlib
import errno
import json
import math
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from weighbridge.model.decisions import left_out_text
from weighbridge.model.facts import HALT, HOST_DIFFERENCES, IDLE_CPUS, POLL, HostDifference
from weighbridge.model.host import RunContext
from weighbridge.model.names import RunId
from weighbridge.model.secret import SecretName
from weighbridge.model.stored_study import secrets_of, study_json
from weighbridge.model.study import Study, StudyFile
from weighbridge.model.timing import Phase, Timing
from weighbridge.model.trial import TrialRecord
from weighbridge.runner import clean, living, run_lock
from weighbridge.runner.continuity import LAUNCHER, launcher_unknown, require_same
from weighbridge.runner.known_noise import calibration_facts
from weighbridge.runner.planned import left_out_line, plan
from weighbridge.runner.pollers import Pollers, wants_polling
from weighbridge.runner.preflight import (
    on_this_kernel,
)
from weighbridge.runner.session import Progress, Session
from weighbridge.runner.signals import shield
from weighbridge.runner.stopper import BlockExtender, ShortTime
from weighbridge.runner.userlands import (
    PROGRAMS,
    ensure_userlands,
    measured_packages,
    measured_programs,
    userland_facts,
)
from weighbridge.store.consistency import require_same_study
from weighbridge.store.extensions import extend
from weighbridge.store.reader import LEFT_OUT, run_identity
from weighbridge.store.run import RunStore
from weighbridge.study.external import runtimes_by_path
from weighbridge.study.frozen import first_difference, thaw
from weighbridge.study.loader import check
from weighbridge.study.source import parse
from weighbridge.userland.build import cache_folder

_OTHERS_EVERY_S = 1.0
"""The least seconds between two looks for other runs, which take longer than that."""


def loads_of(study: Study) -> dict[str, str]:
    """Return the option that is the load, by workload; the report needs it for curves."""
    loads = ((cell.workload, registry.workloads()[cell.kind].load(cell.options)) for cell in study.cells)
    return {workload: load for workload, load in loads if load}


def _about_workloads(study: Study) -> dict[str, str]:
    """Return facts about the study's workloads as JSON, because a report uses no plug-in."""
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


def study_of(store: RunStore) -> Study:
    """Return the study that is stored in a run. Version 4 and older stored only its text, which is checked again."""
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
    timing: Timing | None = None,
) -> None:
    """Run a study into a directory, or continue the run that is in it.

    If ``study`` is None, the run is continued, and ``blocks`` changes its total number of rounds. ``extender``,
    ``short_time`` and ``timed``: as in `Session`. ``timing`` notes how long each phase takes. At the end, also after
    an error or Ctrl-C, ``after`` is called with the store, to write a report. A new run that is refused, or ends
    before its first trial, is removed.
    """
    timing = timing or Timing()
    with RunStore(directory, writable=True) as store, _kept_once_measured(store):
        continued = "study_text" in store.info()
        if continued and (held := living.holder(store.run_id)) is not None:  # also a run of another user
            raise RunDirectoryError(f"run {store.run_id} is still running ({held}): wait until it ends")
        study = _begin_or_continue(study, store, progress, blocks)
        run_id = store.run_id
        cache = cache_folder()
        with run_lock.claim(run_id, cache, store.directory) as folder:
            keep = True
            try:
                if continued:  # a killed process of this run can have left something that uses memory
                    _say_failures(progress, clean.sweep(run_id))
                study = leave_out(study, store, progress, continued=continued)
            except BaseException:
                run_lock.forget(run_id)
                raise
            try:
                _session(
                    study, store, run_id, folder, cache, progress, extender, timing,
                    short_time=short_time, timed=timed,
                )  # fmt: skip
            except BaseException as ended:
                keep = continued or (bool(store.finished()) and not isinstance(ended, TimeTooShort))
                raise
            finally:
                timing.begin(Phase.CLEANUP)
                with shield(), ExitStack() as ending:  # the last one first, each whatever happens to the others
                    if keep:
                        ending.callback(_report, after, store)
                        ending.callback(timing.begin, Phase.REPORT)
                        ending.callback(lambda: store.add_facts("after", volatile_facts()))
                    else:  # a better run can use its directory
                        ending.callback(store.discard)
                    ending.callback(lambda: _say_failures(progress, _swept(run_id, study)))


def leave_out(study: Study, store: RunStore, progress: Progress, *, continued: bool) -> Study:
    """Return the study as measured, and store what is left out. Raises as `PlannedRun.require_environments` does."""
    has_trials = bool(store.finished())
    planned = plan(study, store.left_out() if has_trials else None, frozen=True)
    notes = planned.require_environments()
    if not has_trials:
        store.set_info(LEFT_OUT, left_out_text(planned.left_out))
    for each in planned.left_out if continued else ():
        progress.say(left_out_line(each))
    for note in notes:
        progress.say(note)
    return planned.study


@contextlib.contextmanager
def _kept_once_measured(store: RunStore) -> Iterator[None]:
    """Remove a new run that ends before its first trial: it can be neither continued nor reported."""
    continued = "study_text" in store.info()
    try:
        yield
    except BaseException as ended:
        if not continued and not store.finished():
            if isinstance(ended, Interrupted):
                ended.nothing_kept = True
            store.discard()
        raise


def _note_others(store: RunStore, run_id: RunId, noted: set[str]) -> None:
    """Store other runs that measure on this machine now, unless ``noted``, because their load affects this run."""
    new = {other: where for other, where in living.others(run_id).items() if other not in noted}
    noted.update(new)
    notes = {other: HostDifference(kind="beside", values=((other, where),)) for other, where in new.items()}
    if notes:
        documents = {f"run {other}": note.model_dump_json(exclude_defaults=True) for other, note in notes.items()}
        store.add_facts(HOST_DIFFERENCES, documents)


def _swept(run_id: RunId, study: Study) -> list[str]:
    return clean.sweep_and_forget(run_id, clean.cleanups_of(study))


def _say_failures(progress: Progress, failures: Iterable[str]) -> None:
    for each in failures:
        progress.say(f"{each} ('weighbridge clean' tries again)")


def _report(after: Callable[[RunStore], None], store: RunStore) -> None:
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
        secret_values.refuse_values_in(study.text, study_document)  # values can have been given since it was checked
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
        raise RunDirectoryError(  # the user approved this study, but the run would use the stored one
            f"the run in {store.directory} has a different {place}: omit the study to continue it"
        )
    secret_values.expect(store.secrets() or {}, store.identity)
    _require_secrets(secrets_of(frozen), progress, continued=True)
    if blocks is not None:
        extend(store, frozen.file.repetitions, blocks)
    progress.say(f"continuing the run in {store.directory}, which has {len(store.finished()):,} finished trials")
    if store.study() is None:
        store.keep_study(frozen)  # last, so that a refusal does not change an older run
    return frozen


def _require_secrets(names: Sequence[SecretName], progress: Progress, *, continued: bool) -> None:
    """Find a study's secrets, and report those that differ. Raises SecretError if one is missing or has changed."""
    compared = secret_values.require(names, same=continued)
    if changed := [name for name, how in compared.items() if how == "changed"]:
        progress.say(f"the value of {', '.join(changed)} has changed since the run began")
    if unknown := [name for name, how in compared.items() if how == "unknown"]:
        progress.say(
            f"Weighbridge cannot check whether {', '.join(unknown)} has changed, because another user or machine "
            "began this run."
        )


def _raise_open_files() -> None:
    """Allow as many open files as the system does: a load of thousands of connections needs them."""
    most = most_open_files()
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextlib.contextmanager
def usual_priority() -> Iterator[None]:
    """Start everything with nice 0, if allowed, because a private engine would pass the user's nice value on."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    try:
        yield
    finally:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


def _started_pollers(file: StudyFile, run: RunContext) -> Pollers | None:
    """Start pollers if the study wants them. Until `_polling` is called, they get ready next to other work."""
    if wants_polling(file):
        with _halting_instead(file, run):
            return run.stack.enter_context(closing(Pollers(run.state, run.id, cpus_online())))
    return None


@contextlib.contextmanager
def _halting_instead(file: StudyFile, run: RunContext) -> Iterator[None]:
    """Report that idle CPUs halt if they cannot poll, unless the study demands it; then raise Unavailable."""
    try:
        yield
    except Unavailable as why:
        if file.cpu_idle == "poll":
            raise
        run.say(f"{why}; they halt, which makes measurements on a virtual machine noisy")


def _polling(started: Pollers | None, file: StudyFile, run: RunContext) -> Pollers | None:
    """Wait until the pollers poll, and return them; None if idle CPUs halt."""
    pollers = None
    if started is not None:
        with _halting_instead(file, run):
            started.wait_until_polling()
            pollers = started
    if pollers is None:
        return None
    run.say(
        "idle CPUs are kept awake until the run ends (cpu_idle), because waking them adds noise: it is normal that "
        "all CPUs look busy"
    )
    return pollers


def _launcher(study: Study, cache: Path, progress: Progress) -> str:
    """Build the launcher and return its digest; "" if no environment of the study starts it."""
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
    timing: Timing,
    *,
    short_time: ShortTime,
    timed: bool,
) -> None:
    _raise_open_files()
    userlands = ensure_userlands(study, cache, progress.say)
    about = userland_facts(study, userlands)
    with usual_priority(), ExitStack() as stack:
        runtimes = runtimes_by_path(study)
        run = RunContext(run_id, folder, cache, stack, progress.say, progress.waits, userlands, runtimes)
        with contextlib.suppress(Unavailable):  # first, so that the whole run is in one group
            tree(run_id)
        before = volatile_facts()
        started_pollers = _started_pollers(study.file, run)
        timed_by = _launcher(study, cache, progress)
        machine_facts, programs = fingerprint(), measured_programs(study, userlands)
        pollers = _polling(started_pollers, study.file, run)
        facts = {**machine_facts, LAUNCHER: timed_by, IDLE_CPUS: HALT if pollers is None else POLL}
        require_same(store, facts, about, programs)
        if timed_by and launcher_unknown(store):
            progress.say("an unknown launcher started this run, so the times of short programs can differ")
        store.begin_session({key: value for key, value in facts.items() if value})
        store.add_facts("before", before)
        store.add_facts("calibration", calibration_facts())
        for scope, scope_facts in (about | measured_packages(study, userlands)).items():
            store.add_facts(scope, scope_facts)
        store.add_facts(PROGRAMS, programs)
        watched = Watched(study.file.prometheus) if study.file.prometheus else None
        noted: set[str] = set()
        looked_at = -math.inf

        def completed(record: TrialRecord) -> TrialRecord:
            nonlocal looked_at
            if time.monotonic() - looked_at >= _OTHERS_EVERY_S:
                looked_at = time.monotonic()
                _note_others(store, run_id, noted)  # other runs can come and go during this one
            return record if watched is None else watched.completed(record)

        stack.callback(timing.begin, Phase.CLEANUP)
        Session(
            study, store, run, userlands, progress, volatile_facts, completed, pollers, extender, short_time, timed,
            timing,
        ).go()  # fmt: skip
