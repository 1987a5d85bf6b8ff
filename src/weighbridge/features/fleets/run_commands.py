"""`weighbridge fleet plan`, `submit`, `status`, `continue` and `cancel`: run one study on many machines."""

import contextlib
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import typer
from pydantic import ConfigDict, with_config
from rich.markup import escape
from rich.table import Table
from typing_extensions import TypedDict

from weighbridge import secret_values
from weighbridge.cli import approval
from weighbridge.cli.doctor import UNVERIFIED
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.output import err, out, print_json
from weighbridge.errors import RunDirectoryError, StudyError, Unavailable, WeighbridgeError
from weighbridge.features.fleets import survey as surveying
from weighbridge.features.fleets.drive import drive as run_waves
from weighbridge.features.fleets.drive import own_version, planned_rounds, study_of
from weighbridge.features.fleets.folder import Fleet, FleetFolder, UnitStatus, last_line
from weighbridge.features.fleets.machine_provider import DriverState, Submission
from weighbridge.features.fleets.options import (
    CancelOptions,
    ContinueOptions,
    DriveOptions,
    FleetOptions,
    FleetPlanOptions,
    StatusOptions,
    SubmitOptions,
)
from weighbridge.features.fleets.plan_document import FleetPlanDocument
from weighbridge.features.fleets.provider_options import given_options
from weighbridge.features.fleets.providers import Provided, host_options, provided_by, provider_of
from weighbridge.features.fleets.rounds import Round
from weighbridge.features.fleets.study import hosts_of, study_on
from weighbridge.model.host_kind import HostOptions
from weighbridge.model.options import External
from weighbridge.model.secret import SecretName
from weighbridge.model.stored_study import secrets_of
from weighbridge.model.study import Study
from weighbridge.report.text.formatting import plural
from weighbridge.runner import known_noise, living, planned, preflight
from weighbridge.runner.estimate import clock_range, seconds
from weighbridge.runner.signals import interruptible, shield
from weighbridge.secret_values import handing_on
from weighbridge.study import loader
from weighbridge.study.external import ExternalResource, external_resources, external_resources_of_machines
from weighbridge.study.settings import with_settings
from weighbridge.study.source import Origin, OriginKind

NOT_CONTACTED = "no machine was contacted. Add --yes to contact them and check whether they can run the study"
STATUS_VERSION: Final = 1
"""The version of the document of ``fleet status --json``."""
_LISTED = 40
"""The maximum number of runs that `status` lists. Of a larger fleet it lists only the unfinished runs."""
_CANCEL_S, _LOOK_S = 30.0, 0.5


class FleetRunDocument(TypedDict):
    """One run of a fleet. ``exit_code`` is null until the run ends; ``trials`` counts finished trials."""

    name: str
    machines: list[str]
    purpose: Literal["", "alone", "again"]
    state: Literal["finished", "running", "stopped", "waiting"]
    trials: int
    exit_code: int | None
    reason: str
    directory: str


