"""`weighbridge clean`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weighbridge.cli.options import ContextOption, JsonFlag, NamespaceOption
from weighbridge.cli.output import err, examples, out, print_json
from weighbridge.report.text.formatting import plural
from weighbridge.runner.file_ownership import Fault

if TYPE_CHECKING:
    from weighbridge.model.names import RunId
    from weighbridge.runner.clean import Inventory

_FAULTS = {
    Fault.OWNER: "belongs to a different user than its name says",
    Fault.KIND: "is neither a folder nor a regular file",
    Fault.UNREADABLE: "cannot be read",
}


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        epilog=examples(
            "weighbridge clean",
            "weighbridge clean --check",
            "weighbridge clean --run DIR",
            "weighbridge clean --cluster",
        )
    )
    def clean(
        check: bool = typer.Option(False, "--check", help="Only list leftovers; exit with 1 if there are any."),
        run: str | None = typer.Option(None, "--run", metavar="DIR|ID", help="Only this run: its directory or id."),
        cluster: bool = typer.Option(
            False, "--cluster", help="Clean the Kubernetes cluster of kubectl's context, after runs of any machine."
        ),
        context: str = ContextOption,
        namespace: str = NamespaceOption,
        as_json: bool = JsonFlag,
    ) -> None:
        """Remove the leftovers of interrupted or killed runs from this machine, or from a cluster.

        Active runs, run directories and cached root filesystems are kept.
        """
        from weighbridge.errors import Leftovers
        from weighbridge.runner import clean as cleaning

        only = None if run is None else _run_id(run)
        words = ["weighbridge clean"]
        if cluster or context or namespace:
            look = cleaning.find_in_cluster if check else cleaning.clean_cluster
            inventory = look(context, namespace, only)
            words += ["--cluster"]
            words += [
                f"--{name} {value}" for name, value in (("context", context), ("namespace", namespace)) if value
            ]
        else:
            inventory = cleaning.find(only) if check else cleaning.clean(only)
        if only is not None and only in inventory.alive and not check:
            raise Leftovers(
                f"run {only} is still active ({inventory.alive[only]}). Stop it, and it cleans up by itself"
            )
        _print(inventory, as_json=as_json)
        _require_clean(inventory, " ".join(words), only, check=check)
        if not as_json:
            of_run = f" of run {only}" if only else ""
            out().print(f"no {'other ' * bool(inventory.alive or inventory.foreign)}leftovers{of_run}")


def _require_clean(inventory: "Inventory", command: str, only: str | None, *, check: bool) -> None:
    """Raise Leftovers if leftovers remain, or if part of the machine could not be checked."""
    from weighbridge.errors import Leftovers

    if inventory.left and check:
        of_run = f" --run {only}" if only else ""
        raise Leftovers(f"found {plural(len(inventory.left), 'leftover')}: remove with '{command}{of_run}'")
    if inventory.left:
        raise Leftovers(f"{plural(len(inventory.left), 'leftover')} could not be removed")
    if inventory.failures:
        what = "checked" if check else "cleaned"
        raise Leftovers(f"not everything could be {what}. Fix the problems above, then run '{command}' again")


def _print(inventory: "Inventory", *, as_json: bool) -> None:
    for alive, why in inventory.alive.items():
        err().print(f"run {alive} is still active ({why}) and not listed", markup=False, soft_wrap=True)
    for each in inventory.foreign:
        err().print(f"ignored: {each.path} {_FAULTS[each.fault]}", markup=False, soft_wrap=True)
    for failure in inventory.failures:
        err().print(failure, markup=False, soft_wrap=True)
    if as_json:
        print_json([asdict(leftover) for leftover in inventory.left])
        return
    for leftover in inventory.removed:
        out().print(f"removed: {leftover.kind} {leftover.name}", markup=False, soft_wrap=True)
    for leftover in inventory.left:
        whose = f" (run {leftover.run})" if leftover.run else ""
        out().print(f"{leftover.kind} {leftover.name}{whose}", markup=False, soft_wrap=True)


def _run_id(named: str) -> "RunId":
    """Return the id of the run that the user names by its directory or its id. Raises RunDirectoryError."""
    from weighbridge.cli.runs import run_directory
    from weighbridge.errors import RunDirectoryError
    from weighbridge.model.names import RunId
    from weighbridge.store.run import RunStore

    if not Path(named).exists():
        if RunId.matches(named):
            return RunId(named)
        raise RunDirectoryError(f"{named} is neither a run directory nor a run id (12 hexadecimal digits)")
    with RunStore(run_directory(Path(named))) as store:
        return store.run_id
