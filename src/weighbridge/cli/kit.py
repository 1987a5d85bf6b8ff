"""`weighbridge kit`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weighbridge.cli.complete import complete_study
from weighbridge.cli.output import examples, out
from weighbridge.errors import WeighbridgeError

if TYPE_CHECKING:
    from weighbridge.kit.kit import KitFile

PUBLISHED = "published"
"""The default profile of kits, if the study has it."""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        epilog=examples(
            "weighbridge kit docker-networks",
            "weighbridge kit first-look --out by-hand/",
            "weighbridge kit docker-networks --profile standard",
            "weighbridge kit my.yaml --yes",
        )
    )
    def kit(
        study: str = typer.Argument(help="A bundled study or a study file.", autocompletion=complete_study),
        folder: Path | None = typer.Option(
            None, "--out", metavar="FOLDER", help="Output folder, empty or new. Default: kit-STUDY."
        ),
        profile: str | None = typer.Option(
            None,
            "--profile",
            metavar="NAME",
            help="A profile of the study, or 'standard': the study itself. Default: 'published' if it exists.",
        ),
        yes: bool = typer.Option(False, "--yes", "-y", help="Read the files that the study names without asking."),
    ) -> None:
        """Write a folder with everything to run a study by hand, without Weighbridge.

        The folder has a Dockerfile, Compose files, scripts and a README.
        """
        from weighbridge.cli.approval import confirm_use, load_named
        from weighbridge.kit.kit import kit as files_of
        from weighbridge.replication.published import parameters_of
        from weighbridge.study.profiles import profiles_of

        chosen = profile or (PUBLISHED if PUBLISHED in profiles_of(study) else None)
        loaded, origin = load_named(study, chosen, yes=yes)
        confirm_use(origin, loaded, yes=yes)
        name = loaded.file.study
        target = folder or Path(f"kit-{name}")
        write(files_of(loaded, parameters_of(name)), target)
        out().print(f"{target} written. {target / 'README.md'} explains how to run it", markup=False, soft_wrap=True)


def write(files: "Mapping[str, KitFile]", folder: Path) -> None:
    """Write the files of a kit. Raises WeighbridgeError if the folder is not empty."""
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise WeighbridgeError(f"{folder} is not empty: choose another folder with --out")
        for path, file in files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.data)
            place.chmod(0o755 if file.executable else 0o644)
    except OSError as error:
        raise WeighbridgeError(f"cannot write {folder}: {error.strerror}") from None