@with_config(ConfigDict(extra="forbid"))
class FleetStatusDocument(TypedDict):
    """The document of ``weighbridge fleet status DIR --json``."""

    version: Literal[1]
    study: str
    folder: str
    driver: Literal["waiting", "running", "ended", "unknown"]
    detail: str
    machines: list[str]
    runs: list[FleetRunDocument]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A fleet that could be submitted. It is not stored yet, and the user was not asked yet."""

    study: Study
    provided: Provided
    fleet: Fleet
    count: int

    @property
    def machines(self) -> tuple[str, ...]:
        """The names of the machines, or placeholders if a scheduler chooses them."""
        return self.fleet.machines or tuple(f"machine{number}" for number in range(1, self.count + 1))

    @property
    def waves(self) -> tuple[Round, ...]:
        """The fleet's waves: the runs of each wave go on at the same time."""
        return planned_rounds(self.fleet, self.machines)

    @property
    def unit_study(self) -> Study:
        """The study on the first machine, or the first pair. Raises StudyError if it cannot run on such hosts."""
        provider, options = self.provided
        machines = self.machines[: 1 + self.fleet.pairs]
        hosts = (
            provider.hosts(options, machines)
            if self.fleet.machines
            else [provider.planned_host(options, machine) for machine in machines]
        )
        return study_on(self.study, hosts, "--".join(machines))

    @property
    def hosts(self) -> dict[str, HostOptions]:
        """The hosts of the machines that are known before the start. Raises StudyError if an option is wrong."""
        return host_options(self.study, self.provided, self.fleet.machines or ())

    @property
    def resources(self) -> tuple[ExternalResource, ...]:
        """All external resources of the fleet, with the ways to reach its machines if they are known already."""
        own = tuple(f"hosts.{name}." for name in hosts_of(self.study))
        made_up = self.fleet.machines is None
        of_study = [
            each
            for each in external_resources(self.unit_study)
            if not each.place.startswith(own) or (made_up and each.kind is not External.MACHINE)
        ]
        return (*external_resources_of_machines(self.hosts), *of_study)

    @property
    def seconds(self) -> tuple[float, float]:
        """The shortest and longest duration of all waves, with the provider's limit of simultaneous runs."""
        provider, options = self.provided
        at_once = provider.at_once(options)
        batches = sum(math.ceil(len(units) / (at_once or len(units))) for units in self.waves)
        least, most = seconds(self.unit_study)
        return batches * least, batches * most


def _prepare(chosen: FleetOptions, *, yes: bool, **more: Any) -> tuple[_Prepared, Origin]:
    study, origin = approval.load_named(chosen.study, chosen.profile, yes=yes)
    study = with_settings(study, chosen.settings)
    study = study if chosen.rounds is None else loader.with_blocks(study, chosen.rounds)
    pairs = len(hosts_of(study)) > 1
    try:
        provider, options = provided_by(chosen.on, given_options(chosen.ctx))
    except ValueError as why:
        fail(str(why), WRONG_COMMAND_LINE)
    if not (state := provider.ready(options)).ready:
        raise Unavailable(f"{state.detail}: {state.remedy}")
    options = provider.settled(options)
    machines = provider.machines(options)
    count = provider.count(options) if machines is None else len(machines)
    if pairs and count < 2:
        raise Unavailable(f"{study.file.study} has roles on two hosts, so its fleet needs at least two machines")
    fleet = Fleet(
        name=study.file.study, study=study.text, pairs=pairs, on=options.model_dump(mode="json"),
        machines=machines, seed=study.file.seed, cwd=str(Path.cwd()), created=time.time(),
        partners=chosen.partners, controls=chosen.alone, rehearsal=chosen.quick_test, **more,
    )  # fmt: skip
    prepared = _Prepared(study, (provider, options), fleet, count)
    _ = prepared.hosts  # report a wrong option of any machine first
    return prepared, origin


def _refusals(prepared: _Prepared) -> list[str]:
    """Return the reasons to refuse the fleet: everything that is missing here or on one of its machines."""
    study, (provider, _) = prepared.unit_study, prepared.provided
    if not provider.drives_here:
        return []
    here = planned.plan(study)
    reasons = here.reasons
    for each in () if reasons else here.left_out:
        err().print(f"note: {planned.left_out_line(each)}", markup=False)
    if prepared.fleet.machines is None:
        return reasons
    hosts = prepared.hosts
    err().print(f"checking {plural(len(hosts), 'machine')}", markup=False)
    surveyed = surveying.survey(study, hosts, lambda _: None)
    reasons += surveying.refusals(surveyed)
    for note in () if reasons else surveying.notes_of(surveyed):
        err().print(f"note: {note}", markup=False)
    return reasons


