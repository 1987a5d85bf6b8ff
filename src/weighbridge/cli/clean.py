"""`weighbridge clean`."""

import typer

from weighbridge.cli.output import JsonFlag, err, examples, out, plural, print_json
from weighbridge.runner.trust import Fault

_FAULTS = {
    Fault.OWNER: "belongs to another user than its name says",
    Fault.KIND: "is no folder or regular file",
    Fault.UNREADABLE: "cannot be read",
}


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples("weighbridge clean", "weighbridge clean --check"))
    def clean(
        check: bool = typer.Option(False, "--check", help="Only list what is left; exit with 1 where anything is."),
        as_json: bool = JsonFlag,
    ) -> None:
        """Remove everything that interrupted or killed runs left on this machine.

        What a living run uses, run directories and cached userlands stay.
        """
        from dataclasses import asdict

        from weighbridge.errors import Leftovers
        from weighbridge.runner import clean as cleaning

        found = cleaning.find() if check else cleaning.clean()
        left = found.left
        for run, folder in found.alive.items():
            err().print(f"run {run} is alive ({folder}): what it uses is not listed", markup=False, soft_wrap=True)
        for each in found.foreign:
            err().print(f"ignored: {each.path} {_FAULTS[each.fault]}", markup=False, soft_wrap=True)
        if as_json:
            print_json([asdict(leftover) for leftover in left])
        else:
            for leftover in left:
                out().print(f"{leftover.kind} {leftover.name} (run {leftover.run})", markup=False, soft_wrap=True)
        if left:
            raise Leftovers(
                f"{plural(len(left), 'thing')} left: weighbridge clean removes what is left"
                if check
                else f"{plural(len(left), 'thing')} could not be removed"
            )
        if not as_json:
            out().print("nothing else is left" if found.alive or found.foreign else "nothing is left")
