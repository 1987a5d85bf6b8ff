"""`weighbridge durability`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.table import Table

from weighbridge.analysis.run_result import PowerCutResult
from weighbridge.cli import approval
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.output import err, out, print_json
from weighbridge.cli.progress import show
from weighbridge.cli.runs import run_directory
from weighbridge.errors import RunDirectoryError
from weighbridge.features.durability import runner as checking
from weighbridge.features.durability.options import DurabilityOptions
from weighbridge.features.durability.runner import CheckedPowerCuts
from weighbridge.model.document import Documented
from weighbridge.model.power_cut import SCOPE, PowerCut, power_cut_facts
from weighbridge.model.study import Study
from weighbridge.report.export.json import power_cut_result
from weighbridge.report.text.conditions import HOW_CHECKED, how_kept, power_cut_verdict
from weighbridge.runner import run as running
from weighbridge.runner.signals import interruptible
from weighbridge.store.run import RunStore
from weighbridge.study.external import external_resources
from weighbridge.study.frozen import first_difference
from weighbridge.study.source import Origin


def durability(options: DurabilityOptions) -> None:
    """Cut the power of guests that write records, and print which records survived."""
    directory = options.directory

    if options.study is None and directory is None:
        fail("name a study ('weighbridge studies' lists them), or a run with --out DIR", WRONG_COMMAND_LINE)
    if options.study is None and options.profile is not None:
        fail("--profile needs a study, because a run already has one", WRONG_COMMAND_LINE)
    directory = directory and run_directory(directory)
    loaded, origin = _study(options.study, options.profile, directory, yes=options.yes)
    if origin is not None:
        approval.confirm_named(origin, external_resources(loaded), yes=options.yes)
    elif directory is not None:
        approval.confirm_continued(directory, yes=options.yes)
    with interruptible(), show(directory) as progress:

        def keep(cut: PowerCut) -> None:
            err().print(f"{cut.environment}, {how_kept(cut)}: {power_cut_verdict(cut)}", markup=False)
            if directory is not None:
                with RunStore(directory, writable=True) as store:
                    store.add_facts(SCOPE, power_cut_facts([cut]))

        result = checking.check_durability(loaded, options.promise, options.seconds, progress.say, keep)
    if options.as_json:
        print_json(document_of(result))
    else:
        _print(result)


def _study(
    named: str | None, profile: str | None, directory: Path | None, *, yes: bool
) -> tuple[Study, Origin | None]:
    """Return the study of the run, or else the named study with its origin.

    Raises RunDirectoryError if the run has a different study than the named one.
    """
    loaded, origin = approval.load_named(named, profile, yes=yes) if named is not None else (None, None)
    if directory is None:
        assert loaded is not None
        return loaded, origin
    with RunStore(directory) as store:
        of_run = running.study_of(store)
    if loaded is not None and (place := first_difference(of_run, loaded)):
        raise RunDirectoryError(
            f"the run in {directory} differs in {place}. Omit the study to check the run as it is"
        )
    return of_run, origin


@dataclass(frozen=True, kw_only=True)
class UncheckedEnvironment(Documented):
    """An environment that was not checked, and the reason."""

    environment: str
    why: str


@dataclass(frozen=True, kw_only=True)
class DurabilityDocument(Documented):
    """The document of ``weighbridge durability --json``."""

    version: Literal[1] = 1
    checked: tuple[PowerCutResult, ...]
    unchecked: tuple[UncheckedEnvironment, ...]


def document_of(result: CheckedPowerCuts) -> DurabilityDocument:
    """Return the document of ``--json``."""
    unchecked = (UncheckedEnvironment(environment=each.environment, why=each.why) for each in result.unchecked)
    return DurabilityDocument(checked=tuple(map(power_cut_result, result.checked)), unchecked=tuple(unchecked))


def _print(result: CheckedPowerCuts) -> None:
    table = Table("environment", "storage", "written by", "acknowledged records", box=None, pad_edge=False)
    for each in result.checked:
        table.add_row(each.environment, each.storage, how_kept(each), power_cut_verdict(each))
    out().print(table)
    out().print(HOW_CHECKED, markup=False)
    for missing in result.unchecked:
        out().print(f"{missing.environment} not checked: {missing.why}", markup=False)