def plan(options: FleetPlanOptions) -> None:
    """Print the waves of a fleet, and the reasons to refuse it."""
    prepared, origin = _prepare(options.fleet, yes=options.yes)
    _print_plan(prepared)
    few = "" if options.fleet.quick_test else preflight.too_few_blocks(prepared.study)
    agreed = options.yes or origin.is_bundled
    reasons = [few] if few else _refusals(prepared) if agreed else []
    if not agreed:
        approval.tell(prepared.resources)
        out().print(f"note: {NOT_CONTACTED}", markup=False)
    elif not reasons and prepared.provided[0].drives_here:
        out().print(f"ready: {', '.join(prepared.machines)}", markup=False, soft_wrap=True)
    for reason in reasons:
        out().print(f"weighbridge fleet submit will refuse: {reason}", markup=False, soft_wrap=True)
    if options.as_json:
        print_json(_plan_document(prepared, reasons, contacted=agreed))
    if reasons:
        raise typer.Exit((StudyError if few else Unavailable).exit_code)


def _plan_document(prepared: _Prepared, refusals: list[str], *, contacted: bool) -> FleetPlanDocument:
    """Return the document of ``fleet plan --json``."""
    study, (provider, options), (least, most) = prepared.unit_study, prepared.provided, prepared.seconds
    unverified = provider.unverified(options)
    return {
        "version": 1,
        "study": study.file.study,
        "question": study.file.question,
        "on": options.description,
        "machines": None if prepared.fleet.machines is None else [*prepared.fleet.machines],
        "pairs": prepared.fleet.pairs,
        "waves": [[unit.name for unit in units] for units in prepared.waves],
        "seconds": {"from": round(least), "to": round(most)},
        "repeats_outliers": prepared.fleet.again,
        "contacted": contacted,
        "refusals": refusals,
        "notes": [
            *provider.notes(options),
            *([f"--on {provider.kind} is {UNVERIFIED}: {unverified}"] if unverified else []),
        ],
    }


def _print_plan(prepared: _Prepared) -> None:
    study, waves, (provider, options) = prepared.unit_study, prepared.waves, prepared.provided
    out().print(f"{study.file.study}: {study.file.question}\n", markup=False)
    out().print(f"machines: {options.description}", markup=False)
    if why := provider.unverified(options):
        out().print(f"note: --on {provider.kind} is {UNVERIFIED}: {why}", markup=False)
    _print_notes(prepared)
    if prepared.fleet.machines is None:
        out().print("their names are not known yet; the names below are placeholders")
    arms = ", ".join(arm.name for arm in study.arms)
    cells = ", ".join(dict.fromkeys(cell.workload for cell in study.cells))
    who = "pair" if prepared.fleet.pairs else "machine"
    out().print(f"each {who} runs: {cells} in {arms}; {clock_range(*seconds(study))}", markup=False)
    size = replace(known_noise.decidable(study), visible={}, elsewhere=True)  # the machines have a noise of their own
    out().print(f"precision: {approval.decides_sentence(size)}\n", markup=False)
    table = Table("wave", "runs at the same time", box=None, pad_edge=False)
    for number, units in enumerate(waves, 1):
        table.add_row(str(number), "  ".join(unit.name for unit in units))
    out().print(table)
    if (most := provider.at_once(options)) is not None:
        out().print(f"\nthis machine drives at most {plural(most, 'run')} at once (--at-once)", markup=False)
    again = "; outliers are measured a second time" if prepared.fleet.again else ""
    out().print(f"\ntime: {clock_range(*prepared.seconds)} for {plural(len(waves), 'wave')}{again}", markup=False)


def submit(options: SubmitOptions) -> None:
    """Store a fleet in a new folder, and start its driver."""
    prepared, origin = _prepare(
        options.fleet, yes=options.yes, again=options.again, beside_others=options.allow_concurrent
    )
    if not options.fleet.quick_test and (few := preflight.too_few_blocks(prepared.study)):
        raise StudyError(few)
    folder = FleetFolder((options.directory or _new_directory(prepared.fleet.name)).absolute())
    folder.require_new()
    prepared = _with_secrets(prepared)
    _announce(prepared, folder)
    advice = f"Read what 'weighbridge fleet plan {options.fleet.study} --on {options.fleet.on}' shows"
    approval.confirm_named(origin, prepared.resources, yes=options.yes, advice=advice)
    if prepared.provided[0].drives_here:
        living.require_alone(allow_concurrent=options.allow_concurrent)
    if reasons := _refusals(prepared):
        raise Unavailable("; ".join(reasons))
    folder.create(prepared.fleet)
    _start(folder, prepared.fleet, prepared.provided, prepared.seconds, refused=folder.discard)
    _print_document(folder, as_json=options.as_json)


