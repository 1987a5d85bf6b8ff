"""A program that is started inside a control group, with what the user's shell is set to taken away from it."""

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
    """The argument list that joins the group, with as many open files as everywhere, and then becomes ``argv``.

    ``everywhere``: in every hierarchy, also where the group has no limits. ``layer``: the launcher's options for a
    layer over a folder, behind which the program is.
    Raises Unavailable, UserlandError and DiskFull where the launcher cannot be built. A program that cannot be
    started is told as a launcher's refusal.
    """
    files = () if group is None else group.everywhere if everywhere else group.procs
    joins = [word for path in files for word in ("--join", str(path))]
    launcher = host.program(build.ensure(run.cache, run.say))
    return (launcher, *joins, "--files", str(most_open_files()), *layer, "--exec", *argv)
