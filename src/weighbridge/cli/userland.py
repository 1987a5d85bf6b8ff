"""`weighbridge userland`."""

from weighbridge.cli import approval
from weighbridge.cli.commands.studies import UserlandOptions
from weighbridge.cli.documents import PushedDocument
from weighbridge.cli.output import err, out, print_json
from weighbridge.runner import userlands


def userland(options: UserlandOptions) -> None:
    """Push the images of a study, and print their names."""

    def say(line: str) -> None:
        err().print(line, markup=False, soft_wrap=True)

    loaded, origin = approval.load_named(options.study, options.profile, yes=options.yes)
    approval.confirm_use(origin, loaded, yes=options.yes)
    images = [*userlands.push_userlands(loaded, options.repository, say)]
    for name in images:
        out().print(name, markup=False, soft_wrap=True)
    if options.as_json:
        print_json(PushedDocument(images=tuple(images)))