def _with_secrets(prepared: _Prepared) -> _Prepared:
    """Return the fleet with the digests of the values that its study needs. Raises SecretError, Unavailable."""
    names, fleet = _require_secrets(prepared.study, prepared.provided), prepared.fleet
    digests = secret_values.digests(names, fleet.identity)
    return replace(prepared, fleet=fleet.model_copy(update={"secrets": digests}))


def _require_secrets(study: Study, provided: Provided, known: Fleet | None = None) -> tuple[SecretName, ...]:
    """Require the secrets that the study of a fleet needs, and return their names.

    Raises SecretError if one is missing, Unavailable if the provider of the machines would store it.
    """
    names = secrets_of(study)
    if names and provided[0].stores_environment:
        raise Unavailable(
            f"--on {provided[0].kind} would store the value of {', '.join(names)} in files. Use ssh machines "
            "(--on FILE), or let the program read the value from a file on each node"
        )
    if known is not None:
        secret_values.expect(known.secrets, known.identity)
    if changed := [name for name, how in approval.require_values(names).items() if how == "changed"]:
        err().print(f"note: the value of {', '.join(changed)} has changed since the fleet began", markup=False)
    approval.tell_secrets(names)
    return names


def _announce(prepared: _Prepared, folder: FleetFolder) -> None:
    waves, (_, options) = prepared.waves, prepared.provided
    units = sum(map(len, waves))
    err().print(
        f"{prepared.fleet.name} on {options.description}: {plural(units, 'run')} in {plural(len(waves), 'wave')}, "
        f"{clock_range(*prepared.seconds)}; results go to {folder.path}",
        markup=False,
    )
    if prepared.fleet.machines is not None:
        err().print(f"machines: {', '.join(prepared.fleet.machines)}", markup=False)
    _print_notes(prepared)


def _print_notes(prepared: _Prepared) -> None:
    provider, options = prepared.provided
    for note in provider.notes(options):
        err().print(f"note: {note}", markup=False)


def _new_directory(study: str) -> Path:
    return Path("fleets") / f"{study}-{time.strftime('%Y%m%d-%H%M%S')}"


def _start(
    folder: FleetFolder,
    fleet: Fleet,
    provided: Provided,
    seconds: tuple[float, float],
    refused: Callable[[], None] = lambda: None,
) -> None:
    """Start the driver, store its job with the fleet, and print how to follow it.

    If the driver does not start, call ``refused``. Once it has started, the fleet is stored and printed even if this
    process is interrupted.
    """
    provider, options = provided
    argv = (sys.executable, "-m", "weighbridge", "fleet", "drive", "--yes", str(folder.path))
    job = detail = ""
    with interruptible():
        try:
            with shield():
                try:
                    with handing_on(map(SecretName, fleet.secrets)):
                        submission = Submission(argv, folder.path, fleet.name, fleet.pairs, seconds)
                        job = provider.submit(options, submission)
                except BaseException:
                    refused()
                    raise
                try:
                    folder.write(fleet.model_copy(update={"jobs": (*fleet.jobs, job)}))
                except WeighbridgeError:  # without the file, the job would be lost
                    with contextlib.suppress(Unavailable):
                        provider.cancel(options, job, folder.path)
                        job = ""
                    raise
            detail = provider.state(options, job).detail
        finally:
            if job:
                out().print(f"submitted: {detail or job}", markup=False, soft_wrap=True)
                out().print(f"weighbridge fleet status {folder.path}", markup=False, soft_wrap=True)


