"""The options and examples of the commands of `weighbridge fleet`."""

from dataclasses import MISSING, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer

from weighbridge.cli.declared import App, Declared, argument, flag, later, option
from weighbridge.cli.help import MEASURE, OUTPUT, WHAT, WHERE, Command, Entry
from weighbridge.cli.options import (
    allow_concurrent_flag,
    complete_study,
    env_option,
    json_flag,
    profile_option,
    quick_test_flag,
    rounds_option,
    set_option,
    yes_flag,
)

FLEET_PAGE = "fleet.html"
"""The name of a fleet's page in its folder."""
_RUNS = "weighbridge.features.fleets.run_commands"
_folder = partial(argument, "DIR", "The fleet's folder, which --out of 'fleet submit' named.")


class ProviderCommand(Command):
    """A command that also accepts the options of every provider of machines.

    The options are known only once the providers are loaded, and no other command should wait for that.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remove the providers' options from the words before the command's own options are read."""
        return super().parse_args(ctx, later("weighbridge.features.fleets.provider_options:without_given")(ctx, args))

    def provider_panels(self) -> dict[str, list[Entry]]:
        """Return the providers' options, a panel for each provider."""
        panels: dict[str, list[Entry]] = later("weighbridge.features.fleets.provider_options:panels")()
        return panels


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """A study, the machines to run it on, and how much to measure."""

    ctx: typer.Context
    study: str = argument(
        "STUDY", "A bundled study or a study file, for one host or two.", autocompletion=complete_study
    )
    on: str = option(
        "--on WHERE",
        "Where to run: a file with one ssh host per line, 'slurm' or 'kubernetes'.",
        WHERE,
        default=MISSING,
    )
    profile: str | None = profile_option()
    settings: list[str] = set_option()
    rounds: int | None = rounds_option()
    partners: int | None = option(
        "--partners N", "For pairs: number of partners per machine. Default: 4, or all.", MEASURE, min=1
    )
    alone: int | None = option(
        "--alone N",
        "For pairs: number of pairs to measure a second time while no other pair is running. Default: 2.",
        MEASURE,
        min=0,
    )
    quick_test: bool = quick_test_flag()


@dataclass(frozen=True, slots=True)
class FleetPlanOptions:
    """Show the waves of a fleet, their duration, and the runs of each machine. Measures nothing.

    For a bundled study, or with --yes, Weighbridge contacts the machines and checks whether they can run it.
    Exits with 4 if 'fleet submit' would refuse.
    """

    fleet: FleetOptions
    yes: bool = flag("--yes -y", "Also contact the machines, and check whether they can run the study.")
    as_json: bool = json_flag()


PLAN = Declared(
    _RUNS + ":plan",
    FleetPlanOptions,
    ("weighbridge fleet plan first-look --on hosts.txt",),
    documents=("fleet-plan",),
    cls=ProviderCommand,
)


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """Run a study on every machine, or on pairs of machines, in the background.

    The fleet continues if you close this terminal. Each run is an ordinary run directory in the fleet's folder.
    """

    fleet: FleetOptions
    directory: Path | None = option("--out DIR", "A new folder. Default: ./fleets/STUDY-DATE.", OUTPUT)
    again: bool = option("--again/--no-again", "Measure outliers a second time (default).", MEASURE, default=True)
    env: list[str] = env_option()
    yes: bool = yes_flag()
    allow_concurrent: bool = allow_concurrent_flag()
    as_json: bool = json_flag()


SUBMIT = Declared(
    _RUNS + ":submit",
    SubmitOptions,
    (
        "weighbridge fleet submit first-look --on hosts.txt --out fleet/",
        "weighbridge fleet submit my.yaml --on hosts.txt --nodes 8 --partners 3 --yes",
    ),
    documents=("fleet-status",),
    cls=ProviderCommand,
)


@dataclass(frozen=True, slots=True)
class StatusOptions:
    """Show which runs of a fleet are finished, and why the others are not.

    The states come from the run directories, not from a queue.
    """

    directory: Path = _folder()
    as_json: bool = json_flag()


STATUS = Declared(_RUNS + ":status", StatusOptions, ("weighbridge fleet status fleet/",), documents=("fleet-status",))


@dataclass(frozen=True, slots=True)
class ContinueOptions:
    """Continue a fleet that was cancelled, killed or failed in part.

    Finished runs are not repeated, and the others continue after their last trial. Unfinished runs that another
    version of Weighbridge started are measured again.
    """

    directory: Path = _folder()
    env: list[str] = env_option()
    yes: bool = yes_flag()
    driver_ended: bool = flag(
        "--driver-ended", "Continue although Weighbridge cannot verify that the old driver has stopped."
    )
    as_json: bool = json_flag()


CONTINUE = Declared(
    _RUNS + ":continue_",
    ContinueOptions,
    ("weighbridge fleet continue fleet/ --yes", "weighbridge fleet continue fleet/ --env API_TOKEN"),
    documents=("fleet-status",),
)


@dataclass(frozen=True, slots=True)
class CancelOptions:
    """End a fleet. Its runs clean up and keep every finished trial for 'fleet continue'."""

    directory: Path = _folder()
    as_json: bool = json_flag()


CANCEL = Declared(_RUNS + ":cancel", CancelOptions, ("weighbridge fleet cancel fleet/",), documents=("fleet-status",))


@dataclass(frozen=True, slots=True)
class DriveOptions:
    """Run the waves of a fleet in this process. 'fleet submit' and 'fleet continue' start this."""

    directory: Path = _folder()
    yes: bool = flag("--yes", "The user has agreed to everything that the fleet uses.")


DRIVE = Declared(_RUNS + ":drive", DriveOptions, (), hidden=True)


@dataclass(frozen=True, slots=True)
class FleetReportOptions:
    """Show a study's costs over all machines, and which machines are outliers.

    Runs that are unreadable or belong to another study are skipped and listed.
    """

    folder: Path = argument("DIR", "The folder of a fleet, or any folder with runs of one study.")
    against: Path | None = option(
        "--against DIR", "An earlier fleet. The report then also shows which machines changed since.", WHAT
    )
    as_json: bool = json_flag()
    margin: str | None = option(
        "--margin PERCENT",
        "A machine closer to the others than this is never an outlier, for example 3%. Default: the study's margin.",
        MEASURE,
    )
    page: Path | None = option("--out FILE", f"Write the page here instead of to DIR/{FLEET_PAGE}.", OUTPUT)


REPORT = Declared(
    "weighbridge.features.fleets.report_command:report",
    FleetReportOptions,
    (
        "weighbridge fleet report fleet/",
        "weighbridge fleet report this-month/ --against last-month/",
        "weighbridge fleet report fleet/ --margin 5% --json",
    ),
    documents=("fleet",),
)
FLEET = App(
    "fleet",
    "Run one study on many machines, or on pairs of machines.",
    {
        each.lower(): f"{__name__}:{each}"
        for each in ("PLAN", "SUBMIT", "STATUS", "CONTINUE", "CANCEL", "DRIVE", "REPORT")
    },
)
