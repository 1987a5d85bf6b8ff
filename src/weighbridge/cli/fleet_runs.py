"""`weighbridge fleet plan`, `submit`, `status`, `continue` and `cancel`: run one study on many machines."""

import contextlib
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import typer
from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from weighbridge.cli.complete import complete_study
from weighbridge.cli.doctor import UNVERIFIED
from weighbridge.cli.help import MEASURE, OUTPUT, WHERE
from weighbridge.cli.options import (
    AllowConcurrentOption,
    EnvOption,
    JsonFlag,
    ProfileOption,
    QuickTestOption,
    RoundsOption,
    SetOption,
    YesOption,
)
from weighbridge.cli.output import WRONG_COMMAND_LINE, err, examples, fail, out, print_json
from weighbridge.cli.provider_options import ProviderCommand, given_options
from weighbridge.report.text.formatting import plural

if TYPE_CHECKING:
    from weighbridge.fleets.folder import Fleet, FleetFolder, UnitStatus
    from weighbridge.fleets.providers import Provided
    from weighbridge.fleets.rounds import Round
    from weighbridge.model.host_kind import HostOptions
    from weighbridge.model.machine_provider import DriverState
    from weighbridge.model.secret import SecretName
    from weighbridge.model.study import Study
    from weighbridge.study.brings import Brought
    from weighbridge.study.source import Origin

NOT_CONTACTED = "no machine was contacted. Add --yes to contact them and check whether they can run the study"
STATUS_VERSION: Final = 1
"""The version of the document of ``fleet status --json``."""
_LISTED = 40
"""The maximum number of runs that `status` lists. Of a larger fleet it lists only the unfinished runs."""
_CANCEL_S, _LOOK_S = 30.0, 0.5

StudyArgument = typer.Argument(
    help="A bundled study or a study file, for one host or two.", autocompletion=complete_study
)
OnOption = typer.Option(
    ...,
    "--on",
    metavar="WHERE",
    help="Where to run: a file with one ssh host per line, 'slurm' or 'kubernetes'.",
    rich_help_panel=WHERE,
)
PartnersOption = typer.Option(
    None,
    "--partners",
    metavar="N",
    min=1,
    help="For pairs: number of partners per machine. Default: 4, or all.",
    rich_help_panel=MEASURE,
)
AloneOption = typer.Option(
    None,
    "--alone",
    metavar="N",
    min=0,
    help="For pairs: number of pairs to measure a second time while no other pair is running. Default: 2.",
    rich_help_panel=MEASURE,
)
AgainOption = typer.Option(True, help="Measure outliers a second time (default).", rich_help_panel=MEASURE)
FolderArgument = typer.Argument(metavar="DIR", help="The fleet's folder, which --out of 'fleet submit' named.")


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


def register(fleet: typer.Typer) -> None:
    """Add the commands to the group."""
    for add in (_plan, _submit, _status, _continue, _cancel, _drive):
        add(fleet)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A fleet that could be submitted. It is not stored yet, and the user was not asked yet."""

    study: "Study"
    provided: "Provided"
    fleet: "Fleet"
    count: int

    @property
    def machines(self) -> tuple[str, ...]:
        """The names of the machines, or placeholders if a scheduler chooses them."""
        return self.fleet.machines or tuple(f"machine{number}" for number in range(1, self.count + 1))

    @property
    def waves(self) -> "tuple[Round, ...]":
        """The fleet's waves: the runs of each wave go on at the same time."""
        from weighbridge.fleets.drive import planned_rounds

        return planned_rounds(self.fleet, self.machines)

    @property
    def unit_study(self) -> "Study":
        """The study on the first machine, or the first pair. Raises StudyError if it cannot run on such hosts."""
        from weighbridge.fleets.study import study_on

        provider, options = self.provided
        machines = self.machines[: 1 + self.fleet.pairs]
        hosts = (
            provider.hosts(options, machines)
            if self.fleet.machines
            else [provider.planned_host(options, machine) for machine in machines]
        )
        return study_on(self.study, hosts, "--".join(machines))

    @property
    def hosts(self) -> "dict[str, HostOptions]":
        """The hosts of the machines that are known before the start. Raises StudyError if an option is wrong."""
        from weighbridge.fleets.providers import host_options

        return host_options(self.study, self.provided, self.fleet.machines or ())

    @property
    def brought(self) -> "tuple[Brought, ...]":
        """Everything that the fleet brings, with the ways to reach its machines if they are known already."""
        from weighbridge.fleets.study import hosts_of
        from weighbridge.model.options import Brings
        from weighbridge.study.brings import brought_by, brought_by_machines

        own = tuple(f"hosts.{name}." for name in hosts_of(self.study))
        made_up = self.fleet.machines is None
        of_study = [
            each
            for each in brought_by(self.unit_study)
            if not each.place.startswith(own) or (made_up and each.what is not Brings.MACHINE)
        ]
        return (*brought_by_machines(self.hosts), *of_study)

    @property
    def seconds(self) -> tuple[float, float]:
        """The shortest and longest duration of all waves, with the provider's limit of simultaneous runs."""
        from weighbridge.runner.estimate import seconds

        provider, options = self.provided
        at_once = provider.at_once(options)
        batches = sum(math.ceil(len(units) / (at_once or len(units))) for units in self.waves)
        least, most = seconds(self.unit_study)
        return batches * least, batches * most


