"""`weighbridge kit`."""

from collections.abc import Mapping
from pathlib import Path

from weighbridge.cli import approval
from weighbridge.cli.files import report_files
from weighbridge.errors import WeighbridgeError
from weighbridge.features.kit.kit import KitFile
from weighbridge.features.kit.kit import kit as files_of
from weighbridge.features.kit.options import KitOptions
from weighbridge.features.replication.published import parameters_of
from weighbridge.study.profiles import profiles_of

PUBLISHED = "published"
"""The default profile of kits, if the study has it."""


def kit(options: KitOptions) -> None:
    """Write the kit of a study to a new folder."""
    chosen = options.profile or (PUBLISHED if PUBLISHED in profiles_of(options.study) else None)
    loaded, origin = approval.load_named(options.study, chosen, yes=options.yes)
    approval.confirm_use(origin, loaded, yes=options.yes)
    name = loaded.file.study
    target = options.folder or Path(f"kit-{name}")
    write(files_of(loaded, parameters_of(name)), target)
    report_files([target], f"{target} written. {target / 'README.md'} explains how to run it")


def write(files: Mapping[str, KitFile], folder: Path) -> None:
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
