"""`weighbridge clean`."""

from pathlib import Path

import typer

from weighbridge.cli.output import JsonFlag, err, examples, out, print_json
from weighbridge.report.text.formatting import plural
from weighbridge.runner.trust import Fault

_FAULTS = {
    Fault.OWNER: "belongs to a different user than its name says",
    Fault.KIND: "is neither a folder nor a regular file",
    Fault.UNREADABLE: "cannot be read",
}


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples("weighbridge clean", "weighbridge clean --check", "weighbridge clean --run DIR"))
    def clean(
        check: bool = typer.Option(False, "--check", help="Only list leftovers; exit with 1 if there are any."),
        run: str | None = typer.Option(None, "--run", metavar="DIR|ID", help="Only this run: its directory or id."),
        as_json: bool = JsonFlag,
    ) -> None:
        """Remove what interrupted or killed runs left on this machine.

        Running measurements, run directories and cached userlands are kept.
        """
        from dataclasses import asdict

        from weighbridge.errors import Leftovers
        from weighbridge.runner import clean as cleaning

        only = None if run is None else _run_id(run)
        inventory = cleaning.find(only) if check else cleaning.clean(only)
        left = inventory.left
        if only is not None and only in inventory.alive and not check:
            raise Leftovers(
                f"run {only} is still running ({inventory.alive[only]}): stop it, and it cleans up itself"
            )
        for alive, folder in inventory.alive.items():
            err().print(f"run {alive} is still running ({folder}): not listed", markup=False, soft_wrap=True)
        for each in inventory.foreign:
            err().print(f"ignored: {each.path} {_FAULTS[each.fault]}", markup=False, soft_wrap=True)
        for failure in inventory.failures:
            err().print(failure, markup=False, soft_wrap=True)
        if as_json:
            print_json([asdict(leftover) for leftover in left])
        else:
            for leftover in inventory.removed:
                out().print(f"removed: {leftover.kind} {leftover.name}", markup=False, soft_wrap=True)
            for leftover in left:
                whose = f" (run {leftover.run})" if leftover.run else ""
                out().print(f"{leftover.kind} {leftover.name}{whose}", markup=False, soft_wrap=True)
        if left and check:
            command = "weighbridge clean" if only is None else f"weighbridge clean --run {only}"
            raise Leftovers(f"{plural(len(left), 'leftover')}: remove with '{command}'")
        if left:
            raise Leftovers(f"{plural(len(left), 'leftover')} could not be removed")
        if inventory.failures:
            what = "checked" if check else "cleaned"
            raise Leftovers(f"not everything could be {what}: fix the above, then run 'weighbridge clean' again")
        if not as_json:
            of_run = f" of run {only}" if only else ""
            out().print(f"nothing {'else ' * bool(inventory.alive or inventory.foreign)}is left{of_run}")


def _run_id(named: str) -> str:
    """The id of the run that a person means by its directory or its id. Raises RunDirectoryError."""
    from weighbridge.cli.runs import run_directory
    from weighbridge.errors import RunDirectoryError
    from weighbridge.model.leavings import is_run_id
    from weighbridge.store.run import RunStore

    if not Path(named).exists():
        if is_run_id(named):
            return named
        raise RunDirectoryError(f"{named} is neither a run directory nor a run id (12 hexadecimal digits)")
    with RunStore(run_directory(Path(named))) as store:
        run_id = store.info().get("run_id", "")
    if not is_run_id(run_id):
        raise RunDirectoryError(f"{named} holds no run, so there is nothing to clean")
    return run_id