def _prepare(
    named: str,
    on: str,
    ctx: typer.Context,
    profile: str | None,
    settings: Sequence[str],
    rounds: int | None,
    *,
    yes: bool,
    **more: Any,
) -> "tuple[_Prepared, Origin]":
    from weighbridge.cli.approval import load_named
    from weighbridge.errors import Unavailable
    from weighbridge.fleets.folder import Fleet
    from weighbridge.fleets.providers import provided_by
    from weighbridge.fleets.study import hosts_of
    from weighbridge.study.loader import with_blocks
    from weighbridge.study.settings import with_settings

    study, origin = load_named(named, profile, yes=yes)
    study = with_settings(study, settings)
    study = study if rounds is None else with_blocks(study, rounds)
    pairs = len(hosts_of(study)) > 1
    try:
        provider, options = provided_by(on, given_options(ctx))
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
        machines=machines, seed=study.file.seed, cwd=str(Path.cwd()), created=time.time(), **more,
    )  # fmt: skip
    prepared = _Prepared(study, (provider, options), fleet, count)
    _ = prepared.hosts  # report a wrong option of any machine first
    return prepared, origin


def _refusals(prepared: _Prepared) -> list[str]:
    """Return the reasons to refuse the fleet: everything that is missing here or on one of its machines."""
    from weighbridge.fleets.survey import notes_of, refusals, survey
    from weighbridge.runner.planned import plan

    study, (provider, _) = prepared.unit_study, prepared.provided
    if not provider.drives_here:
        return []
    reasons = plan(study).reasons
    if prepared.fleet.machines is None:
        return reasons
    hosts = prepared.hosts
    err().print(f"checking {plural(len(hosts), 'machine')}", markup=False)
    surveyed = survey(study, hosts, lambda _: None)
    reasons += refusals(surveyed)
    for note in () if reasons else notes_of(surveyed):
        err().print(f"note: {note}", markup=False)
    return reasons


def _plan(fleet: typer.Typer) -> None:
    @fleet.command(cls=ProviderCommand, epilog=examples("weighbridge fleet plan first-look --on hosts.txt"))
    def plan(
        ctx: typer.Context,
        study: str = StudyArgument,
        on: str = OnOption,
        profile: str | None = ProfileOption,
        settings: list[str] = SetOption,
        rounds: int | None = RoundsOption,
        partners: int | None = PartnersOption,
        alone: int | None = AloneOption,
        quick_test: bool = QuickTestOption,
        yes: bool = typer.Option(
            False, "--yes", "-y", help="Also contact the machines, and check whether they can run the study."
        ),
    ) -> None:
        """Show the waves of a fleet, their duration, and the runs of each machine. Measures nothing.

        For a bundled study, or with --yes, Weighbridge contacts the machines and checks whether they can run it.
        Exits with 4 if 'fleet submit' would refuse.
        """
        from weighbridge.cli.approval import tell
        from weighbridge.errors import StudyError, Unavailable
        from weighbridge.runner.preflight import too_few_blocks

        prepared, origin = _prepare(
            study, on, ctx, profile, settings, rounds, yes=yes, partners=partners, controls=alone,
            rehearsal=quick_test,
        )  # fmt: skip
        _print_plan(prepared)
        few = "" if quick_test else too_few_blocks(prepared.study)
        agreed = yes or origin.is_bundled
        reasons = [few] if few else _refusals(prepared) if agreed else []
        if not agreed:
            tell(prepared.brought)
            out().print(f"note: {NOT_CONTACTED}", markup=False)
        elif not reasons and prepared.provided[0].drives_here:
            out().print(f"ready: {', '.join(prepared.machines)}", markup=False, soft_wrap=True)
        for reason in reasons:
            out().print(f"weighbridge fleet submit will refuse: {reason}", markup=False, soft_wrap=True)
        if reasons:
            raise typer.Exit((StudyError if few else Unavailable).exit_code)


