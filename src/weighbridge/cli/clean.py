"""`weighbridge clean`."""

from dataclasses import asdict
from pathlib import Path

from weighbridge.cli.commands.machine import CleanOptions
from weighbridge.cli.documents import CleanDocument, IgnoredFolder, LeftoverRow
from weighbridge.cli.output import err, out, print_json
from weighbridge.cli.runs import run_directory
from weighbridge.errors import Leftovers, RunDirectoryError
from weighbridge.model.names import RunId
from weighbridge.report.text.formatting import plural
from weighbridge.runner import clean as cleaning
from weighbridge.runner.clean import Inventory
from weighbridge.runner.file_ownership import Fault
from weighbridge.store.run import RunStore

_FAULTS = {
    Fault.OWNER: "belongs to a different user than its name says",
    Fault.KIND: "is neither a folder nor a regular file",
    Fault.UNREADABLE: "cannot be read",
}


def clean(options: CleanOptions) -> None:
    """Remove or list leftovers. Raises Leftovers if some remain."""
    only = None if options.run is None else _run_id(options.run)
    words = ["weighbridge clean"]
    if options.cluster or options.context or options.namespace:
        look = cleaning.find_in_cluster if options.check else cleaning.clean_cluster
        inventory = look(options.context, options.namespace, only)
        words += ["--cluster"]
        words += [
            f"--{name} {value}"
            for name, value in (("context", options.context), ("namespace", options.namespace))
            if value
        ]
    else:
        inventory = cleaning.find(only) if options.check else cleaning.clean(only)
    if only is not None and only in inventory.alive and not options.check:
        raise Leftovers(f"run {only} is still active ({inventory.alive[only]}). Stop it, and it cleans up by itself")
    _print(inventory, as_json=options.as_json)
    _require_clean(inventory, " ".join(words), only, check=options.check)
    of_run = f" of run {only}" if only else ""
    out().print(f"no {'other ' * bool(inventory.alive or inventory.foreign)}leftovers{of_run}")


def _require_clean(inventory: Inventory, command: str, only: str | None, *, check: bool) -> None:
    """Raise Leftovers if leftovers remain, or if part of the machine could not be checked."""
    if inventory.left and check:
        of_run = f" --run {only}" if only else ""
        raise Leftovers(f"found {plural(len(inventory.left), 'leftover')}: remove with '{command}{of_run}'")
    if inventory.left:
        raise Leftovers(f"{plural(len(inventory.left), 'leftover')} could not be removed")
    if inventory.failures:
        what = "checked" if check else "cleaned"
        raise Leftovers(f"not everything could be {what}. Fix the problems above, then run '{command}' again")


def _print(inventory: Inventory, *, as_json: bool) -> None:
    for alive, why in inventory.alive.items():
        err().print(f"run {alive} is still active ({why}) and not listed", markup=False, soft_wrap=True)
    for each in inventory.foreign:
        err().print(f"ignored: {each.path} {_FAULTS[each.fault]}", markup=False, soft_wrap=True)
    for failure in inventory.failures:
        err().print(failure, markup=False, soft_wrap=True)
    if as_json:
        print_json(_document(inventory))
        return
    for leftover in inventory.removed:
        out().print(f"removed: {leftover.kind} {leftover.name}", markup=False, soft_wrap=True)
    for leftover in inventory.left:
        whose = f" (run {leftover.run})" if leftover.run else ""
        out().print(f"{leftover.kind} {leftover.name}{whose}", markup=False, soft_wrap=True)


def _document(inventory: Inventory) -> CleanDocument:
    """Return the document of ``--json``."""
    return CleanDocument(
        leftovers=tuple(LeftoverRow(**asdict(each)) for each in inventory.left),
        removed=tuple(LeftoverRow(**asdict(each)) for each in inventory.removed),
        active={run: str(why) for run, why in inventory.alive.items()},
        ignored=tuple(IgnoredFolder(path=str(each.path), fault=each.fault.value) for each in inventory.foreign),
        failures=inventory.failures,
    )


def _run_id(named: str) -> RunId:
    """Return the id of the run that the user names by its directory or its id. Raises RunDirectoryError."""
    if not Path(named).exists():
        if RunId.matches(named):
            return RunId(named)
        raise RunDirectoryError(f"{named} is neither a run directory nor a run id (12 hexadecimal digits)")
    with RunStore(run_directory(Path(named))) as store:
        return store.run_id
