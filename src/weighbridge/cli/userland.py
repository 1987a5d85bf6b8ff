"""`weighbridge userland`."""

from enum import StrEnum

import typer

from weighbridge.cli.complete import complete_study
from weighbridge.cli.options import ProfileOption
from weighbridge.cli.output import err, examples, out


class Action(StrEnum):
    """The actions on the root filesystems of a study."""

    PUSH = "push"


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples("weighbridge userland push kubernetes-limits registry.example/team/weighbridge"))
    def userland(
        action: Action = typer.Argument(metavar="push", help="Push the images to a registry."),
        study: str = typer.Argument(help="A bundled study or a study file.", autocompletion=complete_study),
        repository: str = typer.Argument(
            metavar="REGISTRY/REPOSITORY", help="A repository to which your engine can push."
        ),
        profile: str | None = ProfileOption,
        yes: bool = typer.Option(False, "--yes", "-y", help="Push without asking."),
    ) -> None:
        """Push the images of a study's pods to a registry, with your own Docker or podman.

        With 'images: {push: REGISTRY/REPOSITORY}' in the study's hosts, a cluster pulls them by digest. A run pushes
        missing images by itself.
        """
        from weighbridge.cli.approval import confirm_use, load_named
        from weighbridge.runner.userlands import push_userlands

        def say(line: str) -> None:
            err().print(line, markup=False, soft_wrap=True)

        loaded, origin = load_named(study, profile, yes=yes)
        confirm_use(origin, loaded, yes=yes)
        for name in push_userlands(loaded, repository, say):
            out().print(name, markup=False, soft_wrap=True)
