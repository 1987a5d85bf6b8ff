"""Starts a program inside a control group, without settings of the user's shell."""

from weighbridge.launcher import build
from weighbridge.linux.process import most_open_files
from weighbridge.model.host import Group, Host, RunContext


def within(
    host: Host,
    run: RunContext,
    group: Group | None,
    *argv: str,
    everywhere: bool = False,
    layer: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Return the argument list that joins the group, sets the limit of open files, and then becomes ``argv``.

    ``everywhere`` joins in every hierarchy, even if the group has no limits. ``layer`` are the launcher's options for
    a layer over the folder that contains the program, or for a read-only machine. Raises Unavailable, UserlandError
    and DiskFull if the launcher cannot be built. A program that cannot be started is a refusal of the launcher.
    """
    files = () if group is None else group.everywhere if everywhere else group.procs
    joins = [word for path in files for word in ("--join", str(path))]
    launcher = host.program(build.ensure(run.cache, run.say))
    return (launcher, *joins, "--files", str(most_open_files()), *layer, "--exec", *argv)