def _print_plan(prepared: _Prepared) -> None:
    from rich.table import Table

    from weighbridge.cli.approval import decides_sentence
    from weighbridge.runner.estimate import clock_range, seconds
    from weighbridge.runner.known_noise import decidable

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
    size = replace(decidable(study), visible={}, on_nodes=True)  # the machines have a noise of their own
    out().print(f"precision: {decides_sentence(size)}\n", markup=False)
    table = Table("wave", "runs at the same time", box=None, pad_edge=False)
    for number, units in enumerate(waves, 1):
        table.add_row(str(number), "  ".join(unit.name for unit in units))
    out().print(table)
    if (most := provider.at_once(options)) is not None:
        out().print(f"\nthis machine drives at most {plural(most, 'run')} at once (--at-once)", markup=False)
    again = "; outliers are measured a second time" if prepared.fleet.again else ""
    out().print(f"\ntime: {clock_range(*prepared.seconds)} for {plural(len(waves), 'wave')}{again}", markup=False)


def _submit(fleet: typer.Typer) -> None:
    @fleet.command(
        cls=ProviderCommand,
        epilog=examples(
            "weighbridge fleet submit first-look --on hosts.txt --out fleet/",
            "weighbridge fleet submit my.yaml --on hosts.txt --nodes 8 --partners 3 --yes",
        ),
    )
    def submit(
        ctx: typer.Context,
        study: str = StudyArgument,
        on: str = OnOption,
        directory: Path | None = typer.Option(
            None,
            "--out",
            metavar="DIR",
            help="A new folder. Default: ./fleets/STUDY-DATE.",
            rich_help_panel=OUTPUT,
        ),
        profile: str | None = ProfileOption,
        settings: list[str] = SetOption,
        rounds: int | None = RoundsOption,
        partners: int | None = PartnersOption,
        alone: int | None = AloneOption,
        again: bool = AgainOption,
        env: list[str] = EnvOption,
        yes: bool = YesOption,
        allow_concurrent: bool = AllowConcurrentOption,
        quick_test: bool = QuickTestOption,
    ) -> None:
        """Run a study on every machine, or on pairs of machines, in the background.

        The fleet continues if you close this terminal. Each run is an ordinary run directory in the fleet's folder.
        """
        from weighbridge.cli.approval import confirm_named
        from weighbridge.errors import StudyError, Unavailable
        from weighbridge.fleets.folder import FleetFolder
        from weighbridge.runner.living import require_alone
        from weighbridge.runner.preflight import too_few_blocks

        prepared, origin = _prepare(
            study, on, ctx, profile, settings, rounds, yes=yes, partners=partners, controls=alone, again=again,
            rehearsal=quick_test, beside_others=allow_concurrent,
        )  # fmt: skip
        if not quick_test and (few := too_few_blocks(prepared.study)):
            raise StudyError(few)
        folder = FleetFolder((directory or _new_directory(prepared.fleet.name)).absolute())
        folder.require_new()
        prepared = _with_secrets(prepared)
        _announce(prepared, folder)
        advice = f"Read what 'weighbridge fleet plan {study} --on {on}' shows"
        confirm_named(origin, prepared.brought, yes=yes, advice=advice)
        if prepared.provided[0].drives_here:
            require_alone(beside_others=allow_concurrent)
        if reasons := _refusals(prepared):
            raise Unavailable("; ".join(reasons))
        folder.create(prepared.fleet)
        _start(folder, prepared.fleet, prepared.provided, prepared.seconds, refused=folder.discard)


def _with_secrets(prepared: _Prepared) -> _Prepared:
    """Return the fleet with the digests of the values that its study needs. Raises SecretError, Unavailable."""
    from weighbridge import secret_values

    names, fleet = _require_secrets(prepared.study, prepared.provided), prepared.fleet
    digests = secret_values.digests(names, fleet.identity)
    return replace(prepared, fleet=fleet.model_copy(update={"secrets": digests}))


