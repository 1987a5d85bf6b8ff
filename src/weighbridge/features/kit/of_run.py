"""Converts a run to the files of a kit with which others repeat it: its study, its file, and a script."""

import copy
import gzip
import hashlib
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from weighbridge.analysis.analyse import analyse
from weighbridge.errors import RunDirectoryError
from weighbridge.features.kit.kit import KitFile
from weighbridge.features.kit.rendering import render, static
from weighbridge.features.replication.published import available
from weighbridge.model.secret import env_options, variables_of
from weighbridge.model.stored_study import secrets_of
from weighbridge.model.study import Study
from weighbridge.report.documents import run_markdown
from weighbridge.report.text.methods import methods_sentences
from weighbridge.report.text.verdicts import duration_text
from weighbridge.store.run import RunStore
from weighbridge.study.loader import check
from weighbridge.study.secret_keys import without_secrets
from weighbridge.study.source import Source, parse, written

STUDY, ORIGINAL = "study.yaml", "original.sqlite.gz"
HERE = "."
"""The working directory of the programs in the kit: the folder of the kit, whose script changes to it."""


def kit_of_run(store: RunStore) -> Mapping[str, KitFile]:
    """Return the files of a kit by path. Starts nothing and reads no file outside of the run.

    Raises RunDirectoryError for a run that another process writes, that an older version stored with secrets, or
    whose programs are in several folders. Raises StudyError if this version cannot read the study of the run.
    """
    database, study = store.file(), _study(store)
    files = {
        STUDY: study.text.encode(errors="replace"),
        ORIGINAL: gzip.compress(database, mtime=0),
        "repeat.sh": static("repeat.sh"),
        "README.md": _readme(store, study, database),
    }
    return {path: KitFile(data, path.endswith(".sh")) for path, data in files.items()}


def _study(store: RunStore) -> Study:
    """Return the study of a run as the kit has it: with the folder of the kit as working directory."""
    text = store.info().get("study_text", "")
    source = without_secrets(parse(text, f"the study of {store.directory}"), every=store.secrets() is None)
    if source.text != text:
        raise RunDirectoryError(
            f"{store.directory} was made by a version of Weighbridge that stored values of secrets, so it cannot be "
            "packed: repeat it with this version"
        )
    return check(_in_folder(source))


def _in_folder(source: Source) -> Source:
    """Return a study whose programs of this machine run in the folder of the kit instead of the author's folder."""
    data = copy.deepcopy(source.data)
    folders = [each for each in _userlands(data) if each.get("kind") == "host" and "folder" in each]
    if len({str(each["folder"]) for each in folders}) > 1:  # in one folder they would be the same programs
        raise RunDirectoryError(
            "the programs of this run are in several folders, for example two versions of a git repository, and a "
            "kit has only one folder: give others the repository and the command"
        )
    for each in folders:
        each["folder"] = HERE
    return parse(written(data), STUDY) if folders else source


def _userlands(data: Mapping[str, Any]) -> Iterator[MutableMapping[str, Any]]:
    """Yield the root filesystems that a study names."""
    environments = data.get("environments")
    places = [data, *(environments.values() if isinstance(environments, Mapping) else ())]
    for place in places:
        for key in ("userland", "client_userland"):
            if isinstance(place, Mapping) and isinstance(named := place.get(key), MutableMapping):
                yield named


def _readme(store: RunStore, study: Study, database: bytes) -> bytes:
    analysis = analyse(store)
    variables = variables_of(secrets_of(study))
    return render(
        "run-README.md.j2", version=store.info().get("version", "unknown"),
        duration=duration_text(store.spent_s()), environment=env_options(variables),
        published=analysis.study in available(), report=run_markdown(analysis),
        methods=" ".join(methods_sentences(store, analysis)), digest=hashlib.sha256(database).hexdigest(),
    )  # fmt: skip
