"""`weighbridge durability`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from weighbridge.cli.complete import complete_study
from weighbridge.cli.options import JsonFlag, ProfileOption, YesOption
from weighbridge.cli.output import WRONG_COMMAND_LINE, err, examples, fail, out, print_json
from weighbridge.model.power_cut import SCOPE, PowerCut, Promise, power_cut_facts

if TYPE_CHECKING:
    from weighbridge.model.study import Study
    from weighbridge.runner.durability import Durability
    from weighbridge.study.source import Origin

_EXAMPLES = (
    "weighbridge durability my.yaml",
    "weighbridge durability my.yaml --promise fsync --json",
    "weighbridge durability --out runs/THAT-RUN",
)


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples(*_EXAMPLES))
    def durability(
        study: str | None = typer.Argument(
            None, help="A bundled study or a study file. Not needed with --out.", autocompletion=complete_study
        ),
        directory: Path | None = typer.Option(
            None, "--out", metavar="RUN", help="A run directory. Its reports then show the result."
        ),
        profile: str | None = ProfileOption,
        promise: list[Promise] = typer.Option(
            list(Promise),
            metavar="|".join(Promise),
            help="How records are written before they are acknowledged. Repeatable. Default: all.",
        ),
        seconds: float = typer.Option(
            3.0, metavar="NUMBER", min=0.5, max=600.0, help="Seconds of writing before the power cut."
        ),
        as_json: bool = JsonFlag,
        yes: bool = YesOption,
    ) -> None:
        """Check which acknowledged records survive a power cut in a study's environments.

        For each environment whose data is on a guest host, Weighbridge starts a new guest that writes records, kills
        it, restarts it and looks for every acknowledged record. The guest's disk loses unflushed data. Needs nbdkit.
        """
        from weighbridge.cli.approval import confirm_continued, confirm_named
        from weighbridge.cli.progress import show
        from weighbridge.cli.runs import run_directory
        from weighbridge.report.text.conditions import how_kept, power_cut_verdict
        from weighbridge.runner.durability import check_durability
        from weighbridge.runner.signals import interruptible
        from weighbridge.store.run import RunStore
        from weighbridge.study.brings import brought_by

        if study is None and directory is None:
            fail("name a study ('weighbridge studies' lists them), or a run with --out DIR", WRONG_COMMAND_LINE)
        if study is None and profile is not None:
            fail("--profile needs a study, because a run already has one", WRONG_COMMAND_LINE)
        directory = directory and run_directory(directory)
        loaded, origin = _study(study, profile, directory, yes=yes)
        if origin is not None:
            confirm_named(origin, brought_by(loaded), yes=yes)
        elif directory is not None:
            confirm_continued(directory, yes=yes)
        with interruptible(), show() as progress:

            def keep(cut: PowerCut) -> None:
                err().print(f"{cut.environment}, {how_kept(cut)}: {power_cut_verdict(cut)}", markup=False)
                if directory is not None:
                    with RunStore(directory, writable=True) as store:
                        store.add_facts(SCOPE, power_cut_facts([cut]))

            result = check_durability(loaded, promise, seconds, progress.say, keep)
        if as_json:
            print_json(document_of(result))
        else:
            _print(result)


def _study(
    named: str | None, profile: str | None, directory: Path | None, *, yes: bool
) -> "tuple[Study, Origin | None]":
    """Return the study of the run, or else the named study with its origin.

    Raises RunDirectoryError if the run has a different study than the named one.
    """
    from weighbridge.cli.approval import load_named
    from weighbridge.errors import RunDirectoryError
    from weighbridge.runner.run import study_of
    from weighbridge.store.run import RunStore
    from weighbridge.study.frozen import first_difference

    loaded, origin = load_named(named, profile, yes=yes) if named is not None else (None, None)
    if directory is None:
        assert loaded is not None
        return loaded, origin
    with RunStore(directory) as store:
        of_run = study_of(store)
    if loaded is not None and (place := first_difference(of_run, loaded)):
        raise RunDirectoryError(
            f"the run in {directory} differs in {place}. Omit the study to check the run as it is"
        )
    return of_run, origin


def document_of(result: "Durability") -> dict[str, Any]:
    """Return the document of ``--json``."""
    from weighbridge.report.export.json import power_cut_json

    return {
        "version": 1,
        "checked": [power_cut_json(each) for each in result.checked],
        "unchecked": [{"environment": each.environment, "why": each.why} for each in result.unchecked],
    }


def _print(result: "Durability") -> None:
    from rich.table import Table

    from weighbridge.report.text.conditions import HOW_CHECKED, how_kept, power_cut_verdict

    table = Table("environment", "storage", "written by", "acknowledged records", box=None, pad_edge=False)
    for each in result.checked:
        table.add_row(each.environment, each.storage, how_kept(each), power_cut_verdict(each))
    out().print(table)
    out().print(HOW_CHECKED, markup=False)
    for missing in result.unchecked:
        out().print(f"{missing.environment} not checked: {missing.why}", markup=False)
