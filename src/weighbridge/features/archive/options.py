"""The options and examples of the commands of `weighbridge registry`."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from weighbridge.cli.declared import App, Declared, argument, flag
from weighbridge.cli.options import json_flag

_COMMANDS = "weighbridge.features.archive.command"
_repository = partial(argument, "REPO", "The folder of the registry, usually a git repository.")


@dataclass(frozen=True, slots=True)
class RegistryAddOptions:
    """Copy a finished run into a registry, and rebuild its index page.

    First prints what would be published. The copy has no raw outputs, no values of secrets, no names of hosts and
    no home folders. Weighbridge never pushes.
    """

    run: Path = argument("RUN", "A run directory, or a kept file.")
    repository: Path = _repository()
    raw: bool = flag("--raw", "Also keep the raw outputs of the programs, and all readings over time.")
    host_names: bool = flag("--host-names", "Keep the names and public addresses of hosts.")
    check: bool = flag("--check", "Only print what would be published.")
    commit: bool = flag("--commit", "Also commit the new files with git.")
    as_json: bool = json_flag()


@dataclass(frozen=True, slots=True)
class RegistryIndexOptions:
    """Rebuild the index page and the pages of all runs from the kept files."""

    repository: Path = _repository()
    strict: bool = flag("--strict", "Exit with 6 if a file had to be skipped.")
    as_json: bool = json_flag()


@dataclass(frozen=True, slots=True)
class RegistryListOptions:
    """List the runs of a registry: the kept file, the study, the date and the machine."""

    repository: Path = _repository()
    as_json: bool = json_flag()


REGISTRY = App(
    "registry",
    "Keep finished runs in a git repository, with one page as its index.",
    {"add": f"{__name__}:ADD", "index": f"{__name__}:INDEX", "list": f"{__name__}:LIST"},
)
ADD = Declared(
    f"{_COMMANDS}:add",
    RegistryAddOptions,
    (
        "weighbridge registry add runs/first-look-20261121-090000 results/ --check",
        "weighbridge registry add RUN results/ --commit",
    ),
    documents=("files",),
)
INDEX = Declared(
    f"{_COMMANDS}:index", RegistryIndexOptions, ("weighbridge registry index results/",), documents=("files",)
)
LIST = Declared(
    f"{_COMMANDS}:list_runs", RegistryListOptions, ("weighbridge registry list results/",), documents=("registry",)
)