def _driver(fleet: Fleet, provided: Provided) -> DriverState:
    """Return the state of the last submitted driver."""
    provider, options = provided
    return provider.state(options, fleet.jobs[-1]) if fleet.jobs else DriverState("ended", "no driver was submitted")


def _statuses(folder: FleetFolder, fleet: Fleet, driver: DriverState) -> list[UnitStatus]:
    """Return the status of every run: first the planned runs in their order, then the repeated runs of outliers."""
    machines = fleet.machines or folder.machines()
    planned = [unit for units in planned_rounds(fleet, machines) for unit in units]
    units = dict.fromkeys((*planned, *folder.units()))
    return [folder.status(unit, driven=driver.state in ("running", "unknown")) for unit in units]


def status(options: StatusOptions) -> None:
    """Print the state of each run of a fleet."""
    document = fleet_status(FleetFolder(options.directory.absolute()))
    if options.as_json:
        print_json(document)
    else:
        _print_status(document)


def fleet_status(folder: FleetFolder) -> FleetStatusDocument:
    """Return the state of a fleet's driver and runs. Raises RunDirectoryError if the folder has no fleet."""
    fleet = folder.read()
    driver = _driver(fleet, provider_of(fleet))
    statuses = _statuses(folder, fleet, driver)
    detail = driver.detail
    if driver.state == "running" and not statuses and (words := last_line(folder.driver_log)):
        detail = f"{detail}: {words}"  # the driver has no machines yet
    return {
        "version": STATUS_VERSION,
        "study": fleet.name,
        "folder": str(folder.path),
        "driver": driver.state,
        "detail": detail,
        "machines": [*(fleet.machines or folder.machines())],
        "runs": [
            {"name": each.unit.name, "machines": [*each.unit.machines], "purpose": each.unit.reason,
             "state": each.state, "trials": each.trials, "exit_code": each.code, "reason": each.reason,
             "directory": str(folder.run(each.unit))}
            for each in statuses
        ],
    }  # fmt: skip


def _print_document(folder: FleetFolder, *, as_json: bool) -> None:
    """Print the state of a fleet after a command has changed it, if the user asked for JSON."""
    if as_json:
        print_json(fleet_status(folder))


def _print_status(status: FleetStatusDocument) -> None:
    runs, folder = status["runs"], status["folder"]
    counts = {state: sum(each["state"] == state for each in runs) for state in ("finished", "running", "stopped")}
    parts = [f"{counts['finished']} of {plural(len(runs), 'run')} finished"] if runs else ["no run has started"]
    parts += [f"{counts[state]} {state}" for state in ("running", "stopped") if counts[state]]
    detail = f" ({status['detail']})" if status["detail"] else ""
    out().print(f"{status['study']}: {', '.join(parts)}; driver {status['driver']}{detail}", markup=False)
    shown = [each for each in runs if len(runs) <= _LISTED or each["state"] != "finished"]
    if shown:
        table = Table("run", "state", "trials", box=None, pad_edge=False)
        table.columns[0].overflow = "fold"
        for each in shown:
            table.add_row(escape(each["name"]), each["state"], str(each["trials"] or ""))
        out().print()
        out().print(table)
    for each in shown:
        if each["exit_code"]:
            line = f"{each['name']}: exit code {each['exit_code']}: {each['reason']}"
            out().print(line, markup=False, soft_wrap=True)
    if status["driver"] == "ended" and (counts["finished"] < len(runs) or not runs):
        out().print(f"log of the driver: {folder}/drive.log", markup=False, soft_wrap=True)
        out().print(f"weighbridge fleet continue {folder}", markup=False, soft_wrap=True)