def _require_secrets(study: "Study", provided: "Provided", known: "Fleet | None" = None) -> "tuple[SecretName, ...]":
    """Require the secrets that the study of a fleet needs, and return their names.

    Raises SecretError if one is missing, Unavailable if the provider of the machines would store it.
    """
    from weighbridge import secret_values
    from weighbridge.cli.approval import require_values, tell_secrets
    from weighbridge.errors import Unavailable
    from weighbridge.model.stored_study import secrets_of

    names = secrets_of(study)
    if names and provided[0].stores_environment:
        raise Unavailable(
            f"--on {provided[0].kind} would store the value of {', '.join(names)} in files. Use ssh machines "
            "(--on FILE), or let the program read the value from a file on each node"
        )
    if known is not None:
        secret_values.expect(known.secrets, known.identity)
    if changed := [name for name, how in require_values(names).items() if how == "changed"]:
        err().print(f"note: the value of {', '.join(changed)} has changed since the fleet began", markup=False)
    tell_secrets(names)
    return names


def _announce(prepared: _Prepared, folder: "FleetFolder") -> None:
    from weighbridge.runner.estimate import clock_range

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
    folder: "FleetFolder",
    fleet: "Fleet",
    provided: "Provided",
    seconds: tuple[float, float],
    refused: Callable[[], None] = lambda: None,
) -> None:
    """Start the driver, store its job with the fleet, and print how to follow it.

    If the driver does not start, call ``refused``. Once it has started, the fleet is stored and printed even if this
    process is interrupted.
    """
    from weighbridge.errors import Unavailable, WeighbridgeError
    from weighbridge.model.machine_provider import Submission
    from weighbridge.model.secret import SecretName
    from weighbridge.runner.signals import interruptible, shield
    from weighbridge.secret_values import handing_on

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


def _driver(fleet: "Fleet", provided: "Provided") -> "DriverState":
    """Return the state of the last submitted driver."""
    from weighbridge.model.machine_provider import DriverState

    provider, options = provided
    return provider.state(options, fleet.jobs[-1]) if fleet.jobs else DriverState("ended", "no driver was submitted")


def _statuses(folder: "FleetFolder", fleet: "Fleet", driver: "DriverState") -> "list[UnitStatus]":
    """Return the status of every run: first the planned runs in their order, then the repeated runs of outliers."""
    from weighbridge.fleets.drive import planned_rounds

    machines = fleet.machines or folder.machines()
    planned = [unit for units in planned_rounds(fleet, machines) for unit in units]
    units = dict.fromkeys((*planned, *folder.units()))
    return [folder.status(unit, driven=driver.state in ("running", "unknown")) for unit in units]


def _status(fleet: typer.Typer) -> None:
    @fleet.command(epilog=examples("weighbridge fleet status fleet/"))
    def status(directory: Path = FolderArgument, as_json: bool = JsonFlag) -> None:
        """Show which runs of a fleet are finished, and why the others are not.

        The states come from the run directories, not from a queue.
        """
        from weighbridge.fleets.folder import FleetFolder

        document = fleet_status(FleetFolder(directory.absolute()))
        if as_json:
            print_json(document)
        else:
            _print_status(document)


def fleet_status(folder: "FleetFolder") -> FleetStatusDocument:
    """Return the state of a fleet's driver and runs. Raises RunDirectoryError if the folder has no fleet."""
    from weighbridge.fleets.folder import last_line
    from weighbridge.fleets.providers import provider_of

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
            {"name": each.unit.name, "machines": [*each.unit.machines], "purpose": each.unit.why,
             "state": each.state, "trials": each.trials, "exit_code": each.code, "reason": each.reason,
             "directory": str(folder.run(each.unit))}
            for each in statuses
        ],
    }  # fmt: skip


def _print_status(status: FleetStatusDocument) -> None:
    from rich.markup import escape
    from rich.table import Table

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


