"""`weighbridge userland`."""

from weighbridge.cli import approval
from weighbridge.cli.commands.studies import UserlandOptions
from weighbridge.cli.output import err, out
from weighbridge.runner import userlands


def userland(options: UserlandOptions) -> None:
    """Push the images of a study, and print their names."""

    def say(line: str) -> None:
        err().print(line, markup=False, soft_wrap=True)

    loaded, origin = approval.load_named(options.study, options.profile, yes=options.yes)
    approval.confirm_use(origin, loaded, yes=options.yes)
    for name in userlands.push_userlands(loaded, options.repository, say):
        out().print(name, markup=False, soft_wrap=True)