def continue_(options: ContinueOptions) -> None:
    """Start a new driver for the unfinished runs of a fleet."""
    folder = FleetFolder(options.directory.absolute())
    known = folder.read()
    provided = provider_of(known)
    driver = _driver(known, provided)
    if driver.state in ("running", "waiting"):
        raise RunDirectoryError(
            f"the fleet in {folder.path} is still active ({driver.detail}). Wait for it, or end it with "
            f"'weighbridge fleet cancel {folder.path}'"
        )
    if driver.state == "unknown" and not options.driver_ended:
        raise Unavailable(
            f"Weighbridge cannot verify here that the driver of the fleet in {folder.path} has stopped "
            f"({driver.detail}). Try again on the driver's machine, or add --driver-ended if you are sure"
        )
    folder.refuse_links()
    study = study_of(known, folder.path)
    _require_secrets(study, provided, known)
    pairs = len(hosts_of(study)) > 1
    prepared = _Prepared(study, provided, known.model_copy(update={"pairs": pairs}), 1 + pairs)
    statuses = _statuses(folder, known, driver)
    if statuses and all(each.state == "finished" for each in statuses):
        out().print(f"nothing is missing: {plural(len(statuses), 'run')} finished")
        _print_document(folder, as_json=options.as_json)
        return
    others = {each.unit.name: folder.begun_by(each.unit) for each in statuses if each.state != "finished"}
    if older := [name for name, began in others.items() if began not in ("", own_version())]:
        err().print(
            f"note: another Weighbridge ({others[older[0]]}; this is {own_version()}) started "
            f"{', '.join(older)}. These runs are measured again; their old trials are in {folder.path}/set-aside",
            markup=False,
        )
    approval.confirm_named(Origin(OriginKind.FLEET, str(folder.path)), prepared.resources, yes=options.yes)
    provider, of_provider = provided
    prepared = replace(prepared, count=provider.count(of_provider))  # a kubeconfig in the folder can start programs
    _note_missing_machines(prepared)
    _start(folder, known, provided, prepared.seconds)
    _print_document(folder, as_json=options.as_json)


def _note_missing_machines(prepared: _Prepared) -> None:
    """Print which machines cannot be measured now. Raises Unavailable if none can."""
    if prepared.fleet.machines is None:
        return
    surveyed = surveying.survey(prepared.unit_study, prepared.hosts, lambda _: None)
    reasons = surveying.refusals(surveyed)
    if all(each.lacks for each in surveyed):
        raise Unavailable("; ".join(reasons))
    for reason in reasons:
        err().print(f"note: {reason}", markup=False)


def cancel(options: CancelOptions) -> None:
    """End the driver of a fleet, and wait until it has ended."""
    folder = FleetFolder(options.directory.absolute())
    known = folder.read()
    provided = provider_of(known)
    provider, of_provider = provided
    driver = _driver(known, provided)
    if driver.state == "ended" or not known.jobs:
        out().print("nothing to cancel: the driver has ended")
        _print_document(folder, as_json=options.as_json)
        return
    if driver.state == "unknown":
        raise Unavailable(f"Weighbridge cannot reach the fleet's driver from here: {driver.detail}")
    provider.cancel(of_provider, known.jobs[-1], folder.path)
    deadline = time.monotonic() + _CANCEL_S
    while (state := _driver(known, provided).state) != "ended" and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    word = "ended" if state == "ended" else "is ending, and its runs are cleaning up"
    out().print(f"{driver.detail or 'the driver'} {word}; finished trials are kept", markup=False, soft_wrap=True)
    out().print(f"weighbridge fleet continue {folder.path}", markup=False, soft_wrap=True)
    _print_document(folder, as_json=options.as_json)


def drive(options: DriveOptions) -> None:
    """Run the waves of a fleet in this process."""
    if not options.yes:
        FleetFolder(options.directory.absolute()).read()
        fail(
            f"a fleet can run any program. Use 'weighbridge fleet continue {options.directory}', which asks first",
            WRONG_COMMAND_LINE,
        )

    def say(text: str) -> None:
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}", flush=True)

    with interruptible():
        run_waves(FleetFolder(options.directory.absolute()), say)