def _continue(fleet: typer.Typer) -> None:
    @fleet.command(
        "continue",
        epilog=examples(
            "weighbridge fleet continue fleet/ --yes", "weighbridge fleet continue fleet/ --env API_TOKEN"
        ),
    )
    def continue_(
        directory: Path = FolderArgument,
        env: list[str] = EnvOption,
        yes: bool = YesOption,
        driver_ended: bool = typer.Option(
            False,
            "--driver-ended",
            help="Continue although Weighbridge cannot verify that the old driver has stopped.",
        ),
    ) -> None:
        """Continue a fleet that was cancelled, killed or failed in part.

        Finished runs are not repeated, and the others continue after their last trial. Unfinished runs that another
        version of Weighbridge started are measured again.
        """
        from weighbridge.cli.approval import confirm_named
        from weighbridge.errors import RunDirectoryError, Unavailable
        from weighbridge.fleets.drive import own_version, study_of
        from weighbridge.fleets.folder import FleetFolder
        from weighbridge.fleets.providers import provider_of
        from weighbridge.fleets.study import hosts_of
        from weighbridge.study.source import Origin, OriginKind

        folder = FleetFolder(directory.absolute())
        known = folder.read()
        provided = provider_of(known)
        driver = _driver(known, provided)
        if driver.state in ("running", "waiting"):
            raise RunDirectoryError(
                f"the fleet in {folder.path} is still active ({driver.detail}). Wait for it, or end it with "
                f"'weighbridge fleet cancel {folder.path}'"
            )
        if driver.state == "unknown" and not driver_ended:
            raise Unavailable(
                f"Weighbridge cannot verify here that the driver of the fleet in {folder.path} has stopped "
                f"({driver.detail}). Try again on the driver's machine, or add --driver-ended if you are sure"
            )
        folder.refuse_links()
        study = study_of(known, folder.path)
        _require_secrets(study, provided, known)
        pairs = len(hosts_of(study)) > 1
        provider, options = provided
        prepared = _Prepared(study, provided, known.model_copy(update={"pairs": pairs}), 1 + pairs)
        statuses = _statuses(folder, known, driver)
        if statuses and all(each.state == "finished" for each in statuses):
            out().print(f"nothing is missing: {plural(len(statuses), 'run')} finished")
            return
        others = {each.unit.name: folder.begun_by(each.unit) for each in statuses if each.state != "finished"}
        if older := [name for name, began in others.items() if began not in ("", own_version())]:
            err().print(
                f"note: another Weighbridge ({others[older[0]]}; this is {own_version()}) started "
                f"{', '.join(older)}. These runs are measured again; their old trials are in {folder.path}/set-aside",
                markup=False,
            )
        confirm_named(Origin(OriginKind.FLEET, str(folder.path)), prepared.brought, yes=yes)
        prepared = replace(prepared, count=provider.count(options))  # a kubeconfig in the folder can start programs
        _note_missing_machines(prepared)
        _start(folder, known, provided, prepared.seconds)


def _note_missing_machines(prepared: _Prepared) -> None:
    """Print which machines cannot be measured now. Raises Unavailable if none can."""
    from weighbridge.errors import Unavailable
    from weighbridge.fleets.survey import refusals, survey

    if prepared.fleet.machines is None:
        return
    surveyed = survey(prepared.unit_study, prepared.hosts, lambda _: None)
    reasons = refusals(surveyed)
    if all(each.lacks for each in surveyed):
        raise Unavailable("; ".join(reasons))
    for reason in reasons:
        err().print(f"note: {reason}", markup=False)


def _cancel(fleet: typer.Typer) -> None:
    @fleet.command(epilog=examples("weighbridge fleet cancel fleet/"))
    def cancel(directory: Path = FolderArgument) -> None:
        """End a fleet. Its runs clean up and keep every finished trial for 'fleet continue'."""
        from weighbridge.errors import Unavailable
        from weighbridge.fleets.folder import FleetFolder
        from weighbridge.fleets.providers import provider_of

        folder = FleetFolder(directory.absolute())
        known = folder.read()
        provider, options = provider_of(known)
        driver = _driver(known, (provider, options))
        if driver.state == "ended" or not known.jobs:
            out().print("nothing to cancel: the driver has ended")
            return
        if driver.state == "unknown":
            raise Unavailable(f"Weighbridge cannot reach the fleet's driver from here: {driver.detail}")
        provider.cancel(options, known.jobs[-1], folder.path)
        deadline = time.monotonic() + _CANCEL_S
        while (state := _driver(known, (provider, options)).state) != "ended" and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        word = "ended" if state == "ended" else "is ending, and its runs are cleaning up"
        out().print(f"{driver.detail or 'the driver'} {word}; finished trials are kept", markup=False, soft_wrap=True)
        out().print(f"weighbridge fleet continue {folder.path}", markup=False, soft_wrap=True)


def _drive(fleet: typer.Typer) -> None:
    @fleet.command(hidden=True)
    def drive(
        directory: Path = FolderArgument,
        yes: bool = typer.Option(False, "--yes", help="The user has agreed to everything that the fleet uses."),
    ) -> None:
        """Run the waves of a fleet in this process. 'fleet submit' and 'fleet continue' start this."""
        from weighbridge.fleets.drive import drive as run_waves
        from weighbridge.fleets.folder import FleetFolder
        from weighbridge.runner.signals import interruptible

        if not yes:
            FleetFolder(directory.absolute()).read()
            fail(
                f"a fleet can run any program. Use 'weighbridge fleet continue {directory}', which asks first",
                WRONG_COMMAND_LINE,
            )

        def say(text: str) -> None:
            print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}", flush=True)

        with interruptible():
            run_waves(FleetFolder(directory.absolute()), say)
