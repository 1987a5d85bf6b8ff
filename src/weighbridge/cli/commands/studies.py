"""The options and examples of studies, init, plan, kit, userland and schema: the commands about studies."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from weighbridge.cli.declared import Declared, argument, flag, option
from weighbridge.cli.feature import features
from weighbridge.cli.help import OUTPUT
from weighbridge.cli.options import (
    complete_study,
    explain_flag,
    json_flag,
    profile_option,
    quick_test_flag,
    rounds_option,
    set_option,
)


class Action(StrEnum):
    """The actions on the root filesystems of a study."""

    PUSH = "push"


DOCUMENTS: Mapping[str, str] = {
    "study": "",
    "report": "weighbridge.analysis.run_result:RunResult",
    "plan": "weighbridge.cli.plan:PlanDocument",
    "error": "weighbridge.cli.failure:ErrorDocument",
    "progress": "weighbridge.cli.events:Event",
    "doctor": "weighbridge.cli.documents:DoctorDocument",
    "noise": "weighbridge.cli.noise:NoiseDocument",
    "studies": "weighbridge.cli.documents:StudiesDocument",
    "files": "weighbridge.cli.documents:FilesDocument",
    "userland": "weighbridge.cli.documents:PushedDocument",
    "clean": "weighbridge.cli.documents:CleanDocument",
    "skill": "weighbridge.cli.documents:SkillDocument",
    "version": "weighbridge.cli.documents:VersionDocument",
} | {name: place for feature in features() for name, place in feature.documents.items()}
"""The documents with a JSON Schema, as ``module:type``: study files, the documents of ``--json``, and events."""
SchemaDocument = StrEnum("SchemaDocument", [(name.upper().replace("-", "_"), name) for name in DOCUMENTS])  # type: ignore[misc]
"""The names of the documents, as choices of a command."""


@dataclass(frozen=True, slots=True)
class StudiesOptions:
    """List the bundled studies and their profiles."""

    as_json: bool = json_flag()


STUDIES = Declared(
    "weighbridge.cli.studies:studies",
    StudiesOptions,
    (
        "weighbridge studies",
        "weighbridge init --from first-look mine.yaml",
    ),
    documents=("studies",),
)


@dataclass(frozen=True, slots=True)
class InitOptions:
    """Write a commented study file to start from."""

    file: Path = argument("FILE", "The file to write.", default=Path("study.yaml"))
    bundled_study: str | None = option("--from STUDY", "Copy this bundled study instead of the template.")
    as_json: bool = json_flag()


INIT = Declared(
    "weighbridge.cli.init:init",
    InitOptions,
    (
        "weighbridge init my-study.yaml",
        "weighbridge init --from first-look mine.yaml",
    ),
    documents=("files",),
)


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Show what a study will run and how long it takes. Runs nothing.

    Without --yes, Weighbridge starts and contacts nothing that your own study names.

    If 'weighbridge run' would refuse the study, the plan gives the reason and exits with the same code: 3 for too
    few rounds, 4 if something is missing on this machine.
    """

    study: str = argument("STUDY", "A bundled study or a study file.", autocompletion=complete_study)
    profile: str | None = profile_option()
    settings: list[str] = set_option()
    explain: bool = explain_flag()
    rounds: int | None = rounds_option()
    quick_test: bool = quick_test_flag()
    as_json: bool = json_flag()
    trials: bool = flag("--trials", "Also list every trial, in running order.", OUTPUT)
    yes: bool = flag(
        "--yes -y",
        "Also run docker-compose, read the study's files and images, and contact its cluster and Prometheus "
        "server. Only a run contacts ssh hosts.",
    )


PLAN = Declared(
    "weighbridge.cli.plan:plan",
    PlanOptions,
    (
        "weighbridge plan first-look",
        "weighbridge plan first-look --explain",
        "weighbridge plan my.yaml --yes",
    ),
    documents=("plan",),
)


@dataclass(frozen=True, slots=True)
class UserlandOptions:
    """Push the images of a study's pods to a registry, with your own Docker or podman.

    With 'images: {push: REGISTRY/REPOSITORY}' in the study's hosts, a cluster pulls them by digest. A run pushes
    missing images by itself.
    """

    action: Action = argument("push", "Push the images to a registry.")
    study: str = argument("STUDY", "A bundled study or a study file.", autocompletion=complete_study)
    repository: str = argument("REGISTRY/REPOSITORY", "A repository to which your engine can push.")
    profile: str | None = profile_option()
    yes: bool = flag("--yes -y", "Push without asking.")
    as_json: bool = json_flag()


USERLAND = Declared(
    "weighbridge.cli.userland:userland",
    UserlandOptions,
    ("weighbridge userland push kubernetes-limits registry.example/team/weighbridge",),
    documents=("userland",),
)


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """Print the JSON Schema of study files (for your editor), or of the JSON of a command.

    The output is JSON with and without --json.
    """

    document: SchemaDocument = argument(
        "DOCUMENT",
        f"Study files, or the JSON of a command: {', '.join(DOCUMENTS)}.",
        default=SchemaDocument("study"),
    )
    as_json: bool = json_flag()


SCHEMA = Declared(
    "weighbridge.cli.schema:schema",
    SchemaOptions,
    (
        "weighbridge schema > study.schema.json",
        "weighbridge schema report",
    ),
)
