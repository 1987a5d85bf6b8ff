"""`weighbridge userland`."""

from enum import StrEnum

import typer

from weighbridge.cli.complete import complete_study
from weighbridge.cli.output import ProfileOption, err, examples, out


class Action(StrEnum):
    """What is done with a study's userlands."""

    PUSH = "push"


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples("weighbridge userland push kubernetes-limits registry.example/team/weighbridge"))
    def userland(
        action: Action = typer.Argument(help="Push it to a registry."),
        study: str = typer.Argument(help="A bundled study or a study file.", autocompletion=complete_study),
        repository: str = typer.Argument(metavar="REGISTRY/REPOSITORY", help="Where your engine may push to."),
        profile: str | None = ProfileOption,
        yes: bool = typer.Option(False, "--yes", "-y", help="Push without asking."),
    ) -> None:
        """Push the images that a study's pods need to a registry, by your own Docker or podman.

        A cluster pulls them by their digests: 'images: {push: REGISTRY/REPOSITORY}' of its hosts. A run pushes what
        is not there yet by itself.
        """
        from weighbridge.cli.approval import confirm_use, load_named
        from weighbridge.runner.userlands import push_userlands

        def say(line: str) -> None:
            err().print(line, markup=False, soft_wrap=True)

        loaded, origin = load_named(study, profile, yes=yes)
        confirm_use(origin, loaded, yes=yes)
        for name in push_userlands(loaded, repository, say):
            out().print(name, markup=False, soft_wrap=True)
