"""`weighbridge kit`."""

from collections.abc import Mapping
from pathlib import Path

from weighbridge.cli import approval
from weighbridge.cli.files import report_files
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.runs import run_directory
from weighbridge.errors import WeighbridgeError
from weighbridge.features.kit.kit import KitFile
from weighbridge.features.kit.kit import kit as files_of
from weighbridge.features.kit.of_run import kit_of_run
from weighbridge.features.kit.options import KitOptions
from weighbridge.features.replication.published import parameters_of
from weighbridge.store.run import RunStore
from weighbridge.study.profiles import profiles_of

PUBLISHED = "published"
"""The default profile of kits, if the study has it."""


def kit(options: KitOptions) -> None:
    """Write the kit of a study, or of a run, to a new folder."""
    if (options.study is None) is (options.run is None):
        fail("name either a study or a run: weighbridge kit STUDY, or weighbridge kit --run RUN", WRONG_COMMAND_LINE)
    if options.run is not None:
        if options.profile is not None:
            fail("--profile needs a study, because a run already has one", WRONG_COMMAND_LINE)
        _pack(options.run, options.folder)
        return
    assert options.study is not None
    chosen = options.profile or (PUBLISHED if PUBLISHED in profiles_of(options.study) else None)
    loaded, origin = approval.load_named(options.study, chosen, yes=options.yes)
    approval.confirm_use(origin, loaded, yes=options.yes)
    name = loaded.file.study
    target = options.folder or Path(f"kit-{name}")
    write(files_of(loaded, parameters_of(name)), target)
    report_files([target], f"{target} written. {target / 'README.md'} explains how to run it")


def _pack(run: Path, folder: Path | None) -> None:
    with RunStore(run_directory(run)) as store:
        target = folder or Path(f"kit-{store.run_id}")
        write(kit_of_run(store), target)
    report_files([target], f"{target} written. Others repeat the run with {target / 'repeat.sh'}")


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
